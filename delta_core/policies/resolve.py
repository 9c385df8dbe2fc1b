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


class PolicyResolver:
    """The policies of many tables of one file. Tables with the same settings share one policy object."""

    def __init__(self, policies: Policies) -> None:
        self.policies = policies
        self._names = names_by_uri(policies)
        self._patterns = [
            (pattern["match"], {key: value for key, value in pattern.items() if key != "match"})
            for pattern in policies.document.get("patterns") or ()
        ]
        self._shared: dict[tuple[int, ...], tuple[MaintenancePolicy, Mapping[str, str]]] = {}

    def resolve(self, table: str) -> ResolvedPolicy:
        """The policy for a table, by its name in the file or by its URI.

        A table without an entry has the defaults and the settings of the patterns that match its URI.

        Raises:
            ConfigurationError: settings of several levels contradict each other.
        """
        name, uri = self._identify(table)
        matching = tuple(
            index
            for index, (pattern, _) in enumerate(self._patterns)
            if fnmatchcase(name, pattern) or fnmatchcase(uri, pattern)
        )
        own = (self.policies.document.get("tables") or {}).get(name) or {}
        settings = {key: value for key, value in own.items() if key != "uri"}
        if settings:
            policy, sources = self._merged(matching, settings, name)
        else:
            if matching not in self._shared:
                self._shared[matching] = self._merged(matching, {}, name)
            policy, sources = self._shared[matching]
        return ResolvedPolicy(name=name, uri=uri, policy=policy, sources=sources)

    def _merged(
        self, matching: tuple[int, ...], own: Mapping[str, Any], name: str
    ) -> tuple[MaintenancePolicy, Mapping[str, str]]:
        merged: dict[str, Any] = {}
        sources: dict[str, str] = {}
        _merge(merged, self.policies.document.get("defaults") or {}, "defaults", sources)
        for index in matching:
            _merge(merged, self._patterns[index][1], f"patterns[{index}]", sources)
        _merge(merged, own, f"tables.{name}", sources)
        try:
            return MaintenancePolicy.model_validate(merged), sources
        except ValueError as error:
            raise ConfigurationError(
                f"The settings for {name!r} in {self.policies.source!r} contradict each other.",
                cause=f"{error}.",
            ) from error

    def _identify(self, table: str) -> tuple[str, str]:
        entry = self.policies.model.tables.get(table)
        if entry is not None:
            return table, entry.uri
        name = self._names.get(canonical(table))
        return (table, table) if name is None else (name, self.policies.model.tables[name].uri)


def resolve(policies: Policies, table: str) -> ResolvedPolicy:
    """The policy for one table; see `PolicyResolver.resolve`. Pure.

    Raises:
        ConfigurationError: settings of several levels contradict each other.
    """
    return PolicyResolver(policies).resolve(table)


def resolve_all(policies: Policies) -> tuple[ResolvedPolicy, ...]:
    """The policy of every table that has an entry, in the file's order."""
    resolver = PolicyResolver(policies)
    return tuple(resolver.resolve(name) for name in policies.table_names)


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
