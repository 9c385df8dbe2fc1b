"""The parameters of a `load` job, typed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from delta_core.errors import InvalidJobSpecError, SchemaError
from delta_core.policies.contract import Contract, schema_of_columns
from delta_core.schema.types import StructType
from spark_jobs.loading.contract import COLUMNS_SCHEMA, CONTRACT_SCHEMA, contract_of
from spark_jobs.quality.params import QUALITY_SCHEMA, QualityParams, parse_quality

FORMATS: Final = ("parquet", "csv")
MODES: Final = ("append", "overwrite")

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
                    **COLUMNS_SCHEMA,
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
        "quality": QUALITY_SCHEMA,
        "contract": CONTRACT_SCHEMA,
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
    contract: Contract = field(default_factory=Contract)
    quality: QualityParams | None = None


def parse_params(params: Mapping[str, Any]) -> LoadParams:
    """Typed parameters from those of a spec that fits `PARAMS_SCHEMA`.

    Raises:
        InvalidJobSpecError: a type does not exist, or there is no source file.
    """
    source = params["source"]
    if not source["uris"]:
        raise InvalidJobSpecError("the load has no source", fix="name at least one file in source.uris")
    contract = contract_of(params.get("contract"))
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
        columns=contract.columns,
        constraints=contract.constraints,
        contract=contract,
        quality=parse_quality(params.get("quality")),
    )


def _columns(columns: list[Mapping[str, Any]] | None, where: str) -> StructType | None:
    if not columns:
        return None
    try:
        return schema_of_columns(columns)
    except SchemaError as error:
        raise InvalidJobSpecError(f"{where} is not a schema", cause=str(error), fix=error.fix) from error


def _text(value: object) -> str:
    """An option as Spark and Delta spell it: booleans in lower case."""
    return str(value).lower() if isinstance(value, bool) else str(value)
