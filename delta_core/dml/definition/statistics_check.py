"""Checks that every file of a table has statistics of some columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from delta_core.errors import ConfigurationError
from delta_core.snapshot.snapshot import Snapshot


def require_file_statistics(snapshot: Snapshot, columns: Sequence[tuple[str, ...]]) -> None:
    """Refuse columns for which a live file has no statistics. Without columns nothing is read.

    A null count is sufficient, because a file with only nulls or NaN has no bounds.

    Args:
        snapshot: the version of the table.
        columns: paths of physical names.

    Raises:
        ConfigurationError: a file has no statistics of a column. The error names both.
    """
    if not columns:
        return
    for batch in snapshot.files.batches(["path", "stats"]):
        for path, stats in zip(batch["path"].to_pylist(), batch["stats"].to_pylist(), strict=True):
            counts = _null_counts(stats)
            for column in columns:
                if not _has(counts, column):
                    raise ConfigurationError(
                        f"The table cannot be clustered by {'.'.join(column)}, because a file has no "
                        "statistics of it.",
                        cause=f"The file {path} lacks them. Every file of a clustered table needs statistics "
                        "of the clustering columns.",
                        fix="Add the column to those with statistics and overwrite the table, or choose "
                        "another column.",
                    )


def _null_counts(stats: str | None) -> Any:
    try:
        document = json.loads(stats or "{}")
    except ValueError:
        return {}
    return document.get("nullCount") if isinstance(document, dict) else {}


def _has(counts: Any, column: Sequence[str]) -> bool:
    for name in column:
        if not isinstance(counts, dict) or name not in counts:
            return False
        counts = counts[name]
    return True
