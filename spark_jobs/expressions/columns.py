"""Conversion of a DataFrame to exactly a table's columns, with native expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from delta_core.schema.types import DOUBLE, FLOAT, TIMESTAMP, DataType, DecimalType, StructType
from spark_jobs.expressions.checked_numbers import plain_string
from spark_jobs.schema import to_spark, to_spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def quoted(name: str) -> str:
    """A column's name as a quoted SQL identifier."""
    return "`" + name.replace("`", "``") + "`"


def conform_columns(frame: DataFrame, schema: StructType, *, kept: Sequence[str] = ()) -> DataFrame:
    """The rows with the columns of `schema`, in its order, spelling and types. Missing columns are null.

    The columns `kept` of the frame follow unchanged.

    The caller has checked the schemas (`delta_core.dml.metadata_update.plan_metadata_update`), so no cast
    here loses data. Fields of structs are also matched by name.
    """
    from pyspark.sql import functions as fn

    present = {field.name.casefold(): field for field in frame.schema.fields}
    target = to_spark(schema)
    columns: list[Column] = []
    for field, spark_field in zip(schema, target.fields, strict=True):
        source = present.get(field.name.casefold())
        if source is None:
            columns.append(fn.lit(None).cast(spark_field.dataType).alias(field.name))
            continue
        column = fn.col(quoted(source.name))
        same = source.dataType.simpleString() == spark_field.dataType.simpleString()
        columns.append(
            (column if same else match_type(column, source.dataType, spark_field.dataType)).alias(field.name)
        )
    return frame.select(*columns, *[fn.col(quoted(name)) for name in kept])


def match_type(column: Column, source: object, target: object) -> Column:
    """Cast `column` from the type `source` to the type `target`. Struct fields are matched by name."""
    from pyspark.sql import functions as fn
    from pyspark.sql import types as spark_types

    if isinstance(source, spark_types.StructType) and isinstance(target, spark_types.StructType):
        present = {field.name.casefold(): field for field in source.fields}
        parts = []
        for field in target.fields:
            found = present.get(field.name.casefold())
            if found is None:
                parts.append(fn.lit(None).cast(field.dataType).alias(field.name))
            else:
                inner = match_type(column.getField(found.name), found.dataType, field.dataType)
                parts.append(inner.alias(field.name))
        return fn.when(column.isNotNull(), fn.struct(*parts))
    if isinstance(source, spark_types.ArrayType) and isinstance(target, spark_types.ArrayType):
        return fn.transform(column, lambda item: match_type(item, source.elementType, target.elementType))
    if isinstance(source, spark_types.MapType) and isinstance(target, spark_types.MapType):
        keys = fn.transform_keys(column, lambda key, _: match_type(key, source.keyType, target.keyType))
        return fn.transform_values(
            keys, lambda _, value: match_type(value, source.valueType, target.valueType)
        )
    if isinstance(target, spark_types.DataType) and source != target:
        return column.cast(target)
    return column


def partition_string(column: Column, data_type: DataType) -> Column:
    """One partition value as a string (PROTOCOL.md, "Partition Value Serialization"); null for null.

    The writer reads the values from the directory names after the job. In directory names, Spark would write
    a timestamp in the session's time zone and a double in Java's notation.
    """
    from pyspark.sql import functions as fn

    if data_type == TIMESTAMP:
        return _utc_string(column)
    if data_type in (FLOAT, DOUBLE):
        # Equal values have the same string: the two zeros are equal, and all NaN are equal.
        return fn.when(column == fn.lit(0).cast(to_spark_type(data_type)), fn.lit("0.0")).otherwise(
            column.cast("string")
        )
    return plain_string(column, data_type) if isinstance(data_type, DecimalType) else column.cast("string")


def _utc_string(column: Column) -> Column:
    """`2013-01-31T08:00:00.000000Z`, computed from the instant, independent of the session's time zone."""
    from pyspark.sql import functions as fn

    micros = fn.unix_micros(column)
    micros_per_day = fn.lit(86_400_000_000)
    micros_of_day = fn.pmod(micros, micros_per_day)
    days = ((micros - micros_of_day) / micros_per_day).cast("int")
    seconds = (micros_of_day - fn.pmod(micros_of_day, fn.lit(1_000_000))) / fn.lit(1_000_000)
    formatted = fn.format_string(
        "%sT%02d:%02d:%02d.%06dZ",
        fn.date_from_unix_date(days).cast("string"),
        fn.floor(seconds / 3600),
        fn.floor(fn.pmod(seconds, fn.lit(3600)) / 60),
        fn.floor(fn.pmod(seconds, fn.lit(60))),
        fn.pmod(micros_of_day, fn.lit(1_000_000)),
    )
    return fn.when(column.isNotNull(), formatted)
