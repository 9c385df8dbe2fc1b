"""Schema enforcement: the three rules for data that is written to a table.

A column that the table does not have is refused. A column whose type differs from the table's is refused. A
column that the data lacks becomes null. Only lossless conversions are implicit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.errors import ConstraintViolationError, SchemaMismatchError
from delta_core.schema.arrow import from_arrow, type_to_arrow
from delta_core.schema.conversion import convert_array, convert_chunked
from delta_core.schema.nullability import NullViolation, find_null_violations
from delta_core.schema.partition_values import empty_as_null
from delta_core.schema.types import (
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    TIMESTAMP_NTZ,
    VOID,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructField,
    StructType,
)
from delta_core.schema.variant_structs import match_variants

Data = TypeVar("Data", pa.Table, pa.RecordBatch)

_WIDENS_TO: dict[DataType, tuple[DataType, ...]] = {
    BYTE: (SHORT, INTEGER, LONG, FLOAT, DOUBLE),
    SHORT: (INTEGER, LONG, FLOAT, DOUBLE),
    INTEGER: (LONG, DOUBLE),
    FLOAT: (DOUBLE,),
    DATE: (TIMESTAMP_NTZ,),
}
_SHOWN_CHARACTERS = 200
_INTEGRAL_DIGITS: dict[DataType, int] = {BYTE: 3, SHORT: 5, INTEGER: 10, LONG: 19}


def conform(table_schema: StructType, data: Data, *, partition_columns: Sequence[str] = ()) -> Data:
    """The data with the table's columns, in the table's order, names and types.

    Column names match without regard to case. Works on whole columns; a column that already fits is not
    copied. The empty string becomes null in a partition column, which cannot store it.

    Raises:
        SchemaMismatchError: extra columns, wrong types, a missing column that must not be null, or a value
            that its conversion would change. The message lists every such column.
        ConstraintViolationError: a non-nullable column contains nulls; the message states the number of
            rows and shows one.
    """
    problems = schema_problems(table_schema, data.schema)
    if problems:
        raise SchemaMismatchError(
            "The data does not fit the table's schema: " + "; ".join(problems) + ".",
            cause=f"The table has the columns {_describe(table_schema)}.",
            fix="Cast, rename, add or drop these columns, so that they match the table's columns.",
        )
    positions = {name.casefold(): index for index, name in enumerate(data.schema.names)}
    partitions = {name.casefold() for name in partition_columns}
    columns = []
    for field in table_schema:
        index = positions.get(field.name.casefold())
        target = type_to_arrow(field.data_type)
        if index is None:
            columns.append(pa.nulls(data.num_rows, target))
        else:
            column = data.column(index)
            if _may_hold_string(column.type):
                _require_unicode(column, field)
            column = _convert(column, target, field)
            if field.name.casefold() in partitions:
                column = empty_as_null(column, field.data_type)
            columns.append(column)
    # Fields stay nullable until nulls have been counted, because Arrow relies on the declaration.
    loose = pa.schema([pa.field(f.name, type_to_arrow(f.data_type)) for f in table_schema])
    result = type(data).from_arrays(columns, schema=loose)
    violations = find_null_violations(table_schema, result)
    if violations:
        raise null_violation_error(violations, result)
    strict = pa.schema(
        [pa.field(f.name, type_to_arrow(f.data_type), nullable=f.nullable) for f in table_schema]
    )
    return type(data).from_arrays(columns, schema=strict)


def schema_problems(table_schema: StructType, data_schema: pa.Schema) -> list[str]:
    """The reasons why data of `data_schema` cannot be written to the table; empty when it can."""
    problems: list[str] = []
    seen: set[str] = set()
    for field in data_schema:
        folded = field.name.casefold()
        if folded in seen:
            problems.append(f"column {field.name} appears twice (names match without regard to case)")
        seen.add(folded)
    _compare_structs(table_schema, match_variants(table_schema, from_arrow(data_schema)), "", problems)
    return problems


def type_problems(expected: DataType, actual: DataType, where: str = "value") -> list[str]:
    """The reasons why values of type `actual` cannot be stored as `expected`; empty when they can."""
    problems: list[str] = []
    _compare(expected, actual, where, problems)
    return problems


def widens_losslessly(source: DataType, target: DataType) -> bool:
    """Whether every value of the primitive type `source` is exactly representable in `target`."""
    if source in (target, VOID) or target in _WIDENS_TO.get(source, ()):
        return True
    if isinstance(target, DecimalType):
        integral = target.precision - target.scale
        if isinstance(source, DecimalType):
            return target.scale >= source.scale and integral >= source.precision - source.scale
        return source in _INTEGRAL_DIGITS and integral >= _INTEGRAL_DIGITS[source]
    return False


def null_violation_error(
    violations: list[NullViolation], data: pa.Table | pa.RecordBatch
) -> ConstraintViolationError:
    """The error for nulls in non-nullable columns, with one offending row of `data`."""
    first = violations[0]
    row = data.slice(first.first_row, 1).to_pylist()[0]
    nulls = "; ".join(
        f"column {v.column} is null in {v.num_rows} of {data.num_rows} rows" for v in violations
    )
    return ConstraintViolationError(
        f"NOT NULL is violated: {nulls}.",
        cause=f"For example, row {first.first_row} is {row}.",
        fix="Fill or drop these rows, or make the column nullable.",
    )


def _describe(schema: StructType) -> str:
    return ", ".join(f"{f.name} {f.data_type}{'' if f.nullable else ' not null'}" for f in schema)


def _compare_structs(table: StructType, data: StructType, prefix: str, problems: list[str]) -> None:
    by_name = {field.name.casefold(): field for field in data}
    expected = {field.name.casefold() for field in table}
    problems.extend(
        f"column {prefix}{field.name} ({field.data_type}) is not in the table"
        for field in data
        if field.name.casefold() not in expected
    )
    for field in table:
        path = prefix + field.name
        actual = by_name.get(field.name.casefold())
        if actual is None:
            if not field.nullable:
                problems.append(f"column {path} is missing and must not be null")
        else:
            _compare(field.data_type, actual.data_type, path, problems)


def _compare(table: DataType, data: DataType, path: str, problems: list[str]) -> None:
    match table, data:
        case StructType(), StructType():
            _compare_structs(table, data, f"{path}.", problems)
        case ArrayType(), ArrayType():
            _compare(table.element_type, data.element_type, f"{path}.element", problems)
        case MapType(), MapType():
            _compare(table.key_type, data.key_type, f"{path}.key", problems)
            _compare(table.value_type, data.value_type, f"{path}.value", problems)
        case _ if not widens_losslessly(data, table):
            problems.append(f"column {path} has type {data}, the table expects {table}")


def _convert(
    column: pa.Array | pa.ChunkedArray, target: pa.DataType, field: StructField
) -> pa.Array | pa.ChunkedArray:
    try:
        return (
            convert_chunked(column, target)
            if isinstance(column, pa.ChunkedArray)
            else convert_array(column, target)
        )
    except pa.ArrowInvalid as error:
        example = _first_inconvertible(column, target)
        raise SchemaMismatchError(
            f"Column {field.name} has type {column.type} and a value that {field.data_type} cannot hold: "
            f"{example}.",
            cause=str(error),
            fix=f"Round or cast the column to {field.data_type} before writing.",
        ) from error


def _may_hold_string(data_type: pa.DataType) -> bool:
    types = pa.types
    if types.is_dictionary(data_type) or types.is_run_end_encoded(data_type):
        return _may_hold_string(data_type.value_type)
    if isinstance(data_type, pa.BaseExtensionType):
        return _may_hold_string(data_type.storage_type)
    if types.is_nested(data_type):
        return any(_may_hold_string(data_type.field(at).type) for at in range(data_type.num_fields))
    return bool(
        types.is_string(data_type) or types.is_large_string(data_type) or types.is_string_view(data_type)
    )


def _require_unicode(column: pa.Array | pa.ChunkedArray, field: StructField) -> None:
    """Validate strings of data passed over the C interface: Arrow accepts any bytes there, readers do not."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        raise SchemaMismatchError(
            f"Column {field.name} has a value that is not a valid string.",
            cause=str(error),
            fix="Decode the bytes, or pass them as binary.",
        ) from error


def _first_inconvertible(column: pa.Array | pa.ChunkedArray, target: pa.DataType) -> str:
    """One value that cannot be converted, found by bisection, for the message."""
    part = column
    while len(part) > 1:
        half = len(part) // 2
        left = part.slice(0, half)
        try:
            if isinstance(left, pa.ChunkedArray):
                convert_chunked(left, target)
            else:
                convert_array(left, target)
            part = part.slice(half)
        except pa.ArrowInvalid:
            part = left
    value = part[0]
    example = str(pc.cast(value, pa.string()).as_py()) if not pa.types.is_nested(part.type) else str(value)
    return example if len(example) <= _SHOWN_CHARACTERS else f"{example[:_SHOWN_CHARACTERS]}..."
