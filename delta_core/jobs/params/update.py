"""The parameters of an `update` job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from delta_core.jobs.params.delete import ALIAS_SCHEMA, WHERE_SCHEMA
from delta_core.jobs.params.engine_io import ENGINE_IO_SCHEMA, EngineIO

KIND: Final = "update"

UPDATE_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "required": ["set"],
    "additionalProperties": False,
    "properties": {
        "set": {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": {"type": "string", "minLength": 1},
            "description": "Spark SQL expressions by column, or by the path of a field of a struct",
        },
        "where": WHERE_SCHEMA,
        "target_alias": ALIAS_SCHEMA,
        "engine_io": ENGINE_IO_SCHEMA,
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateParams:
    """An `update` job's parameters.

    Attributes:
        set: the new values by column.
        where: the condition; None updates every row.
        target_alias: the table's alias in expressions.
    """

    set: Mapping[str, str] = field(hash=False)
    where: str | None = None
    target_alias: str | None = None
    engine_io: EngineIO = EngineIO.AUTO


def parse_update(params: Mapping[str, Any]) -> UpdateParams:
    """Parse the parameters of a spec that conforms to `UPDATE_SCHEMA`."""
    return UpdateParams(
        set=dict(params["set"]),
        where=params.get("where"),
        target_alias=params.get("target_alias"),
        engine_io=EngineIO(params.get("engine_io", EngineIO.AUTO)),
    )
