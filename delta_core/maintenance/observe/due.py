"""Decides which maintenance is due, with reasons, from a table's health and rules. Does no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

from delta_core.errors import ConfigurationError
from delta_core.maintenance.messages import counted, size
from delta_core.maintenance.observe.health import TableHealth

_MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceRules:
    """The rules for when each verb is due.

    Attributes:
        compaction_min_small_files: compaction is due from this number of files that can be compacted.
        compaction_target_size_bytes: target size of a compaction; the table's when None.
        checkpoint_interval: a checkpoint is due after this many commits; the table's interval when None.
        vacuum_retention_hours: the table's when None; at least 168.
        vacuum_min_bytes: vacuum is due when the expired files have at least this size.
        vacuum_max_age_hours: vacuum is also due when any file has expired and the last vacuum is this old.
        cluster_enabled: False: neither Z-order nor clustering is ever due.
        cluster_columns: Z-order columns; no Z-order when empty. A table with clustering columns uses its own
            columns instead.
        cluster_min_new_fraction: clustering or Z-order is due when at least this fraction of the table's
            bytes is not sorted.
    """

    compaction_enabled: bool = True
    compaction_min_small_files: int = 16
    compaction_target_size_bytes: int | None = None
    checkpoint_enabled: bool = True
    checkpoint_interval: int | None = None
    vacuum_enabled: bool = True
    vacuum_retention_hours: float | None = None
    vacuum_min_bytes: int = 64 * _MIB
    vacuum_max_age_hours: float = 168.0
    cluster_enabled: bool = True
    cluster_columns: tuple[str, ...] = ()
    cluster_min_new_fraction: float = 0.2

    def to_json(self) -> dict[str, Any]:
        """The rules as a JSON object."""
        return {**asdict(self), "cluster_columns": list(self.cluster_columns)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Rules from a JSON object; missing rules have their defaults.

        Raises:
            ConfigurationError: a rule is unknown.
        """
        known = {item.name for item in fields(cls)}
        unknown = sorted(set(document) - known)
        if unknown:
            raise ConfigurationError(
                f"Unknown maintenance rules: {', '.join(unknown)}.",
                fix=f"Use one of {', '.join(sorted(known))}.",
            )
        return cls(**{**document, "cluster_columns": tuple(document.get("cluster_columns") or ())})


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The decision whether one verb is due.

    Attributes:
        verb: `optimize`, `cluster`, `checkpoint` or `vacuum`: a job kind, except that `cluster` is the
            job kind `optimize` with `params`.
        urgency: the measured value divided by its limit: 1.0 at the limit, 2.0 at twice the limit. 0.0 when
            the rules disable the verb.
        reason: one sentence with the numbers behind the decision.
        params: parameters for a job of the kind.
    """

    verb: str
    due: bool
    urgency: float
    reason: str
    params: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def to_json(self) -> dict[str, Any]:
        """The decision as a JSON object."""
        return {**asdict(self), "params": dict(self.params)}


def decide(health: TableHealth, rules: MaintenanceRules) -> tuple[Decision, ...]:
    """A decision for each verb, in the order in which they should run.

    The order is optimize, cluster, checkpoint, vacuum. The health must have been observed with the rules'
    cluster columns.
    """
    return (
        _optimize(health, rules),
        _cluster(health, rules),
        _checkpoint(health, rules),
        _vacuum(health, rules),
    )


def _optimize(health: TableHealth, rules: MaintenanceRules) -> Decision:
    if not rules.compaction_enabled:
        return _off("optimize")
    compactable, limit = health.compactable_files, max(2, rules.compaction_min_small_files)
    due = compactable >= limit
    description = (
        "small and not clustered"
        if health.clustered_by
        else "small and share a partition with another small file"
    )
    reason = f"{compactable} of {health.num_files} files are {description}; compaction is due from {limit}"
    params = {}
    if rules.compaction_target_size_bytes is not None:
        params["target_size_bytes"] = rules.compaction_target_size_bytes
    return Decision(
        verb="optimize", due=due, urgency=round(compactable / limit, 3), reason=reason, params=params
    )


def _cluster(health: TableHealth, rules: MaintenanceRules) -> Decision:
    columns = health.clustered_by or rules.cluster_columns
    if not columns or not rules.cluster_enabled:
        return _off("cluster")
    limit = rules.cluster_min_new_fraction
    params: dict[str, Any] = {} if health.clustered_by else {"z_order_by": list(columns)}
    if rules.compaction_target_size_bytes is not None:
        params["target_size_bytes"] = rules.compaction_target_size_bytes
    share = health.unclustered_bytes / health.total_bytes if health.total_bytes else 0.0
    return Decision(
        verb="cluster",
        due=health.unclustered_bytes > 0 and share >= limit,
        urgency=round(share / limit, 3) if limit else float(health.unclustered_bytes > 0),
        reason=f"{share:.0%} of the bytes ({size(health.unclustered_bytes)}) are not "
        f"{'clustered' if health.clustered_by else 'in Z-order'} by {', '.join(columns)}; "
        f"{'clustering' if health.clustered_by else 'Z-order'} is due from {limit:.0%}",
        params=params,
    )


def _checkpoint(health: TableHealth, rules: MaintenanceRules) -> Decision:
    if not rules.checkpoint_enabled:
        return _off("checkpoint")
    limit = rules.checkpoint_interval or health.checkpoint_interval
    tail = health.log_tail_commits
    follow = "follows" if tail == 1 else "follow"
    newest = (
        "the table has no checkpoint"
        if health.checkpoint_version is None
        else f"the newest checkpoint is of version {health.checkpoint_version}"
    )
    return Decision(
        verb="checkpoint",
        due=tail >= limit,
        urgency=round(tail / limit, 3),
        reason=f"{newest}, {counted(tail, 'commit')} {follow}; a checkpoint is due after {limit}",
    )


def _vacuum(health: TableHealth, rules: MaintenanceRules) -> Decision:
    if not rules.vacuum_enabled:
        return _off("vacuum")
    expired = health.expired_tombstone_bytes
    urgency = expired / rules.vacuum_min_bytes if rules.vacuum_min_bytes else float(expired > 0)
    due = expired > 0 and expired >= rules.vacuum_min_bytes
    reason = (
        f"{counted(health.expired_tombstones, 'removed file')} ({size(expired)}) past retention; "
        f"vacuum is due from {size(rules.vacuum_min_bytes)}"
    )
    since_hours = None
    if health.last_vacuum_ms is not None:
        since_hours = (health.observed_ms - health.last_vacuum_ms) / 3_600_000
    if not due and health.expired_tombstones and since_hours is not None:
        overdue = since_hours >= rules.vacuum_max_age_hours
        urgency = max(urgency, since_hours / rules.vacuum_max_age_hours)
        due = overdue
        reason += (
            f", or when the last vacuum ({since_hours:.0f} h ago) is {rules.vacuum_max_age_hours:g} h old"
        )
    params = {}
    if rules.vacuum_retention_hours is not None:
        params["retention_hours"] = rules.vacuum_retention_hours
    return Decision(verb="vacuum", due=due, urgency=round(urgency, 3), reason=reason, params=params)


def _off(verb: str) -> Decision:
    return Decision(verb=verb, due=False, urgency=0.0, reason="switched off by policy")
