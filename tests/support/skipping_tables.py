"""Random small tables, in memory: rows, their files, and statistics that some engine would have written."""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from delta_core.actions.arrow_schema import LIVE_FILE_SCHEMA
from delta_core.replay.live_files import LiveFiles
from delta_core.schema.arrow import to_arrow
from delta_core.schema.column_mapping import MODE_KEY, UNMAPPED, ColumnMapping
from delta_core.schema.partition_values import serialize
from delta_core.schema.types import (
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    DecimalType,
    StructField,
    StructType,
)
from tests.support.skipping_generated import GENERATORS, Generator
from tests.support.skipping_statistics import statistics
from tests.support.skipping_values import PRIMITIVES, as_float32, in_order, universe

Path = tuple[str, ...]
Row = dict[str, Any]

# What a column's type was in older files, and an old value as one of the new type.
WIDENED: dict[DataType, list[DataType]] = {
    LONG: [INTEGER],
    DOUBLE: [FLOAT, INTEGER],
    DecimalType(18, 4): [DecimalType(5, 2), INTEGER],
    TIMESTAMP_NTZ: [DATE],
}


@dataclass
class File:
    """One file: its rows (deleted ones included), which are left, and what the log says of it."""

    rows: list[Row]
    deleted: frozenset[int]
    partition_values: dict[str, str | None]
    stats: str | None

    @property
    def live(self) -> list[Row]:
        return [row for at, row in enumerate(self.rows) if at not in self.deleted]


@dataclass
class Table:
    """A table; `values` has for each column some of its type, in their order."""

    schema: StructType
    partition_columns: list[str]
    mapping: ColumnMapping
    files: list[File]
    values: dict[Path, tuple[DataType, list[Any]]]
    traits: set[str] = field(default_factory=set)

    def listing(self) -> LiveFiles:
        """Its files as a snapshot has them."""
        records = [
            {
                "path": f"file-{at}",
                "partition_values": list(file.partition_values.items()),
                "size_bytes": 1,
                "modification_time_ms": 1,
                "stats": file.stats,
            }
            for at, file in enumerate(self.files)
        ]
        return LiveFiles.from_batch(pa.RecordBatch.from_pylist(records, schema=LIVE_FILE_SCHEMA))

    def arrow_rows(self) -> pa.Table:
        """All rows that are left, with the number of their file."""
        schema = to_arrow(self.schema).append(pa.field("#file", pa.int64()))
        rows = [{**row, "#file": at} for at, file in enumerate(self.files) for row in file.live]
        return pa.Table.from_pylist(rows, schema=schema)


def random_table(rng: random.Random) -> Table:
    """A table of a few files with a few rows each."""
    columns = {f"c{at}": kind for at, kind in enumerate(rng.choices(PRIMITIVES, k=rng.randint(2, 6)))}
    partitions = {
        f"p{at}": kind for at, kind in enumerate(rng.choices(PRIMITIVES, k=rng.choice([0, 0, 1, 2])))
    }
    nested: dict[Path, DataType] = {}
    if rng.random() < 0.5:
        nested = {("st", "u"): rng.choice(PRIMITIVES), ("st", "in", "w"): rng.choice(PRIMITIVES)}
    generators: list[Generator] = []
    if rng.random() < 0.35:
        generators.append(rng.choice(GENERATORS))
        columns["base"] = generators[0].source
    widened = {
        (name,): rng.choice(WIDENED[kind])
        for name, kind in columns.items()
        if kind in WIDENED and name != "base" and rng.random() < 0.5
    }
    mapped = rng.random() < 0.3
    schema = _schema(columns, nested, partitions, generators, widened, mapped=mapped)
    leaves: dict[Path, DataType] = {(name,): kind for name, kind in columns.items()} | nested
    values = {path: (kind, universe(rng, kind)) for path, kind in leaves.items()}
    generated = [name for one in generators for name in one.columns]
    table = Table(
        schema=schema,
        partition_columns=[*partitions, *generated],
        mapping=ColumnMapping.of({MODE_KEY: "name"}) if mapped else UNMAPPED,
        files=[],
        values=values,
    )
    zone = ZoneInfo(rng.choice(["UTC", "America/Juneau", "Pacific/Apia", "Asia/Kolkata", "Asia/Manila"]))
    for path, kind in partitions.items():
        table.values[(path,)] = (kind, [v for v in universe(rng, kind) if v not in ("", b"", b"\xff\x00")])
    for _ in range(rng.randint(2, 7)):
        old = bool(widened) and rng.random() < 0.5
        table.files.append(_file(rng, table, partitions, generators, widened if old else {}, zone))
    for path, (kind, known) in list(table.values.items()):
        held = [_at(row, path) for file in table.files for row in file.rows]
        table.values[path] = (kind, in_order([*known, *(v for v in held if v is not None)])[:60])
    for trait, present in {
        "nested": bool(nested),
        "generated": bool(generators),
        "widened": bool(widened),
        "mapped": mapped,
        "deleted": any(file.deleted for file in table.files),
        "partitioned": bool(partitions),
    }.items():
        if present:
            table.traits.add(trait)
    return table


def _schema(
    columns: dict[str, DataType],
    nested: dict[Path, DataType],
    partitions: dict[str, DataType],
    generators: list[Generator],
    widened: dict[Path, DataType],
    *,
    mapped: bool,
) -> StructType:
    number = iter(range(1, 1000))

    def made(name: str, kind: DataType, **metadata: Any) -> StructField:
        if mapped:
            at = next(number)
            metadata |= {"delta.columnMapping.physicalName": f"col-{at}.x", "delta.columnMapping.id": at}
        return StructField(name=name, data_type=kind, nullable=True, metadata=metadata)

    fields = []
    for name, kind in columns.items():
        before = widened.get((name,))
        changes = [{"fromType": str(before), "toType": str(kind)}] if before else None
        fields.append(made(name, kind, **({"delta.typeChanges": changes} if changes else {})))
    if nested:
        inner = made("in", StructType((made("w", nested[("st", "in", "w")]),)))
        fields.append(made("st", StructType((made("u", nested[("st", "u")]), inner))))
    fields += [made(name, kind) for name, kind in partitions.items()]
    for one in generators:
        for name, (kind, text) in one.columns.items():
            fields.append(made(name, kind, **{"delta.generationExpression": text}))
    return StructType(tuple(fields))


def _file(
    rng: random.Random,
    table: Table,
    partitions: dict[str, DataType],
    generators: list[Generator],
    narrow: dict[Path, DataType],
    zone: ZoneInfo,
) -> File:
    count = rng.choice([1, 1, 2, 3, 5, 8])
    columns: dict[Path, list[Any]] = {}
    for path, (kind, known) in table.values.items():
        if path[0] in partitions:
            value = rng.choice(known) if known and rng.random() < 0.8 else None
            columns[path] = [value] * count
            continue
        if path in narrow:
            known = [_widen(value, kind) for value in universe(rng, narrow[path])]
        width = min(len(known), rng.choice([1, 1, 2, 4, 9]))
        start = rng.randint(0, len(known) - width)
        nulls = rng.choice([0, 0, 0.3, 0.3, 1])
        window = known[start : start + width]
        columns[path] = [None if rng.random() < nulls else rng.choice(window) for _ in range(count)]
    for one in generators:
        base = columns[("base",)]
        # One value of each generated column in the whole file: what differs from the first row goes.
        if "beyond" in one.of(base[0], zone):
            base = [None]
        first = one.of(base[0], zone)
        pool = [value for value in (*base, *one.near(rng, base[0])) if one.of(value, zone) == first]
        columns[("base",)] = [rng.choice(pool) for _ in range(count)]
        for name, value in zip(one.columns, first, strict=True):
            columns[(name,)] = [None if value == "" else value] * count
    rows = [_row(columns, at, rng) for at in range(count)]
    deleted: frozenset[int] = frozenset()
    if rng.random() < 0.2:
        deleted = frozenset(at for at in range(count) if rng.random() < 0.5)
    leaves = {}
    for path, (kind, _) in table.values.items():
        if path[0] in partitions:
            continue
        held = [_at(row, path) for row in rows]
        written = narrow.get(path, kind)
        physical = table.mapping.physical_path(path, table.schema)
        leaves[physical] = (written, [_narrowed(value, written) for value in held])
    names = [*partitions, *(name for one in generators for name in one.columns)]
    return File(
        rows=rows,
        deleted=deleted,
        partition_values={
            table.mapping.physical_name(part): _partition_string(rng, rows[0][name], part.data_type)
            for name in names
            if (part := table.schema.find(name)) is not None
        },
        stats=statistics(rng, leaves, count, tight=not deleted),
    )


def _row(columns: dict[Path, list[Any]], at: int, rng: random.Random) -> Row:
    row: Row = {}
    for path, values in columns.items():
        if len(path) == 1:
            row[path[0]] = values[at]
    if ("st", "u") in columns:
        inner = {"w": columns[("st", "in", "w")][at]} if rng.random() < 0.9 else None
        row["st"] = {"u": columns[("st", "u")][at], "in": inner} if rng.random() < 0.9 else None
    return row


def _at(row: Row, path: Path) -> Any:
    value: Any = row
    for name in path:
        value = None if value is None else value[name]
    return value


def _widen(value: Any, kind: DataType) -> Any:
    if kind == DOUBLE:
        return float(value)
    if isinstance(kind, DecimalType):
        return Decimal(value)
    if kind == TIMESTAMP_NTZ:
        return dt.datetime(value.year, value.month, value.day)
    return value


def _narrowed(value: Any, kind: DataType) -> Any:
    """A value as it was when its file was written."""
    if value is None:
        return None
    if kind == INTEGER:
        return int(value)
    if kind == FLOAT:
        return as_float32(value)
    if kind == DATE and isinstance(value, dt.datetime):
        return value.date()
    return value


def _partition_string(rng: random.Random, value: Any, kind: DataType) -> str | None:
    """As this library writes it, or as delta-spark once did."""
    text = serialize(value, kind)
    if text is None:
        return rng.choice([None, ""])
    if kind == TIMESTAMP and rng.random() < 0.5:
        return value.replace(tzinfo=None).isoformat(sep=" ") if value.microsecond else str(value)[:19]
    if kind in (FLOAT, DOUBLE) and "e" in text and rng.random() < 0.5:
        return text.upper().replace("E+", "E")
    return text
