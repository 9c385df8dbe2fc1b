"""Committing files that another engine wrote."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core.actions import AddFile, SetTransaction
from delta_core.data.row_files import write_data_files
from delta_core.dml.commit_files import commit_new_files
from delta_core.dml.metadata_update import TableDefinition
from delta_core.errors import (
    ConcurrentAppendError,
    ConcurrentModificationError,
    ConfigurationError,
    ExpressionError,
    SchemaMismatchError,
    TableExistsError,
)
from delta_core.run import Run
from delta_core.scan.scan import Scan
from delta_core.schema.arrow import from_arrow
from delta_core.snapshot.history import history
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from delta_core.table_features.feature import WriterKind
from delta_core.transaction.commit_properties import CommitProperties


@pytest.fixture
def store(tmp_path: Path) -> LocalLogStore:
    return LocalLogStore(tmp_path)


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "p": [f"p{i % 2}" for i in ids]})


BY_P = TableDefinition(partition_by=["p"])


def written(store: LocalLogStore, data: pa.Table, *, partition_by: tuple[str, ...] = ("p",)) -> list[AddFile]:
    return write_data_files(
        store, data, schema=from_arrow(data.schema), partition_columns=partition_by, directory="job-1"
    )


def commit(store: LocalLogStore, adds: list[AddFile], data: pa.Table, **options: Any) -> Any:
    snapshot = Snapshot.load(store) if Snapshot.exists(store) else None
    options.setdefault("mode", "append")
    options.setdefault("writer_kind", WriterKind.ARROW_ROWS)
    return commit_new_files(snapshot, store, adds=adds, schema=from_arrow(data.schema), **options)


def ids(store: LocalLogStore) -> list[int]:
    return sorted(Scan(Snapshot.load(store)).to_table().column("id").to_pylist())


def num_data_files(store: LocalLogStore) -> int:
    return sum(info.path.startswith("job-1/") for info in store.walk())


def test_a_table_that_exists_is_not_created_again(store: LocalLogStore) -> None:
    key = SetTransaction(app_id="job", version=1)
    first = Run(commit=CommitProperties(txn=key))
    data = rows(1)
    commit(store, written(store, data), data, definition=BY_P, mode="create", run=first)
    with pytest.raises(TableExistsError, match="already exists"):
        commit(store, written(store, data), data, definition=BY_P, mode="create")
    assert num_data_files(store) == 1, "the refused files are deleted"
    again = commit(store, written(store, data), data, definition=BY_P, mode="create", run=first)
    assert again.already_applied
    assert ids(store) == [1]


def test_creates_appends_replaces_and_overwrites(store: LocalLogStore) -> None:
    first = rows(1, 2)
    created = commit(store, written(store, first), first, definition=BY_P)
    assert created.version == 0
    commit(store, written(store, rows(3, 4)), first)
    assert ids(store) == [1, 2, 3, 4]
    commit(store, written(store, rows(6)), first, mode="replace_where", predicate="p = 'p0'")
    assert ids(store) == [1, 3, 6]
    commit(store, written(store, rows(7)), first, mode="replace_where", predicate="id >= 3 AND id < 7")
    assert ids(store) == [1, 7]
    commit(store, written(store, rows(9)), first, mode="overwrite")
    assert ids(store) == [9]
    newest = history(store, limit=1)[0].commit_info
    assert newest.operation_metrics["numRemovedFiles"] == "2"


def test_key_makes_a_retry_harmless(store: LocalLogStore) -> None:
    data = rows(1, 2)
    properties = CommitProperties(txn=SetTransaction(app_id="job", version=0))
    commit(store, written(store, data), data, definition=BY_P, run=Run(commit=properties))
    again = commit(store, written(store, data), data, run=Run(commit=properties))
    assert again.already_applied
    assert ids(store) == [1, 2]


def test_files_laid_out_otherwise_are_refused_and_deleted(store: LocalLogStore) -> None:
    data = rows(1, 2)
    commit(store, written(store, data), data, definition=BY_P)
    before = num_data_files(store)
    with pytest.raises(SchemaMismatchError, match="are partitioned by"):
        commit(store, written(store, rows(3), partition_by=()), data)
    other = pa.table({"id": ["x"], "p": ["p0"]})
    with pytest.raises(SchemaMismatchError):
        commit(store, written(store, other), other)
    with pytest.raises(ExpressionError):
        commit(store, written(store, rows(3)), data, mode="replace_where", predicate="nope = 1")
    assert num_data_files(store) == before


def test_same_file_twice_is_refused(store: LocalLogStore) -> None:
    data = rows(1)
    (add,) = written(store, data)
    with pytest.raises(Exception, match="same file twice"):
        commit(store, [add, replace(add)], data, definition=BY_P)
    assert not Snapshot.exists(store)


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "append", "predicate": "id = 1"},
        {"mode": "replace_where"},
        {"mode": "append", "definition": TableDefinition(overwrite_schema=True)},
        {"mode": "overwrite", "definition": TableDefinition(overwrite_schema=True, merge_schema=True)},
    ],
)
def test_arguments_that_contradict_each_other(store: LocalLogStore, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        commit(store, [], rows(1), **options)


def test_rows_that_depend_on_the_table_conflict_with_every_change(store: LocalLogStore) -> None:
    """Two loads that both looked for known keys once both appended the same event."""
    first = rows(1)
    commit(store, written(store, first), first, definition=BY_P)
    before = Snapshot.load(store)
    commit(store, written(store, rows(2)), first)
    kept = num_data_files(store)
    options: dict[str, Any] = {"mode": "append", "schema": from_arrow(first.schema)}
    options["writer_kind"] = WriterKind.ARROW_ROWS
    with pytest.raises(ConcurrentAppendError):
        commit_new_files(before, store, adds=written(store, rows(2)), reads_table=True, **options)
    assert (ids(store), num_data_files(store)) == ([1, 2], kept)
    commit_new_files(before, store, adds=written(store, rows(3)), **options)
    assert ids(store) == [1, 2, 3]
    commit_new_files(Snapshot.load(store), store, adds=written(store, rows(4)), reads_table=True, **options)
    assert ids(store) == [1, 2, 3, 4]


def test_a_table_that_appears_conflicts_with_rows_that_depend_on_it(store: LocalLogStore) -> None:
    data = rows(1)
    adds = written(store, data)
    commit(store, written(store, data), data, definition=BY_P)
    with pytest.raises(ConcurrentModificationError):
        commit_new_files(
            None,
            store,
            writer_kind=WriterKind.ARROW_ROWS,
            mode="append",
            adds=adds,
            schema=from_arrow(data.schema),
            definition=BY_P,
            reads_table=True,
        )
    assert ids(store) == [1]
