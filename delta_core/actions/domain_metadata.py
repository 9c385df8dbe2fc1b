"""`domainMetadata` (PROTOCOL.md, "Domain Metadata")."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainMetadata:
    """A named configuration. `removed` marks the domain as deleted."""

    domain: str
    configuration: str
    removed: bool = False
