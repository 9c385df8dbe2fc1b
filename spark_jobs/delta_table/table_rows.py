"""A table's rows with the nullability and the comments of its columns."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from delta_core.schema.field_metadata import COMMENT_KEY
from delta_core.schema.types import StructField, StructType
from spark_jobs.names.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

_EPOCH = dt.datetime(1970, 1, 1)


def with_table_schema(frame: DataFrame, schema: StructType) -> DataFrame:
    """The frame, with comments, and with NOT NULL columns that are not nullable in Spark's schema.

    Spark makes every column of a file nullable. A column is not nullable after `coalesce` with a constant,
    which never takes effect: the table has no null there. Structs, arrays and maps stay nullable.
    """
    if all(field.nullable and COMMENT_KEY not in field.metadata for field in schema):
        return frame
    types = {field.name: field.dataType for field in frame.schema.fields}
    return frame.select(*[_column(field, types[field.name]) for field in schema])


def _column(field: StructField, data_type: DataType) -> Column:
    from pyspark.sql import functions as fn

    column = fn.col(quoted(field.name))
    filler = None if field.nullable else _filler(data_type)
    comment = field.metadata.get(COMMENT_KEY)
    if filler is not None:
        column = fn.coalesce(column, filler)
    return column.alias(field.name, metadata={} if comment is None else {"comment": comment})


def _filler(data_type: DataType) -> Column | None:
    """A constant of the type; None for a type without one."""
    from pyspark.sql import functions as fn
    from pyspark.sql import types as t

    constants: list[tuple[type[DataType], Any]] = [
        (t.StringType, ""),
        (t.BooleanType, False),
        (t.DecimalType, Decimal(0)),
        (t.NumericType, 0),
        (t.DateType, _EPOCH.date()),
        (t.TimestampType, _EPOCH.replace(tzinfo=dt.UTC)),
        (t.BinaryType, b""),
    ]
    for kind, value in constants:
        if isinstance(data_type, kind):
            return fn.lit(value).cast(data_type)
    return None
