"""The parameters of a `load` job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from delta_core.jobs.params.contract import CONTRACT_SCHEMA, contract_of
from delta_core.jobs.params.deduplicate import DEDUPLICATE_SCHEMA, Deduplication, parse_deduplicate
from delta_core.jobs.params.engine_io import ENGINE_IO_SCHEMA, EngineIO
from delta_core.jobs.params.quality import QUALITY_SCHEMA, QualityParams, parse_quality
from delta_core.jobs.params.source import SOURCE_SCHEMA, Source, as_option, parse_source
from delta_core.policies.contract import Contract
from delta_core.schema.types import StructType

KIND: Final = "load"
MODES: Final = ("append", "overwrite")

LOAD_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "required": ["source"],
    "additionalProperties": False,
    "properties": {
        "source": SOURCE_SCHEMA,
        "mode": {"enum": list(MODES)},
        "partition_by": {"type": ["array", "null"], "items": {"type": "string"}},
        "replace_where": {
            "type": ["string", "null"],
            "description": "with mode overwrite: replace only the rows that match this condition",
        },
        "partition_overwrite_mode": {
            "enum": ["static", "dynamic"],
            "description": "with mode overwrite: dynamic replaces exactly the partitions with new rows",
        },
        "max_records_per_file": {
            "type": ["integer", "null"],
            "minimum": 1,
            "description": "the maximum number of rows of a data file",
        },
        "merge_schema": {"type": "boolean"},
        "overwrite_schema": {"type": "boolean"},
        "configuration": {"type": "object", "description": "table properties of a new table"},
        "deduplicate": DEDUPLICATE_SCHEMA,
        "quality": QUALITY_SCHEMA,
        "contract": CONTRACT_SCHEMA,
        "engine_io": ENGINE_IO_SCHEMA,
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadParams:
    """A `load` job's parameters."""

    source: Source
    mode: str = "append"
    partition_by: tuple[str, ...] | None = None
    replace_where: str | None = None
    partition_overwrite_mode: str = "static"
    max_records_per_file: int | None = None
    merge_schema: bool = False
    overwrite_schema: bool = False
    configuration: Mapping[str, str] = field(default_factory=dict, hash=False)
    columns: StructType | None = None
    constraints: tuple[tuple[str, str], ...] = ()
    deduplicate: Deduplication | None = None
    contract: Contract = field(default_factory=Contract)
    quality: QualityParams | None = None
    engine_io: EngineIO = EngineIO.AUTO


def parse_load(params: Mapping[str, Any]) -> LoadParams:
    """Parse the parameters of a spec that conforms to `LOAD_SCHEMA`.

    Raises:
        InvalidJobSpecError: the source, the contract or the gate is not valid.
    """
    contract = contract_of(params.get("contract"))
    partition_by = params.get("partition_by")
    return LoadParams(
        source=parse_source(params["source"]),
        mode=params.get("mode", "append"),
        partition_by=None if partition_by is None else tuple(partition_by),
        replace_where=params.get("replace_where"),
        partition_overwrite_mode=params.get("partition_overwrite_mode", "static"),
        max_records_per_file=params.get("max_records_per_file"),
        merge_schema=params.get("merge_schema", False),
        overwrite_schema=params.get("overwrite_schema", False),
        configuration={key: as_option(value) for key, value in (params.get("configuration") or {}).items()},
        columns=contract.columns,
        constraints=contract.constraints,
        deduplicate=parse_deduplicate(params.get("deduplicate")),
        contract=contract,
        quality=parse_quality(params.get("quality")),
        engine_io=EngineIO(params.get("engine_io", EngineIO.AUTO)),
    )
