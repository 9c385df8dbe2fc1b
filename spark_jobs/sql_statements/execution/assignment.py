"""The values of INSERT in the types of the table's columns, by the rules of Spark's ANSI store assignment."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from delta_core.errors import SchemaMismatchError
from delta_core.schema.types import StructField, StructType
from spark_jobs.expressions.columns import quoted
from spark_jobs.schema import to_spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
_TIMES = ("date", "timestamp", "timestamp_ntz")


def assigned(frame: DataFrame, schema: StructType, *, from_strings: Iterable[str] = ()) -> DataFrame:
    """The rows with the columns that the table has in the table's types. Other columns stay as they are.

    A value that does not fit its column fails the statement; it never becomes null.

    Args:
        frame: the rows.
        schema: the table's columns.
        from_strings: columns whose strings become values of any type, as those of a CSV file do.

    Raises:
        SchemaMismatchError: a type cannot be assigned to the type of its column.
    """
    from pyspark.sql import functions as fn

    parsed = {name.casefold() for name in from_strings}
    columns = []
    for found in frame.schema.fields:
        column = fn.col(quoted(found.name)) if frame.columns.count(found.name) == 1 else None
        field = schema.find(found.name)
        if column is None:
            raise SchemaMismatchError(
                f"Two columns of the query have the name {found.name!r}.",
                fix="Give each column of the query a name of its own, with AS.",
            )
        if field is not None:
            column = _value(column, found.dataType, field, from_strings=found.name.casefold() in parsed)
        columns.append(column.alias(found.name))
    return frame.select(*columns)


def _value(column: Column, found: DataType, field: StructField, *, from_strings: bool) -> Column:
    from pyspark.sql import functions as fn
    from pyspark.sql import types as spark_types

    target = to_spark_type(field.data_type)
    if found.simpleString() == target.simpleString():
        return column
    nested = (spark_types.StructType, spark_types.ArrayType, spark_types.MapType, spark_types.NullType)
    if isinstance(found, nested):
        return column.cast(target)
    is_string = from_strings and found.simpleString() == "string"
    if not is_string and not _may_assign(found.simpleString(), target.simpleString()):
        raise SchemaMismatchError(
            f"The column {field.name} cannot have values of the type {found.simpleString()}.",
            cause=f"Its type is {target.simpleString()}, and the conversion may lose the meaning of a value.",
            fix=f"Write CAST(... AS {target.simpleString().upper()}) in the query.",
        )
    cast = column.try_cast(target)
    message = fn.concat(
        fn.lit(f"A value does not fit the column {field.name} ({target.simpleString()}): "),
        column.cast("string"),
    )
    failure = fn.raise_error(message).cast(target)
    return fn.when(column.isNotNull() & cast.isNull(), failure).otherwise(cast)


def _may_assign(found: str, target: str) -> bool:
    """Whether ANSI store assignment allows the types, by their names in SQL."""
    source, wanted = found.split("(")[0], target.split("(")[0]
    if wanted == "string":
        return source not in ("binary", "variant")
    if source in _NUMBERS and wanted in _NUMBERS:
        return True
    if source in _TIMES and wanted in _TIMES:
        return True
    return source == wanted
