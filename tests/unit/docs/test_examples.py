"""The examples that need no cluster run as they are printed."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import write_deltalake
from tests.support.documents import EXAMPLES, example_blocks, run_blocks
from tests.support.repository import ROOT


def test_the_index_lists_every_example() -> None:
    index = (ROOT / EXAMPLES / "README.md").read_text()
    pages = [path.name for path in (ROOT / EXAMPLES).glob("*.md") if path.name != "README.md"]
    assert pages
    assert [name for name in pages if f"({name})" not in index] == []


def test_reading_without_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    seen = run_blocks("docs/reading.md", tmp_path)
    assert seen["table"].version() == 2


def test_writing_without_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    seen = run_blocks("docs/writing.md", tmp_path)
    assert seen["table"].to_pyarrow_table().num_rows == 3


def test_coming_from_deltalake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    seen = run_blocks("docs/from-deltalake.md", tmp_path)
    assert seen["opened"].version() == 1


def test_streaming_without_spark(tmp_path: Path) -> None:
    seen = run_blocks("docs/streaming.md", tmp_path)
    assert sorted(seen["handled"]) == ["ann", "bob", "cid"]
    assert seen["DeltaTable"](seen["COPY"]).count() == 3


def test_tailing_a_table(tmp_path: Path) -> None:
    seen = run_blocks(f"{EXAMPLES}/event_tailing.md", tmp_path)
    assert seen["handled"] == ["ann", "cid", "dee"]


def test_pinning_a_training_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "runs").as_uri())
    # MLflow wants a database for new servers; its file store is enough to keep a run's parameters.
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    seen = run_blocks(f"{EXAMPLES}/training_version.md", tmp_path)
    assert seen["slope"] == 2.0
    assert seen["again"].version() == 0


def test_batches_for_training(tmp_path: Path) -> None:
    seen = run_blocks(f"{EXAMPLES}/pytorch.md", tmp_path)
    assert len(seen["seen"]) == 19


def test_batches_in_a_data_loader(tmp_path: Path) -> None:
    document = f"{EXAMPLES}/pytorch.md"
    for block in example_blocks(document, tag="torch"):
        compile(block.body, document, "exec")
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed (gigabytes, not among the development extras)")
    names = run_blocks(document, tmp_path)
    assert run_blocks(document, tmp_path, tag="torch", **names)["total"] == 19


def test_the_pipelines_pages_query_their_tables(tmp_path: Path) -> None:
    orders = pa.table({"id": [1, 2], "deleted": [False, True]})
    write_deltalake(str(tmp_path / "orders"), orders, mode="error")
    for address in ("10.0.0.1", "172.16.0.1"):
        write_deltalake(str(tmp_path / "logs_silver"), pa.table({"destIP": [address]}), mode="append")

    assert run_blocks("docs/dags/cdc_orders.md", tmp_path, tag="query")["orders"]["id"].to_pylist() == [1]
    assert len(run_blocks("docs/dags/medallion_logs.md", tmp_path, tag="query")["opened"]) == 1
