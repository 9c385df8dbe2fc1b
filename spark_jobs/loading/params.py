"""The parameters of a `load` job, typed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from delta_core.errors import InvalidJobSpecError, SchemaError
from delta_core.schema.json import schema_from_json
from delta_core.schema.types import StructType

FORMATS: Final = ("parquet", "csv")
MODES: Final = ("append", "overwrite")

_SQL_NAMES = {
    "bigint": "long",
    "int": "integer",
    "smallint": "short",
    "tinyint": "byte",
    "bool": "boolean",
    "real": "float",
    "timestamp_ltz": "timestamp",
}

_COLUMNS: Final = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["name", "type"],
        "additionalProperties": False,
        "properties": {
            "name": {"type": "string", "minLength": 1},
            "type": {
                "type": ["string", "object"],
                "description": "a type by its Delta or SQL name, or a nested type in the schema's JSON form",
            },
            "nullable": {"type": "boolean"},
        },
    },
}

PARAMS_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "required": ["source"],
    "additionalProperties": False,
    "properties": {
        "source": {
            "type": "object",
            "required": ["format", "uris"],
            "additionalProperties": False,
            "properties": {
                "format": {"enum": list(FORMATS)},
                "uris": {"type": "array", "items": {"type": "string", "minLength": 1}},
                "options": {"type": "object", "description": "of Spark's reader; values are text"},
                "schema": {
                    **_COLUMNS,
                    "description": "the columns of CSV files; their text is cast to these types",
                },
                "select": {
                    "type": "object",
                    "description": "output column: Spark SQL expression over the source's columns",
                },
            },
        },
        "mode": {"enum": list(MODES)},
        "partition_by": {"type": ["array", "null"], "items": {"type": "string"}},
        "replace_where": {
            "type": ["string", "null"],
            "description": "with overwrite: replace only these rows",
        },
        "merge_schema": {"type": "boolean"},
        "overwrite_schema": {"type": "boolean"},
        "configuration": {"type": "object", "description": "table properties of a new table"},
        "contract": {
            "type": "object",
            "additionalProperties": False,
            "description": "what the rows must be; the columns become the schema of a new table",
            "properties": {
                "columns": _COLUMNS,
                "constraints": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["name", "expression"],
                        "additionalProperties": False,
                        "properties": {
                            "name": {"type": "string", "minLength": 1},
                            "expression": {"type": "string", "minLength": 1},
                        },
                    },
                },
            },
        },
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where the rows come from."""

    format: str
    uris: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict, hash=False)
    schema: StructType | None = None
    select: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadParams:
    """A `load` job's parameters."""

    source: Source
    mode: str = "append"
    partition_by: tuple[str, ...] | None = None
    replace_where: str | None = None
    merge_schema: bool = False
    overwrite_schema: bool = False
    configuration: Mapping[str, str] = field(default_factory=dict, hash=False)
    columns: StructType | None = None
    constraints: tuple[tuple[str, str], ...] = ()


def parse_params(params: Mapping[str, Any]) -> LoadParams:
    """Typed parameters from those of a spec that fits `PARAMS_SCHEMA`.

    Raises:
        InvalidJobSpecError: a type does not exist, or there is no source file.
    """
    source = params["source"]
    if not source["uris"]:
        raise InvalidJobSpecError("the load has no source", fix="name at least one file in source.uris")
    contract = params.get("contract") or {}
    partition_by = params.get("partition_by")
    return LoadParams(
        source=Source(
            format=source["format"],
            uris=tuple(source["uris"]),
            options={key: _text(value) for key, value in (source.get("options") or {}).items()},
            schema=_columns(source.get("schema"), "source.schema"),
            select={key: str(value) for key, value in (source.get("select") or {}).items()},
        ),
        mode=params.get("mode", "append"),
        partition_by=None if partition_by is None else tuple(partition_by),
        replace_where=params.get("replace_where"),
        merge_schema=params.get("merge_schema", False),
        overwrite_schema=params.get("overwrite_schema", False),
        configuration={key: _text(value) for key, value in (params.get("configuration") or {}).items()},
        columns=_columns(contract.get("columns"), "contract.columns"),
        constraints=tuple((item["name"], item["expression"]) for item in contract.get("constraints") or ()),
    )


def _columns(columns: list[Mapping[str, Any]] | None, where: str) -> StructType | None:
    if not columns:
        return None
    fields = [
        {
            "name": column["name"],
            "type": _type_name(column["type"]),
            "nullable": column.get("nullable", True),
            "metadata": {},
        }
        for column in columns
    ]
    try:
        return schema_from_json(json.dumps({"type": "struct", "fields": fields}))
    except SchemaError as error:
        raise InvalidJobSpecError(f"{where} is not a schema", cause=str(error), fix=error.fix) from error


def _type_name(name: object) -> object:
    if not isinstance(name, str):
        return name
    folded = re.sub(r"\s+", "", name.casefold())
    if folded in ("decimal", "numeric"):
        return "decimal(10,0)"
    return _SQL_NAMES.get(folded, folded)


def _text(value: object) -> str:
    """An option as Spark and Delta spell it: booleans in lower case."""
    return str(value).lower() if isinstance(value, bool) else str(value)
