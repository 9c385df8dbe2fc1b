"""When a table feature may be taken out of a table's protocol: conditions for each, and what is left.

The protocol itself says that clients do not remove features (PROTOCOL.md, "Supported Features"), so it has no
rules for it; these are ours to prove. Afterwards a client that does not know the feature reads and writes the
table, so three things must hold:

- nothing in the newest version needs it (`traces`), and no feature that stays requires it (`dependents`);
- for a feature of readers, nothing in the log needs it either (`HistoryRule.WITHOUT_TRACES`): such a client
  replays the log from a checkpoint on and would meet, say, files with deletion vectors;
- what the feature recorded in properties and domains goes in the same commit, or a later writer who turns the
  feature on again would take it for its own.

Pure: `plan_removal` looks at what it is given, and carries nothing out.
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
    help="How long versions with a dropped feature stay readable, such as 'interval 24 hours'.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalPlan:
    """What a removal would do, and what stands in its way.

    Attributes:
        feature: its name.
        traces: what must be gone from the newest version first.
        dependents: listed features that require this one.
        history: the rule for older versions.
        wait_until_ms: for the history rule, when the log may be truncated at the earliest, by the truncation
            retention; None when nothing is to be waited for, or the time is not known.
        truncate_before_version: for the history rule, the version before which the log must be gone; None
            when it is, or is not known.
        protocol: the table's after the removal.
        metadata: the table's after the removal, without what the feature recorded.
        domains: tombstones of the feature's own domains, each with what it said.
        history_is_clean: whether the history rule is kept.
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
        """Refuse a removal that may not be committed now.

        Raises:
            FeatureRemovalError: says all that stands in the way, and what to do about it.
        """
        if self.is_ready:
            return
        causes = [trace.what for trace in self.traces]
        causes += [f"{name} requires it" for name in self.dependents]
        fixes = [trace.remedy for trace in self.traces]
        fixes += [f"drop {name} first" for name in self.dependents]
        if not self.history_is_clean:
            causes.append("versions that the log still has may use it")
            fixes.append("when all traces are gone, let the retention pass and clean the log up to there")
        raise FeatureRemovalError(
            f"The table feature {self.feature} cannot be dropped now.",
            cause="; ".join(causes),
            fix="; ".join(dict.fromkeys(fixes)),
        )

    def with_protection(self, *, version: int) -> RemovalPlan:
        """The removal without waiting: the log before it is kept together instead (`checkpointProtection`).

        The table then supports that feature, whose rule is that nobody cleans up a part of the log before
        `version` who does not know all that is in it. Traces and dependents stand in the way as before.

        Args:
            version: the version that the removal will be.
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
    """What taking a feature out of the table would do, and what stands in its way.

    The protocol afterwards is the lowest that says what is left: a table that lists nothing else than what a
    legacy version stands for goes back to that version.

    Args:
        state: the table's.
        feature: its name, in any case.
        turn_off: that the feature's own switches are on is no trace: the removal turns them off. Only where
            nothing else needs the feature (`RemovalRule.is_switch`).

    Raises:
        FeatureRemovalError: the table does not support the feature, or there is no rule for it.
    """
    name = _SPELLINGS.get(feature.lower(), feature)
    supported = supported_features(state.protocol)
    if name not in supported:
        raise FeatureRemovalError(
            f"The table does not support the feature {name}.",
            cause=f"It supports {', '.join(sorted(supported)) or 'none'}.",
            fix="Name one of these.",
        )
    if name not in RULES:
        raise FeatureRemovalError(
            f"The table feature {name} cannot be dropped.",
            cause="Nothing in the log proves that no file needs it.",
            fix="Keep it: a feature that is not in use asks nothing of a client that knows it.",
        )
    rule = RULES[name]
    after = _switched_off(state, rule) if turn_off and rule.is_switch else state
    traces = tuple(trace for probe in rule.traces for trace in probe(after))
    left = supported - {name}
    dependents = tuple(
        sorted(other for other in left if other in FEATURES and name in FEATURES[other].requires)
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
            replace(found, removed=True)
            for domain, found in sorted(state.domains.items())
            if domain in rule.domains and not found.removed
        ),
        history_is_clean=clean,
    )


def _switched_off(state: TableState, rule: RemovalRule) -> TableState:
    kept = {k: v for k, v in state.metadata.configuration.items() if k not in rule.properties}
    return replace(
        state,
        metadata=replace(state.metadata, configuration=kept),
        domains={name: found for name, found in state.domains.items() if name not in rule.domains},
    )


_SPELLINGS = {name.lower(): name for name in FEATURES}


def _history(
    state: TableState, rule: HistoryRule, *, has_traces: bool
) -> tuple[int | None, int | None, bool]:
    """Before which version the log must be gone, when that may be done, and whether it is so already."""
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
    """The lowest protocol without the feature; names that nobody knows stay where they are listed."""
    left = supported_features(protocol) - {name}
    unknown_readers = frozenset(n for n in protocol.reader_features or () if n not in FEATURES)
    if not unknown_readers:
        return lowest_protocol(left)
    readers = (protocol.reader_features or frozenset()) - {name}
    return replace(protocol, reader_features=readers, writer_features=left)
