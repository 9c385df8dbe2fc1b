"""Small tables with one feature each, and a history, for reads by Spark."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from delta_core import DeltaTable, write_deltalake
from delta_core.schema.arrow import variant_field
from delta_core.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    ArrayType,
    DecimalType,
    StructField,
    StructType,
)
from delta_core.variants.python_values import variant_array

VECTORS = {"delta.enableDeletionVectors": "true"}
CHANGES = {"delta.enableChangeDataFeed": "true"}
TRACKING = {"delta.enableRowTracking": "true"}

Make = Callable[[Path, Mapping[str, str]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTable:
    """A table: its properties, and the steps that make it."""

    make: Make
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def records_changes(self) -> bool:
        """Whether all of its versions record changes."""
        return CHANGES.items() <= self.properties.items()


def table_with(name: str, path: Path) -> None:
    """Make the table of this name."""
    TABLES[name].make(path, TABLES[name].properties)


def _rows(start: int, stop: int) -> pa.Table:
    numbers = list(range(start, stop))
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "p": pa.array([f"p {n % 3}/ü%" if n % 4 else None for n in numbers]),
            "s": pa.array(
                [None if n % 5 == 0 else {"a": n, "b": [{"c": str(n), "d": None}]} for n in numbers],
                pa.struct(
                    [
                        ("a", pa.int32()),
                        ("b", pa.list_(pa.struct([("c", pa.string()), ("d", pa.float64())]))),
                    ]
                ),
            ),
            "m": pa.array(
                [[(f"k{n}", {"x": n})] for n in numbers],
                pa.map_(pa.string(), pa.struct([("x", pa.int64())])),
            ),
        }
    )


def _history(path: Path, properties: Mapping[str, str]) -> None:
    """Appends, deletes, an update, a compaction and a replaced range, in partitions of many files."""
    write_deltalake(path, _rows(0, 40), partition_by=["p"], configuration=properties, max_rows_per_file=2)
    write_deltalake(path, _rows(40, 60), mode="append")
    DeltaTable(path).delete("id % 6 = 1")
    DeltaTable(path).update(updates={"id": "id + 1000"}, predicate="id BETWEEN 8 AND 11")
    DeltaTable(path).optimize.compact()
    DeltaTable(path).delete("id > 50 AND id < 55")
    write_deltalake(path, _rows(100, 104), mode="overwrite", predicate="id >= 100 AND id < 1009")


def _mapped(path: Path, properties: Mapping[str, str]) -> None:
    """Columns are renamed at every depth, dropped, and added again under old names."""
    _history(path, properties)
    alter = DeltaTable(path).alter
    if "delta.columnMapping.mode" not in properties:
        alter.set_properties({"delta.columnMapping.mode": "name"})
    for old, new in ((("s", "b", "element", "c"), "cc"), (("m", "value", "x"), "y"), (("s", "a"), "b 2")):
        DeltaTable(path).alter.rename_column(old, new)
    DeltaTable(path).alter.rename_column("id", "old id")
    DeltaTable(path).alter.rename_column("p", "part.`")
    DeltaTable(path).alter.add_columns(StructType((StructField(name="id", data_type=LONG),)))
    more = DeltaTable(path).to_pyarrow_table().slice(0, 7)
    values = pa.array(range(more.num_rows), pa.int64())
    write_deltalake(path, more.set_column(more.column_names.index("id"), "id", values), mode="append")
    DeltaTable(path).alter.drop_columns("m")
    DeltaTable(path).delete("id = 3")


_WIDER: Mapping[str, tuple[Any, Any, Any]] = {
    "byte_short": (BYTE, SHORT, -7),
    "byte_int": (BYTE, INTEGER, 127),
    "byte_long": (BYTE, LONG, -128),
    "byte_double": (BYTE, DOUBLE, 5),
    "byte_decimal": (BYTE, DecimalType(12, 2), 9),
    "short_int": (SHORT, INTEGER, -32768),
    "short_long": (SHORT, LONG, 1),
    "short_double": (SHORT, DOUBLE, 3),
    "short_decimal": (SHORT, DecimalType(10, 0), 3),
    "int_long": (INTEGER, LONG, 2**31 - 1),
    "int_double": (INTEGER, DOUBLE, 2**31 - 1),
    "int_decimal": (INTEGER, DecimalType(12, 1), 2**31 - 1),
    "long_decimal": (LONG, DecimalType(22, 2), 2**53 + 1),
    "float_double": (FLOAT, DOUBLE, 1.5),
    "decimal_decimal": (DecimalType(5, 2), DecimalType(12, 2), Decimal("-999.99")),
    "decimal_scale": (DecimalType(12, 2), DecimalType(22, 4), Decimal("1.25")),
    "date_ntz": (DATE, TIMESTAMP_NTZ, dt.date(1899, 12, 31)),
}
"""Each allowed change of a type: before, after, a value of the type before."""


def _widened(path: Path, properties: Mapping[str, str]) -> None:
    fields = [StructField(name=name, data_type=before) for name, (before, _, _) in _WIDER.items()]
    nested = StructType(
        (
            StructField(name="f", data_type=INTEGER),
            StructField(name="l", data_type=ArrayType(element_type=BYTE)),
        )
    )
    schema = StructType(
        (
            StructField(name="id", data_type=LONG),
            *fields,
            StructField(name="s", data_type=nested),
            StructField(name="p", data_type=INTEGER),
        )
    )
    DeltaTable.create(path, schema, partition_by=["p"], configuration=properties)

    def rows(ids: range) -> pa.Table:
        first = {name: value for name, (_, _, value) in _WIDER.items()}
        documents = [
            {"id": n, "p": n % 3, "s": {"f": n, "l": [n, None]}, **(first if n % 2 else {})} for n in ids
        ]
        return pa.Table.from_pylist(documents, schema=DeltaTable(path).to_pyarrow_table().schema)

    write_deltalake(path, rows(range(6)), mode="append")
    for name, (_, after, _) in _WIDER.items():
        DeltaTable(path).alter.change_type(name, after)
    DeltaTable(path).alter.change_type(("s", "f"), LONG)
    DeltaTable(path).alter.change_type(("s", "l", "element"), INTEGER)
    DeltaTable(path).alter.change_type("p", LONG)
    more = rows(range(1)).slice(0, 0)
    wide = pa.Table.from_pylist(
        [{"id": 100, "p": 2**40, "int_long": 2**40, "date_ntz": dt.datetime(2020, 1, 2, 3, 4, 5, 6)}],
        schema=more.schema,
    )
    write_deltalake(path, wide, mode="append")
    DeltaTable(path).delete("id = 1")


def _every_partition_type(path: Path, properties: Mapping[str, str]) -> None:
    kinds = {
        "string": (STRING, ["a=b/c", "ü %41", None]),
        "long": (LONG, [-(2**63), 0, None]),
        "double": (DOUBLE, [float("nan"), -0.1, None]),
        "boolean": (BOOLEAN, [True, False, None]),
        "date": (DATE, [dt.date(1600, 1, 1), dt.date(9999, 12, 31), None]),
        "timestamp": (TIMESTAMP, [dt.datetime(1883, 11, 18, 12, 0, 0, 5, dt.UTC), None, None]),
        "ntz": (TIMESTAMP_NTZ, [dt.datetime(1583, 1, 1, 0, 0, 0, 5), None, None]),
        "decimal": (DecimalType(20, 3), [Decimal("-1.500"), Decimal(10**16), None]),
        "binary": (BINARY, [b"abc", b"~", None]),
    }
    fields = [StructField(name=name, data_type=kind) for name, (kind, _) in kinds.items()]
    schema = StructType((StructField(name="id", data_type=LONG), *fields))
    DeltaTable.create(path, schema, partition_by=list(kinds), configuration=properties)
    documents = [{"id": n, **{name: values[n % 3] for name, (_, values) in kinds.items()}} for n in range(9)]
    data = pa.Table.from_pylist(documents, schema=DeltaTable(path).to_pyarrow_table().schema)
    write_deltalake(path, data, mode="append")
    write_deltalake(path, data.slice(0, 4), mode="append")
    DeltaTable(path).delete("id IN (1, 5)")


def _variants(path: Path, properties: Mapping[str, str]) -> None:
    values = [None, 1, "x", {"a": [1.5, None, {"b": True}]}, [], -(2**40), "y" * 100]
    for start in (0, 10):
        table = pa.table(
            [pa.array(range(start, start + len(values)), pa.int64()), variant_array(values)],
            schema=pa.schema([pa.field("id", pa.int64()), variant_field("v")]),
        )
        write_deltalake(path, table, mode="append", configuration=None if start else properties)
    DeltaTable(path).delete("id = 2")


def _void(path: Path, properties: Mapping[str, str]) -> None:
    nested = StructType(
        (StructField(name="nothing", data_type=VOID), StructField(name="x", data_type=INTEGER))
    )
    schema = StructType(
        (
            StructField(name="nothing", data_type=VOID),
            StructField(name="id", data_type=LONG),
            StructField(name="s", data_type=nested),
            StructField(name="l", data_type=ArrayType(element_type=nested)),
        )
    )
    DeltaTable.create(path, schema, configuration=properties)
    x = pa.struct([("x", pa.int32())])
    data = pa.table(
        {
            "id": pa.array([1, 2], pa.int64()),
            "s": pa.array([{"x": 1}, None], x),
            "l": pa.array([[{"x": 1}, None], None], pa.list_(x)),
        }
    )
    write_deltalake(path, data, mode="append")


def _repartitioned(path: Path, properties: Mapping[str, str]) -> None:
    _history(path, properties)
    data = _rows(0, 9)
    write_deltalake(path, data, mode="overwrite", partition_by=["id"], schema_mode="overwrite")
    DeltaTable(path).delete("id = 4")


def _restored(path: Path, properties: Mapping[str, str]) -> None:
    """Files come and go several times, so a range of changes has each of them several times."""
    write_deltalake(path, _rows(0, 6), partition_by=["p"], configuration=properties)
    write_deltalake(path, _rows(6, 9), mode="append")
    DeltaTable(path).delete("id = 1")
    for version in (0, 2, 1):
        DeltaTable(path).restore(version)


TABLES: Mapping[str, ReadTable] = {
    "plain": ReadTable(make=_history),
    "vectors": ReadTable(make=_history, properties=VECTORS | CHANGES),
    "change-data": ReadTable(make=_history, properties=CHANGES),
    "row-tracking": ReadTable(make=_history, properties=TRACKING | VECTORS),
    "mapping-later": ReadTable(make=_mapped, properties=VECTORS),
    "mapping-name": ReadTable(
        make=_mapped, properties=VECTORS | TRACKING | {"delta.columnMapping.mode": "name"}
    ),
    "mapping-id": ReadTable(make=_mapped, properties=VECTORS | TRACKING | {"delta.columnMapping.mode": "id"}),
    "mapping-id-changes": ReadTable(
        make=_history, properties=CHANGES | TRACKING | {"delta.columnMapping.mode": "id"}
    ),
    "widening": ReadTable(
        make=_widened,
        properties={"delta.enableTypeWidening": "true", "delta.feature.timestampNtz": "supported"},
    ),
    "widening-mapped": ReadTable(
        make=_widened,
        properties=VECTORS
        | {
            "delta.enableTypeWidening": "true",
            "delta.feature.timestampNtz": "supported",
            "delta.columnMapping.mode": "id",
        },
    ),
    "partition-types": ReadTable(make=_every_partition_type),
    "partition-types-vectors": ReadTable(
        make=_every_partition_type, properties=VECTORS | {"delta.columnMapping.mode": "name"}
    ),
    "restored": ReadTable(make=_restored, properties=CHANGES | VECTORS),
    "repartitioned": ReadTable(make=_repartitioned, properties=CHANGES | VECTORS),
    "variants": ReadTable(make=_variants, properties=VECTORS | CHANGES),
    "void": ReadTable(make=_void),
    "void-mapped": ReadTable(make=_void, properties={"delta.columnMapping.mode": "name"}),
}
"""Every table, by name."""
