"""The table features that a definition of ours can turn on, and one way to do so for each.

Which of them are open is asked of `delta_core.table_features`: a feature joins by becoming writable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations

from delta_core.table_features.feature import FEATURES, WriterKind
from tests.state_machine.values import Column


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How a table gets a feature.

    Attributes:
        name: of this way; a feature may have several.
        feature: what the protocol lists.
        properties: given at creation.
        columns: of the table.
        later: whether `set_properties` may do it for a table that has commits.
        cluster_by: by which columns the table is clustered.
    """

    name: str
    feature: str
    properties: Mapping[str, str] = field(default_factory=dict)
    columns: tuple[Column, ...] = ()
    later: bool = False
    cluster_by: tuple[str, ...] = ()


def _supported(feature: str) -> Mapping[str, str]:
    return {f"delta.feature.{feature}": "supported"}


WAYS: tuple[Way, ...] = (
    Way(
        name="change-data",
        feature="changeDataFeed",
        properties={"delta.enableChangeDataFeed": "true"},
        later=True,
    ),
    Way(
        name="mapping-name",
        feature="columnMapping",
        properties={"delta.columnMapping.mode": "name"},
        later=True,
    ),
    Way(name="mapping-id", feature="columnMapping", properties={"delta.columnMapping.mode": "id"}),
    Way(
        name="vectors",
        feature="deletionVectors",
        properties={"delta.enableDeletionVectors": "true"},
        later=True,
    ),
    Way(name="row-tracking", feature="rowTracking", properties={"delta.enableRowTracking": "true"}),
    Way(
        name="commit-times",
        feature="inCommitTimestamp",
        properties={"delta.enableInCommitTimestamps": "true"},
        later=True,
    ),
    Way(
        name="v2-checkpoint", feature="v2Checkpoint", properties={"delta.checkpointPolicy": "v2"}, later=True
    ),
    Way(name="widening", feature="typeWidening", properties={"delta.enableTypeWidening": "true"}, later=True),
    Way(
        name="vacuum-check",
        feature="vacuumProtocolCheck",
        properties=_supported("vacuumProtocolCheck"),
        later=True,
    ),
    Way(name="domains", feature="domainMetadata", properties=_supported("domainMetadata"), later=True),
    Way(
        name="iceberg-v1",
        feature="icebergCompatV1",
        properties={"delta.enableIcebergCompatV1": "true", "delta.columnMapping.mode": "name"},
    ),
    Way(
        name="iceberg-v2",
        feature="icebergCompatV2",
        properties={"delta.enableIcebergCompatV2": "true", "delta.columnMapping.mode": "name"},
    ),
    Way(
        name="materialized-partitions",
        feature="materializePartitionColumns",
        properties={"delta.enableMaterializePartitionColumnsFeature": "true"},
    ),
    Way(
        name="timestamp-ntz",
        feature="timestampNtz",
        columns=(Column(name="local", kind="timestamp_ntz"),),
    ),
    Way(
        name="variants",
        feature="variantType",
        columns=(Column(name="loose", kind="variant"),),
    ),
    Way(
        name="defaults",
        feature="allowColumnDefaults",
        properties=_supported("allowColumnDefaults"),
        columns=(Column(name="fallback", kind="string", default=("'none given'", "none given")),),
    ),
    Way(
        name="generated",
        feature="generatedColumns",
        columns=(Column(name="gen", kind="integer", generated_from="n"),),
    ),
    Way(
        name="identity",
        feature="identityColumns",
        columns=(Column(name="ident", kind="long", identity=True),),
    ),
    Way(name="clustering", feature="clustering", cluster_by=("n", "t")),
    Way(
        name="not-null",
        feature="invariants",
        columns=(Column(name="always", kind="integer", nullable=False),),
    ),
)

_EXCLUDING = frozenset(
    frozenset(pair)
    for pair in (
        ("mapping-name", "mapping-id"),
        ("mapping-id", "iceberg-v1"),
        ("mapping-id", "iceberg-v2"),
        ("mapping-name", "iceberg-v1"),
        ("mapping-name", "iceberg-v2"),
        ("iceberg-v1", "iceberg-v2"),
        ("iceberg-v1", "vectors"),
        ("iceberg-v2", "vectors"),
        ("iceberg-v1", "nested"),
        ("iceberg-v2", "variants"),
        ("clustering", "partitions"),
        ("clustering", "materialized-partitions"),
    )
)
"""Pairs that the protocol forbids, that give one property twice, or partitions to a clustered table."""


def open_ways() -> tuple[Way, ...]:
    """The ways whose feature we turn on and write rows with."""
    return tuple(
        way
        for way in WAYS
        if (FEATURES[way.feature].may_be_enabled or way.cluster_by)
        and WriterKind.ARROW_ROWS in FEATURES[way.feature].writable_by
    )


def go_together(ways: frozenset[str]) -> bool:
    """Whether one table can have all of them."""
    return not any(frozenset(pair) in _EXCLUDING for pair in combinations(ways, 2))
