"""Removal of table features from the protocol: the conditions for each feature, and the resulting protocol.

The protocol specification does not let clients remove features (PROTOCOL.md, "Supported Features"), so it has
no rules for removals; the rules here are this library's. After a removal, clients without support for the
feature read and write the table, so three conditions must hold:

- Nothing in the newest version needs the feature (`traces`), and no remaining feature requires it
  (`dependents`).
- For a reader feature, nothing in the log needs it either (`HistoryRule.WITHOUT_TRACES`): such a client
  replays the log from a checkpoint on, and would find, for example, files with deletion vectors.
- The feature's records in properties and domains are removed in the same commit, because a later writer that
  enables the feature again would reuse them.

Pure: `plan_removal` only computes a plan from its arguments.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from delta_core.actions import DomainMetadata, Metadata, Protocol
from delta_core.errors import FeatureRemovalError
from delta_core.table_features.feature import FEATURES
from delta_core.table_features.internal_properties import CHECKPOINT_PROTECTION
from delta_core.table_features.removal_rules import RULES, HistoryRule, RemovalRule, TableState, Trace
from delta_core.table_features.table_properties import DAY_MS, TableProperty, parse_interval_ms
from delta_core.table_features.upgrade import lowest_protocol, supported_features, with_features

TRUNCATION_RETENTION = TableProperty(
    key="delta.dropFeatureTruncateHistory.retentionDuration",
    default=DAY_MS,
    parse=parse_interval_ms,
    help="How long versions that use a dropped feature stay readable, such as 'interval 24 hours'.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalPlan:
    """The result of a removal, and the obstacles to it.

    Attributes:
        feature: its name.
        traces: uses of the feature in the newest version, which must be removed first.
        dependents: listed features that require this one.
        history: the rule for older versions.
        wait_until_ms: for the history rule, the earliest time at which the log may be truncated, from the
            truncation retention; None when there is nothing to wait for, or the time is not known.
        truncate_before_version: for the history rule, the version before which the log must be deleted; None
            when it already is, or the version is not known.
        protocol: the table's protocol after the removal.
        metadata: the table's metadata after the removal, without the feature's records.
        domains: removals of the feature's own domains, each with the domain's last configuration.
        history_is_clean: whether the history rule is satisfied.
    """

    feature: str
    traces: tuple[Trace, ...]
    dependents: tuple[str, ...]
    history: HistoryRule
    wait_until_ms: int | None
    truncate_before_version: int | None
    protocol: Protocol
    metadata: Metadata
    domains: tuple[DomainMetadata, ...]
    history_is_clean: bool

    @property
    def is_ready(self) -> bool:
        """Whether the removal may be committed now."""
        return not self.traces and not self.dependents and self.history_is_clean

    def require_ready(self) -> None:
        """Refuse a removal that cannot be committed now.

        Raises:
            FeatureRemovalError: the message lists all obstacles, and how to remove them.
        """
        if self.is_ready:
            return
        causes = [trace.what for trace in self.traces]
        causes += [f"The feature {name} requires it." for name in self.dependents]
        fixes = [trace.remedy for trace in self.traces]
        fixes += [f"Drop {name} first." for name in self.dependents]
        if not self.history_is_clean:
            causes.append("Versions that are still in the log may use it.")
            fixes.append(
                "When all uses are removed, wait until the retention has passed, and clean up the log to "
                "that version."
            )
        raise FeatureRemovalError(
            f"The table feature {self.feature} cannot be dropped now.",
            cause=" ".join(causes),
            fix=" ".join(dict.fromkeys(fixes)),
        )

    def with_protection(self, *, version: int) -> RemovalPlan:
        """The removal without waiting: the log before it is protected instead (`checkpointProtection`).

        The table then supports the feature `checkpointProtection`: only clients that support everything in
        the log before `version` may clean up a part of it. Traces and dependents remain obstacles.

        Args:
            version: the version of the removal's commit.
        """
        if self.history is HistoryRule.ANY:
            return self
        configuration = dict(self.metadata.configuration)
        earlier = configuration.get(CHECKPOINT_PROTECTION, "")
        before = max(version, int(earlier) if earlier.isdecimal() else 0)
        configuration[CHECKPOINT_PROTECTION] = str(before)
        return replace(
            self,
            protocol=with_features(self.protocol, ["checkpointProtection"]),
            metadata=replace(self.metadata, configuration=configuration),
            wait_until_ms=None,
            truncate_before_version=None,
            history_is_clean=True,
        )


def plan_removal(state: TableState, feature: str, *, turn_off: bool = False) -> RemovalPlan:
    """The result of removing a feature from the table, and the obstacles to it.

    The new protocol is the lowest one with the remaining features: a table whose remaining features are
    implied by a legacy version returns to that version.

    Args:
        state: the table's state.
        feature: its name, in any case.
        turn_off: do not count the feature's own properties and domains as traces, because the removal deletes
            them. Only where nothing else needs the feature (`RemovalRule.is_switch`).

    Raises:
        FeatureRemovalError: the table does not support the feature, or removals of it have no rule.
    """
    name = _SPELLINGS.get(feature.lower(), feature)
    supported = supported_features(state.protocol)
    if name not in supported:
        raise FeatureRemovalError(
            f"The table does not support the feature {name}.",
            cause=f"It supports {', '.join(sorted(supported)) or 'no features'}.",
            fix="Name a feature that the table supports.",
        )
    if name not in RULES:
        raise FeatureRemovalError(
            f"The table feature {name} cannot be dropped.",
            cause="The log cannot prove that no file needs it.",
            fix="Keep the feature: a feature that is not in use does not affect clients that support it.",
        )
    rule = RULES[name]
    after = _switched_off(state, rule) if turn_off and rule.is_switch else state
    traces = tuple(trace for probe in rule.traces for trace in probe(after))
    remaining = supported - {name}
    dependents = tuple(
        sorted(other for other in remaining if other in FEATURES and name in FEATURES[other].requires)
    )
    truncate_before, wait_until_ms, clean = _history(state, rule.history, has_traces=bool(traces))
    configuration = {k: v for k, v in state.metadata.configuration.items() if k not in rule.properties}
    return RemovalPlan(
        feature=name,
        traces=traces,
        dependents=dependents,
        history=rule.history,
        wait_until_ms=wait_until_ms,
        truncate_before_version=truncate_before,
        protocol=_without(state.protocol, name),
        metadata=replace(state.metadata, configuration=configuration),
        domains=tuple(
            replace(metadata, removed=True)
            for domain, metadata in sorted(state.domains.items())
            if domain in rule.domains and not metadata.removed
        ),
        history_is_clean=clean,
    )


def _switched_off(state: TableState, rule: RemovalRule) -> TableState:
    remaining = {k: v for k, v in state.metadata.configuration.items() if k not in rule.properties}
    return replace(
        state,
        metadata=replace(state.metadata, configuration=remaining),
        domains={name: item for name, item in state.domains.items() if name not in rule.domains},
    )


_SPELLINGS = {name.lower(): name for name in FEATURES}


def _history(
    state: TableState, rule: HistoryRule, *, has_traces: bool
) -> tuple[int | None, int | None, bool]:
    """The version before which the log must be deleted, the earliest time for it, and whether it is done."""
    if rule is HistoryRule.ANY:
        return None, None, True
    since = None if has_traces else state.clean_since_version
    if since is None:
        return None, None, False
    if state.oldest_version >= since:
        return None, None, True
    retention_ms = TRUNCATION_RETENTION.of(state.metadata.configuration)
    wait_until_ms = None if state.clean_since_ms is None else state.clean_since_ms + retention_ms
    return since, wait_until_ms, False


def _without(protocol: Protocol, name: str) -> Protocol:
    """The lowest protocol without the feature; unknown features stay listed."""
    remaining = supported_features(protocol) - {name}
    unknown_readers = frozenset(n for n in protocol.reader_features or () if n not in FEATURES)
    if not unknown_readers:
        return lowest_protocol(remaining)
    readers = (protocol.reader_features or frozenset()) - {name}
    return replace(protocol, reader_features=readers, writer_features=remaining)
