"""Columns of the model's tables and what may be in them, for Arrow, for Delta and for the log."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from delta_core.schema.arrow import variant_field
from delta_core.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)
from delta_core.variants.python_values import encoded


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A type of column: its three names, and the values that a row may have but null."""

    delta: DataType
    arrow: pa.DataType
    values: st.SearchStrategy[Any]


_TIMES = st.sampled_from(
    [
        dt.datetime(1970, 1, 1),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
        dt.datetime(2024, 2, 29, 12, 30, 0, 123456),
    ]
)

KINDS: Mapping[str, Kind] = {
    "string": Kind(
        delta=STRING,
        arrow=pa.string(),
        values=st.sampled_from(["a", "b", "a/b", "50% off", "x=y", "ü ß", "it's", "long " * 9]),
    ),
    "long": Kind(
        delta=LONG,
        arrow=pa.int64(),
        values=st.sampled_from([-(2**63), -1, 0, 1, 7, 40, 2**62]),
    ),
    "integer": Kind(delta=INTEGER, arrow=pa.int32(), values=st.integers(-9, 99)),
    "short": Kind(delta=SHORT, arrow=pa.int16(), values=st.integers(-9, 99)),
    "byte": Kind(delta=BYTE, arrow=pa.int8(), values=st.sampled_from([-128, 0, 5, 127])),
    "double": Kind(
        delta=DOUBLE,
        arrow=pa.float64(),
        values=st.sampled_from([0.1, -2.25, 1e308, float("inf"), float("nan")]),
    ),
    "boolean": Kind(delta=BOOLEAN, arrow=pa.bool_(), values=st.booleans()),
    "binary": Kind(delta=BINARY, arrow=pa.binary(), values=st.sampled_from([b"", b"\x00\xff", b"abc"])),
    "date": Kind(
        delta=DATE,
        arrow=pa.date32(),
        values=st.sampled_from([dt.date(1969, 12, 31), dt.date(2024, 2, 29), dt.date(9999, 12, 31)]),
    ),
    "timestamp": Kind(
        delta=TIMESTAMP,
        arrow=pa.timestamp("us", "UTC"),
        values=_TIMES.map(lambda time: time.replace(tzinfo=dt.UTC)),
    ),
    "timestamp_ntz": Kind(delta=TIMESTAMP_NTZ, arrow=pa.timestamp("us"), values=_TIMES),
    "decimal": Kind(
        delta=DecimalType(precision=8, scale=2),
        arrow=pa.decimal128(8, 2),
        values=st.sampled_from([decimal.Decimal(text) for text in ("0.00", "-1.50", "999999.99")]),
    ),
    "struct": Kind(
        delta=StructType((StructField(name="a", data_type=INTEGER), StructField(name="b", data_type=STRING))),
        arrow=pa.struct([("a", pa.int32()), ("b", pa.string())]),
        values=st.fixed_dictionaries({"a": st.none() | st.integers(0, 9), "b": st.sampled_from([None, "z"])}),
    ),
    "list": Kind(
        delta=ArrayType(element_type=INTEGER),
        arrow=pa.list_(pa.int32()),
        values=st.lists(st.none() | st.integers(0, 9), max_size=2),
    ),
    "map": Kind(
        delta=MapType(key_type=STRING, value_type=INTEGER),
        arrow=pa.map_(pa.string(), pa.int32()),
        values=st.dictionaries(st.sampled_from(["k", "a b"]), st.integers(0, 9), max_size=2).map(
            lambda found: sorted(found.items())
        ),
    ),
    "variant": Kind(
        delta=VARIANT,
        arrow=variant_field("v").type,
        values=st.sampled_from(
            [encoded(one) for one in (None, 7, -2.25, "long " * 9, [], {"b": [1, "x"], "a": {"c": None}})]
        ),
    ),
}

WITH_A_FEATURE = frozenset({"timestamp_ntz", "variant"})
"""Kinds that the protocol must list."""

PLAIN_KINDS = tuple(sorted(KINDS.keys() - WITH_A_FEATURE))

PARTITION_KINDS = ("string", "integer", "date", "boolean", "timestamp", "decimal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column.

    Attributes:
        kind: its type, of `KINDS`.
        default: what a row gets that does not give the column; the text is SQL, the value Python's.
        generated_from: the integer column whose value plus one it is.
        identity: whether the table numbers its rows in it.
        nullable: as in the schema.
    """

    name: str
    kind: str
    default: tuple[str, Any] | None = None
    generated_from: str | None = None
    identity: bool = False
    nullable: bool = True
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def is_given(self) -> bool:
        """Whether whoever writes rows gives its values."""
        return self.generated_from is None and not self.identity

    @property
    def is_plain(self) -> bool:
        """Whether the table knows no rule for it."""
        return self.is_given and self.default is None and self.nullable

    def to_field(self) -> StructField:
        """The column in a schema."""
        rules: dict[str, Any] = dict(self.metadata)
        if self.default is not None:
            rules["CURRENT_DEFAULT"] = self.default[0]
        if self.generated_from is not None:
            rules["delta.generationExpression"] = f"{self.generated_from} + 1"
        if self.identity:
            rules |= {
                "delta.identity.start": 1,
                "delta.identity.step": 1,
                "delta.identity.allowExplicitInsert": False,
            }
        kind = KINDS[self.kind].delta
        return StructField(name=self.name, data_type=kind, nullable=self.nullable, metadata=rules)

    def draws(self, *, partition: bool) -> st.SearchStrategy[Any]:
        """Values for one row."""
        kind = KINDS[self.kind]
        return st.none() | kind.values if self.nullable or partition else kind.values


def arrow_table(columns: list[Column], rows: list[Mapping[str, Any]]) -> pa.Table:
    """Rows for a writer, with these columns."""
    schema = pa.schema(
        [
            variant_field(one.name) if one.kind == "variant" else pa.field(one.name, KINDS[one.kind].arrow)
            for one in columns
        ]
    )
    arrays = [pa.array([row[f.name] for row in rows], f.type) for f in schema]
    return pa.Table.from_arrays(arrays, schema=schema)
