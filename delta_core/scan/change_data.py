"""The rows that changed between two versions (PROTOCOL.md, "Add CDC File", "Change Data Files").

The changes of a commit with change data files are the rows of these files. For any other commit the rows of
added files are inserts and the rows of removed files are deletes. Where a commit only replaced a file's
deletion vector, the rows that differ between the two deletion vectors changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import pyarrow as pa

from delta_core import expressions
from delta_core.actions import Metadata
from delta_core.arguments import whole_number
from delta_core.errors import ConfigurationError, TableChangedError, VersionNotFoundError
from delta_core.expressions.ast import TRUE, Expression
from delta_core.expressions.typing import resolve_predicate
from delta_core.log.listing import LogListing, list_log
from delta_core.scan.commit_changes import (
    CHANGE_COLUMNS,
    CHANGE_DATA_ENABLED,
    ChangedFile,
    CommitChanges,
    require_no_change_columns,
    stamp,
)
from delta_core.scan.file_readers import PastFileReaders
from delta_core.scan.record_batches import DEFAULT_BATCH_ROWS, FileReader
from delta_core.scan.table_definitions import TableDefinition, definition_after, require_compatible_definition
from delta_core.schema.column_mapping import ColumnMapping
from delta_core.schema.types import StructType
from delta_core.snapshot.commit_time import CommitTimes
from delta_core.snapshot.history import commit_actions
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess
from delta_core.storage.log_store import LogStore


class ChangeDataScan:
    """The changes from one version up to a snapshot's version, in the snapshot's schema.

    Nothing is read before iteration. Requests: one listing, one for each version, those of opening the first
    version, and the data files.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        *,
        starting_version: int,
        predicate: Expression | str | None = None,
        columns: Sequence[str] | None = None,
        batch_rows: int = DEFAULT_BATCH_ROWS,
        allowed_roots: Sequence[LogStore] = (),
    ) -> None:
        """Set up the scan.

        Args:
            snapshot: the last version to include; its schema is the schema of the rows.
            starting_version: the first version to include.
            predicate: Spark SQL or an expression on the table's columns and CHANGE_COLUMNS.
            columns: names in the order of the result; None is the table's columns and then CHANGE_COLUMNS.
            batch_rows: maximum number of rows per batch.
            allowed_roots: stores below whose roots absolute paths in the log are allowed.

        Raises:
            ConfigurationError: the first version is after the last one, or negative.
            SchemaError: the table has a column with the name of one of CHANGE_COLUMNS.
            ExpressionError: the predicate is invalid or does not fit the schema.
            SchemaError: a column does not exist.
            UnsupportedTableFeatureError: the table cannot be read.
        """
        first = whole_number(starting_version, what="first version", fix="Pass a whole number such as 3.")
        if first is None or not 0 <= first <= snapshot.version:
            raise ConfigurationError(
                f"The changes from version {starting_version} to {snapshot.version} cannot be read.",
                cause="The first version must be a number, at least 0 and not after the last one.",
                fix="Pass a range of versions in the order in which they were committed.",
            )
        snapshot.require_readable(operation="read change data", through_scan=True)
        require_no_change_columns(snapshot)
        self._snapshot = snapshot
        access = DataAccess(allowed_roots=tuple(allowed_roots), clock=snapshot.clock)
        self._starting_version = first
        schema = StructType((*snapshot.schema.fields, *CHANGE_COLUMNS))
        if isinstance(predicate, str):
            predicate = expressions.parse_predicate(predicate, schema)
        resolved = TRUE if predicate is None else resolve_predicate(predicate, schema)
        mapping = ColumnMapping(snapshot.column_mapping.mode, frozenset(f.name for f in CHANGE_COLUMNS))

        def reader(constant: Collection[str]) -> FileReader:
            # This closure must not refer to `self`: the reference cycle would keep the snapshot's memory
            # alive longer than the scan.
            # A version's number and time are constant within a file, like partition values.
            return FileReader(
                schema=schema,
                columns=columns,
                predicate=None if resolved == TRUE else resolved,
                partition_columns=tuple(constant),
                batch_rows=batch_rows,
                mapping=mapping,
                access=access,
            )

        self._readers = PastFileReaders(schema=schema, mapping=mapping, make=reader)
        # This call refuses columns that do not exist.
        self._arrow_schema = self._readers.of(()).arrow_schema

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows."""
        return self._arrow_schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The changes, version by version, in bounded memory.

        Raises:
            MissingDataFileError: vacuum has deleted a file.
            InvalidTableError: a file cannot be read.
            DeltaError: see `changed_files`.
        """
        for changed in self.changed_files():
            reader = self._readers.of(changed.values)
            yield from reader.read_chosen(self._snapshot.store, changed.path, changed.values, changed.rows)

    def changed_files(self) -> Iterator[ChangedFile]:
        """The files with changed rows, version by version. Reads commits, and no data file.

        Raises:
            TableChangedError: change data was not enabled for all of the versions, or the schema of one of
                them has a column that the last schema does not have.
            VersionNotFoundError: a commit is no longer in the log.
            CorruptLogError: a commit is damaged, or its timestamp is out of range.
        """
        times, changes = self._times, CommitChanges(self._snapshot.store)
        first = Snapshot.load(self._snapshot.store, version=self._starting_version)
        definition: TableDefinition = (first.protocol, first.metadata)
        self._require_changes(self._starting_version, definition)
        for version in range(self._starting_version, self._snapshot.version + 1):
            actions = commit_actions(self._snapshot.store, version)
            changed = definition_after(definition, actions)
            if changed is not definition:
                definition = changed
                self._require_changes(version, definition)
            stamped = stamp(version, times[version])
            # Files that the commit removed may have been partitioned by the earlier metadata.
            replaced = any(isinstance(action, Metadata) for action in actions)
            partitioned = replaced or bool(definition[1].partition_columns)
            for part in changes.files(version, actions, partitioned=partitioned):
                yield replace(part, values={**part.values, **stamped})

    def to_table(self) -> pa.Table:
        """The changes as one table; raises as `to_batches`."""
        return pa.Table.from_batches(list(self.to_batches()), schema=self.schema)

    # ------------------------------------------------------------ are the changes readable?

    def _require_changes(self, version: int, definition: TableDefinition) -> None:
        require_compatible_definition(
            self._snapshot, version, definition, through_scan=True, same_columns=True
        )
        if definition[1].configuration.get(CHANGE_DATA_ENABLED, "").strip().lower() != "true":
            raise TableChangedError(
                f"The changes of version {version} of {self._snapshot.store.uri!r} cannot be read.",
                cause=f"The table property {CHANGE_DATA_ENABLED} was not true then, so nothing was recorded.",
                fix="For an append-only table, use DeltaTable.appended_batches; otherwise choose versions "
                "during which the property was true, or compare the rows of the two versions.",
            )

    @cached_property
    def _times(self) -> Mapping[int, int]:
        listing = list_log(self._snapshot.store, from_version=0)
        times = CommitTimes(
            self._snapshot.store,
            LogListing(commits=listing.commits, checkpoints=listing.checkpoints),
            metadata=self._snapshot.metadata,
        )
        versions = range(self._starting_version, self._snapshot.version + 1)
        by_version = {
            file.version: times[at] for at, file in enumerate(times.files) if file.version in versions
        }
        missing = next((version for version in versions if version not in by_version), None)
        if missing is not None:
            raise VersionNotFoundError(
                f"The changes of version {missing} of {self._snapshot.store.uri!r} are not in the log.",
                cause="Log cleanup deleted the commit after a checkpoint.",
                fix="Read the whole table, and continue after the version that you read.",
            )
        return by_version
