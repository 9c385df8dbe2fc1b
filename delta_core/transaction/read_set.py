"""Read sets and commit footprints: the input of the conflict rules.

The check whether a file may hold rows that match a predicate is conservative: it rules a file out only when
the partition values or the statistics prove that no row matches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from delta_core.actions import Action, AddFile, DomainMetadata, Metadata, Protocol, RemoveFile, SetTransaction
from delta_core.actions.arrow_schema import STRING_MAP
from delta_core.errors import DeltaError
from delta_core.expressions.ast import Expression
from delta_core.scan.data_skipping import files_may_match
from delta_core.schema.column_mapping import ColumnMapping
from delta_core.schema.json import schema_from_json
from delta_core.schema.types import StructType
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.uri import canonical_log_path
from delta_core.table_features.table_properties import TableProperties
from delta_core.transaction.final_actions import definition_after
from delta_core.transaction.isolation import IsolationLevel

FileMatcher = Callable[[Sequence[AddFile], Expression], AddFile | None]
"""Returns the first file that may hold a row for which the predicate is true, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSet:
    """The rows and files that a transaction's outcome depends on.

    Attributes:
        whole_table: every row was read, or the outcome depends on the absence of other rows.
        predicates: rows that match any of these predicates were read.
        files: keys (`canonical_log_path`) of the files whose rows were read. None when the caller named no
            files; then only the predicates determine which files were read.
    """

    whole_table: bool = False
    predicates: tuple[Expression, ...] = ()
    files: frozenset[str] | None = None

    @property
    def is_empty(self) -> bool:
        """True when nothing was read."""
        return not self.whole_table and not self.predicates and not self.files


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFootprint:
    """A transaction as the conflict rules see it.

    Attributes:
        reads: the read set.
        removed_files: keys (`canonical_log_path`) of the files that the transaction removes.
        added_files: keys of the files that the transaction adds.
        metadata: the metadata that the transaction sets; None when it sets none.
        app_ids: the application ids whose versions the transaction sets.
        domains: metadata domains that the transaction sets, without those that a rebase hook merges.
        isolation: the isolation level of the transaction.
        base_metadata: the metadata of the version read; None for a table that is created.
        matcher: finds files that may match a predicate.
        reuses_files: the transaction adds data files that it did not write. Possibly no version refers to
            them any longer.
        oldest_file_ms: when the oldest added file was written, since a vacuum may delete it as an orphan
            file. Files that the transaction also removes do not count. A deletion vector file counts as
            written at `verified_at_ms`. None when no file counts.
    """

    reads: ReadSet
    removed_files: frozenset[str]
    added_files: frozenset[str]
    metadata: Metadata | None
    app_ids: frozenset[str]
    domains: frozenset[str]
    isolation: IsolationLevel
    base_metadata: Metadata | None
    matcher: FileMatcher
    reuses_files: bool = False
    oldest_file_ms: int | None = None

    @classmethod
    def of(
        cls,
        actions: Sequence[Action],
        *,
        reads: ReadSet,
        isolation: IsolationLevel,
        base_metadata: Metadata | None,
        matcher: FileMatcher,
        reuses_files: bool = False,
        rebased_domains: frozenset[str] = frozenset(),
        verified_at_ms: int | None = None,
    ) -> CommitFootprint:
        """The footprint of staged actions. `rebased_domains` are the domains that rebase hooks merge.

        The actions record when a data file was written, but not when a deletion vector file was. It was
        written after `verified_at_ms`, when the table was read.
        """
        removed = frozenset(canonical_log_path(a.path) for a in actions if isinstance(a, RemoveFile))
        written_ms = [
            a.modification_time_ms
            for a in actions
            if isinstance(a, AddFile) and not (removed and canonical_log_path(a.path) in removed)
        ]
        if verified_at_ms is not None and any(
            isinstance(a, AddFile) and _has_deletion_vector_file(a) for a in actions
        ):
            written_ms.append(verified_at_ms)
        return cls(
            reads=reads,
            removed_files=removed,
            added_files=frozenset(canonical_log_path(a.path) for a in actions if isinstance(a, AddFile)),
            metadata=next((a for a in actions if isinstance(a, Metadata)), None),
            app_ids=frozenset(a.app_id for a in actions if isinstance(a, SetTransaction)),
            domains=frozenset(a.domain for a in actions if isinstance(a, DomainMetadata)) - rebased_domains,
            isolation=isolation,
            base_metadata=base_metadata,
            matcher=matcher,
            reuses_files=reuses_files,
            oldest_file_ms=min(written_ms, default=None),
        )

    @property
    def is_blind_append(self) -> bool:
        """True when the transaction only adds files, and its outcome does not depend on rows of the table."""
        return bool(self.added_files) and not self.removed_files and self.reads.is_empty


def effective_isolation(actions: Sequence[Action], table_level: IsolationLevel) -> IsolationLevel:
    """The isolation level that the actions need.

    A commit that changes no data (a rearrangement, a statistics refresh) does not change the rows that
    readers see, so only write-write conflicts are checked for it.
    """
    files = [a for a in actions if isinstance(a, AddFile | RemoveFile)]
    changes_table = any(isinstance(a, Metadata | Protocol) for a in actions)
    if files and not changes_table and not any(a.data_change for a in files):
        return IsolationLevel.SNAPSHOT_ISOLATION
    return table_level


def file_matcher(
    schema: StructType, partition_columns: Sequence[str], *, mapping: ColumnMapping
) -> FileMatcher:
    """A matcher for the files of a table with this schema, partitioning and column mapping.

    Predicates must be resolved against the schema. A file whose values cannot be parsed counts as matching.
    """

    def first_match(files: Sequence[AddFile], predicate: Expression) -> AddFile | None:
        if not files:
            return None
        values = pa.table(
            {
                "partition_values": pa.array([list(f.partition_values.items()) for f in files], STRING_MAP),
                "stats": pa.array([f.stats for f in files], pa.string()),
            }
        )
        try:
            matches = files_may_match(values, predicate, schema, partition_columns, mapping=mapping)
        except DeltaError:
            return files[0]
        return next((file for file, match in zip(files, matches, strict=True) if match), None)

    return first_match


def footprint_of(
    actions: Sequence[Action],
    *,
    base: Snapshot | None,
    reads: ReadSet,
    isolation: IsolationLevel | None,
    reuses_files: bool,
    rebased_domains: frozenset[str],
    verified_at_ms: int,
) -> CommitFootprint:
    """The footprint that the conflict rules compare with winning commits.

    Args:
        actions: the actions of the commit, as returned by `final_actions`.
        base: the table before the commit; None for a table that is created.
        reads: the read set that the actions depend on.
        isolation: overrides the table's level (`delta.isolationLevel`).
        reuses_files, rebased_domains, verified_at_ms: see `CommitFootprint`.
    """
    level = isolation
    if level is None:
        properties = TableProperties.of(definition_after(base, actions).metadata.configuration)
        level = IsolationLevel(str(properties.isolation_level))
    return CommitFootprint.of(
        actions,
        reads=reads,
        isolation=effective_isolation(actions, level),
        base_metadata=None if base is None else base.metadata,
        matcher=_matcher(base, actions),
        reuses_files=reuses_files,
        rebased_domains=rebased_domains,
        verified_at_ms=verified_at_ms,
    )


def _has_deletion_vector_file(add: AddFile) -> bool:
    return add.deletion_vector is not None and add.deletion_vector.storage_type != "i"


def _matcher(base: Snapshot | None, actions: Sequence[Action]) -> FileMatcher:
    if base is not None:
        return file_matcher(base.schema, base.partition_columns, mapping=base.column_mapping)
    created = definition_after(base, actions).metadata
    return file_matcher(
        schema_from_json(created.schema_string),
        created.partition_columns,
        mapping=ColumnMapping.of(created.configuration),
    )
