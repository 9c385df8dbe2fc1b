"""The parameters of a `sql` job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from delta_core.errors import InvalidJobSpecError
from delta_core.jobs.params.engine_io import ENGINE_IO_SCHEMA, EngineIO
from delta_core.jobs.registry import ALLOWED_ROOT_URIS

KIND: Final = "sql"

TARGET: Final = "target"
"""The name of the job's table in its statement."""

SQL_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "required": ["statement"],
    "additionalProperties": False,
    "properties": {
        "statement": {
            "type": "string",
            "minLength": 1,
            "description": f"one SQL statement; the name of the job's table in it is {TARGET}",
        },
        "parameters": {
            "type": ["object", "null"],
            "description": "values of the parameters :name; strings, numbers, booleans or null",
        },
        "tables": {
            "type": ["object", "null"],
            "description": "names of other tables in the statement, and their URIs",
        },
        "engine_io": ENGINE_IO_SCHEMA,
        "allowed_root_uris": ALLOWED_ROOT_URIS,
    },
}
"""A statement can use the job's table, the named tables, and tables below the allowed roots."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlParams:
    """A `sql` job's parameters.

    Attributes:
        tables: URIs by names.
        allowed_root_uris: tables of the statement may be below them, and absolute paths in a log may lead
            there.
    """

    statement: str
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)
    tables: Mapping[str, str] = field(default_factory=dict, hash=False)
    engine_io: EngineIO = EngineIO.AUTO
    allowed_root_uris: tuple[str, ...] = ()


def parse_sql(params: Mapping[str, Any]) -> SqlParams:
    """Parse the parameters of a spec that conforms to `SQL_SCHEMA`.

    Raises:
        InvalidJobSpecError: a value of a parameter is a list or an object, or a URI is not a string.
    """
    parameters, tables = params.get("parameters") or {}, params.get("tables") or {}
    for name, value in parameters.items():
        if value is not None and not isinstance(value, str | int | float | bool):
            raise InvalidJobSpecError(
                f"The parameter {name!r} of the statement has a value that is a {type(value).__name__}.",
                fix="Give a string, a number, a boolean or null.",
            )
    for name, uri in tables.items():
        if not isinstance(uri, str) or not uri or not name or name.casefold() == TARGET:
            raise InvalidJobSpecError(
                f"The table {name!r} of the statement cannot have the URI {uri!r}.",
                cause=f"{TARGET} is the name of the job's table, and a URI is a string.",
                fix="Give each other table a name of its own and its URI.",
            )
    return SqlParams(
        statement=params["statement"],
        parameters=dict(parameters),
        tables=dict(tables),
        engine_io=EngineIO(params.get("engine_io", EngineIO.AUTO)),
        allowed_root_uris=tuple(params.get("allowed_root_uris") or ()),
    )
