"""The rows that changed between two versions (PROTOCOL.md, "Add CDC File", "Change Data Files").

A commit with change data files is told by these alone. Of any other commit the files that it added are
inserts and those that it removed deletes; where it only changed a file's deletion vector, the rows that
differ between the two vectors are.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from delta_core import expressions
from delta_core.actions import (
    Action,
    AddCdcFile,
    AddFile,
    DeletionVectorDescriptor,
    Metadata,
    RemoveFile,
)
from delta_core.deletion_vectors.reader import read_deletion_vector
from delta_core.errors import (
    ConfigurationError,
    CorruptLogError,
    SchemaError,
    TableChangedError,
    VersionNotFoundError,
)
from delta_core.expressions.ast import TRUE, Expression
from delta_core.expressions.typing import resolve_predicate
from delta_core.log.listing import LogListing, list_log
from delta_core.log.log_path import commit_path
from delta_core.replay.live_files import matching_rows, path_spellings
from delta_core.scan.past_files import PastFileReaders
from delta_core.scan.past_states import Rules, require_same_rules, rules_after
from delta_core.scan.record_batches import DEFAULT_BATCH_ROWS, FileReader, RowsOfFile
from delta_core.schema.column_mapping import ColumnMapping
from delta_core.schema.types import LONG, STRING, TIMESTAMP, StructField, StructType
from delta_core.snapshot.commit_time import CommitTimes, whole_number
from delta_core.snapshot.history import commit_actions
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import DataAccess
from delta_core.storage.log_store import LogStore
from delta_core.storage.uri import canonical_log_path

CHANGE_TYPE = "_change_type"
COMMIT_VERSION = "_commit_version"
COMMIT_TIMESTAMP = "_commit_timestamp"

CHANGE_COLUMNS = (
    StructField(name=CHANGE_TYPE, data_type=STRING),
    StructField(name=COMMIT_VERSION, data_type=LONG),
    StructField(name=COMMIT_TIMESTAMP, data_type=TIMESTAMP),
)
"""What a change says besides the row; after the table's columns."""

_ENABLED = "delta.enableChangeDataFeed"


class ChangeDataScan:
    """The changes from one version up to a snapshot's, with the snapshot's schema.

    Nothing is read until asked for. Requests of reading: one listing, one for each version,
    those of opening the first version, and the data files.
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
            snapshot: the last version that counts; its schema is that of the rows.
            starting_version: the first version that counts.
            predicate: Spark SQL text or an expression on the table's columns and CHANGE_COLUMNS.
            columns: names in the order wanted; None is the table's columns and then CHANGE_COLUMNS.
            batch_rows: at most so many rows per batch.
            allowed_roots: stores below whose roots absolute paths of the log may lead.

        Raises:
            ConfigurationError: the first version is after the last one, or negative.
            SchemaError: the table has a column that is called as one of CHANGE_COLUMNS.
            ExpressionError: the predicate is invalid or does not fit the schema.
            SchemaError: a column does not exist.
            UnsupportedTableFeatureError: the table cannot be read.
        """
        first = whole_number(starting_version, what="first version", fix="Pass a whole number such as 3.")
        if first is None or not 0 <= first <= snapshot.version:
            raise ConfigurationError(
                f"Changes from version {starting_version} to {snapshot.version} were asked for.",
                cause="The first version must be a number, at least 0 and not after the last one.",
                fix="Ask for a range of versions in the order in which they were committed.",
            )
        snapshot.require_readable(operation="read change data", through_scan=True)
        _require_no_change_columns(snapshot)
        self._snapshot = snapshot
        self._access = access = DataAccess(allowed_roots=tuple(allowed_roots), clock=snapshot.clock)
        self._starting_version = first
        self._previous: Snapshot | None = None
        schema = StructType((*snapshot.schema.fields, *CHANGE_COLUMNS))
        if isinstance(predicate, str):
            predicate = expressions.parse_predicate(predicate, schema)
        resolved = TRUE if predicate is None else resolve_predicate(predicate, schema)
        mapping = ColumnMapping(snapshot.column_mapping.mode, frozenset(f.name for f in CHANGE_COLUMNS))

        def reader(constant: Collection[str]) -> FileReader:
            # Not a word of `self` here: in a circle, what the snapshot holds would outlive the scan.
            # A version's number and time are the same for a whole file, as partition values are.
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
        # Here a column that does not exist is refused.
        self._arrow_schema = self._readers.of(()).arrow_schema

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows."""
        return self._arrow_schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The changes, version by version, in bounded memory.

        Raises:
            TableChangedError: change data was not enabled for all of the versions, or the schema of one
                has a column that the last one lacks.
            VersionNotFoundError: a commit is no longer in the log.
            MissingDataFileError: vacuum has taken a file.
            InvalidTableError: a file cannot be read.
            CorruptLogError: a commit is damaged, or its time is no date.
        """
        times = self._times
        first = Snapshot.load(self._snapshot.store, version=self._starting_version)
        rules: Rules = (first.protocol, first.metadata)
        self._require_changes(self._starting_version, rules)
        for version in range(self._starting_version, self._snapshot.version + 1):
            actions = commit_actions(self._snapshot.store, version)
            changed = rules_after(rules, actions)
            if changed is not rules:
                rules = changed
                self._require_changes(version, rules)
            stamp = {COMMIT_VERSION: str(version), COMMIT_TIMESTAMP: _date_string(version, times[version])}
            # What the commit removed may have been partitioned until then.
            replaced = any(isinstance(action, Metadata) for action in actions)
            partitioned = replaced or bool(rules[1].partition_columns)
            for part in self._parts(version, actions, partitioned=partitioned):
                yield from self._rows(part, stamp)

    def to_table(self) -> pa.Table:
        """The changes as one table; raises as `to_batches`."""
        return pa.Table.from_batches(list(self.to_batches()), schema=self.schema)

    # ------------------------------------------------------------ may the changes be told?

    def _require_changes(self, version: int, rules: Rules) -> None:
        require_same_rules(self._snapshot, version, rules, through_scan=True, same_columns=True)
        if rules[1].configuration.get(_ENABLED, "").strip().lower() != "true":
            raise TableChangedError(
                f"The changes of version {version} of {self._snapshot.store.uri!r} cannot be told.",
                cause=f"The table property {_ENABLED} was not true then: commits did not record changes.",
                fix="Of a table that is only appended to, read DeltaTable.appended_batches; of another, ask "
                "for versions during which it was true, or compare the two versions' rows.",
            )

    @cached_property
    def _times(self) -> Mapping[int, int]:
        listing = list_log(self._snapshot.store, from_version=0)
        times = CommitTimes(
            self._snapshot.store,
            LogListing(commits=listing.commits, checkpoints=listing.checkpoints),
            metadata=self._snapshot.metadata,
        )
        wanted = range(self._starting_version, self._snapshot.version + 1)
        found = {file.version: times[at] for at, file in enumerate(times.files) if file.version in wanted}
        missing = next((version for version in wanted if version not in found), None)
        if missing is not None:
            raise VersionNotFoundError(
                f"The changes of version {missing} of {self._snapshot.store.uri!r} are not in the log.",
                cause="Log cleanup has passed it, since a checkpoint holds what is live",
                fix="Read the whole table once; then go on from its version",
            )
        return found

    # ------------------------------------------------------------ what changed

    def _parts(self, version: int, actions: Sequence[Action], *, partitioned: bool) -> Iterator[_Part]:
        changes = [action for action in actions if isinstance(action, AddCdcFile)]
        if changes:
            for change in changes:
                yield _Part(path=change.path, partition_values=change.partition_values)
            return
        adds = {canonical_log_path(a.path): a for a in actions if isinstance(a, AddFile) and a.data_change}
        removes = [a for a in actions if isinstance(a, RemoveFile) and a.data_change]
        paired: set[str] = set()
        for remove in removes:
            key = canonical_log_path(remove.path)
            add = adds.get(key)
            values = self._partition_values(version, remove) if partitioned else remove.partition_values or {}
            if add is None:
                yield _Part(
                    path=remove.path,
                    partition_values=values,
                    change="delete",
                    deleted=self._rows_of(remove.deletion_vector),
                )
                continue
            paired.add(key)
            yield from self._differences(remove, add, values)
        for key, add in adds.items():
            if key not in paired:
                yield _Part(
                    path=add.path,
                    partition_values=add.partition_values,
                    change="insert",
                    deleted=self._rows_of(add.deletion_vector),
                )

    def _differences(
        self, remove: RemoveFile, add: AddFile, values: Mapping[str, str | None]
    ) -> Iterator[_Part]:
        """What changed when a file's deletion vector was replaced."""
        before, after = self._rows_of(remove.deletion_vector), self._rows_of(add.deletion_vector)

        def without(some: RowsOfFile | None, others: RowsOfFile | None) -> RowsOfFile:
            nothing = np.empty(0, np.int64)
            return lambda num_rows: np.setdiff1d(
                nothing if some is None else some(num_rows),
                nothing if others is None else others(num_rows),
                assume_unique=True,
            )

        for change, only in (("delete", without(after, before)), ("insert", without(before, after))):
            yield _Part(path=add.path, partition_values=values, change=change, only=only)

    def _rows_of(self, dv: DeletionVectorDescriptor | None) -> RowsOfFile | None:
        if dv is None:
            return None
        return lambda num_rows: read_deletion_vector(
            self._snapshot.store, dv, num_rows=num_rows, access=self._access
        )

    def _partition_values(self, version: int, remove: RemoveFile) -> Mapping[str, str | None]:
        """Those of a removed file; a `remove` need not say them, and then the version before does."""
        if remove.partition_values:
            return remove.partition_values
        if self._previous is None or self._previous.version != version - 1:
            # Kept: when one remove of a commit lacks its values, all of them do.
            self._previous = Snapshot.load(self._snapshot.store, version=version - 1)
        if not self._previous.partition_columns:
            return {}
        wanted = canonical_log_path(remove.path)
        for batch in self._previous.files.batches(["path", "partition_values"]):
            rows, _ = matching_rows(
                batch.column("path"), lambda: None, {(wanted, "")}, path_spellings([(wanted, "")])
            )
            if len(rows):
                return dict(batch.column("partition_values")[int(rows[0])].as_py() or ())
        raise TableChangedError(
            f"Version {version} of {self._snapshot.store.uri!r} does not say which partition it changed.",
            cause=f"The file {remove.path!r} has no partition values, and the version before lacks it",
            fix="Compare the rows of the two versions instead",
        )

    def _rows(self, part: _Part, stamp: Mapping[str, str]) -> Iterator[pa.RecordBatch]:
        place = self._access.locate(part.path, store=self._snapshot.store)
        values = {**part.partition_values, **stamp}
        if part.change is not None:
            values[CHANGE_TYPE] = part.change
        reader = self._readers.of(values)
        return reader.read(place.store, place.path, values, deleted=part.deleted, only=part.only)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Rows of one file that changed.

    Attributes:
        change: what happened to the rows; None where the file says so itself.
        deleted: gives the rows that do not count.
        only: gives the rows that count; None is all others.
    """

    path: str
    partition_values: Mapping[str, str | None]
    change: str | None = None
    deleted: RowsOfFile | None = None
    only: RowsOfFile | None = None


def _require_no_change_columns(snapshot: Snapshot) -> None:
    """Refuse a table with a column of such a name: nobody could tell its values from the change's."""
    reserved = {field.name.casefold() for field in CHANGE_COLUMNS}
    for field in snapshot.schema:
        if reserved.isdisjoint(
            (field.name.casefold(), snapshot.column_mapping.physical_name(field).casefold())
        ):
            continue
        raise SchemaError(
            f"The changes of {snapshot.store.uri!r} cannot be told.",
            cause=f"Its column {field.name} has a name that change data has for itself.",
            fix="Rewrite the table with another name for the column, or compare two versions' rows.",
        )


def _date_string(version: int, timestamp_ms: int) -> str:
    try:
        moment = dt.datetime(1970, 1, 1) + dt.timedelta(milliseconds=timestamp_ms)
    except OverflowError as error:
        raise CorruptLogError(
            f"The commit {commit_path(version)!r} has a time that is no date.",
            cause=f"It is {timestamp_ms} milliseconds after 1970.",
            fix="Ask for versions without it, or restore the log from a backup.",
        ) from error
    return moment.isoformat(sep=" ")
