"""The fuzzer finds what it is there to find: each kind of fault, planted, is told from a right answer."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core.errors import CorruptLogError
from tests.support.fuzz import reading
from tests.support.fuzz.corpus import make_corpus
from tests.support.fuzz.judge import FAULT, OTHER, REFUSED, RIGHT, UNVERIFIED, judge
from tests.support.fuzz.runner import WorkerProcess

HINT = "_delta_log/_last_checkpoint"
COMMIT = "_delta_log/00000000000000000003.json"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    make_corpus(folder)
    return folder


def verdict_of(root: Path, damaged: str = COMMIT) -> tuple[str, str]:
    whole = reading.read_everything(root).values
    found = judge(reading.read_everything(root), root, damaged, whole)
    return found.outcome, found.detail


def planted(monkeypatch: pytest.MonkeyPatch, way: str, read: Callable[[Any], Any]) -> None:
    """Let one way of reading go wrong from its second use on."""
    right, uses = reading.WAYS[way], iter(range(10))
    monkeypatch.setitem(reading.WAYS, way, lambda table: read(right(table)) if next(uses) else right(table))


def fails(error: BaseException) -> Callable[[Any], Any]:
    def read(_: Any) -> Any:
        raise error

    return read


def warns(value: Any) -> Any:
    warnings.warn("something is not closed", ResourceWarning, stacklevel=1)
    return value


def test_every_table_of_the_corpus_is_read_alike(corpus: Path) -> None:
    for root in sorted(corpus.iterdir()):
        assert verdict_of(root) == (RIGHT, ""), root.name


@pytest.mark.parametrize(
    ("read", "reason"),
    [
        (fails(KeyError("x")), "builtins.KeyError"),
        (fails(CorruptLogError("Something is wrong.")), "names neither file nor table"),
        (fails(CorruptLogError(f"{COMMIT}: malloc of size 4294967296 failed")), "too much memory"),
        (warns, "warning: ResourceWarning"),
        (lambda value: value[1:], "files: more"),
    ],
)
def test_a_fault_is_told(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[Any], Any], reason: str
) -> None:
    planted(monkeypatch, "files", read)
    outcome, detail = verdict_of(corpus / "plain")
    assert outcome == FAULT
    assert reason in detail


def test_an_error_that_hides_a_lack_of_memory_is_a_fault(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = CorruptLogError(f"{COMMIT} is damaged.")
    error.__cause__ = pa.ArrowMemoryError("4 GB")
    planted(monkeypatch, "files", fails(error))
    outcome, detail = verdict_of(corpus / "plain")
    assert outcome == FAULT
    assert "too much memory" in detail


def test_a_typed_error_that_names_the_file_is_none(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted(monkeypatch, "files", fails(CorruptLogError(f"{COMMIT} is damaged.")))
    assert verdict_of(corpus / "plain")[0] == REFUSED


def test_another_table_is_told_from_a_misread_one(corpus: Path) -> None:
    root = corpus / "mapped"
    path = root / COMMIT
    whole, before = reading.read_everything(root).values, path.read_bytes()
    try:
        path.write_bytes(before.replace(b'"c"', b'"z"'))
        other = reading.read_everything(root)
        assert judge(other, root, COMMIT, whole).outcome == OTHER
        path.write_bytes(before[: len(before) // 2])
        assert judge(other, root, COMMIT, whole).outcome == UNVERIFIED
        path.write_bytes(before)
        assert judge(other, root, COMMIT, whole).outcome == FAULT
    finally:
        path.write_bytes(before)


@pytest.mark.slow
def test_a_worker_that_dies_is_told_and_replaced(corpus: Path, tmp_path: Path) -> None:
    worker = WorkerProcess(tmp_path, corpus, "seed")
    try:
        first = worker.read(1)
        assert worker.process is not None
        os.kill(worker.process.pid, signal.SIGKILL)
        worker.process.wait()
        assert worker.read(1)["outcome"] == FAULT
        again = worker.read(1)
        assert {**again, "seconds": 0} == {**first, "seconds": 0}
    finally:
        worker.close()
