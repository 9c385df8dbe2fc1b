"""The columns of a data file, for a writer vector."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

_ID = b"PARQUET:field_id"


def columns_of(path: Path) -> list[dict[str, Any]]:
    """Each leaf of a Parquet file in order: its path, its type, and the field ids on the way to it."""
    with pq.ParquetFile(path) as file:
        ids = dict(_ids(file.schema_arrow))
        leaves = [file.schema.column(index) for index in range(len(file.schema))]
    found = []
    for leaf in leaves:
        column: dict[str, Any] = {"path": leaf.path, "type": _type(leaf)}
        on_the_way = {name: number for name, number in ids.items() if f"{leaf.path}.".startswith(f"{name}.")}
        if on_the_way:
            column["ids"] = on_the_way
        found.append(column)
    return found


def _type(leaf: Any) -> str:
    """Physical and logical type, such as `INT32 Date`."""
    logical = leaf.logical_type
    if logical.type == "TIMESTAMP":
        # In words: pyarrow adds what only its own readers look at.
        text = "Timestamp(UTC)" if "isAdjustedToUTC=true" in str(logical) else "Timestamp(local)"
    else:
        text = "" if logical.type == "NONE" else str(logical)
    return f"{leaf.physical_type} {text}".strip()


def _ids(schema: pa.Schema) -> Iterator[tuple[str, int]]:
    for field in schema:
        yield from _ids_of(field, field.name)


def _ids_of(field: pa.Field, path: str) -> Iterator[tuple[str, int]]:
    number = (field.metadata or {}).get(_ID)
    if number is not None:
        yield path, int(number)
    kind = field.type
    if pa.types.is_struct(kind):
        for index in range(kind.num_fields):
            inner = kind.field(index)
            yield from _ids_of(inner, f"{path}.{inner.name}")
    elif pa.types.is_map(kind):
        yield from _ids_of(kind.key_field, f"{path}.key_value.key")
        yield from _ids_of(kind.item_field, f"{path}.key_value.value")
    elif pa.types.is_list(kind):
        yield from _ids_of(kind.value_field, f"{path}.list.element")
