"""`protocol` (PROTOCOL.md, "Protocol Evolution")."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """The versions and features that a client must support.

    `reader_features` exists from reader version 3 on, `writer_features` from writer version 7 on.
    """

    min_reader_version: int
    min_writer_version: int
    reader_features: frozenset[str] | None = None
    writer_features: frozenset[str] | None = None
