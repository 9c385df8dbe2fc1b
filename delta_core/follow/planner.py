"""Planning the batches of a stream, with the meaning of delta-spark's streaming source.

A stream starts with the rows of a snapshot, file by file in the order of their age, or with a commit. Then it
reads the files that each commit adds. Commits that only rearrange rows (`dataChange` is false) have none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.actions import DeletionVectorDescriptor
from delta_core.arguments import epoch_ms
from delta_core.deletion_vectors.row_choice import RowChoice
from delta_core.errors import (
    DeltaError,
    StreamDataLossError,
    StreamPositionError,
    StreamTableReplacedError,
    VersionNotFoundError,
)
from delta_core.expressions.ast import Expression
from delta_core.follow.batch import StreamBatch, StreamFile
from delta_core.follow.commit_files import CommitFiles
from delta_core.follow.log_tail import LogTail
from delta_core.follow.options import LATEST, UNLIMITED, Admission, BatchLimits, FollowOptions
from delta_core.follow.position import BASE_INDEX, StreamPosition
from delta_core.follow.schema_change import StreamDefinition
from delta_core.follow.stream_rows import StreamRows
from delta_core.scan.commit_changes import CHANGE_TYPE, stamp
from delta_core.snapshot.commit_time import first_version_since
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import LogStore

_SNAPSHOT_COLUMNS = ["path", "partition_values", "size_bytes", "modification_time_ms", "deletion_vector"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unit:
    """The files of one version.

    Attributes:
        version: the version.
        is_snapshot: whether they are all files of the version, or those of its commit.
        files_after: returns the files after an index.
        is_atomic: whether one batch must have all of them.
    """

    version: int
    is_snapshot: bool
    files_after: Callable[[int], Iterator[StreamFile]]
    is_atomic: bool = False


class BatchPlanner:
    """Plans the batches of one stream. It keeps the columns that the table had when it was created.

    Not safe for use by several threads at once.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        options: FollowOptions | None = None,
        *,
        columns: Sequence[str] | None = None,
        predicate: Expression | str | None = None,
        allowed_roots: Sequence[LogStore] = (),
    ) -> None:
        """Create the planner of a stream.

        Args:
            snapshot: the newest version of the table. Rows have its columns.
            options: what the stream reads; None for the defaults.
            columns, predicate, allowed_roots: see `StreamRows.of`.

        Raises:
            DeltaError: see `StreamRows.of`.
        """
        self._snapshot = snapshot
        self._options = options or FollowOptions()
        self._store = snapshot.store
        self._rows = StreamRows.of(
            snapshot,
            change_feed=self._options.change_feed,
            columns=columns,
            predicate=predicate,
            allowed_roots=allowed_roots,
        )
        self._definition = StreamDefinition.of(snapshot)
        self._tail = LogTail(snapshot, fail_on_data_loss=self._options.fail_on_data_loss)
        self._commits = CommitFiles(snapshot.store, self._definition, self._options)
        self._is_checked = False
        self._initial: tuple[int, pa.Table, int] | None = None
        self._planned: StreamBatch | None = None

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows."""
        return self._rows.schema

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot with the columns."""
        return self._snapshot

    @property
    def options(self) -> FollowOptions:
        """The options of the stream."""
        return self._options

    def start(self) -> StreamPosition:
        """The position at which a new stream starts, by its options.

        Requests: none for a snapshot, one listing for LATEST and for a version, and those of
        `first_version_since` for a time.

        Raises:
            VersionNotFoundError: the starting version or a version for the time does not exist.
        """
        starting, at_ms = self._options.starting_version, epoch_ms(self._options.starting_timestamp, up=True)
        if starting is None and at_ms is None:
            return self._at(self._snapshot.version, is_initial_snapshot=True)
        if starting == LATEST:
            return self._at(self._tail.newest_version(self._snapshot.version + 1) + 1)
        if at_ms is not None:
            return self._at(first_version_since(self._store, at_ms))
        assert isinstance(starting, int)  # FollowOptions has checked it
        newest = self._snapshot.refresh().version
        if starting > newest:
            raise VersionNotFoundError(
                f"A stream cannot start at version {starting} of {self._store.uri!r}.",
                cause=f"The newest version is {newest}.",
                fix="Choose a version of the table's history, or 'latest'.",
            )
        return self._at(starting)

    def end(self, position: StreamPosition) -> StreamPosition:
        """The position after everything that is available now. One listing.

        Raises:
            DeltaError: see `plan_batch`.
        """
        self._require_own(position)
        first = position.version + 1 if position.is_initial_snapshot else position.version
        return self._at(self._tail.newest_version(first) + 1)

    def plan_batch(
        self,
        position: StreamPosition,
        limits: BatchLimits | None = None,
        *,
        until: StreamPosition | None = None,
    ) -> StreamBatch:
        """The next batch after a position. It has no files if there is nothing new.

        A batch ends before a commit that cannot be read. The next call then raises the error.

        Requests: one listing, and one for each commit. Without new commits the listing is the only request.
        The first call also opens the version of an older position, and the first snapshot.

        Args:
            position: a position of this stream.
            limits: how much the batch has at most; None for the default.
            until: a position to stop at, as `end` returns it.

        Raises:
            TableChangedError: a commit removes or changes rows, and no option determines how to read that;
                or the change feed was not enabled.
            StreamRestartRequiredError, StreamSchemaChangedError: the table's columns changed.
            StreamTableReplacedError, StreamPositionError: the position is that of another table.
            StreamDataLossError: the log no longer has a commit or a snapshot.
        """
        self._require_own(position)
        batch = self._plan(position, limits or BatchLimits(), until=until, stops_early=True)
        self._planned = batch
        return batch

    def between(self, start: StreamPosition, end: StreamPosition) -> StreamBatch:
        """The batch between two positions, as it was planned before. Requests are those of `plan_batch`.

        The last planned batch is kept, so that it needs no request.

        Raises:
            DeltaError: see `plan_batch`.
        """
        planned = self._planned
        if planned is not None and (planned.start, planned.position) == (start, end):
            return planned
        self._require_own(start)
        self._require_own(end)
        batch = self._plan(start, UNLIMITED, until=end, stops_early=False)
        if batch.position != end and self._options.fail_on_data_loss:
            raise StreamDataLossError(
                f"A batch of a stream of {self._store.uri!r} cannot be read again.",
                cause=f"It ends at version {end.version}, and the log can be read up to version "
                f"{batch.position.version}.",
                fix="Start a new stream, with another position or checkpoint.",
            )
        return StreamBatch(start=start, position=end, files=batch.files, _rows=self._rows)

    # ------------------------------------------------------------ one batch

    def _plan(
        self,
        start: StreamPosition,
        limits: BatchLimits,
        *,
        until: StreamPosition | None,
        stops_early: bool,
    ) -> StreamBatch:
        admission, files, position = Admission(limits), list[StreamFile](), start
        units = self._units(start, until)
        while admission.has_capacity:
            try:
                unit = next(units, None)
            except DeltaError:
                if position == start or not stops_early:
                    raise
                break
            if unit is None:
                break
            found = unit.files_after(self._read_up_to(start, unit))
            if until is not None:
                found = _up_to(found, unit, until)
            position, is_complete = self._admit(unit, found, admission, files, position, until)
            if not is_complete:
                break
        return StreamBatch(start=start, position=position, files=tuple(files), _rows=self._rows)

    def _admit(
        self,
        unit: _Unit,
        found: Iterator[StreamFile],
        admission: Admission,
        files: list[StreamFile],
        position: StreamPosition,
        until: StreamPosition | None,
    ) -> tuple[StreamPosition, bool]:
        """The position after the admitted files of a version, and whether all of them were admitted."""
        if unit.is_atomic:
            together = list(found)
            if together and not admission.admit_together(
                len(together), sum(file.size_bytes or 0 for file in together)
            ):
                return position, False
            files += together
        else:
            for file in found:
                if not admission.admit(file.size_bytes or 0):
                    return position, False
                files.append(file)
                position = self._at(unit.version, file.index, is_initial_snapshot=unit.is_snapshot)
        if until is not None and until.version == unit.version and until.index != BASE_INDEX:
            return until, True
        return self._at(unit.version + 1), True

    def _units(self, start: StreamPosition, until: StreamPosition | None) -> Iterator[_Unit]:
        self._check_start(start)
        first = start.version
        if start.is_initial_snapshot:
            if until is None or until.order > start.order:
                yield self._snapshot_unit(start.version)
            first += 1
        else:
            self._initial = None
        before = None if until is None else until.version + (until.index != BASE_INDEX)
        if until is not None and until.is_initial_snapshot:
            before = until.version
        if before is not None and first >= before:
            return
        for file, commit in self._tail.commits(first, before=before):
            found = self._commits.of(file, commit)
            yield _Unit(
                version=file.version,
                is_snapshot=False,
                files_after=partial(_files_after, found.files),
                is_atomic=found.is_atomic,
            )

    @staticmethod
    def _read_up_to(start: StreamPosition, unit: _Unit) -> int:
        is_same = (start.version, start.is_initial_snapshot) == (unit.version, unit.is_snapshot)
        return start.index if is_same else BASE_INDEX

    def _snapshot_unit(self, version: int) -> _Unit:
        if self._initial is None or self._initial[0] != version:
            snapshot = self._snapshot_at(version)
            self._definition.require_compatible(version, snapshot.metadata)
            columns = [*_SNAPSHOT_COLUMNS, *(["stats"] if snapshot.files.has_deletion_vectors else [])]
            files = snapshot.files.to_table(columns)
            order = pc.sort_indices(
                files.select(["modification_time_ms", "path"]),
                sort_keys=[("modification_time_ms", "ascending"), ("path", "ascending")],
            )
            time_ms = snapshot.timestamp_ms if self._options.change_feed else 0
            self._initial = (version, files.take(order), time_ms)
        return _Unit(version=version, is_snapshot=True, files_after=self._files_of_snapshot)

    def _files_of_snapshot(self, index: int) -> Iterator[StreamFile]:
        assert self._initial is not None
        version, table, time_ms = self._initial
        added = {CHANGE_TYPE: "insert", **stamp(version, time_ms)} if self._options.change_feed else {}
        for batch in table.slice(index + 1).to_batches(max_chunksize=1000):
            for row in batch.to_pylist():
                index += 1
                vector = row["deletion_vector"]
                descriptor = None if vector is None else DeletionVectorDescriptor(**vector)
                yield StreamFile(
                    version=version,
                    index=index,
                    path=row["path"],
                    values={**dict(row["partition_values"] or ()), **added},
                    rows=RowChoice.left_by(descriptor),
                    stats=None if vector is None else row.get("stats"),
                    size_bytes=row["size_bytes"],
                )

    def _snapshot_at(self, version: int) -> Snapshot:
        if version == self._snapshot.version:
            return self._snapshot
        try:
            return Snapshot.load(self._store, version=version, clock=self._snapshot.clock)
        except VersionNotFoundError as error:
            raise StreamDataLossError(
                f"A stream cannot read the rows of version {version} of {self._store.uri!r}.",
                cause="Log cleanup deleted the files from which the version is read.",
                fix="Start a new stream, with another position or checkpoint.",
            ) from error

    # ------------------------------------------------------------ positions

    def _at(
        self, version: int, index: int = BASE_INDEX, *, is_initial_snapshot: bool = False
    ) -> StreamPosition:
        return StreamPosition(
            table_id=self._snapshot.metadata.id,
            version=version,
            index=index,
            is_initial_snapshot=is_initial_snapshot,
        )

    def _require_own(self, position: StreamPosition) -> None:
        if not isinstance(position, StreamPosition):
            raise StreamPositionError(
                f"{position!r} is not the position of a stream.",
                fix="Pass a StreamPosition; StreamPosition.from_json parses its JSON form.",
            )
        if position.table_id != self._snapshot.metadata.id:
            raise StreamTableReplacedError(
                f"The position is not that of a stream of {self._store.uri!r}.",
                cause=f"It is for the table {position.table_id}, and the id of this table is "
                f"{self._snapshot.metadata.id}. The table may have been replaced.",
                fix="Start a new stream, with another position or checkpoint.",
            )

    def _check_start(self, position: StreamPosition) -> None:
        """Check the columns at the first position that is read, as later commits need not repeat them."""
        if self._is_checked:
            return
        if position.version < self._snapshot.version:
            try:
                then = Snapshot.load(self._store, version=position.version, clock=self._snapshot.clock)
            except VersionNotFoundError:
                pass  # the commits that are still in the log are checked one by one
            else:
                self._definition.require_compatible(position.version, then.metadata)
                self._commits.start_with(then.metadata)
        self._is_checked = True


def _files_after(files: Sequence[StreamFile], index: int) -> Iterator[StreamFile]:
    return iter(files[index + 1 :])


def _up_to(found: Iterator[StreamFile], unit: _Unit, until: StreamPosition) -> Iterator[StreamFile]:
    if (until.version, until.is_initial_snapshot) != (unit.version, unit.is_snapshot):
        return found
    return (file for file in found if file.index <= until.index)
