"""Conversion of schemas and types between Delta and Spark."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from delta_core.errors import SchemaError, SchemaMismatchError
from delta_core.schema import types as delta
from delta_core.schema.arrow import to_arrow
from delta_core.schema.enforcement import schema_problems
from delta_core.schema.json import schema_from_json, schema_to_json

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType


def to_spark(schema: delta.StructType) -> StructType:
    """The Spark schema of a table's schema.

    Every field is nullable, as in every DataFrame that Spark reads from files. The write checks NOT NULL
    columns. Field metadata is omitted, because it contains entries of Delta, not of Spark.
    """
    from pyspark.sql.types import StructType

    document = json.loads(schema_to_json(schema))
    return StructType.fromJson(_without_metadata(document))


def from_spark(schema: StructType) -> delta.StructType:
    """The table schema of a DataFrame's schema, all columns nullable and without metadata.

    A DataFrame's nullability is what Spark can prove, not a requirement of the table's author.

    Raises:
        SchemaError: Delta has no equivalent of a type.
    """
    document = _without_metadata(json.loads(schema.json()))
    try:
        return schema_from_json(json.dumps(document))
    except SchemaError:
        raise
    except Exception as error:
        raise SchemaError(
            f"The DataFrame's schema {schema.simpleString()} has a type that Delta does not support.",
            cause=f"{error}.",
            fix="Cast the column to a type that Delta supports.",
        ) from error


def to_spark_type(data_type: delta.DataType) -> DataType:
    """The Spark type of a Delta type, for casts.

    It is not a type name, because the session decides which of two types the name `timestamp` is.
    """
    return to_spark(delta.StructType((delta.StructField(name="c", data_type=data_type),))).fields[0].dataType


def type_to_ddl(data_type: delta.DataType) -> str:
    """The Spark SQL name of a type, for messages."""
    return to_spark_type(data_type).simpleString()


def require_fit(found: delta.StructType, requested: delta.StructType) -> None:
    """Check that data with the schema `found` can be written as the requested schema.

    Raises:
        SchemaMismatchError: the schemas differ. The error lists every extra, missing and mistyped column.
    """
    problems = schema_problems(requested, to_arrow(found))
    if problems:
        raise SchemaMismatchError(
            "The data does not have the requested schema: " + "; ".join(problems) + ".",
            cause="The requested schema is "
            f"{', '.join(f'{field.name} {field.data_type}' for field in requested)}.",
            fix="Cast, rename or drop these columns, or change the requested schema.",
        )


def _without_metadata(node: Any) -> Any:
    """The schema's JSON with all fields nullable and without metadata, at every depth."""
    if isinstance(node, list):
        return [_without_metadata(item) for item in node]
    if not isinstance(node, dict):
        return node
    out = {key: _without_metadata(value) for key, value in node.items() if key != "metadata"}
    if "name" in node and "nullable" in node:
        out |= {"nullable": True, "metadata": {}}
    for key in ("containsNull", "valueContainsNull"):
        if key in node:
            out[key] = True
    return out
