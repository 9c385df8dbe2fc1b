"""The outlook of one version: its health, the decisions, and the plan of the compaction. Read-only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.log.listing import LogListing
from delta_core.maintenance.clustering import ClusteringPlan, plan_clustering
from delta_core.maintenance.compaction import CompactionPlan, plan_compaction
from delta_core.maintenance.observe.due import Decision, MaintenanceRules, decide
from delta_core.maintenance.observe.health import HISTORY_LIMIT, TableHealth, observe
from delta_core.maintenance.observe.last_observation import LastObservation
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """The basis of decisions about the maintenance of a version.

    Attributes:
        compaction: the metrics that the compaction or clustering of the version would have.
        decisions: one for each verb, in the order in which they should run.
        seen: the observation to store for the next one; None when it cannot be reused.
    """

    health: TableHealth
    compaction: Mapping[str, int] = field(hash=False)
    decisions: tuple[Decision, ...]
    seen: LastObservation | None


def asked(rules: MaintenanceRules, allowed_root_uris: tuple[str, ...] = ()) -> dict[str, Any]:
    """The parameters of an observation that the facts depend on, as `LastObservation.asked`."""
    return {
        "target_size_bytes": rules.compaction_target_size_bytes,
        "cluster_columns": list(rules.cluster_columns),
        "allowed_root_uris": list(allowed_root_uris),
    }


def look(
    snapshot: Snapshot,
    rules: MaintenanceRules,
    *,
    asked_for: Mapping[str, Any],
    before: TableHealth | None = None,
    reach: DataAccess | None = None,
    listing: LogListing | None = None,
    history_limit: int = HISTORY_LIMIT,
    clock: Clock = SYSTEM_CLOCK,
) -> Outlook:
    """Observe a version, decide, and plan its compaction. Requests as for `observe`.

    Args:
        snapshot: the version.
        rules: the rules for when each verb is due.
        asked_for: the parameters of the observation, as `asked` returns them.
        before: see `observe`.
        reach: see `observe`.
        listing: see `observe`.
        history_limit: see `observe`.
        clock: see `observe`.

    Raises:
        ConfigurationError: the table cannot be put into Z-order by the columns of the rules.
    """
    target = rules.compaction_target_size_bytes
    health = observe(
        snapshot,
        target_size_bytes=target,
        cluster_columns=rules.cluster_columns,
        before=before,
        reach=reach,
        listing=listing,
        history_limit=history_limit,
        clock=clock,
    )
    compaction = _maintenance_plan(snapshot, health, target, reach).predicted()
    return Outlook(
        health=health,
        compaction=compaction,
        decisions=decide(health, rules),
        seen=LastObservation.of(snapshot, health, compaction=compaction, asked=asked_for),
    )


def look_again(seen: LastObservation, rules: MaintenanceRules, *, now_ms: int) -> Outlook:
    """The outlook of an unchanged table at a later time. No request; the caller has checked `seen.holds`."""
    health = seen.at(now_ms)
    return Outlook(health=health, compaction=seen.compaction, decisions=decide(health, rules), seen=seen)


def _maintenance_plan(
    snapshot: Snapshot, health: TableHealth, target_size_bytes: int | None, reach: DataAccess | None
) -> CompactionPlan | ClusteringPlan:
    if health.clustered_by:
        return plan_clustering(snapshot, target_size_bytes=target_size_bytes, reach=reach)
    return plan_compaction(snapshot, target_size_bytes=target_size_bytes, reach=reach)
