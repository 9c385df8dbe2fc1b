"""What stands in the way of taking a table feature out, feature by feature.

A trace is something in a version that needs the feature. Each rule says what counts as one, whether older
versions matter, and which records of the feature's own go with it. `removal` makes a plan of a rule.
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
    """What older versions in the log have to do with a removal."""

    ANY = "older versions may use it"
    WITHOUT_TRACES = "no version that the log still has may use it"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """A version, as far as removals look at it.

    Attributes:
        has_deletion_vectors: whether a live file has one; True when it is not known.
        has_removed_deletion_vectors: whether a tombstone has one and its live file has none. A reader that
            identifies files by path alone takes the tombstone for the removal of the live file. True when it is
            not known.
        has_row_ids: whether a live file says which ids its rows have; True when it is not known.
        has_v2_checkpoint: whether the version is read from a V2 checkpoint; True when it is not known.
        domains: metadata domains by name.
        version: the version's number.
        oldest_version: the oldest one that the log can still show.
        clean_since_version: the oldest version from which on no version has traces of the feature; None where
            the newest has some, or nobody has looked.
        clean_since_ms: when that version was committed, in epoch milliseconds.
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
    """Something that needs the feature, and what takes it away."""

    what: str
    remedy: str


TraceProbe = Callable[[TableState], Iterator[Trace]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalRule:
    """How one feature is removed.

    Attributes:
        traces: what must be gone first.
        history: what older versions have to do with it.
        properties: records of the feature's own, which go in the same commit.
        domains: as that.
        is_switch: whether these are all that turns the feature on, and taking them away in that commit turns
            it off: then what they say is no trace.
    """

    traces: tuple[TraceProbe, ...] = ()
    history: HistoryRule = HistoryRule.ANY
    properties: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    is_switch: bool = False


def _property(key: str) -> TraceProbe:
    def probe(state: TableState) -> Iterator[Trace]:
        if state.metadata.configuration.get(key, "false").strip().lower() == "true":
            yield Trace(what=f"{key} is true", remedy=f"set {key} to false")

    return probe


def _columns(what: str, *keys: str) -> TraceProbe:
    def probe(state: TableState) -> Iterator[Trace]:
        if any(key in fields for fields in field_metadata(state.metadata) for key in keys):
            yield Trace(what=f"a column {what}", remedy=f"change or drop each column that {what}")

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


def _of_type(wanted: PrimitiveType) -> TraceProbe:
    def probe(state: TableState) -> Iterator[Trace]:
        schema = schema_from_json(state.metadata.schema_string)
        if any(found == wanted for found in types_within(schema)):
            yield Trace(
                what=f"a column is of the type {wanted}", remedy=f"drop each column of the type {wanted}"
            )

    return probe


def _not_null(state: TableState) -> Iterator[Trace]:
    if any(not found for found in _nullabilities(schema_from_json(state.metadata.schema_string))):
        yield Trace(what="a column is NOT NULL", remedy="let every column hold nulls")


def _nullabilities(schema: StructType) -> Iterator[bool]:
    for item in schema:
        yield item.nullable
        if isinstance(item.data_type, StructType):
            yield from _nullabilities(item.data_type)


def _physical_names(state: TableState) -> Iterator[Trace]:
    if any("delta.columnMapping.physicalName" in fields for fields in field_metadata(state.metadata)):
        yield Trace(
            what="columns have names of their own in the data files",
            remedy="rewrite the table without column mapping",
        )


def _tombstones_with_deletion_vectors(state: TableState) -> Iterator[Trace]:
    if state.has_removed_deletion_vectors:
        yield Trace(
            what="a file is live whose removal, with a deletion vector, the log still remembers",
            remedy="write that file anew, or let delta.deletedFileRetentionDuration pass",
        )


def _numbered_files(state: TableState) -> Iterator[Trace]:
    # A later writer who turns the feature on again would give the same ids to other rows.
    if state.has_row_ids:
        yield Trace(what="live files have row ids", remedy="add these files again without them")


def _iceberg_format(state: TableState) -> Iterator[Trace]:
    # Whoever keeps Iceberg's metadata refuses to write where nothing keeps the table convertible.
    key = UNIVERSAL_FORMATS.key
    if "iceberg" in state.metadata.configuration.get(key, "").lower():
        yield Trace(what=f"{key} names iceberg", remedy=f"take iceberg out of {key}")


def _any_domain(state: TableState) -> Iterator[Trace]:
    for name in sorted(name for name, found in state.domains.items() if not found.removed):
        yield Trace(what=f"the table has the metadata domain {name}", remedy=f"remove the domain {name}")


def _clustered(state: TableState) -> Iterator[Trace]:
    try:
        found = ClusteringColumns.of_domains(state.domains)
    except InvalidTableError:
        found = ClusteringColumns(columns=(("?",),))
    if found is not None and found.columns:
        yield Trace(what="the table is clustered", remedy="cluster it by nothing")


def _constraints(state: TableState) -> Iterator[Trace]:
    for key in sorted(state.metadata.configuration):
        if key.lower().startswith(CONSTRAINT_PREFIX):
            name = key[len(CONSTRAINT_PREFIX) :]
            yield Trace(what=f"the table has the constraint {name}", remedy=f"drop the constraint {name}")


def _protected_log(state: TableState) -> Iterator[Trace]:
    text = state.metadata.configuration.get(CHECKPOINT_PROTECTION, "0").strip()
    before = int(text) if text.isdecimal() else state.version + 1
    if state.oldest_version < before:
        yield Trace(
            what=f"the log before version {before} is protected, and goes back to {state.oldest_version}",
            remedy="clean up the log to that version, all of it at once",
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
    # Versions with change files stay readable to who reads change data; others never look at them.
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
            _in_use("columnMapping", "columns are mapped", "rewrite the table without column mapping"),
            _physical_names,
        ),
        history=HistoryRule.WITHOUT_TRACES,
        properties=("delta.columnMapping.mode", MAX_COLUMN_ID),
    ),
    "timestampNtz": RemovalRule(
        traces=(_of_type(TIMESTAMP_NTZ),),
        history=HistoryRule.WITHOUT_TRACES,
    ),
    # It asks something of who vacuums, and leaves nothing in the log.
    "vacuumProtocolCheck": RemovalRule(),
    "domainMetadata": RemovalRule(traces=(_any_domain,)),
    "deletionVectors": RemovalRule(
        traces=(
            _in_use("deletionVectors", "deletion vectors are in use", "turn them off and purge the table"),
            _tombstones_with_deletion_vectors,
        ),
        history=HistoryRule.WITHOUT_TRACES,
        properties=("delta.enableDeletionVectors",),
    ),
    "v2Checkpoint": RemovalRule(
        traces=(
            _in_use(
                "v2Checkpoint",
                "checkpoints are of the second version",
                "set delta.checkpointPolicy to classic and write a checkpoint",
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
    # Older commits keep their times, which a reader may look at and need not.
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
    # Files that hold partition columns are read like others: the log's values count.
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
"""Every feature with a rule. Whether a file keeps a variant in parts shows in no log: shredding has none."""
