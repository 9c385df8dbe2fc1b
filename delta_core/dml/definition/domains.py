"""User-defined metadata domains (PROTOCOL.md, "Domain Metadata")."""

from __future__ import annotations

from delta_core.actions import DomainMetadata
from delta_core.dml.definition.change import commit_change
from delta_core.errors import ConfigurationError
from delta_core.run import DEFAULT_RUN, Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.table_features.enablement import ProtocolRequest
from delta_core.transaction.commit_result import Committed

_SYSTEM_PREFIX = "delta."
_NEEDED = ProtocolRequest(features=frozenset({"domainMetadata"}), properties={})


def set_domain_metadata(
    snapshot: Snapshot, domain: str, configuration: str, *, run: Run = DEFAULT_RUN
) -> Committed:
    """Create or replace the configuration of a domain. Adds the table feature if needed.

    Two writers that set the same domain at the same time conflict. One request.

    Raises:
        ConfigurationError: the domain has no name, or belongs to the protocol.
    """
    applied = run.already_applied(snapshot)
    if applied is not None:
        return applied
    _require_own(domain)
    return commit_change(
        snapshot,
        operation="SET DOMAIN METADATA",
        parameters={"domain": domain},
        request=_NEEDED,
        actions=[DomainMetadata(domain=domain, configuration=configuration)],
        run=run,
    )


def remove_domain_metadata(snapshot: Snapshot, domain: str, *, run: Run = DEFAULT_RUN) -> Committed:
    """Remove a domain. Its tombstone contains the last configuration. Reads the metadata domains.

    Raises:
        ConfigurationError: the domain does not exist, or belongs to the protocol.
    """
    applied = run.already_applied(snapshot)
    if applied is not None:
        return applied
    _require_own(domain)
    current = snapshot.domain_metadata.get(domain)
    if current is None:
        raise ConfigurationError(
            f"The table has no metadata domain {domain!r}.",
            fix="Pass one of the domains that DeltaTable.domain_metadata() returns.",
        )
    return commit_change(
        snapshot,
        operation="REMOVE DOMAIN METADATA",
        parameters={"domain": domain},
        request=_NEEDED,
        actions=[DomainMetadata(domain=domain, configuration=current.configuration, removed=True)],
        run=run,
    )


def _require_own(domain: str) -> None:
    if not domain:
        raise ConfigurationError(
            "The metadata domain has no name.", fix="Pass a name such as 'myTeam.layout'."
        )
    if domain.lower().startswith(_SYSTEM_PREFIX):
        raise ConfigurationError(
            f"The metadata domain {domain!r} cannot be changed directly.",
            cause="Domains that begin with delta. belong to the protocol. Only the table feature that owns a "
            "domain changes it.",
            fix="Choose a name that does not begin with delta.",
        )
