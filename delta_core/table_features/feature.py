"""The registry of table features (PROTOCOL.md, "Table Features"), with one entry per feature.

A feature has different requirements for different writers: a table with generated columns is checkpointed
like any other table, but its new rows need computed values. So each feature lists the kinds of writers that
support it (`TableFeature.writable_by`), and each writer passes its own kind to the check
(`require_write_support`). Unsupported operations are refused before anything is written, with the feature,
the operation and the kinds of writers that support it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from delta_core.actions import Metadata, Protocol


class WriterKind(Enum):
    """One way of changing a table or its log.

    Attributes:
        heading: the column on the support page.
        words: the writer kind as part of a sentence in messages.
        description: the operations of the writer kind.
    """

    COMMIT = (
        "commit",
        "changes of the definition",
        "creating a table that uses the feature, enabling it, ALTER, a lease's fence: commits that add and "
        "remove no files",
    )
    ARROW_ROWS = (
        "rows (Arrow)",
        "rows from Arrow (write_deltalake)",
        "append, overwrite, replaceWhere, DELETE, UPDATE and MERGE without Spark, group commits",
    )
    SPARK_ROWS = (
        "rows (Spark)",
        "rows from Spark (spark_jobs.write)",
        "append, overwrite, replaceWhere and dynamic partition overwrite from a DataFrame, loads with a "
        "quality gate",
    )
    MERGE = ("merge", "MERGE", "MERGE, DELETE and UPDATE on Spark")
    REWRITE = (
        "rewrite",
        "rewriting files (compaction, Z-order)",
        "compaction and Z-order: the same rows in other files",
    )
    RESTORE = (
        "restore",
        "restoring, cloning and converting",
        "existing files become part of a table together with the definition that they were written with: of "
        "an earlier version, of another table, or of Parquet files; lost files are removed (`repair`)",
    )
    CHECKPOINT = ("checkpoint", "checkpoints", "checkpoints of the log; no data file is opened")
    CLEANUP = ("clean-up", "cleaning up the log", "deleting log files that a checkpoint replaces")
    VACUUM = ("vacuum", "vacuum", "deleting data files that no version needs, and the commits that record it")

    def __init__(self, heading: str, words: str, description: str) -> None:
        self.heading = heading
        self.words = words
        self.description = description


ALL_WRITER_KINDS = frozenset(WriterKind)
"""Supported by every writer kind."""

NO_WRITER_KINDS: frozenset[WriterKind] = frozenset()
"""Not supported for writing."""

LOG_ONLY = frozenset({WriterKind.CHECKPOINT, WriterKind.CLEANUP, WriterKind.VACUUM})
"""Writer kinds that copy the log's records about files, or delete what is no longer referenced. A feature
that only affects the content of rows has no requirements for them."""

LOG_AND_RESTORE = LOG_ONLY | {WriterKind.RESTORE}
"""LOG_ONLY, and operations that make files part of a table together with their table definition."""

ROWS_WITHOUT_SPARK = LOG_ONLY | {WriterKind.COMMIT, WriterKind.ARROW_ROWS}
"""Only features that all of these support may be enabled; other writer kinds refuse tables by the feature."""


def in_words(writer_kinds: Collection[WriterKind]) -> str:
    """The writer kinds as part of a sentence, in the order of their definition; empty for none."""
    words = [item.words for item in WriterKind if item in writer_kinds]
    return " and ".join((", ".join(words[:-1]), words[-1])) if len(words) > 1 else "".join(words)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """The facts that determine whether a listed feature is in use.

    Attributes:
        metadata: the table's metadata.
        has_deletion_vectors: whether a live file has a deletion vector; True when unknown.
        has_v2_checkpoint: whether the version is read from a V2 checkpoint; True when unknown.
    """

    metadata: Metadata
    has_deletion_vectors: bool = True
    has_v2_checkpoint: bool = True


ActiveProbe = Callable[[TableFacts], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFeature:
    """One feature and its support in this library.

    Attributes:
        name: as in `readerFeatures` and `writerFeatures`.
        in_reader: True for reader-writer features.
        legacy_reader_version: the reader version below 3 that implies the feature.
        legacy_writer_version: the writer version below 7 that implies the feature.
        readable: whether scans read tables that use the feature correctly.
        plain_rows: whether readers without support for the feature may read the data files directly.
        writable_by: the writer kinds that write tables that use the feature correctly.
        requires: features that the protocol must also list when it lists this one.
        active: whether a table uses the feature; a listed feature that is not in use has no requirements.
    """

    name: str
    in_reader: bool = False
    legacy_reader_version: int | None = None
    legacy_writer_version: int | None = None
    readable: bool = True
    plain_rows: bool = True
    writable_by: frozenset[WriterKind] = NO_WRITER_KINDS
    requires: frozenset[str] = frozenset()
    active: ActiveProbe = lambda _: True

    @property
    def may_be_enabled(self) -> bool:
        """Whether a table definition may enable it."""
        return self.writable_by >= ROWS_WITHOUT_SPARK


def _enabled(key: str) -> ActiveProbe:
    return lambda facts: facts.metadata.configuration.get(key, "false").strip().lower() == "true"


def _column_metadata(*keys: str) -> ActiveProbe:
    return lambda facts: any(key in fields for fields in field_metadata(facts.metadata) for key in keys)


def field_metadata(metadata: Metadata) -> Iterator[Mapping[str, Any]]:
    """The metadata of every field of the schema, including nested fields."""
    try:
        pending: list[Any] = [json.loads(metadata.schema_string)] if metadata.schema_string else []
    except (ValueError, RecursionError):
        return  # the error is reported where the schema itself is read
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            if isinstance(node.get("metadata"), dict):
                yield node["metadata"]
            pending.extend(value for key, value in node.items() if key != "metadata")
        elif isinstance(node, list):
            pending.extend(node)


def _has_type(name: str) -> ActiveProbe:
    # The name of a type can also be a column's name or comment; then the table counts as using the type.
    return lambda facts: f'"{name}"' in facts.metadata.schema_string


def _column_mapping(facts: TableFacts) -> bool:
    return facts.metadata.configuration.get("delta.columnMapping.mode", "none").strip().lower() != "none"


def _constraints(facts: TableFacts) -> bool:
    return any(key.lower().startswith("delta.constraints.") for key in facts.metadata.configuration)


def _deletion_vectors(facts: TableFacts) -> bool:
    return facts.has_deletion_vectors or _enabled("delta.enableDeletionVectors")(facts)


def _stored_deletion_vectors(facts: TableFacts) -> bool:
    return facts.has_deletion_vectors


def _v2_policy(facts: TableFacts) -> bool:
    policy = facts.metadata.configuration.get("delta.checkpointPolicy", "classic")
    return facts.has_v2_checkpoint or policy.strip().lower() == "v2"


READ_PROBES: dict[str, ActiveProbe] = {
    # Readers need fewer of these features than writers do.
    "deletionVectors": _stored_deletion_vectors,
    "v2Checkpoint": lambda facts: facts.has_v2_checkpoint,
    "typeWidening": _column_metadata("delta.typeChanges"),
    "typeWidening-preview": _column_metadata("delta.typeChanges"),
}

_DOMAINS = frozenset({"domainMetadata"})

_ALL = (
    TableFeature(name="appendOnly", legacy_writer_version=2, writable_by=ALL_WRITER_KINDS),
    TableFeature(name="invariants", legacy_writer_version=2, writable_by=ALL_WRITER_KINDS),
    TableFeature(
        name="checkConstraints", legacy_writer_version=3, writable_by=ALL_WRITER_KINDS, active=_constraints
    ),
    # Checkpoints contain no change data, and a vacuum does not touch its directory.
    TableFeature(
        name="changeDataFeed",
        legacy_writer_version=4,
        writable_by=ALL_WRITER_KINDS,
        active=_enabled("delta.enableChangeDataFeed"),
    ),
    # Only new rows need the expressions; operations that only change the log create no rows.
    TableFeature(
        name="generatedColumns",
        legacy_writer_version=4,
        writable_by=ALL_WRITER_KINDS,
        active=_column_metadata("delta.generationExpression"),
    ),
    # Partition values and statistics in the log have physical names, and are copied unchanged.
    TableFeature(
        name="columnMapping",
        in_reader=True,
        legacy_reader_version=2,
        legacy_writer_version=5,
        plain_rows=False,
        writable_by=ALL_WRITER_KINDS,
        active=_column_mapping,
    ),
    # The high-water mark is part of the metadata, which is copied unchanged.
    TableFeature(
        name="identityColumns",
        legacy_writer_version=6,
        writable_by=ALL_WRITER_KINDS,
        active=_column_metadata("delta.identity.start", "delta.identity.step"),
    ),
    TableFeature(name="timestampNtz", in_reader=True, writable_by=ALL_WRITER_KINDS),
    TableFeature(name="vacuumProtocolCheck", in_reader=True, writable_by=ALL_WRITER_KINDS),
    TableFeature(name="domainMetadata", writable_by=ALL_WRITER_KINDS),
    TableFeature(
        name="deletionVectors",
        in_reader=True,
        plain_rows=False,
        writable_by=ALL_WRITER_KINDS,
        active=_deletion_vectors,
    ),
    TableFeature(name="v2Checkpoint", in_reader=True, writable_by=ALL_WRITER_KINDS, active=_v2_policy),
    # Every commit with files assigns row ids, and operations that copy rows must preserve them.
    TableFeature(name="rowTracking", writable_by=ALL_WRITER_KINDS, requires=_DOMAINS),
    TableFeature(
        name="inCommitTimestamp",
        writable_by=ALL_WRITER_KINDS,
        active=_enabled("delta.enableInCommitTimestamps"),
    ),
    # A checkpoint contains no commit. A vacuum writes commits with the timestamp, and log cleanup reads it.
    TableFeature(
        name="inCommitTimestamp-preview",
        writable_by=frozenset({WriterKind.CHECKPOINT}),
        active=_enabled("delta.enableInCommitTimestamps-preview"),
    ),
    TableFeature(
        name="allowColumnDefaults",
        writable_by=ALL_WRITER_KINDS,
        active=_column_metadata("CURRENT_DEFAULT"),
    ),
    # Tags, clustering providers and the domain are copied; new files get statistics of these columns.
    TableFeature(name="clustering", writable_by=ALL_WRITER_KINDS, requires=_DOMAINS),
    # It only restricts log cleanup; checkpoint writers always know the protocol of their version.
    TableFeature(name="checkpointProtection", writable_by=ALL_WRITER_KINDS),
    # Every commit is checked against the rules, and a vacuum keeps the directory of Iceberg metadata.
    TableFeature(
        name="icebergCompatV1",
        writable_by=ALL_WRITER_KINDS,
        requires=frozenset({"columnMapping"}),
        active=_enabled("delta.enableIcebergCompatV1"),
    ),
    TableFeature(
        name="icebergCompatV2",
        writable_by=ALL_WRITER_KINDS,
        requires=frozenset({"columnMapping"}),
        active=_enabled("delta.enableIcebergCompatV2"),
    ),
    # It only affects the columns of new data files.
    TableFeature(name="materializePartitionColumns", writable_by=ALL_WRITER_KINDS),
    # Type changes are part of the schema, which is copied unchanged; statistics stay in the old type.
    TableFeature(
        name="typeWidening",
        in_reader=True,
        plain_rows=False,
        writable_by=ALL_WRITER_KINDS,
        active=_enabled("delta.enableTypeWidening"),
    ),
    TableFeature(
        name="typeWidening-preview",
        in_reader=True,
        plain_rows=False,
        writable_by=ALL_WRITER_KINDS,
        active=_enabled("delta.enableTypeWidening"),
    ),
    # New files have unshredded values; operations that copy rows reassemble shredded values of older files.
    *(
        TableFeature(
            name=name,
            in_reader=True,
            plain_rows=False,
            writable_by=ALL_WRITER_KINDS,
            active=_has_type("variant"),
        )
        for name in ("variantType", "variantType-preview")
    ),
    *(
        TableFeature(
            name=name,
            in_reader=True,
            plain_rows=False,
            writable_by=LOG_AND_RESTORE,
            active=_has_type("variant"),
        )
        for name in ("variantShredding", "variantShredding-preview")
    ),
)

FEATURES: Mapping[str, TableFeature] = {feature.name: feature for feature in _ALL}
"""Every known feature, by name."""


def reader_features(protocol: Protocol) -> frozenset[str]:
    """The features that a reader of the table must support."""
    if protocol.min_reader_version >= 3:
        return protocol.reader_features or frozenset()
    return frozenset(
        feature.name
        for feature in _ALL
        if feature.legacy_reader_version is not None
        and feature.legacy_reader_version <= protocol.min_reader_version
    )


def writer_features(protocol: Protocol) -> frozenset[str]:
    """The features that a writer of the table must support."""
    if protocol.min_writer_version >= 7:
        return protocol.writer_features or frozenset()
    return frozenset(
        feature.name
        for feature in _ALL
        if feature.legacy_writer_version is not None
        and feature.legacy_writer_version <= protocol.min_writer_version
    )
