"""Two writers create a table at the same time: one table comes of it, and no row is read wrongly."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.data.row_files import write_data_files
from delta_core.dml.commit_files import commit_new_files
from delta_core.dml.definition.create import create_table
from delta_core.errors import ConfigurationError, MetadataChangedError, TableExistsError
from delta_core.schema.arrow import from_arrow
from delta_core.storage.local import LocalLogStore
from delta_core.table_features.feature import WriterKind
from tests.support.faulty_store import FaultyStore

ROWS = pa.table({"id": pa.array([1, 2], pa.int64())})
THEIRS = pa.table({"id": pa.array([7], pa.int64())})


def _raced(root: Path, **options: object) -> FaultyStore:
    """A store where somebody else creates the table right before our first commit lands."""
    store = FaultyStore(LocalLogStore(root))

    def meanwhile(path: str) -> None:
        store.before_put = None
        write_deltalake(root, THEIRS, **options)  # type: ignore[arg-type]

    store.before_put = meanwhile
    return store


def test_an_empty_table_that_another_writer_creates_first_stays_theirs(tmp_path: Path) -> None:
    store = _raced(tmp_path)
    with pytest.raises(TableExistsError, match="A Delta table already exists"):
        create_table(store, schema=from_arrow(pa.schema({"other": pa.string()})))
    assert DeltaTable(tmp_path).version() == 0
    assert DeltaTable(tmp_path).to_pyarrow_table() == THEIRS


def test_rows_written_for_a_plain_table_do_not_go_into_a_mapped_one(tmp_path: Path) -> None:
    """Their files have the column under another name: ours would be read as nulls."""
    store = _raced(tmp_path, configuration={"delta.columnMapping.mode": "name"})
    schema = from_arrow(ROWS.schema)
    adds = write_data_files(store, ROWS, schema=schema)
    with pytest.raises(MetadataChangedError, match="created the table at the same time"):
        commit_new_files(
            None, store, writer_kind=WriterKind.ARROW_ROWS, mode="append", adds=adds, schema=schema
        )
    assert DeltaTable(tmp_path).version() == 0
    assert DeltaTable(tmp_path).to_pyarrow_table() == THEIRS


def test_two_constraints_at_once_are_refused(tmp_path: Path) -> None:
    write_deltalake(tmp_path, ROWS)
    table = DeltaTable(tmp_path)
    with pytest.raises(ConfigurationError, match="not a mapping with one constraint"):
        table.alter.add_constraint({"positive": "id > 0", "small": "id < 9"})
    assert DeltaTable(tmp_path).version() == 0
