"""Arrow objects as `deltalake` returns them: those of arro3 where it is installed, else those of pyarrow.

Both have Arrow's C interface, so a caller that passes them on does not notice the difference.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

import pyarrow as pa

from delta_core.deltalake.exceptions import ArgumentTypeError


@cache
def _arro3() -> Any:
    try:
        return importlib.import_module("arro3.core")
    except ImportError:
        return None


def exported(value: pa.Schema | pa.Field | pa.DataType | pa.Table | pa.RecordBatchReader) -> Any:
    """The object for the caller."""
    core = _arro3()
    if core is None:
        return value
    for kind, name in (
        (pa.Schema, "Schema"),
        (pa.Field, "Field"),
        (pa.DataType, "DataType"),
        (pa.Table, "Table"),
        (pa.RecordBatchReader, "RecordBatchReader"),
    ):
        if isinstance(value, kind):
            return getattr(core, name).from_arrow(value)
    return value


def imported_schema(schema: object) -> pa.Schema:
    """A caller's schema as one of pyarrow. Raises ArgumentTypeError for an object that is not a schema."""
    if isinstance(schema, pa.Schema):
        return schema
    if not hasattr(schema, "__arrow_c_schema__"):
        raise _refused(schema, "schema")
    return pa.schema(schema)


def imported_field(field: object) -> pa.Field:
    """A caller's field as one of pyarrow. Raises ArgumentTypeError for an object that is not a field."""
    if isinstance(field, pa.Field):
        return field
    if not hasattr(field, "__arrow_c_schema__"):
        raise _refused(field, "field")
    return pa.field(field)


def imported_type(data_type: object) -> pa.DataType:
    """A caller's type as one of pyarrow. Raises ArgumentTypeError for an object that is not a type."""
    if isinstance(data_type, pa.DataType):
        return data_type
    return imported_field(data_type).type


def _refused(value: object, what: str) -> ArgumentTypeError:
    return ArgumentTypeError(
        f"A {type(value).__name__} is not an Arrow {what}.",
        cause="It has no Arrow C schema interface.",
        fix=f"Pass a {what} of pyarrow, or of a library with the interface.",
    )
