"""Metadata domains of a table that takes over the state of another version, or of another table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from delta_core.actions import DomainMetadata
from delta_core.transaction.row_ids import DOMAIN

KEPT_DOMAINS = frozenset({DOMAIN})
"""Domains that only go forward: how many row ids are given out is true whatever rows come back."""


def domain_changes(
    present: Mapping[str, DomainMetadata], wanted: Mapping[str, DomainMetadata]
) -> Iterator[DomainMetadata]:
    """What turns one state's domains into another's (PROTOCOL.md, "Domain Metadata"), by name.

    A domain that the wanted state does not have is removed, with its last configuration as the protocol
    asks. Those that only go forward stay.
    """
    for name in sorted({*present, *wanted} - KEPT_DOMAINS):
        before, after = present.get(name), wanted.get(name)
        if after is None:
            if before is not None and not before.removed:
                yield replace(before, removed=True)
        elif after != before:
            yield after
