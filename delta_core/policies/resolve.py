"""The policy that applies to a table: defaults, then matching patterns in order, then the table's entry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from delta_core.errors import ConfigurationError, InvalidUriError
from delta_core.maintenance.observe import MaintenanceRules
from delta_core.policies.load import Policies
from delta_core.policies.model import (
    CheckpointPolicy,
    ClusteringPolicy,
    CompactionPolicy,
    MaintenancePolicy,
    VacuumPolicy,
)
from delta_core.storage.uri import canonical_table_uri


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedPolicy:
    """The policy of one table.

    Attributes:
        name: the table's name in the file; the URI for a table without an entry.
        sources: for each key, the level that set it: `defaults`, `patterns[0]`, `tables.x`.
    """

    name: str
    uri: str
    policy: MaintenancePolicy
    sources: Mapping[str, str] = field(hash=False)

    @property
    def schedule(self) -> str | None:
        """When maintenance runs; None leaves the schedule to the caller."""
        return self.policy.schedule

    @property
    def compaction(self) -> CompactionPolicy:
        """The compaction section."""
        return self.policy.compaction

    @property
    def checkpoint(self) -> CheckpointPolicy:
        """The checkpoint section."""
        return self.policy.checkpoint

    @property
    def vacuum(self) -> VacuumPolicy:
        """The vacuum section."""
        return self.policy.vacuum

    @property
    def clustering(self) -> ClusteringPolicy:
        """The clustering section."""
        return self.policy.clustering

    def rules(self) -> MaintenanceRules:
        """The policy in the form of a `plan` job's parameter."""
        return self.policy.rules()

    def to_json(self) -> dict[str, Any]:
        """The policy as a JSON object."""
        return {
            "name": self.name,
            "uri": self.uri,
            "policy": self.policy.model_dump(mode="json"),
            "rules": self.rules().to_json(),
            "sources": dict(self.sources),
        }


def names_by_uri(policies: Policies) -> dict[str, str]:
    """The names of the tables that have an entry, by canonical URI. Of two names, the first."""
    names: dict[str, str] = {}
    for name, entry in policies.model.tables.items():
        names.setdefault(canonical(entry.uri), name)
    return names


def resolve(policies: Policies, table: str, *, names: Mapping[str, str] | None = None) -> ResolvedPolicy:
    """The policy for a table, by its name in the file or by its URI. Pure.

    A table without an entry has the defaults and the settings of the patterns that match its URI.

    Args:
        policies: the policy file.
        table: the name or the URI.
        names: `names_by_uri(policies)`, for callers that resolve many tables.

    Raises:
        ConfigurationError: settings of several levels contradict each other.
    """
    name, uri = _identify(policies, table, names)
    merged: dict[str, Any] = {}
    sources: dict[str, str] = {}
    _merge(merged, policies.document.get("defaults") or {}, "defaults", sources)
    for index, pattern in enumerate(policies.document.get("patterns") or ()):
        if any(fnmatchcase(candidate, pattern["match"]) for candidate in (name, uri)):
            settings = {key: value for key, value in pattern.items() if key != "match"}
            _merge(merged, settings, f"patterns[{index}]", sources)
    own = (policies.document.get("tables") or {}).get(name) or {}
    settings = {key: value for key, value in own.items() if key != "uri"}
    _merge(merged, settings, f"tables.{name}", sources)
    try:
        policy = MaintenancePolicy.model_validate(merged)
    except ValueError as error:
        raise ConfigurationError(
            f"The settings for {name!r} in {policies.source!r} contradict each other.", cause=f"{error}."
        ) from error
    return ResolvedPolicy(name=name, uri=uri, policy=policy, sources=sources)


def resolve_all(policies: Policies) -> tuple[ResolvedPolicy, ...]:
    """The policy of every table that has an entry, in the file's order."""
    return tuple(resolve(policies, name) for name in policies.table_names)


def _identify(policies: Policies, table: str, names: Mapping[str, str] | None) -> tuple[str, str]:
    entry = policies.model.tables.get(table)
    if entry is not None:
        return table, entry.uri
    name = (names_by_uri(policies) if names is None else names).get(canonical(table))
    return (table, table) if name is None else (name, policies.model.tables[name].uri)


def canonical(uri: str) -> str:
    """The canonical URI of a table; the string itself when it is not a URI."""
    try:
        return canonical_table_uri(uri)
    except InvalidUriError:
        return uri.rstrip("/")


def _merge(
    target: dict[str, Any],
    settings: Mapping[str, Any],
    source: str,
    sources: dict[str, str],
    prefix: str = "",
) -> None:
    for key, value in settings.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping):
            section = target.setdefault(key, {})
            _merge(section, value, source, sources, f"{path}.")
        elif value is not None or prefix:
            target[key] = value
            sources[path] = source
