"""Metadata domains of a user's own (PROTOCOL.md, "Domain Metadata")."""

from __future__ import annotations

from typing import Any

from delta_core.actions import DomainMetadata
from delta_core.dml.definition.change import applied_before, commit_change
from delta_core.errors import ConfigurationError
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.enablement import ProtocolRequest
from delta_core.transaction.commit_result import Committed

_SYSTEM_PREFIX = "delta."
_NEEDED = ProtocolRequest(features=frozenset({"domainMetadata"}), properties={})


def set_domain_metadata(snapshot: Snapshot, domain: str, configuration: str, **options: Any) -> Committed:
    """Set a domain's configuration, whatever it was before; the table supports domains afterwards.

    Two writers that set one domain at the same time are a conflict. One request.

    Raises:
        ConfigurationError: the domain has no name, or is one of the protocol's own.
    """
    applied = applied_before(snapshot, **options)
    if applied is not None:
        return applied
    _require_own(domain)
    return commit_change(
        snapshot,
        operation="SET DOMAIN METADATA",
        parameters={"domain": domain},
        request=_NEEDED,
        actions=[DomainMetadata(domain=domain, configuration=configuration)],
        **options,
    )


def remove_domain_metadata(snapshot: Snapshot, domain: str, **options: Any) -> Committed:
    """Take a domain away; its tombstone says what the configuration was. Reads the log's domains.

    Raises:
        ConfigurationError: there is no such domain, or it is one of the protocol's own.
    """
    applied = applied_before(snapshot, **options)
    if applied is not None:
        return applied
    _require_own(domain)
    found = snapshot.domain_metadata.get(domain)
    if found is None:
        raise ConfigurationError(
            f"The table has no metadata domain {domain!r}.", fix="See DeltaTable.domain_metadata()."
        )
    return commit_change(
        snapshot,
        operation="REMOVE DOMAIN METADATA",
        parameters={"domain": domain},
        request=_NEEDED,
        actions=[DomainMetadata(domain=domain, configuration=found.configuration, removed=True)],
        **options,
    )


def _require_own(domain: str) -> None:
    if not domain:
        raise ConfigurationError("A metadata domain has a name.", fix="Pass one such as 'myTeam.layout'.")
    if domain.lower().startswith(_SYSTEM_PREFIX):
        raise ConfigurationError(
            f"The metadata domain {domain!r} is not changed by hand.",
            cause="Domains that begin with delta. are the protocol's: only the feature that owns one "
            "changes it.",
            fix="Choose a name without that beginning.",
        )
