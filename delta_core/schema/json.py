"""Schemas as the JSON of `metaData.schemaString` (PROTOCOL.md, "Schema Serialization Format")."""

from __future__ import annotations

import re
from typing import Any

import orjson

from delta_core.errors import SchemaError
from delta_core.schema.types import (
    PRIMITIVE_NAMES,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)

MAX_DECIMAL_PRECISION = 38

MAX_DEPTH = 100
"""The maximum nesting of types in schemas that are read; each level costs stack when a type is traversed."""

MAX_WRITTEN_DEPTH = 80
"""The maximum nesting of types in schemas that are written; lists and maps count twice, as in files.

Arrow reads files of 100 levels, of which a checkpoint's statistics need some. A struct in a struct takes
three levels of JSON, and the JSON encoder supports at most 254.
"""

_DECIMAL = re.compile(r"decimal(?:\(\s*(\d+)\s*,\s*(-?\d+)\s*\))?")
_ALIASES = {"null": "void"}


def schema_from_json(text: str) -> StructType:
    """Parse a schema string. Column metadata is kept unchanged.

    Raises:
        SchemaError: the string is not JSON, or not a struct of known types.
    """
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise SchemaError(
            "The schema string is not valid JSON.",
            cause=str(error),
            fix="Restore the table's metaData action from an earlier version.",
        ) from error
    parsed = _type_from_json(document, "", 0)
    if not isinstance(parsed, StructType):
        raise _malformed("", f"The table's schema must be a struct, not {parsed}.")
    return parsed


def schema_to_json(schema: StructType) -> str:
    """The schema as one line of JSON, with the keys in the order of other writers.

    Raises:
        SchemaError: types are nested deeper than `MAX_WRITTEN_DEPTH`, or a name or the metadata of a field
            cannot be represented in JSON.
    """
    document = _type_to_json(schema, 0)
    try:
        return orjson.dumps(document).decode()
    except orjson.JSONEncodeError as error:
        raise SchemaError(
            "The schema cannot be written as JSON.",
            cause=str(error),
            fix="Use valid Unicode for field names, and strings and numbers for metadata.",
        ) from error


def type_to_json(data_type: DataType) -> str:
    """A type as JSON: a quoted name, or an object. Raises SchemaError as `schema_to_json`."""
    return orjson.dumps(_type_to_json(data_type, 0)).decode()


def type_from_json(string: str) -> DataType:
    """The type that a JSON string describes.

    Raises:
        SchemaError: the string is not JSON, or not a known type.
    """
    try:
        return _type_from_json(orjson.loads(string), "", 0)
    except orjson.JSONDecodeError as error:
        raise SchemaError(
            "The type is not valid JSON.", cause=str(error), fix="Pass the string that `to_json` returns."
        ) from error


def too_deep() -> SchemaError:
    """The error for a schema that is nested too deeply. It omits the column, whose path would be as long."""
    return SchemaError(
        "The schema is nested too deeply to be written.",
        cause=f"Types are nested more than {MAX_WRITTEN_DEPTH} levels deep; lists and maps count twice.",
        fix="Flatten the column, or write its inner part as a JSON string or as a variant.",
    )


def type_from_name(name: str) -> DataType:
    """A primitive or decimal type from the protocol's name, such as `long` or `decimal(10,2)`.

    Raises:
        SchemaError: the type does not exist.
    """
    return _primitive(name, "")


def _type_from_json(document: Any, path: str, depth: int) -> DataType:
    if depth > MAX_DEPTH:
        # The column's path would be as long, so the message omits it.
        raise _malformed("", f"Types are nested more than {MAX_DEPTH} levels deep.")
    if isinstance(document, str):
        return _primitive(document, path)
    if not isinstance(document, dict):
        raise _malformed(path, f"A type must be a name or an object, but is a {type(document).__name__}.")
    kind = document.get("type")
    if kind == "struct":
        fields = document.get("fields")
        if not isinstance(fields, list):
            raise _malformed(path, "A struct needs a list of fields.")
        return StructType(tuple(_field_from_json(field, path, depth) for field in fields))
    if kind == "array":
        return ArrayType(
            element_type=_type_from_json(document.get("elementType"), f"{path}.element", depth + 1),
            contains_null=bool(document.get("containsNull", True)),
        )
    if kind == "map":
        return MapType(
            key_type=_type_from_json(document.get("keyType"), f"{path}.key", depth + 1),
            value_type=_type_from_json(document.get("valueType"), f"{path}.value", depth + 1),
            value_contains_null=bool(document.get("valueContainsNull", True)),
        )
    raise _malformed(path, f"The kind of type {kind!r} is not known.")


def _field_from_json(document: Any, path: str, depth: int) -> StructField:
    if not isinstance(document, dict) or not isinstance(document.get("name"), str):
        raise _malformed(path, "A field needs a name.")
    name = document["name"]
    metadata = document.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise _malformed(f"{path}.{name}", "A field's metadata must be an object.")
    return StructField(
        name=name,
        data_type=_type_from_json(document.get("type"), f"{path}.{name}", depth + 1),
        nullable=bool(document.get("nullable", True)),
        metadata=metadata,
    )


def _primitive(name: str, path: str) -> DataType:
    name = _ALIASES.get(name, name)
    if name in PRIMITIVE_NAMES:
        return PrimitiveType(name)
    match = _DECIMAL.fullmatch(name)
    if match is None:
        raise _malformed(path, f"The type {name!r} is not known.")
    precision, scale = (int(match[1]), int(match[2])) if match[1] else (10, 0)
    if not (1 <= precision <= MAX_DECIMAL_PRECISION and 0 <= scale <= precision):
        raise _malformed(path, f"{name} is outside of decimal(1..38, 0..precision).")
    return DecimalType(precision, scale)


def _type_to_json(data_type: DataType, depth: int) -> Any:
    if depth > MAX_WRITTEN_DEPTH:
        raise too_deep()
    match data_type:
        case StructType():
            return {
                "type": "struct",
                "fields": [
                    {
                        "name": field.name,
                        "type": _type_to_json(field.data_type, depth + 1),
                        "nullable": field.nullable,
                        "metadata": dict(field.metadata),
                    }
                    for field in data_type
                ],
            }
        case ArrayType():
            return {
                "type": "array",
                "elementType": _type_to_json(data_type.element_type, depth + 2),
                "containsNull": data_type.contains_null,
            }
        case MapType():
            return {
                "type": "map",
                "keyType": _type_to_json(data_type.key_type, depth + 2),
                "valueType": _type_to_json(data_type.value_type, depth + 2),
                "valueContainsNull": data_type.value_contains_null,
            }
        case _:
            return str(data_type)


def _malformed(path: str, cause: str) -> SchemaError:
    where = f" at column {path.lstrip('.')}" if path else ""
    return SchemaError(
        f"The schema cannot be read{where}.",
        cause=cause,
        fix="Use a version of this library that knows the type, or repair the table's schema string.",
    )
