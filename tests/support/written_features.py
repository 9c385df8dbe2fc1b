"""What a table of ours may have, for the soak in which peers read it: the state machine's ways, and more.

Which features are open is asked of the library, so a feature that becomes writable joins by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from delta_core.table_features.feature import FEATURES
from tests.state_machine.features import WAYS, Way, go_together, open_ways
from tests.state_machine.values import Column

_PLAIN: tuple[Way, ...] = (
    Way(name="append-only", feature="appendOnly", properties={"delta.appendOnly": "true"}),
    Way(name="constraints", feature="checkConstraints"),
    Way(
        name="nested",
        feature="",
        columns=(
            Column(name="record", kind="struct"),
            Column(name="items", kind="list"),
            Column(name="pairs", kind="map"),
        ),
    ),
    Way(name="partitions", feature=""),
    Way(
        name="struct-statistics",
        feature="",
        properties={"delta.checkpoint.writeStatsAsStruct": "true", "delta.checkpointInterval": "3"},
    ),
    Way(
        name="side-files",
        feature="",
        properties={"deltaward.versionChecksum": "always", "deltaward.logCompactionInterval": "2"},
    ),
    Way(
        name="types",
        feature="",
        columns=tuple(
            Column(name=f"a_{kind}", kind=kind)
            for kind in ("binary", "boolean", "byte", "date", "decimal", "double", "short", "timestamp")
        ),
    ),
)
"""Ways that ask the library for nothing that it might refuse."""

WITHOUT_A_WAY: Mapping[str, str] = {
    "checkpointProtection": "it comes from dropping a feature",
    "variantShredding": "shredded values are read, not written",
}
"""Features that the sets do not have, and why; those that the protocol has as previews are not listed."""


def all_ways() -> Mapping[str, Way]:
    """Every way that is open, by name."""
    return {way.name: way for way in (*open_ways(), *_PLAIN)}


def closed_ways() -> Mapping[str, str]:
    """Ways that are not open, and why."""
    open_names = {way.name for way in open_ways()}
    had = {way.feature for way in (*WAYS, *_PLAIN)}
    return {
        **{way.name: f"{way.feature} cannot be turned on" for way in WAYS if way.name not in open_names},
        **{name: why for name, why in WITHOUT_A_WAY.items() if name not in had},
    }


def excluding(names: frozenset[str]) -> frozenset[frozenset[str]]:
    """Pairs that one table cannot have."""
    pairs = (frozenset(pair) for pair in combinations(sorted(names), 2))
    return frozenset(pair for pair in pairs if not go_together(pair))


def unknown_features() -> frozenset[str]:
    """Features of the library that neither a way nor a reason names: a new one must get either."""
    named = {way.feature for way in (*WAYS, *_PLAIN)} | WITHOUT_A_WAY.keys()
    return frozenset(name for name in FEATURES if name not in named and not name.endswith("-preview"))
