"""A table's rows with the nullability and the comments of its columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from delta_core.schema.field_metadata import COMMENT_KEY
from delta_core.schema.types import StructField, StructType
from spark_jobs.names.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType as SparkStructType


def with_table_schema(frame: DataFrame, schema: StructType, alias: str | None = None) -> DataFrame:
    """The frame with the table's comments and NOT NULL columns in its schema, and with an alias if given.

    Spark makes every column of a file nullable, and an expression that is never null would keep filters from
    the files. Therefore only the schema that the returned frame shows has NOT NULL: frames that are made
    from it have nullable columns, and their filters reach the files.
    """
    if any(COMMENT_KEY in field.metadata for field in schema):
        frame = frame.select(*[_commented(field) for field in schema])
    if alias is not None:
        frame = frame.alias(alias)
    if all(field.nullable for field in schema):
        return frame
    required = {field.name for field in schema if not field.nullable}
    return _showing(frame, required)


def _commented(field: StructField) -> Column:
    from pyspark.sql import functions as fn

    column = fn.col(quoted(field.name))
    comment = field.metadata.get(COMMENT_KEY)
    return column if comment is None else column.alias(field.name, metadata={"comment": comment})


def _showing(frame: DataFrame, required: set[str]) -> DataFrame:
    """The same frame, whose schema has some columns as NOT NULL."""
    from pyspark.sql import types as spark_types

    kind: Any = type(frame)
    shown = spark_types.StructType(
        [
            spark_types.StructField(
                field.name,
                field.dataType,
                field.nullable and field.name not in required,
                dict(field.metadata or {}),
            )
            for field in frame.schema.fields
        ]
    )

    def schema(_: Any) -> SparkStructType:
        return shown

    frame.__class__ = type(
        kind.__name__, (kind,), {"schema": property(schema), "__module__": kind.__module__}
    )
    return frame
