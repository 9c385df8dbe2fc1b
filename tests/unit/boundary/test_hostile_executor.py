"""Whatever somebody else's executor or source of rows raises is the cause of a typed error."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, GroupCommit, clone_table, convert_to_deltalake, write_deltalake
from delta_core.boundary import typed_error
from delta_core.errors import (
    ConfigurationError,
    DeltaError,
    InputDataError,
    StorageError,
    StorageFullError,
    UnexpectedError,
    VerificationError,
)
from delta_core.execution.inline_executor import InlineExecutor
from delta_core.jobs.context import JobContext
from delta_core.jobs.job_spec import JobSpec, TableRef
from delta_core.jobs.run_job import run_job
from tests.support.hostile_calls import Locked, prepared

FULL = OSError(28, "No space left on device", "/t/x")


def nested() -> Exception:
    """A failure that hides a full disk, as pyarrow's writers make them."""
    try:
        try:
            raise FULL
        except OSError:
            raise RuntimeError("file metadata is only available after writer close")  # noqa: B904
    except RuntimeError as error:
        return error


RAISED: dict[str, tuple[Callable[[], Exception], type[DeltaError]]] = {
    "value": (lambda: ValueError("x"), UnexpectedError),
    "key": (lambda: KeyError("x"), UnexpectedError),
    "memory": (lambda: MemoryError(), UnexpectedError),
    "arrow": (lambda: pa.ArrowInvalid("x"), UnexpectedError),
    "locked": (lambda: Locked("x"), UnexpectedError),
    "stop": (lambda: StopIteration(1), UnexpectedError),
    "group": (lambda: ExceptionGroup("x", [ValueError("y")]), UnexpectedError),
    "full": (lambda: FULL, StorageFullError),
    "hidden": (nested, StorageFullError),
    "timeout": (lambda: TimeoutError("x"), UnexpectedError),
    "broken": (lambda: OSError(5, "Input/output error"), StorageError),
    "typed": (lambda: VerificationError("x"), VerificationError),
}


class Raising(InlineExecutor):
    """An executor whose map fails, at once or after the first task."""

    def __init__(self, error: Exception, *, late: bool = False) -> None:
        super().__init__(1)
        self._error = error
        self._late = late

    def map(self, function: Any, tasks: Sequence[Any]) -> Iterator[Any]:
        if self._late and tasks:
            yield 0, function(tasks[0])
        raise self._error


CALLS: dict[str, Callable[[Path, Any], Any]] = {
    "compact": lambda place, executor: DeltaTable(place / "t").optimize.compact(executor=executor),
    "z_order": lambda place, executor: DeltaTable(place / "t").optimize.z_order(["id"], executor=executor),
    "purge": lambda place, executor: DeltaTable(place / "t").optimize.purge(executor=executor),
    "convert": lambda place, executor: convert_to_deltalake(place / "files", executor=executor),
    "clone": lambda place, executor: clone_table(place / "t", place / "c", shallow=False, executor=executor),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nothing changes it, since every call fails."""
    return prepared(tmp_path_factory.mktemp("tables"))


@pytest.mark.parametrize("name", RAISED)
@pytest.mark.parametrize("call", CALLS)
def test_what_an_executor_raises_is_the_cause_of_a_typed_error(call: str, name: str, place: Path) -> None:
    make, kind = RAISED[name]
    data = sorted(place.rglob("*.parquet"))
    for late in (False, True):
        error = make()
        with pytest.raises(DeltaError) as caught:
            CALLS[call](place, Raising(error, late=late))
        assert type(caught.value) is kind
        if not isinstance(error, DeltaError | StopIteration):
            assert caught.value.__cause__ is error
        assert pickle.loads(pickle.dumps(caught.value)).code == kind.code
    # A copy of what was left out stays a table of the same rows.
    assert DeltaTable(place / "t").to_pyarrow_table().num_rows == 5
    assert data == [path for path in sorted(place.rglob("*.parquet")) if "/c/" not in str(path)]


class End(BaseException):
    """Ends the program."""


def test_what_ends_the_program_passes(place: Path) -> None:
    for error in (KeyboardInterrupt(), SystemExit(1), End()):
        with pytest.raises(type(error)):
            CALLS["compact"](place, Raising(error))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", RAISED)
def test_a_job_says_what_was_raised_by_its_code(name: str, place: Path) -> None:
    make, kind = RAISED[name]
    spec = JobSpec(kind="optimize", table=TableRef(uri=str(place / "t")), params={})
    result = run_job(spec, JobContext(executor=Raising(make())))
    assert result.error is not None
    assert (result.error.code, result.error.retryable) == (kind.code, kind.retryable)


def test_what_a_source_of_rows_raises_is_told_from_the_store(tmp_path: Path) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"id": [1]})
        raise FULL

    schema = pa.schema([("id", pa.int64())])
    write_deltalake(tmp_path / "t", schema.empty_table())
    for write in (
        lambda rows: write_deltalake(tmp_path / "t", rows, mode="append"),
        lambda rows: write_deltalake(tmp_path / "t", [rows], mode="append"),
        lambda rows: GroupCommit(tmp_path / "t").append(rows),
    ):
        with pytest.raises(InputDataError, match="No space left") as caught:
            write(pa.RecordBatchReader.from_batches(schema, broken()))
        assert not caught.value.retryable

    class Frame:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            raise ZeroDivisionError("the frame broke")

    with pytest.raises(ConfigurationError, match="ZeroDivisionError: the frame broke"):
        write_deltalake(tmp_path / "t", Frame(), mode="append")
    assert DeltaTable(tmp_path / "t").to_pyarrow_table().num_rows == 0


def test_iterators_raise_typed_errors_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = prepared(tmp_path)

    def fails(*args: object, **kwargs: object) -> Iterator[object]:
        yield from {}["x"]

    table = DeltaTable(place / "t")
    monkeypatch.setattr("delta_core.scan.change_data.ChangeDataScan.to_batches", fails)
    with pytest.raises(UnexpectedError, match="Reading changes failed"):
        table.load_cdf(starting_version=3).read_all()
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", fails)
    monkeypatch.setattr(pq.ParquetFile, "read_row_group", fails)
    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", fails)
    with pytest.raises(DeltaError):
        list(table.to_batches())


def test_an_error_whose_text_cannot_be_had_is_told_by_its_class() -> None:
    class OddError(Exception):
        def __str__(self) -> str:
            raise ValueError("no text")

    found = typed_error(OddError(), doing="it")
    assert "OddError: (its message is not available)" in str(found)
    inner = VerificationError("x", cause="y")
    outer = RuntimeError("z")
    outer.__cause__ = inner
    again = typed_error(outer, doing="it")
    assert (type(again), str(again)) == (VerificationError, str(inner))
    assert again is not inner
    # Exceptions can be each other's causes.
    inner.__cause__ = outer
    assert type(typed_error(copy.copy(outer), doing="it")) is UnexpectedError


def test_a_message_does_not_grow_with_the_value_that_it_quotes() -> None:
    assert len(str(ConfigurationError("x" * 1_000_000, cause="y" * 1_000_000))) < 100_000
