"""Names of column types in Delta, Spark, pandas and Python.

Great Expectations compares type names with those of its engine, so that a suite could pass below a million
rows and fail above. Here the names are compared with the table's types, which do not depend on the engine.
"""

from __future__ import annotations

import re
from typing import Final

from delta_core.schema.types import ArrayType, DataType, DecimalType, MapType, StructType

_NAMES: Final = {
    "byte": ("byte", "tinyint", "int8", "bytetype", "int"),
    "short": ("short", "smallint", "int16", "shorttype", "int"),
    "integer": ("integer", "int", "int32", "integertype"),
    "long": ("long", "bigint", "int64", "longtype", "int"),
    "float": ("float", "real", "float32", "floattype"),
    "double": ("double", "float64", "doubletype", "float"),
    "string": ("string", "str", "stringtype", "varchar", "text", "object"),
    "boolean": ("boolean", "bool", "bool_", "booleantype"),
    "binary": ("binary", "bytes", "binarytype"),
    "date": ("date", "datetime.date", "datetype"),
    "timestamp": (
        *("timestamp", "timestamp_ltz", "timestamptype", "datetime", "datetime.datetime"),
        *("datetime64", "datetime64[ns]", "datetime64[us]", "datetime64[us,utc]", "datetime64[ns,utc]"),
    ),
    "timestamp_ntz": (
        *("timestamp_ntz", "timestampntztype", "datetime", "datetime.datetime"),
        *("datetime64", "datetime64[ns]", "datetime64[us]"),
    ),
    "void": ("void", "null", "nulltype"),
    "variant": ("variant", "varianttype"),
    "decimal": ("decimal", "decimal.decimal", "numeric", "decimaltype"),
    "array": ("array", "list", "arraytype"),
    "map": ("map", "dict", "maptype"),
    "struct": ("struct", "structtype"),
}

_KNOWN: Final = frozenset(name for names in _NAMES.values() for name in names)
_PARAMETERS = re.compile(r"^(decimal|decimaltype|numeric)\(\d+,-?\d+\)$")


def is_type_name(name: str) -> bool:
    """Whether the name is a name of any type."""
    folded = _folded(name)
    return folded in _KNOWN or _PARAMETERS.match(folded) is not None


def is_name_of(data_type: DataType, name: str) -> bool:
    """Whether the name is a name of this type."""
    folded = _folded(name)
    if isinstance(data_type, DecimalType):
        parameters = f"({data_type.precision},{data_type.scale})"
        return folded.removesuffix(parameters) in _NAMES["decimal"]
    return folded in _NAMES.get(_family(data_type), ())


def _family(data_type: DataType) -> str:
    if isinstance(data_type, ArrayType):
        return "array"
    if isinstance(data_type, MapType):
        return "map"
    return "struct" if isinstance(data_type, StructType) else str(data_type)


def _folded(name: str) -> str:
    return re.sub(r"\s+", "", name.casefold()).removesuffix("()")
