"""The parameters of a `delete` job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from delta_core.jobs.params.engine_io import ENGINE_IO_SCHEMA, EngineIO
from delta_core.jobs.registry import ALLOWED_ROOT_URIS

KIND: Final = "delete"

WHERE_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "string",
    "minLength": 1,
    "description": "Spark SQL condition without subqueries, such as day < '2024-01-01'",
}
ALIAS_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "string",
    "minLength": 1,
    "description": "alias of the table in expressions",
}

DELETE_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "required": ["where"],
    "additionalProperties": False,
    "properties": {
        "where": WHERE_SCHEMA,
        "target_alias": ALIAS_SCHEMA,
        "engine_io": ENGINE_IO_SCHEMA,
        "allowed_root_uris": ALLOWED_ROOT_URIS,
    },
}
"""`where` is required, so that a forgotten condition does not delete every row; `true` deletes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteParams:
    """A `delete` job's parameters.

    Attributes:
        where: the condition.
        target_alias: the table's alias in it.
        allowed_root_uris: absolute paths in the log may lead below them.
    """

    where: str
    target_alias: str | None = None
    engine_io: EngineIO = EngineIO.AUTO
    allowed_root_uris: tuple[str, ...] = ()


def parse_delete(params: Mapping[str, Any]) -> DeleteParams:
    """Parse the parameters of a spec that conforms to `DELETE_SCHEMA`."""
    return DeleteParams(
        where=params["where"],
        target_alias=params.get("target_alias"),
        engine_io=EngineIO(params.get("engine_io", EngineIO.AUTO)),
        allowed_root_uris=tuple(params.get("allowed_root_uris") or ()),
    )
