"""Names of tables as strings: `catalog.database.table`, with backquotes where a part needs them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from delta_core.arguments import require_string
from delta_core.errors import ConfigurationError
from spark_jobs.names.address import PROVIDERS

_PART = re.compile(r"`((?:[^`]|``)+)`|(\w+)")
_MOST_PARTS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class TableName:
    """A name in parts: namespaces, then the table. No part is empty."""

    parts: tuple[str, ...]

    @property
    def table(self) -> str:
        """The last part."""
        return self.parts[-1]

    @property
    def namespace(self) -> tuple[str, ...]:
        """The parts before the last."""
        return self.parts[:-1]

    @property
    def path(self) -> str | None:
        """The path of a name such as `delta.`/x``; None for other names."""
        if len(self.parts) == 2 and self.parts[0].lower() in PROVIDERS and _is_path(self.parts[1]):
            return self.parts[1]
        return None

    def sql(self) -> str:
        """The name for a SQL statement, with every part in backquotes."""
        return ".".join(quoted(part) for part in self.parts)

    def __str__(self) -> str:
        return ".".join(part if re.fullmatch(r"\w+", part) else quoted(part) for part in self.parts)


def parse_name(name: str) -> TableName:
    """The name in a string.

    Raises:
        ConfigurationError: the string is not a name.
    """
    name = require_string(name, what="name of a table")
    parts: list[str] = []
    at = 0
    while True:
        found = _PART.match(name, at)
        if found is None or len(parts) == _MOST_PARTS:
            raise _not_a_name(name)
        parts.append(found[1].replace("``", "`") if found[1] is not None else found[2])
        at = found.end()
        if at == len(name):
            return TableName(parts=tuple(parts))
        if name[at] != ".":
            raise _not_a_name(name)
        at += 1


def quoted(part: str) -> str:
    """A part of a name in backquotes."""
    return "`" + part.replace("`", "``") + "`"


def _is_path(name: str) -> bool:
    return "/" in name or ":" in name


def _not_a_name(name: str) -> ConfigurationError:
    return ConfigurationError(
        f"{name!r} is not the name of a table.",
        cause="A name has parts of letters, digits and underscores, or parts in backquotes, with dots "
        "between them.",
        fix="Pass a name such as 'sales.orders', or a path as 'delta.`/path/to/table`'.",
    )
