"""The score of a table from 0 to 100, of sub-scores with reasons. Pure.

Each sub-score depends on facts of its own. So repairing one thing never lowers the score. The log's tail
counts only from the interval after which a checkpoint is due, because each repair adds a commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from delta_core.fleet.facts import LayoutFacts
from delta_core.maintenance.messages import counted, size
from delta_core.maintenance.observe import MaintenanceRules, TableHealth

WEIGHTS: Final[Mapping[str, float]] = {
    "small_files": 30.0,
    "deleted_rows": 15.0,
    "clustering": 15.0,
    "log_tail": 15.0,
    "checkpoint_age": 5.0,
    "statistics": 5.0,
    "retention_debt": 10.0,
    "failures": 5.0,
}
"""How many points of the score each sub-score can take away. They add up to 100."""

_MANY_SMALL_FILES: Final = 4
_MANY_DELETED_ROWS: Final = 0.3
_LONG_TAIL: Final = 10
_OLD_TAIL_HOURS: Final = 24 * 7


@dataclass(frozen=True, slots=True, kw_only=True)
class SubScore:
    """One part of a score.

    Attributes:
        name: a key of `WEIGHTS`.
        value: 100 when nothing is wrong, 0 at the worst.
        lost: points that the score loses by it.
        reason: one sentence with the numbers; empty when the value is 100.
    """

    name: str
    value: float
    lost: float
    reason: str

    def to_json(self) -> dict[str, Any]:
        """The sub-score as a JSON object."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """A table's score.

    Attributes:
        total: 100 when nothing is wrong.
        parts: the sub-scores, the one with the most lost points first.
    """

    total: float
    parts: tuple[SubScore, ...]

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons of the sub-scores that lost points, the worst first."""
        return tuple(part.reason for part in self.parts if part.lost > 0)


def score(
    health: TableHealth,
    layout: LayoutFacts,
    rules: MaintenanceRules,
    *,
    failures: int = 0,
    max_failures: int = 3,
) -> Score:
    """The score of a table. A table without files has 100.

    Args:
        health: the facts that maintenance depends on.
        layout: further facts about the same version.
        rules: the table's rules, whose limits define what is much.
        failures: number of verbs that failed in a row.
        max_failures: the number of failures that open the circuit.
    """
    if health.num_files == 0:
        parts = tuple(SubScore(name=name, value=100.0, lost=0.0, reason="") for name in WEIGHTS)
        return Score(total=100.0, parts=parts)
    bad = {
        "small_files": _small_files(health, rules),
        "deleted_rows": _deleted_rows(layout),
        "clustering": _clustering(health),
        "log_tail": _log_tail(health, rules),
        "checkpoint_age": _checkpoint_age(health, layout, rules),
        "statistics": _statistics(health, layout),
        "retention_debt": _retention_debt(health),
        "failures": _failures(failures, max_failures),
    }
    parts = tuple(
        SubScore(
            name=name,
            value=round(100 * (1 - share), 2),
            lost=round(WEIGHTS[name] * share, 3),
            reason=reason if share > 0 else "",
        )
        for name, (share, reason) in bad.items()
    )
    total = round(100 - sum(part.lost for part in parts), 1)
    return Score(total=max(0.0, total), parts=tuple(sorted(parts, key=lambda part: -part.lost)))


def _small_files(health: TableHealth, rules: MaintenanceRules) -> tuple[float, str]:
    limit = max(2, rules.compaction_min_small_files)
    many = min(1.0, health.compactable_files / (_MANY_SMALL_FILES * limit))
    return (
        many,
        f"{health.compactable_files} of {health.num_files} files are small; compaction is due from {limit}",
    )


def _deleted_rows(layout: LayoutFacts) -> tuple[float, str]:
    share = layout.deleted_rows / layout.rows if layout.rows else 0.0
    return min(1.0, share / _MANY_DELETED_ROWS), f"{share:.0%} of the stored rows are deleted"


def _clustering(health: TableHealth) -> tuple[float, str]:
    share = health.unclustered_bytes / health.total_bytes if health.total_bytes else 0.0
    return min(1.0, share), f"{share:.0%} of the bytes are not in the order of the clustering columns"


def _log_tail(health: TableHealth, rules: MaintenanceRules) -> tuple[float, str]:
    interval = rules.checkpoint_interval or health.checkpoint_interval
    beyond = max(0, health.log_tail_commits - interval)
    return (
        min(1.0, beyond / (_LONG_TAIL * interval)),
        f"{counted(health.log_tail_commits, 'commit')} after the newest checkpoint; "
        f"a checkpoint is due after {interval}",
    )


def _checkpoint_age(health: TableHealth, layout: LayoutFacts, rules: MaintenanceRules) -> tuple[float, str]:
    interval = rules.checkpoint_interval or health.checkpoint_interval
    if layout.tail_since_ms is None or health.log_tail_commits <= interval:
        return 0.0, ""
    hours = max(0.0, (health.observed_ms - layout.tail_since_ms) / 3_600_000)
    return min(1.0, hours / _OLD_TAIL_HOURS), f"the commits without a checkpoint are {hours:.0f} h old"


def _statistics(health: TableHealth, layout: LayoutFacts) -> tuple[float, str]:
    missing = layout.files_without_statistics
    return min(1.0, missing / health.num_files), f"{counted(missing, 'file')} without statistics"


def _retention_debt(health: TableHealth) -> tuple[float, str]:
    expired = health.expired_tombstone_bytes
    return (
        min(1.0, expired / max(1, health.total_bytes)),
        f"{size(expired)} in {counted(health.expired_tombstones, 'removed file')} past retention",
    )


def _failures(failures: int, most: int) -> tuple[float, str]:
    return min(1.0, failures / max(1, most)), f"{counted(failures, 'verb')} failed in a row"
