"""The parameters of a `merge` job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from delta_core.errors import ConfigurationError, InvalidJobSpecError
from delta_core.jobs.params.contract import CONTRACT_SCHEMA, contract_of
from delta_core.jobs.params.deduplicate import DEDUPLICATE_SCHEMA, Deduplication, parse_deduplicate
from delta_core.jobs.params.engine_io import ENGINE_IO_SCHEMA, EngineIO
from delta_core.jobs.params.merge_clauses import ACTIONS, ClauseParams, clauses_schema, parse_clauses
from delta_core.jobs.params.row_expressions import require_row_expression
from delta_core.jobs.params.source import SOURCE_SCHEMA, Source, parse_source
from delta_core.policies.contract import Contract

KIND: Final = "merge"

MERGE_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "required": ["source", "on"],
    "additionalProperties": False,
    "properties": {
        "source": SOURCE_SCHEMA,
        "on": {"type": "string", "minLength": 1, "description": "Spark SQL condition, such as t.id = s.id"},
        "target_alias": {"type": "string", "minLength": 1, "description": "alias of the table; default t"},
        "source_alias": {"type": "string", "minLength": 1, "description": "alias of the source; default s"},
        **{name: clauses_schema(name) for name in ACTIONS},
        "contract": CONTRACT_SCHEMA,
        "deduplicate": DEDUPLICATE_SCHEMA,
        "merge_schema": {"type": "boolean"},
        "engine_io": ENGINE_IO_SCHEMA,
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeParams:
    """A `merge` job's parameters.

    Attributes:
        clauses: the lists of clauses, by the names in `merge_clauses.ACTIONS`.
    """

    source: Source
    on: str
    clauses: Mapping[str, tuple[ClauseParams, ...]] = field(hash=False)
    target_alias: str = "t"
    source_alias: str = "s"
    contract: Contract = field(default_factory=Contract)
    deduplicate: Deduplication | None = None
    merge_schema: bool = False
    engine_io: EngineIO = EngineIO.AUTO


def parse_merge(params: Mapping[str, Any]) -> MergeParams:
    """Parse the parameters of a spec that conforms to `MERGE_SCHEMA`.

    Raises:
        InvalidJobSpecError: the clauses, the source or the contract are not valid.
    """
    try:
        clauses = parse_clauses(params)
    except ConfigurationError as error:
        raise InvalidJobSpecError(error.problem, cause=error.cause, fix=error.fix) from error
    return MergeParams(
        source=parse_source(params["source"]),
        on=require_row_expression(params["on"], what="condition on"),
        clauses=clauses,
        target_alias=params.get("target_alias", "t"),
        source_alias=params.get("source_alias", "s"),
        contract=contract_of(params.get("contract")),
        deduplicate=parse_deduplicate(params.get("deduplicate")),
        merge_schema=params.get("merge_schema", False),
        engine_io=EngineIO(params.get("engine_io", EngineIO.AUTO)),
    )
