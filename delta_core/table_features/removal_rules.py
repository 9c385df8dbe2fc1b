"""The conditions for the removal of each table feature.

A trace is a use of the feature in a version. Each rule defines the traces of a feature, whether older
versions matter, and which records are removed together with the feature. `removal` makes a plan from a rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from delta_core.actions import DomainMetadata, Metadata, Protocol
from delta_core.errors import InvalidTableError
from delta_core.schema.json import schema_from_json
from delta_core.schema.types import TIMESTAMP_NTZ, VARIANT, PrimitiveType, StructType
from delta_core.table_features.clustering_domain import DOMAIN as CLUSTERING_DOMAIN
from delta_core.table_features.clustering_domain import ClusteringColumns
from delta_core.table_features.enablement import CONSTRAINT_PREFIX, types_within
from delta_core.table_features.feature import FEATURES, TableFacts, field_metadata
from delta_core.table_features.internal_properties import (
    CHECKPOINT_PROTECTION,
    ENABLEMENT_TIMESTAMP,
    ENABLEMENT_VERSION,
    MAX_COLUMN_ID,
    ROW_COMMIT_VERSION_COLUMN,
    ROW_ID_COLUMN,
)
from delta_core.table_features.table_properties import UNIVERSAL_FORMATS

ROW_TRACKING_DOMAIN = "delta.rowTracking"


class HistoryRule(Enum):
    """The effect of older versions in the log on a removal."""

    ANY = "older versions may use it"
    WITHOUT_TRACES = "no version that is still in the log may use it"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """The state of a version, as far as removals need it.

    Attributes:
        has_deletion_vectors: whether a live file has a deletion vector; True when unknown.
        has_removed_deletion_vectors: whether a tombstone has a deletion vector and the live file with the
            same path has none. A reader that identifies files by path alone applies the tombstone to the live
            file. True when unknown.
        has_row_ids: whether a live file has a base row id; True when unknown.
        has_v2_checkpoint: whether the version is read from a V2 checkpoint; True when unknown.
        domains: metadata domains by name.
        version: the version's number.
        oldest_version: the oldest version that can be read from the log.
        clean_since_version: the first version since which no version has traces of the feature; None where
            the newest version has traces, or the log was not checked.
        clean_since_ms: the time of that version's commit, in epoch milliseconds.
    """

    protocol: Protocol
    metadata: Metadata
    version: int
    oldest_version: int = 0
    has_deletion_vectors: bool = True
    has_removed_deletion_vectors: bool = True
    has_v2_checkpoint: bool = True
    has_row_ids: bool = True
    domains: Mapping[str, DomainMetadata] = field(default_factory=dict, hash=False)
    clean_since_version: int | None = None
    clean_since_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A use of the feature, and how to remove it, each as a sentence."""

    what: str
    remedy: str


TraceProbe = Callable[[TableState], Iterator[Trace]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalRule:
    """The rule for the removal of one feature.

    Attributes:
        traces: the uses that must be removed first.
        history: the effect of older versions.
        properties: the feature's own properties, which are removed in the same commit.
        domains: the feature's own domains, which are removed in the same commit.
        is_switch: whether only these properties and domains enable the feature, so that removing them in that
            commit disables it; they are then not traces.
    """

    traces: tuple[TraceProbe, ...] = ()
    history: HistoryRule = HistoryRule.ANY
    properties: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    is_switch: bool = False


def _property(key: str) -> TraceProbe:
    def probe(state: TableState) -> Iterator[Trace]:
        if state.metadata.configuration.get(key, "false").strip().lower() == "true":
            yield Trace(what=f"{key} is true.", remedy=f"Set {key} to false.")

    return probe


def _columns(what: str, *keys: str) -> TraceProbe:
    def probe(state: TableState) -> Iterator[Trace]:
        if any(key in fields for fields in field_metadata(state.metadata) for key in keys):
            yield Trace(what=f"A column {what}.", remedy=f"Change or drop each column that {what}.")

    return probe


def _in_use(feature: str, what: str, remedy: str) -> TraceProbe:
    def probe(state: TableState) -> Iterator[Trace]:
        facts = TableFacts(
            metadata=state.metadata,
            has_deletion_vectors=state.has_deletion_vectors,
            has_v2_checkpoint=state.has_v2_checkpoint,
        )
        if FEATURES[feature].active(facts):
            yield Trace(what=what, remedy=remedy)

    return probe


def _of_type(data_type: PrimitiveType) -> TraceProbe:
    def probe(state: TableState) -> Iterator[Trace]:
        schema = schema_from_json(state.metadata.schema_string)
        if any(part == data_type for part in types_within(schema)):
            yield Trace(
                what=f"A column is of type {data_type}.", remedy=f"Drop each column of type {data_type}."
            )

    return probe


def _not_null(state: TableState) -> Iterator[Trace]:
    if any(not nullable for nullable in _nullabilities(schema_from_json(state.metadata.schema_string))):
        yield Trace(what="A column is NOT NULL.", remedy="Make every column nullable.")


def _nullabilities(schema: StructType) -> Iterator[bool]:
    for item in schema:
        yield item.nullable
        if isinstance(item.data_type, StructType):
            yield from _nullabilities(item.data_type)


def _physical_names(state: TableState) -> Iterator[Trace]:
    if any("delta.columnMapping.physicalName" in fields for fields in field_metadata(state.metadata)):
        yield Trace(
            what="Columns have physical names in the data files.",
            remedy="Rewrite the table without column mapping.",
        )


def _tombstones_with_deletion_vectors(state: TableState) -> Iterator[Trace]:
    if state.has_removed_deletion_vectors:
        yield Trace(
            what="The log has a tombstone with a deletion vector for the path of a live file.",
            remedy="Rewrite that file, or wait until delta.deletedFileRetentionDuration has passed.",
        )


def _numbered_files(state: TableState) -> Iterator[Trace]:
    # A later writer that enables the feature again would assign the same ids to other rows.
    if state.has_row_ids:
        yield Trace(what="Live files have row ids.", remedy="Add these files again without row ids.")


def _iceberg_format(state: TableState) -> Iterator[Trace]:
    # Writers that maintain Iceberg metadata refuse to write to a table without Iceberg compatibility.
    key = UNIVERSAL_FORMATS.key
    if "iceberg" in state.metadata.configuration.get(key, "").lower():
        yield Trace(what=f"{key} contains iceberg.", remedy=f"Remove iceberg from {key}.")


def _any_domain(state: TableState) -> Iterator[Trace]:
    for name in sorted(name for name, item in state.domains.items() if not item.removed):
        yield Trace(what=f"The table has the metadata domain {name}.", remedy=f"Remove the domain {name}.")


def _clustered(state: TableState) -> Iterator[Trace]:
    try:
        clustering = ClusteringColumns.of_domains(state.domains)
    except InvalidTableError:
        clustering = ClusteringColumns(columns=(("?",),))
    if clustering is not None and clustering.columns:
        yield Trace(what="The table is clustered.", remedy="Remove its clustering columns.")


def _constraints(state: TableState) -> Iterator[Trace]:
    for key in sorted(state.metadata.configuration):
        if key.lower().startswith(CONSTRAINT_PREFIX):
            name = key[len(CONSTRAINT_PREFIX) :]
            yield Trace(what=f"The table has the constraint {name}.", remedy=f"Drop the constraint {name}.")


def _protected_log(state: TableState) -> Iterator[Trace]:
    value = state.metadata.configuration.get(CHECKPOINT_PROTECTION, "0").strip()
    before = int(value) if value.isdecimal() else state.version + 1
    if state.oldest_version < before:
        yield Trace(
            what=f"The log before version {before} is protected, and begins at {state.oldest_version}.",
            remedy="Clean up the whole log before that version at once.",
        )


_WIDENING = RemovalRule(
    traces=(
        _property("delta.enableTypeWidening"),
        _columns("had another type before", "delta.typeChanges"),
    ),
    history=HistoryRule.WITHOUT_TRACES,
)
_VARIANT = RemovalRule(
    traces=(_of_type(VARIANT),),
    history=HistoryRule.WITHOUT_TRACES,
)


RULES: Mapping[str, RemovalRule] = {
    "appendOnly": RemovalRule(traces=(_property("delta.appendOnly"),)),
    "invariants": RemovalRule(traces=(_not_null, _columns("has an invariant", "delta.invariants"))),
    "checkConstraints": RemovalRule(traces=(_constraints,)),
    # Versions with change data files remain readable; only readers of change data need these files.
    "changeDataFeed": RemovalRule(
        traces=(_property("delta.enableChangeDataFeed"),),
        properties=("delta.enableChangeDataFeed",),
        is_switch=True,
    ),
    "generatedColumns": RemovalRule(traces=(_columns("is generated", "delta.generationExpression"),)),
    "identityColumns": RemovalRule(traces=(_columns("is an identity", "delta.identity.start"),)),
    "allowColumnDefaults": RemovalRule(traces=(_columns("has a default", "CURRENT_DEFAULT"),)),
    "columnMapping": RemovalRule(
        traces=(
            _in_use("columnMapping", "Columns are mapped.", "Rewrite the table without column mapping."),
            _physical_names,
        ),
        history=HistoryRule.WITHOUT_TRACES,
        properties=("delta.columnMapping.mode", MAX_COLUMN_ID),
    ),
    "timestampNtz": RemovalRule(
        traces=(_of_type(TIMESTAMP_NTZ),),
        history=HistoryRule.WITHOUT_TRACES,
    ),
    # The feature only restricts vacuum, and leaves nothing in the log.
    "vacuumProtocolCheck": RemovalRule(),
    "domainMetadata": RemovalRule(traces=(_any_domain,)),
    "deletionVectors": RemovalRule(
        traces=(
            _in_use("deletionVectors", "Deletion vectors are in use.", "Disable them, and purge the table."),
            _tombstones_with_deletion_vectors,
        ),
        history=HistoryRule.WITHOUT_TRACES,
        properties=("delta.enableDeletionVectors",),
    ),
    "v2Checkpoint": RemovalRule(
        traces=(
            _in_use(
                "v2Checkpoint",
                "The table has a V2 checkpoint.",
                "Set delta.checkpointPolicy to classic, and write a checkpoint.",
            ),
        ),
        history=HistoryRule.WITHOUT_TRACES,
        properties=("delta.checkpointPolicy",),
    ),
    "rowTracking": RemovalRule(
        traces=(_property("delta.enableRowTracking"), _numbered_files),
        properties=(
            "delta.enableRowTracking",
            "delta.rowTrackingSuspended",
            ROW_ID_COLUMN,
            ROW_COMMIT_VERSION_COLUMN,
        ),
        domains=(ROW_TRACKING_DOMAIN,),
    ),
    # Older commits keep their timestamps, which readers may ignore.
    "inCommitTimestamp": RemovalRule(
        traces=(_property("delta.enableInCommitTimestamps"),),
        properties=("delta.enableInCommitTimestamps", ENABLEMENT_VERSION, ENABLEMENT_TIMESTAMP),
        is_switch=True,
    ),
    "clustering": RemovalRule(traces=(_clustered,), domains=(CLUSTERING_DOMAIN,), is_switch=True),
    "checkpointProtection": RemovalRule(traces=(_protected_log,), properties=(CHECKPOINT_PROTECTION,)),
    "icebergCompatV1": RemovalRule(
        traces=(_property("delta.enableIcebergCompatV1"), _iceberg_format),
        properties=("delta.enableIcebergCompatV1",),
        is_switch=True,
    ),
    "icebergCompatV2": RemovalRule(
        traces=(_property("delta.enableIcebergCompatV2"), _iceberg_format),
        properties=("delta.enableIcebergCompatV2",),
        is_switch=True,
    ),
    # Files with partition columns are read like other files: the partition values in the log take precedence.
    "materializePartitionColumns": RemovalRule(
        traces=(_property("delta.enableMaterializePartitionColumnsFeature"),),
        properties=("delta.enableMaterializePartitionColumnsFeature",),
        is_switch=True,
    ),
    "typeWidening": _WIDENING,
    "typeWidening-preview": _WIDENING,
    "variantType": _VARIANT,
    "variantType-preview": _VARIANT,
}
"""Every feature with a rule. Variant shredding has none: the log does not record which files are shredded."""
