"""Domain metadata changes for a restore to another version, or for a clone of another table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from delta_core.actions import DomainMetadata
from delta_core.transaction.row_ids import DOMAIN

KEPT_DOMAINS = frozenset({DOMAIN})
"""Domains that are never restored. The high-water mark of row ids must not decrease."""


def domain_changes(
    present: Mapping[str, DomainMetadata], target: Mapping[str, DomainMetadata]
) -> Iterator[DomainMetadata]:
    """The actions that change the present domains to the target's (PROTOCOL.md, "Domain Metadata"), by name.

    A domain that the target lacks is removed, with its last configuration as the protocol requires.
    `KEPT_DOMAINS` are not changed.
    """
    for name in sorted({*present, *target} - KEPT_DOMAINS):
        before, after = present.get(name), target.get(name)
        if after is None:
            if before is not None and not before.removed:
                yield replace(before, removed=True)
        elif after != before:
            yield after
