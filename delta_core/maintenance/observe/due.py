"""Which maintenance is due, and why. Pure: from facts and rules to explained decisions."""

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
    """When each verb is due.

    Attributes:
        compaction_min_small_files: compaction is due from this many files that can be put together.
        compaction_target_size_bytes: None: the table's.
        checkpoint_interval: a checkpoint is due after this many commits; None: the table's.
        vacuum_retention_hours: None: the table's, at least 168.
        vacuum_min_bytes: vacuum is due when at least this much has expired.
        vacuum_max_age_hours: or when the last one is this old and anything has expired.
        cluster_enabled: whether rows are put in order at all.
        cluster_columns: Z-order by these; empty: never. A table with clustering columns goes by those.
        cluster_min_new_fraction: ordering is due when at least this share of the bytes is not in order.
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
        """Rules from a JSON object; what is left out has its default.

        Raises:
            ConfigurationError: an unknown rule.
        """
        known = {item.name for item in fields(cls)}
        unknown = sorted(set(document) - known)
        if unknown:
            raise ConfigurationError(
                f"there is no maintenance rule {', '.join(unknown)}", fix=f"known: {', '.join(sorted(known))}"
            )
        return cls(**{**document, "cluster_columns": tuple(document.get("cluster_columns") or ())})


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Whether one verb is due.

    Attributes:
        verb: `optimize`, `cluster`, `checkpoint` or `vacuum`: a job kind, except that `cluster` stands
            for the kind `optimize` with these parameters.
        urgency: 1.0 is exactly due, 2.0 twice over the limit; 0.0 when switched off.
        reason: one sentence with the figures that decided.
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

    That is optimize, cluster, checkpoint, vacuum. The health must have been observed for the rules' cluster
    columns.
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
    found, limit = health.compactable_files, max(2, rules.compaction_min_small_files)
    due = found >= limit
    what = (
        "small and not clustered"
        if health.clustered_by
        else "small and share a partition with another small file"
    )
    reason = f"{found} of {health.num_files} files are {what}; compaction is due from {limit}"
    params = {}
    if rules.compaction_target_size_bytes is not None:
        params["target_size_bytes"] = rules.compaction_target_size_bytes
    return Decision(verb="optimize", due=due, urgency=round(found / limit, 3), reason=reason, params=params)


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
        f"that is due from {limit:.0%}",
        params=params,
    )


def _checkpoint(health: TableHealth, rules: MaintenanceRules) -> Decision:
    if not rules.checkpoint_enabled:
        return _off("checkpoint")
    limit = rules.checkpoint_interval or health.checkpoint_interval
    tail = health.log_tail_commits
    follow = "follows" if tail == 1 else "follow"
    newest = (
        "there is no checkpoint"
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
        reason += f", or when the last one ({since_hours:.0f} h ago) is {rules.vacuum_max_age_hours:g} h old"
    params = {}
    if rules.vacuum_retention_hours is not None:
        params["retention_hours"] = rules.vacuum_retention_hours
    return Decision(verb="vacuum", due=due, urgency=round(urgency, 3), reason=reason, params=params)


def _off(verb: str) -> Decision:
    return Decision(verb=verb, due=False, urgency=0.0, reason="switched off by policy")
