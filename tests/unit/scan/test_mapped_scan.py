"""Scans of tables whose files call columns otherwise, or hold rows that are deleted."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core.actions import Metadata, Protocol
from delta_core.errors import InvalidTableError, UnsupportedTableFeatureError
from delta_core.scan.add_actions import add_actions_table
from delta_core.scan.scan import Scan
from delta_core.snapshot.snapshot import Snapshot
from tests.support.deletion_vectors import inline_deletion_vector
from tests.support.log_builder import LogBuilder, add

FEATURES = frozenset({"columnMapping", "deletionVectors", "typeWidening"})
PROTOCOL = Protocol(
    min_reader_version=3, min_writer_version=7, reader_features=FEATURES, writer_features=FEATURES
)


def field(name: str, kind: Any, number: int, physical: str) -> dict[str, Any]:
    mapping = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical}
    return {"name": name, "type": kind, "nullable": True, "metadata": mapping}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


SCHEMA = struct(
    field("day of flight", "string", 1, "col-p"),
    field("id", "long", 2, "col-i"),
    field(
        "plane",
        struct(field("tail number", "string", 4, "col-t"), field("seats", "long", 5, "col-s")),
        3,
        "col-n",
    ),
    field(
        "legs",
        {"type": "array", "elementType": struct(field("to", "string", 7, "col-o")), "containsNull": True},
        6,
        "col-l",
    ),
    field(
        "prices",
        {
            "type": "map",
            "keyType": "string",
            "valueType": struct(field("eur", "long", 9, "col-e")),
            "valueContainsNull": True,
        },
        8,
        "col-m",
    ),
)

ROWS = [
    {
        "day of flight": "mon",
        "id": number,
        "plane": None if number == 2 else {"tail number": f"N{number}", "seats": number * 10},
        "legs": [] if number == 3 else [{"to": "FRA"}, None, {"to": None}],
        "prices": [("full", {"eur": number}), ("none", None)],
    }
    for number in range(6)
]


def with_id(item: pa.Field, number: int) -> pa.Field:
    return item.with_metadata({b"PARQUET:field_id": str(number).encode()})


def file_schema(*, ids: bool, names: dict[str, str] | None = None) -> pa.Schema:
    """The file's columns: physical names, or others where only the ids count."""

    def item(name: str, kind: pa.DataType, number: int) -> pa.Field:
        made = pa.field((names or {}).get(name, name), kind)
        return with_id(made, number) if ids else made

    return pa.schema(
        [
            item("col-i", pa.int32(), 2),
            item("col-n", pa.struct([item("col-s", pa.int64(), 5), item("col-t", pa.string(), 4)]), 3),
            item("col-l", pa.list_(pa.struct([item("col-o", pa.string(), 7)])), 6),
            item("col-m", pa.map_(pa.string(), pa.struct([item("col-e", pa.int64(), 9)])), 8),
        ]
    )


def file_rows(schema: pa.Schema) -> pa.Table:
    """ROWS in a file of the schema; names differ, positions do not."""
    arrays = [
        pa.array([row["id"] for row in ROWS], pa.int32()),
        pa.array(
            [
                None
                if row["plane"] is None
                else dict(
                    zip(
                        [child.name for child in schema.field(1).type.fields],
                        [row["plane"]["seats"], row["plane"]["tail number"]],
                        strict=True,
                    )
                )
                for row in ROWS
            ],
            schema.field(1).type,
        ),
        pa.array(
            [
                [leg and {schema.field(2).type.value_type.field(0).name: leg["to"]} for leg in row["legs"]]
                for row in ROWS
            ],
            schema.field(2).type,
        ),
        pa.array(
            [
                [
                    (key, value and {schema.field(3).type.item_type.field(0).name: value["eur"]})
                    for key, value in row["prices"]
                ]
                for row in ROWS
            ],
            schema.field(3).type,
        ),
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def table(
    log: LogBuilder, mode: str, schema: pa.Schema, *, stats: dict[str, Any] | None = None, **changes: Any
) -> Snapshot:
    pq.write_table(file_rows(schema), log.root / "f.parquet", row_group_size=2)
    metadata = Metadata(
        id="1" * 8,
        schema_string=json.dumps(SCHEMA),
        partition_columns=("day of flight",),
        configuration={"delta.columnMapping.mode": mode},
    )
    log.commit(
        PROTOCOL,
        metadata,
        add(
            "f.parquet",
            partition_values={"col-p": "mon"},
            stats=None if stats is None else json.dumps(stats),
            **changes,
        ),
    )
    return Snapshot.load(log.store)


@pytest.fixture
def log(tmp_path: Path) -> LogBuilder:
    return LogBuilder(tmp_path)


@pytest.mark.parametrize(
    ("mode", "schema"),
    [
        ("name", file_schema(ids=False)),
        ("name", file_schema(ids=True)),
        ("id", file_schema(ids=True)),
        # Only the id counts: here every name is another column's.
        ("id", file_schema(ids=True, names={"col-i": "col-n", "col-n": "x", "col-t": "col-s", "col-s": "t"})),
    ],
)
def test_columns_are_found_at_every_level(log: LogBuilder, mode: str, schema: pa.Schema) -> None:
    snapshot = table(log, mode, schema)
    found = Scan(snapshot).to_table()
    assert found.to_pylist() == ROWS
    assert found.schema.names == [item["name"] for item in SCHEMA["fields"]]
    assert Scan(snapshot, predicate="id >= 4", columns=["plane"]).to_table().to_pylist() == [
        {"plane": row["plane"]} for row in ROWS[4:]
    ]
    assert Scan(snapshot, predicate="plane.seats = 10 AND `day of flight` = 'mon'").to_table().num_rows == 1
    assert Scan(snapshot, predicate="`day of flight` = 'tue'").report.files_after_partitions == 0


def test_a_file_without_ids_is_refused_where_columns_go_by_ids(log: LogBuilder) -> None:
    snapshot = table(log, "id", file_schema(ids=False))
    with pytest.raises(InvalidTableError, match=r"files such as f\.parquet") as caught:
        Scan(snapshot).to_table()
    assert "has no field ids" in str(caught.value.cause)
    # What the log says of the file needs none.
    days = Scan(snapshot, columns=["day of flight"]).to_table().to_pylist()
    assert days == [{"day of flight": row["day of flight"]} for row in ROWS]


def test_columns_that_a_file_lacks_are_null(log: LogBuilder) -> None:
    schema = pa.schema([pa.field("other", pa.int64()), file_schema(ids=False).field(1)])
    rows = pa.table({"other": [1], "col-n": [{"col-s": 1}]})
    pq.write_table(rows, log.root / "f.parquet")
    metadata = Metadata(
        id="1", schema_string=json.dumps(SCHEMA), configuration={"delta.columnMapping.mode": "name"}
    )
    log.commit(PROTOCOL, metadata, add("f.parquet", partition_values={}, stats=None))
    (row,) = Scan(Snapshot.load(log.store)).to_table().to_pylist()
    assert schema.names == ["other", "col-n"]
    assert row == {
        "day of flight": None,
        "id": None,
        "plane": {"tail number": None, "seats": 1},
        "legs": None,
        "prices": None,
    }


def test_statistics_go_by_physical_names(log: LogBuilder) -> None:
    stats = {
        "numRecords": 6,
        "minValues": {"col-i": 0, "col-n": {"col-s": 0}},
        "maxValues": {"col-i": 5, "col-n": {"col-s": 50}},
        "nullCount": {"col-i": 0, "col-n": {"col-s": 1, "col-t": 1}},
    }
    snapshot = table(log, "name", file_schema(ids=False), stats=stats)
    for predicate, kept in (
        ("id > 5", 0),
        ("id > 4", 1),
        ("plane.seats > 50", 0),
        ("plane.seats = 50", 1),
        ("id IS NULL", 0),
    ):
        assert Scan(snapshot, predicate=predicate).report.files_after_statistics == kept, predicate
    actions = add_actions_table(snapshot, flatten=True).to_pylist()[0]
    assert actions["partition.day of flight"] == "mon"
    assert actions["max.plane.seats"] == 50


def test_a_field_without_its_name_or_id(log: LogBuilder) -> None:
    broken = struct(*(dict(item, metadata={}) for item in SCHEMA["fields"][:2]))
    for mode in ("name", "id"):
        pq.write_table(file_rows(file_schema(ids=True)), log.root / "f.parquet")
        metadata = Metadata(
            id="1", schema_string=json.dumps(broken), configuration={"delta.columnMapping.mode": mode}
        )
        log.commit(PROTOCOL, metadata, add("f.parquet", partition_values={}, stats=None))
        with pytest.raises(InvalidTableError, match="column day of flight cannot be found"):
            Scan(Snapshot.load(log.store)).to_table()
    log.commit(
        Metadata(
            id="1", schema_string=json.dumps(SCHEMA), configuration={"delta.columnMapping.mode": "position"}
        )
    )
    with pytest.raises(InvalidTableError, match="modes are 'none', 'name' and 'id'"):
        Scan(Snapshot.load(log.store))


def test_deleted_rows_are_left_out_of_every_read(log: LogBuilder) -> None:
    """Positions count through the whole file, also where the footer rules row groups out."""
    snapshot = table(log, "name", file_schema(ids=False), deletion_vector=inline_deletion_vector([0, 3, 5]))
    kept = [ROWS[number] for number in (1, 2, 4)]
    assert Scan(snapshot).to_table().to_pylist() == kept
    assert Scan(snapshot, columns=[]).to_table().num_rows == 3
    assert Scan(snapshot, columns=["day of flight"]).to_table().num_rows == 3
    assert Scan(snapshot, predicate="id >= 3").to_table().to_pylist() == kept[2:]
    assert Scan(snapshot, predicate="id in (0, 5)").to_table().num_rows == 0
    assert [row for batch in Scan(snapshot, batch_rows=1).to_batches() for row in batch.to_pylist()] == kept


def test_random_vectors_and_predicates(log: LogBuilder) -> None:
    rng = random.Random(3)
    data = pa.table({"x": list(range(500))})
    pq.write_table(data, log.root / "x.parquet", row_group_size=37)
    schema = json.dumps(struct({"name": "x", "type": "long", "nullable": True, "metadata": {}}))
    for _ in range(40):
        deleted = sorted(rng.sample(range(500), rng.randrange(0, 500)))
        low, high = sorted(rng.sample(range(500), 2))
        log.commit(
            PROTOCOL,
            Metadata(id="1", schema_string=schema),
            add(
                "x.parquet", partition_values={}, stats=None, deletion_vector=inline_deletion_vector(deleted)
            ),
        )
        snapshot = Snapshot.load(log.store, version=log.next_version - 1)
        scan = Scan(snapshot, predicate=f"x BETWEEN {low} AND {high}", batch_rows=rng.choice([1, 7, 1000]))
        found = pa.Table.from_batches(scan.to_batches(), schema=scan.schema)["x"].to_pylist()
        assert found == [value for value in range(low, high + 1) if value not in set(deleted)]
        log.remove_commits([log.next_version - 1])
        log.next_version -= 1


def test_a_vector_beyond_the_file_is_an_error(log: LogBuilder) -> None:
    snapshot = table(log, "name", file_schema(ids=False), deletion_vector=inline_deletion_vector([1, 6]))
    with pytest.raises(InvalidTableError, match=r"refers to row 6.*The file has 6 rows"):
        Scan(snapshot).to_table()


def test_who_reads_files_without_a_scan_is_refused(log: LogBuilder) -> None:
    snapshot = table(log, "name", file_schema(ids=False), deletion_vector=inline_deletion_vector([1]))
    with pytest.raises(UnsupportedTableFeatureError, match="columnMapping, deletionVectors"):
        snapshot.require_readable()
