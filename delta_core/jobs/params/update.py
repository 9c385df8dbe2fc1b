"""The parameters of an `update` job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from delta_core.errors import InvalidJobSpecError
from delta_core.jobs.params.delete import ALIAS_SCHEMA, WHERE_SCHEMA
from delta_core.jobs.params.engine_io import ENGINE_IO_SCHEMA, EngineIO
from delta_core.jobs.registry import ALLOWED_ROOT_URIS

KIND: Final = "update"

UPDATE_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "required": ["set"],
    "additionalProperties": False,
    "properties": {
        "set": {
            "type": "object",
            "additionalProperties": {"type": "string", "minLength": 1},
            "description": "Spark SQL expressions by column, or by the path of a field of a struct",
        },
        "where": WHERE_SCHEMA,
        "target_alias": ALIAS_SCHEMA,
        "engine_io": ENGINE_IO_SCHEMA,
        "allowed_root_uris": ALLOWED_ROOT_URIS,
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateParams:
    """An `update` job's parameters.

    Attributes:
        set: the new values by column.
        where: the condition; None updates every row.
        target_alias: the table's alias in expressions.
        allowed_root_uris: absolute paths in the log may lead below them.
    """

    set: Mapping[str, str] = field(hash=False)
    where: str | None = None
    target_alias: str | None = None
    engine_io: EngineIO = EngineIO.AUTO
    allowed_root_uris: tuple[str, ...] = ()


def parse_update(params: Mapping[str, Any]) -> UpdateParams:
    """Parse the parameters of a spec that conforms to `UPDATE_SCHEMA`.

    Raises:
        InvalidJobSpecError: nothing is set.
    """
    if not params["set"]:
        raise InvalidJobSpecError(
            "The update sets no column.", cause="`set` is empty.", fix="Give an expression for a column."
        )
    return UpdateParams(
        set=dict(params["set"]),
        where=params.get("where"),
        target_alias=params.get("target_alias"),
        engine_io=EngineIO(params.get("engine_io", EngineIO.AUTO)),
        allowed_root_uris=tuple(params.get("allowed_root_uris") or ()),
    )
