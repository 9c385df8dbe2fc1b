"""Which table features a table has, of delta-spark's if not said: one at a time, and sets of every pair."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from itertools import combinations

FEATURES: Mapping[str, Mapping[str, str]] = {
    "append-only": {"delta.appendOnly": "true"},
    "change-data": {"delta.enableChangeDataFeed": "true"},
    "clustering": {},
    "constraints": {},
    "defaults": {"delta.feature.allowColumnDefaults": "supported"},
    "deletion-vectors": {"delta.enableDeletionVectors": "true"},
    "domain-metadata": {"delta.feature.domainMetadata": "supported"},
    "dropped-feature": {"delta.feature.vacuumProtocolCheck": "supported"},
    "generated": {},
    "iceberg-compat": {"delta.enableIcebergCompatV2": "true", "delta.columnMapping.mode": "name"},
    "identity": {},
    "in-commit-timestamps": {"delta.enableInCommitTimestamps": "true"},
    "mapping-id": {"delta.columnMapping.mode": "id"},
    "mapping-name": {"delta.columnMapping.mode": "name"},
    "materialized-partitions": {"delta.enableMaterializePartitionColumnsFeature": "true"},
    "nested": {},
    "partitions": {},
    "row-tracking": {"delta.enableRowTracking": "true"},
    "struct-statistics": {"delta.checkpoint.writeStatsAsStruct": "true"},
    "timestamp-ntz": {},
    "type-widening": {"delta.enableTypeWidening": "true"},
    "v2-checkpoint": {"delta.checkpointPolicy": "v2"},
    "variant": {},
}
"""Each feature and the table properties that ask for it; the others are in the table's columns."""

EXCLUDING = frozenset(
    frozenset(pair)
    for pair in (
        ("clustering", "partitions"),
        ("clustering", "materialized-partitions"),
        ("iceberg-compat", "deletion-vectors"),
        ("iceberg-compat", "mapping-id"),
        ("iceberg-compat", "variant"),
        ("mapping-id", "mapping-name"),
    )
)
"""Pairs that delta-spark refuses."""

SWITCHED_ON_LATER = frozenset(
    {
        "change-data",
        "deletion-vectors",
        "in-commit-timestamps",
        "mapping-name",
        "row-tracking",
        "struct-statistics",
        "type-widening",
        "v2-checkpoint",
    }
)
"""Features that a table which has commits already may also get."""

_SET_SIZE = 5
_CANDIDATES = 30

FeatureSet = frozenset[str]


def single_features() -> list[FeatureSet]:
    """Each feature alone."""
    return [frozenset({name}) for name in FEATURES]


def possible_pairs(
    names: Collection[str] = FEATURES.keys(), excluding: Collection[FeatureSet] = EXCLUDING
) -> set[FeatureSet]:
    """Every two features that one table can have."""
    return {frozenset(pair) for pair in combinations(sorted(names), 2)} - set(excluding)


def covering_sets(
    rng: random.Random,
    at_least: int,
    names: Collection[str] = FEATURES.keys(),
    excluding: Collection[FeatureSet] = EXCLUDING,
    *,
    had: Collection[FeatureSet] = (),
) -> list[FeatureSet]:
    """Sets of features so that each possible pair is in one of them or of those had, the best ones first."""
    possible = possible_pairs(names, excluding)
    open_pairs, found = possible.difference(*map(pairs_of, had)), list[FeatureSet]()
    while open_pairs or len(found) < at_least:
        pool = sorted(open_pairs or possible, key=sorted)
        candidates = [_candidate(rng, pool, names, excluding) for _ in range(_CANDIDATES)]
        best = max(candidates, key=lambda one: len(pairs_of(one) & open_pairs))
        open_pairs -= pairs_of(best)
        found.append(best)
    return found


def pairs_of(features: FeatureSet) -> set[FeatureSet]:
    """The pairs within a set."""
    return {frozenset(pair) for pair in combinations(sorted(features), 2)}


def _candidate(
    rng: random.Random, pool: list[FeatureSet], names: Collection[str], excluding: Collection[FeatureSet]
) -> FeatureSet:
    wanted = set(pool)
    chosen = set(rng.choice(pool))
    rest = sorted(set(names) - chosen)
    while len(chosen) < _SET_SIZE:
        rng.shuffle(rest)
        fitting = [name for name in rest if not any(frozenset({name, had}) in excluding for had in chosen)]
        best = max(fitting, key=lambda name: sum(frozenset({name, had}) in wanted for had in chosen))
        chosen.add(best)
        rest.remove(best)
    return frozenset(chosen)
