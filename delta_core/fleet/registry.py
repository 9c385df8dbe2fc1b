"""The registry: the tables of a fleet with their policies, from the policy file, assets and discovery."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from delta_core.errors import ConfigurationError, InvalidUriError
from delta_core.fleet.assets import table_uri_of_asset
from delta_core.fleet.discover import Discovery, discover
from delta_core.policies.load import Policies
from delta_core.policies.model import MaintenancePolicy
from delta_core.policies.resolve import PolicyResolver, ResolvedPolicy, canonical, names_by_uri


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetTable:
    """A table of the fleet.

    Attributes:
        uri: the canonical URI, which identifies the table in the ledger.
        managed: whether the policy file has an entry or a pattern for the table, not only defaults.
    """

    name: str
    uri: str
    resolved: ResolvedPolicy
    managed: bool

    @property
    def policy(self) -> MaintenancePolicy:
        """The table's policy."""
        return self.resolved.policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """The tables of a fleet, sorted by name.

    Attributes:
        discoveries: the result for each prefix of the policy file.
    """

    policies: Policies
    tables: tuple[FleetTable, ...]
    discoveries: tuple[Discovery, ...] = ()

    @property
    def unmanaged(self) -> tuple[FleetTable, ...]:
        """The tables that were discovered and to which only the defaults apply."""
        return tuple(table for table in self.tables if not table.managed)

    def table(self, name_or_uri: str) -> FleetTable:
        """The table with this name or URI.

        Raises:
            ConfigurationError: the fleet has no such table.
        """
        uri = canonical(name_or_uri)
        for table in self.tables:
            if table.name == name_or_uri or table.uri == uri:
                return table
        raise ConfigurationError(
            f"The fleet has no table {name_or_uri!r}.",
            cause=f"{self.policies.source!r} has no entry for it, and it is not below a prefix.",
            fix="Run `deltaward fleet status` for the names of the tables.",
        )


def registry(
    policies: Policies,
    *,
    storage_options: Mapping[str, str] | None = None,
    discovering: bool = True,
) -> Registry:
    """The tables of the policy file, and those below its prefixes. Requests as for `discover` of each prefix.

    Args:
        policies: the policy file.
        storage_options: options of the stores of the prefixes.
        discovering: False makes no request: only tables with an entry, and those of assets.

    Raises:
        ConfigurationError: settings contradict each other, or an asset is not that of a table.
        StorageError: a store fails.
    """
    discoveries = tuple(
        discover(item.uri, depth=item.depth, exclude=item.exclude, storage_options=storage_options)
        for item in (policies.model.fleet.prefixes if discovering else ())
    )
    return registry_of(policies, discoveries)


def registry_of(
    policies: Policies, discoveries: Iterable[Discovery], *, assets: Iterable[str] = ()
) -> Registry:
    """The registry with the tables of discoveries that were made before. No request.

    Args:
        policies: the policy file.
        discoveries: the tables below its prefixes.
        assets: asset URIs of tables, in addition to those of the file.

    Raises:
        ConfigurationError: settings contradict each other, or an asset is not that of a table.
    """
    discovered = tuple(discoveries)
    resolver = PolicyResolver(policies)
    tables: dict[str, FleetTable] = {}
    for uri, name in names_by_uri(policies).items():
        tables[uri] = _table(resolver, name, uri)
    others = [uri for discovery in discovered for uri in discovery.uris]
    for found in (*others, *_of_assets((*policies.model.fleet.assets, *assets), policies.source)):
        uri = canonical(found)
        if uri not in tables:
            tables[uri] = _table(resolver, uri, uri)
    ordered = sorted(tables.values(), key=lambda table: (table.name, table.uri))
    return Registry(policies=policies, tables=tuple(ordered), discoveries=discovered)


def policy_document(
    discovery: Discovery, *, prefix: str, depth: int, exclude: Iterable[str]
) -> dict[str, Any]:
    """A policy file, as a document for YAML, that discovers the same tables again."""
    return {
        "defaults": {"compaction": {"min_small_files": 16}, "vacuum": {"dry_run": True}},
        "fleet": {"prefixes": [{"uri": prefix, "depth": depth, "exclude": list(exclude)}]},
    }


def _of_assets(assets: Iterable[str], source: str) -> list[str]:
    uris = []
    for asset in assets:
        try:
            uris.append(table_uri_of_asset(asset))
        except InvalidUriError as error:
            raise ConfigurationError(
                f"The policy file {source!r} is not valid at fleet.assets.",
                cause=error.problem,
                fix=error.fix,
            ) from error
    return uris


def _table(resolver: PolicyResolver, name: str, uri: str) -> FleetTable:
    resolved = resolver.resolve(name)
    managed = name in resolver.policies.model.tables or any(
        source.startswith("patterns[") for source in resolved.sources.values()
    )
    return FleetTable(name=name, uri=uri, resolved=resolved, managed=managed)
