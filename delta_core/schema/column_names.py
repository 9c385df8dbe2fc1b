"""Lists of column names in table properties: `a, b.c, `x.y``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from delta_core.schema.column_paths import Path, is_within

STATS_COLUMNS_KEY = "delta.dataSkippingStatsColumns"

_PART = re.compile(r"\s*+(?:`((?:[^`]|``)*+)`\s*+|([^`.,]++))([.,]|\Z)")
_PLAIN = re.compile(r"(?!\d+\Z)[A-Za-z0-9_]+")
_ANY_PART = r"\s*+(?:`(?:[^`]|``)++`|[A-Za-z0-9_]++)\s*+"
_LIST = re.compile(rf"{_ANY_PART}(?:[.,]{_ANY_PART})*+")


def parse_names(names: str) -> list[Path] | None:
    """The paths in a list of names, as they are spelled; None when the string is not a valid list."""
    if not names.strip():
        return []
    paths: list[Path] = []
    parts: list[str] = []
    position = 0
    while True:
        match = _PART.match(names, position)
        if match is None:
            return None
        name = match[2].strip() if match[1] is None else match[1].replace("``", "`")
        if not name:
            return None
        parts.append(name)
        if match[3] != ".":
            paths.append(tuple(parts))
            parts = []
        if not match[3]:
            return paths
        position = match.end()


def is_list_of_names(names: str) -> bool:
    """Whether every engine can parse the list: without quotes, Spark allows no other characters."""
    return _LIST.fullmatch(names) is not None


def render_names(paths: Iterable[Sequence[str]]) -> str:
    """The list as a string; names that are not plain words are quoted."""
    return ",".join(".".join(part if _PLAIN.fullmatch(part) else _quoted(part) for part in p) for p in paths)


def rename_stats_column(configuration: Mapping[str, str], old: Path, name: str) -> dict[str, str]:
    """The configuration with a column renamed in the list of columns that have statistics.

    Fields within the column are renamed as well. A list that cannot be parsed stays unchanged.
    """
    return _changed(
        configuration,
        lambda path: (*old[:-1], name, *path[len(old) :]) if is_within(path, old) else path,
    )


def drop_stats_columns(configuration: Mapping[str, str], dropped: Sequence[Path]) -> dict[str, str]:
    """The configuration with columns removed from the list of columns that have statistics.

    When the last name is removed, the list becomes empty: then no column has statistics.
    """
    return _changed(
        configuration, lambda path: None if any(is_within(path, one) for one in dropped) else path
    )


def _changed(configuration: Mapping[str, str], change: Callable[[Path], Path | None]) -> dict[str, str]:
    paths = parse_names(configuration.get(STATS_COLUMNS_KEY, ""))
    changed = [change(path) for path in paths or ()]
    if not paths or changed == paths:
        return dict(configuration)
    return {**configuration, STATS_COLUMNS_KEY: render_names(path for path in changed if path is not None)}


def _quoted(part: str) -> str:
    return f"`{part.replace('`', '``')}`"
