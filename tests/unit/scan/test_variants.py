"""Scans of variants that files keep in parts, wherever in the schema they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable
from delta_core.actions import Metadata, Protocol
from delta_core.errors import InvalidTableError
from delta_core.variants.shredding import VARIANT_TYPE
from tests.support.deletion_vectors import inline_deletion_vector
from tests.support.log_builder import LogBuilder, add
from tests.support.variant_values import decode

FEATURES = frozenset({"variantType", "variantShredding", "deletionVectors", "columnMapping"})
PROTOCOL = Protocol(
    min_reader_version=3, min_writer_version=7, reader_features=FEATURES, writer_features=FEATURES
)
PARTS = pa.struct(
    [
        pa.field("metadata", pa.binary(), nullable=False),
        pa.field("value", pa.binary()),
        pa.field("typed_value", pa.int64()),
    ]
)
EMPTY = b"\x01\x00\x00"


def part(number: int | None) -> dict[str, Any] | None:
    return None if number is None else {"metadata": EMPTY, "value": None, "typed_value": number}


def text(value: str) -> dict[str, Any]:
    encoded = value.encode()
    return {"metadata": EMPTY, "value": bytes([len(encoded) << 2 | 1]) + encoded, "typed_value": None}


def field(name: str, kind: Any, number: int) -> dict[str, Any]:
    metadata = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"}
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


SCHEMA = {
    "type": "struct",
    "fields": [
        field("v", "variant", 1),
        field("s", {"type": "struct", "fields": [field("inner", "variant", 3)]}, 2),
        field("l", {"type": "array", "elementType": "variant", "containsNull": True}, 4),
        field(
            "m",
            {"type": "map", "keyType": "string", "valueType": "variant", "valueContainsNull": True},
            5,
        ),
        # The names of a variant's parts, in a struct that is none.
        field(
            "no variant",
            {
                "type": "struct",
                "fields": [field("metadata", "binary", 7), field("value", "binary", 8)],
            },
            6,
        ),
    ],
}


def table_of(root: Path, columns: dict[str, pa.Array], **changes: Any) -> DeltaTable:
    log = LogBuilder(root)
    configuration = {"delta.columnMapping.mode": "name"}
    log.commit(PROTOCOL, Metadata(id="t", schema_string=json.dumps(SCHEMA), configuration=configuration))
    pq.write_table(pa.table(columns), root / "f.parquet")
    log.commit(add("f.parquet", **{"partition_values": {}, "stats": None} | changes))
    return DeltaTable(root)


COLUMNS = {
    "col-1": pa.array([part(1), text("x"), None], PARTS),
    "col-2": pa.array([{"col-3": part(2)}, None, {"col-3": None}], pa.struct([("col-3", PARTS)])),
    "col-4": pa.array([[part(3), None, text("y")], [], None], pa.list_(PARTS)),
    "col-5": pa.array([[("k", part(4)), ("n", None)], None, []], pa.map_(pa.string(), PARTS)),
    "col-6": pa.array(
        [{"col-7": b"m", "col-8": b"v"}, None, {"col-7": None, "col-8": None}],
        pa.struct([("col-7", pa.binary()), ("col-8", pa.binary())]),
    ),
}
ROWS = [
    {
        "v": 1,
        "s": {"inner": 2},
        "l": [3, None, "y"],
        "m": [("k", 4), ("n", None)],
        "no variant": {"metadata": b"m", "value": b"v"},
    },
    {"v": "x", "s": None, "l": [], "m": None, "no variant": None},
    {
        "v": None,
        "s": {"inner": None},
        "l": None,
        "m": [],
        "no variant": {"metadata": None, "value": None},
    },
]


def plain(table: pa.Table) -> list[dict[str, Any]]:
    rows = table.to_pylist()
    for row in rows:
        row["v"] = decode(row["v"])
        row["s"] = row["s"] and {"inner": decode(row["s"]["inner"])}
        row["l"] = row["l"] and [decode(item) for item in row["l"]]
        row["m"] = row["m"] and [(key, decode(item)) for key, item in row["m"]]
    return rows


def test_variants_in_parts_at_every_place(tmp_path: Path) -> None:
    found = table_of(tmp_path, COLUMNS).to_pyarrow_table()
    assert found.schema.field("v").type == VARIANT_TYPE
    assert found.schema.field("l").type.value_type == VARIANT_TYPE
    assert plain(found) == ROWS


def test_deleted_rows_and_batches_do_not_mix_them_up(tmp_path: Path) -> None:
    table = table_of(tmp_path, COLUMNS, deletion_vector=inline_deletion_vector([0]))
    assert plain(table.to_pyarrow_table()) == ROWS[1:]


def test_files_with_whole_variants_are_read_beside_them(tmp_path: Path) -> None:
    table = table_of(tmp_path, COLUMNS)
    whole = pa.array([{"value": b"\x0c\x09", "metadata": EMPTY}], pa.struct(
        [pa.field("value", pa.binary(), nullable=False), pa.field("metadata", pa.binary(), nullable=False)]
    ))  # fmt: skip
    pq.write_table(pa.table({"col-1": whole}), tmp_path / "g.parquet")
    log = LogBuilder(tmp_path)
    log.commit(add("g.parquet", partition_values={}, stats=None), version=2)
    table.update_incremental()
    assert [decode(value) for value in table.to_pyarrow_table()["v"].to_pylist()] == [1, "x", None, 9]


@pytest.mark.parametrize(
    ("column", "cause"),
    [
        (pa.array([part(1) | text("x") | {"typed_value": 1}], PARTS), "are both set"),
        (pa.array([{"metadata": EMPTY, "typed_value": 1}], pa.struct(
            [pa.field("metadata", pa.binary()), pa.field("typed_value", pa.uint32())]
        )), "uint32"),
    ],
)  # fmt: skip
def test_damaged_variants_are_an_error_that_names_the_file(
    tmp_path: Path, column: pa.Array, cause: str
) -> None:
    table = table_of(tmp_path, {"col-1": column})
    with pytest.raises(InvalidTableError, match=rf"Column v of the data file f\.parquet.*{cause}"):
        table.to_pyarrow_table()


@pytest.mark.parametrize("names", [("metadata",), ("value",), ("a", "b")])
def test_a_column_that_is_no_variant_is_an_error(tmp_path: Path, names: tuple[str, ...]) -> None:
    column = pa.array([dict.fromkeys(names, b"\x00")], pa.struct([(name, pa.binary()) for name in names]))
    table = table_of(tmp_path, {"col-1": column})
    with pytest.raises(InvalidTableError, match=r"Column v of the data file f\.parquet"):
        table.to_pyarrow_table()
