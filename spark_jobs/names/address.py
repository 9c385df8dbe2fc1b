"""The address of a named table."""

from __future__ import annotations

from dataclasses import dataclass

DELTAWARD = "deltaward"
DELTA = "delta"
PROVIDERS = (DELTAWARD, DELTA)
"""The providers of Delta tables in a catalog: of this library, and of delta-spark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableAddress:
    """Where a named table is.

    Attributes:
        uri: the table's URI, which every function of this library takes.
        provider: `deltaward` or `delta`.
        name: the qualified name as the catalog spells it; None for a path.
        is_managed: whether Spark's DROP TABLE deletes the table's directory.
    """

    uri: str
    provider: str
    name: str | None = None
    is_managed: bool = False
