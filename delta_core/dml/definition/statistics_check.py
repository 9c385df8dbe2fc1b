"""Whether every file of a table has statistics of some columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from delta_core.errors import ConfigurationError
from delta_core.snapshot.snapshot import Snapshot


def require_file_statistics(snapshot: Snapshot, columns: Sequence[tuple[str, ...]]) -> None:
    """Refuse columns of which a live file has no statistics; none are looked for where no column is given.

    A null count is enough: a file with nothing but nulls, or NaN, has no bounds.

    Args:
        snapshot: the table.
        columns: paths of physical names.

    Raises:
        ConfigurationError: names the column and a file.
    """
    if not columns:
        return
    for batch in snapshot.files.batches(["path", "stats"]):
        for path, text in zip(batch["path"].to_pylist(), batch["stats"].to_pylist(), strict=True):
            counts = _null_counts(text)
            for column in columns:
                if not _has(counts, column):
                    raise ConfigurationError(
                        f"A file has no statistics of {'.'.join(column)}: it is not clustered by.",
                        cause=f"{path} was written without; every file of a clustered table has them.",
                        fix="Overwrite the table with the column among those that have statistics, or choose "
                        "another column.",
                    )


def _null_counts(text: str | None) -> Any:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found.get("nullCount") if isinstance(found, dict) else {}


def _has(counts: Any, column: Sequence[str]) -> bool:
    for name in column:
        if not isinstance(counts, dict) or name not in counts:
            return False
        counts = counts[name]
    return True
