"""Tables whose logs and files do not quite agree: never a wrong row, never a silent loss."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable
from delta_core.actions import Metadata, Protocol
from delta_core.errors import CorruptLogError, TableChangedError, UnsupportedTableFeatureError
from delta_core.scan.appended import appended_batches, changed_partitions
from delta_core.scan.change_data import ChangeDataScan
from delta_core.scan.scan import Scan
from delta_core.snapshot.snapshot import Snapshot
from tests.support.deletion_vectors import inline_deletion_vector
from tests.support.log_builder import LogBuilder, add, protocol, remove

WIDENING = Protocol(
    min_reader_version=3,
    min_writer_version=7,
    reader_features=frozenset({"typeWidening", "columnMapping", "deletionVectors"}),
    writer_features=frozenset({"typeWidening", "columnMapping", "deletionVectors", "changeDataFeed"}),
)


def schema(*fields: tuple[str, Any] | tuple[str, Any, dict[str, Any]]) -> str:
    made = [
        {"name": f[0], "type": f[1], "nullable": True, "metadata": f[2] if len(f) > 2 else {}} for f in fields
    ]
    return json.dumps({"type": "struct", "fields": made})


def plain(text: str, **configuration: str) -> Metadata:
    return Metadata(id="1", schema_string=text, configuration=configuration)


def mapped(name: str, kind: str, physical: str) -> tuple[str, str, dict[str, Any]]:
    return name, kind, {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": physical}


@pytest.fixture
def log(tmp_path: Path) -> LogBuilder:
    return LogBuilder(tmp_path)


def file(log: LogBuilder, name: str, table: pa.Table) -> None:
    pq.write_table(table, log.root / name)


def whole(name: str, **changes: Any) -> Any:
    return add(name, **{"partition_values": {}, "stats": None} | changes)


def latest(log: LogBuilder) -> Snapshot:
    return Snapshot.load(log.store)


def test_mapped_columns_that_the_protocol_does_not_admit(log: LogBuilder) -> None:
    """Compaction once read such files by logical names and wrote nulls in place of every value."""
    text = schema(mapped("x", "long", "p-1"))
    for versions in (
        protocol(),
        protocol(
            min_reader_version=3,
            min_writer_version=7,
            reader_features=frozenset({"timestampNtz"}),
            writer_features=frozenset({"timestampNtz"}),
        ),
    ):
        file(log, "a.parquet", pa.table({"p-1": [1, 2]}))
        file(log, "b.parquet", pa.table({"p-1": [3]}))
        log.commit(
            versions,
            plain(text, **{"delta.columnMapping.mode": "name"}),
            whole("a.parquet"),
            whole("b.parquet"),
        )
        table = DeltaTable(log.root)
        for refused in (table.to_pyarrow_table, table.optimize.compact, table.file_uris):
            with pytest.raises(CorruptLogError, match="columns are mapped"):
                refused()


@pytest.mark.parametrize(("column", "key"), [("P", "p"), ("p", "P")])
def test_partition_values_under_another_spelling(log: LogBuilder, column: str, key: str) -> None:
    """Compaction once made them null, and pruning left their files out."""
    file(log, "a.parquet", pa.table({"x": [1]}))
    file(log, "b.parquet", pa.table({"x": [2]}))
    text = schema(("x", "long"), (column, "string"))
    log.commit(
        protocol(),
        Metadata(id="1", schema_string=text, partition_columns=(column,)),
        whole("a.parquet", partition_values={key: "k"}),
        whole("b.parquet", partition_values={key: "k"}),
    )
    table = DeltaTable(log.root)
    rows = [{"x": 1, column: "k"}, {"x": 2, column: "k"}]
    assert table.to_pyarrow_table(filters=f"{column} = 'k'").to_pylist() == rows
    assert table.to_pyarrow_table(filters=f"{column} = 'j'").num_rows == 0
    table.optimize.compact()
    assert table.version() == 1
    assert table.to_pyarrow_table().to_pylist() == rows


def test_a_file_without_a_partition_value_is_not_rewritten(log: LogBuilder) -> None:
    for name in ("a.parquet", "b.parquet"):
        file(log, name, pa.table({"x": [1]}))
    text = schema(("x", "long"), ("p", "string"))
    log.commit(
        protocol(),
        Metadata(id="1", schema_string=text, partition_columns=("p",)),
        whole("a.parquet"),
        whole("b.parquet"),
    )
    table = DeltaTable(log.root)
    for refused in (table.optimize.compact, lambda: table.optimize.z_order(["x"])):
        with pytest.raises(CorruptLogError, match="no value for the partition column 'p'"):
            refused()
    assert table.version() == 0


def test_bounds_that_were_floats(log: LogBuilder) -> None:
    """The float nearest to 0.7 is less than the double 0.7, which is how its bound is written."""
    file(log, "a.parquet", pa.table({"x": pa.array([0.7, 0.9], pa.float32())}))
    changes = {"delta.typeChanges": [{"fromType": "float", "toType": "double"}]}
    stats = {"numRecords": 2, "minValues": {"x": 0.7}, "maxValues": {"x": 0.9}, "nullCount": {"x": 0}}
    log.commit(
        WIDENING,
        plain(schema(("x", "double", changes))),
        whole("a.parquet", stats=json.dumps(stats | {"nanCount": {"x": 0}})),
    )
    for predicate, rows in (("x < 0.7D", 1), ("x = 0.699999988079071D", 1), ("x > 0.95D", 0)):
        assert Scan(latest(log), predicate=predicate).to_table().num_rows == rows, predicate


@pytest.mark.parametrize(
    ("before", "after"),
    [("double", "string"), ("boolean", "integer"), ("long", "double"), ("long", "integer")],
)
def test_changes_of_type_that_are_no_widening(log: LogBuilder, before: str, after: str) -> None:
    changes = {"delta.typeChanges": [{"fromType": before, "toType": after}]}
    log.commit(WIDENING, plain(schema(("x", after, changes))))
    with pytest.raises(UnsupportedTableFeatureError, match=f"typeWidening.*{before} to {after}"):
        Scan(latest(log))


def test_names_with_dots_and_nested_names(log: LogBuilder) -> None:
    inner = {"type": "struct", "fields": [{"name": "b", "type": "long", "nullable": True, "metadata": {}}]}
    text = schema(("a.b", "long"), ("a", inner))
    file(log, "nested.parquet", pa.table({"a": [{"b": 1}, {"b": 2}]}))
    file(log, "flat.parquet", pa.table({"a.b": [1, 2]}))
    log.commit(protocol(), plain(text), whole("nested.parquet"), whole("flat.parquet"))
    for predicate in ("`a.b` IS NULL", "a.b IS NULL", "`a.b` = 1", "a.b = 2"):
        scan = Scan(latest(log), predicate=predicate)
        column, wanted = ("a.b" if "`" in predicate else "a"), (None if "NULL" in predicate else 1)
        assert scan.to_table().num_rows == (2 if wanted is None else 1), (predicate, column)


def test_what_hands_out_files_or_counts_says_what_is_deleted(log: LogBuilder) -> None:
    file(log, "a.parquet", pa.table({"x": [1, 2, 3]}))
    stats = '{"numRecords":3}'
    log.commit(
        WIDENING,
        plain(schema(("x", "long"))),
        whole("a.parquet", stats=stats, deletion_vector=inline_deletion_vector([1])),
    )
    table = DeltaTable(log.root)
    assert table.to_pyarrow_table().num_rows == 2
    with pytest.raises(UnsupportedTableFeatureError, match="deletionVectors"):
        table.file_uris()
    (row,) = table.get_add_actions().to_pylist()
    assert (row["num_records"], row["num_deleted"]) == (3, 1)


FEED = {"delta.enableChangeDataFeed": "true"}


def test_changes_of_versions_with_other_names_are_refused(log: LogBuilder) -> None:
    """Two columns once came back with each other's values."""
    file(log, "a.parquet", pa.table({"p-1": [5], "k": [77]}))
    file(log, "b.parquet", pa.table({"k": [5], "l": [77]}))
    before = schema(mapped("k", "long", "p-1"), mapped("l", "long", "k"))
    log.commit(WIDENING, plain(before, **FEED, **{"delta.columnMapping.mode": "name"}), whole("a.parquet"))
    log.commit(
        protocol(min_writer_version=4),
        plain(schema(("k", "long"), ("l", "long")), **FEED),
        remove("a.parquet", data_change=False),
        whole("b.parquet", data_change=False),
    )
    snapshot = latest(log)
    assert Scan(snapshot).to_table().to_pylist() == [{"k": 5, "l": 77}]
    with pytest.raises(TableChangedError, match="mode is name, and the later version's mode is none"):
        ChangeDataScan(snapshot, starting_version=0).to_table()
    with pytest.raises((TableChangedError, UnsupportedTableFeatureError), match=r"version 0|columnMapping"):
        list(appended_batches(snapshot, since_version=-1))


def test_changes_of_versions_that_cannot_be_read_are_refused(log: LogBuilder) -> None:
    file(log, "a.parquet", pa.table({"x": [1]}))
    strange = frozenset({"strange"})
    log.commit(
        protocol(
            min_reader_version=3, min_writer_version=7, reader_features=strange, writer_features=strange
        ),
        plain(schema(("x", "long")), **FEED),
        whole("a.parquet"),
    )
    log.commit(protocol(min_reader_version=1, min_writer_version=4))
    snapshot = latest(log)
    for refused in (
        lambda: ChangeDataScan(snapshot, starting_version=0).to_table(),
        lambda: list(appended_batches(snapshot, since_version=-1)),
    ):
        with pytest.raises(UnsupportedTableFeatureError, match="strange"):
            refused()


@pytest.mark.parametrize(
    ("before", "after", "lost"),
    [
        (("s", {"type": "struct", "fields": [
            {"name": "a", "type": "long", "nullable": True, "metadata": {}},
            {"name": "b", "type": "long", "nullable": True, "metadata": {}}]}),
         ("s", {"type": "struct", "fields": [
             {"name": "a", "type": "long", "nullable": True, "metadata": {}}]}), "s.b"),
        (("k", "long"), ("k", "string"), "k as long"),
        (("k", {"type": "array", "elementType": "long", "containsNull": True}),
         ("k", {"type": "array", "elementType": "integer", "containsNull": True}), "k.element as long"),
    ],
)  # fmt: skip
def test_changes_whose_columns_are_lost_or_of_another_type(
    log: LogBuilder, before: Any, after: Any, lost: str
) -> None:
    log.commit(protocol(min_writer_version=4), plain(schema(before), **FEED))
    log.commit(plain(schema(after), **FEED))
    with pytest.raises(TableChangedError, match=f"Its schema has {lost}"):
        ChangeDataScan(latest(log), starting_version=0).to_table()


def test_partitions_of_mapped_tables_are_not_told_by_physical_names(log: LogBuilder) -> None:
    text = schema(mapped("p", "string", "x"), mapped("x", "string", "y"))
    made = Metadata(
        id="1",
        schema_string=text,
        partition_columns=("p",),
        configuration={"delta.columnMapping.mode": "name"},
    )
    log.commit(WIDENING, made, whole("a.parquet", partition_values={"x": "part"}))
    with pytest.raises(UnsupportedTableFeatureError, match="columnMapping"):
        changed_partitions(latest(log), since_version=-1)
