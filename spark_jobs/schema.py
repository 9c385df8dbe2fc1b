"""Delta's types as Spark's, and back."""

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

    Every field is nullable, as Spark makes the columns of files anyway; a NOT NULL column is checked
    when it is written. Field metadata is left out: it holds Delta's entries, not Spark's.
    """
    from pyspark.sql.types import StructType

    document = json.loads(schema_to_json(schema))
    return StructType.fromJson(_plain(document))


def from_spark(schema: StructType) -> delta.StructType:
    """The table schema of a DataFrame's schema, all columns nullable and without metadata.

    A DataFrame's nullability says what Spark could prove, not what the author of the table wants.

    Raises:
        SchemaError: a type has no counterpart in Delta.
    """
    document = _plain(json.loads(schema.json()))
    try:
        return schema_from_json(json.dumps(document))
    except SchemaError:
        raise
    except Exception as error:
        raise SchemaError(
            f"The DataFrame's schema {schema.simpleString()} has no counterpart in Delta.",
            cause=str(error),
            fix="Cast the column to a type that Delta has.",
        ) from error


def to_spark_type(data_type: delta.DataType) -> DataType:
    """A type as Spark's, for casts.

    No text: in a cast to `timestamp` the session decides which of the two types that is.
    """
    return to_spark(delta.StructType((delta.StructField(name="c", data_type=data_type),))).fields[0].dataType


def type_to_ddl(data_type: delta.DataType) -> str:
    """A type as Spark's SQL spells it, for messages."""
    return to_spark_type(data_type).simpleString()


def require_fit(found: delta.StructType, wanted: delta.StructType) -> None:
    """Check that data of the schema `found` can be written as `wanted`, by the three rules.

    Raises:
        SchemaMismatchError: lists every extra, missing and wrong column.
    """
    problems = schema_problems(wanted, to_arrow(found))
    if problems:
        raise SchemaMismatchError(
            "The data does not have the schema that is demanded: " + "; ".join(problems) + ".",
            cause=f"Demanded are {', '.join(f'{field.name} {field.data_type}' for field in wanted)}.",
            fix="Cast, rename or drop these columns, or change the schema that is demanded.",
        )


def _plain(node: Any) -> Any:
    """The schema's JSON with everything nullable and no metadata, at every depth."""
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    out = {key: _plain(value) for key, value in node.items() if key != "metadata"}
    if "name" in node and "nullable" in node:
        out |= {"nullable": True, "metadata": {}}
    for key in ("containsNull", "valueContainsNull"):
        if key in node:
            out[key] = True
    return out
