"""A table at one version.

Opening reads the commits after the newest checkpoint and that checkpoint's protocol and metadata; the
list of files is built when it is first asked for. A snapshot never changes: `refresh` makes a new one,
which shares the columns that are still good.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from delta_core.actions import DomainMetadata, Metadata, Protocol, SetTransaction
from delta_core.actions.arrow_schema import TOMBSTONE_SCHEMA
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import (
    ConfigurationError,
    CorruptLogError,
    DeltaWarning,
    InvalidTableError,
    ObjectNotFoundError,
)
from delta_core.log.checkpoint_reader import CheckpointReader
from delta_core.log.commit_reader import CommitData, read_commits
from delta_core.log.listing import CommitFile, list_log
from delta_core.log.log_segment import LogSegment, build_segment, extend_segment
from delta_core.replay.live_files import LiveFiles
from delta_core.replay.state import (
    ReplayState,
    build_state,
    checkpoint_protocol_and_metadata,
    checkpoint_transactions,
)
from delta_core.replay.tail import Tail, replay_tail
from delta_core.schema.column_mapping import ColumnMapping
from delta_core.schema.json import schema_from_json
from delta_core.schema.types import StructType
from delta_core.snapshot.commit_time import commit_timestamp_ms, version_at_timestamp, whole_number
from delta_core.storage.log_store import LogStore
from delta_core.table_features.support import (
    require_log_support,
    require_read_support,
    require_write_support,
)
from delta_core.table_features.table_properties import TableProperties

_LOADS = 3


class Snapshot:
    """A table at one version; make one with `Snapshot.load`."""

    def __init__(
        self,
        *,
        store: LogStore,
        clock: Clock,
        segment: LogSegment,
        commits: tuple[CommitData, ...],
        checkpoint: CheckpointReader | None,
        protocol: Protocol,
        metadata: Metadata,
        state: ReplayState | None = None,
        unusable: frozenset[tuple[str, ...]] = frozenset(),
    ) -> None:
        """Put the parts together; callers use `load`."""
        self._store = store
        self._clock = clock
        self._segment = segment
        self._commits = commits
        self._checkpoint = checkpoint
        self._protocol = protocol
        self._metadata = metadata
        self._loaded = state
        self._replayed_tail: Tail | None = None
        self._unusable = unusable
        self._lock = threading.RLock()

    # ------------------------------------------------------------ making one

    @classmethod
    def load(
        cls,
        store: LogStore,
        *,
        version: int | None = None,
        timestamp_ms: int | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> Snapshot:
        """The table at its latest version, at a version, or as it was at a time.

        A damaged checkpoint is passed over with a DeltaWarning as long as the log reaches back far
        enough without it. Requests: the hint, one listing, the checkpoint's footer, each later commit.

        Args:
            store: the table's store.
            version: the version; excludes `timestamp_ms`.
            timestamp_ms: epoch milliseconds; the latest version that is not younger.
            clock: time.

        Raises:
            TableNotFoundError: no table there.
            VersionNotFoundError: no such version, or none for the time.
            LogGapError: a commit is missing.
            CorruptLogError: the log is damaged.
            ConfigurationError: both were given, or one that is no whole number.
        """
        if version is not None and timestamp_ms is not None:
            raise ConfigurationError(
                "A version and a timestamp were given.", fix="Pass one of the two, not both."
            )
        version = whole_number(version, what="version", fix="Pass a whole number such as 3.")
        timestamp_ms = whole_number(
            timestamp_ms, what="timestamp_ms", fix="Pass whole milliseconds since 1970 (UTC)."
        )
        if timestamp_ms is not None:
            version = version_at_timestamp(store, timestamp_ms)
        return cls._load(store, version=version, clock=clock, unusable=frozenset())

    @classmethod
    def _load(
        cls, store: LogStore, *, version: int | None, clock: Clock, unusable: frozenset[tuple[str, ...]]
    ) -> Snapshot:
        damage: CorruptLogError | None = None
        vanished: ObjectNotFoundError | None = None
        attempts = 0
        while attempts < _LOADS:
            try:
                segment = build_segment(store, version=version, unusable=unusable, clock=clock)
            except InvalidTableError as error:
                if damage is not None:
                    raise damage from error
                raise
            try:
                commits = read_commits(store, segment.commits)
                checkpoint = None
                base: tuple[Protocol | None, Metadata | None] = (None, None)
                if segment.checkpoint is not None:
                    try:
                        checkpoint = CheckpointReader.open(store, segment.checkpoint)
                        base = checkpoint_protocol_and_metadata(checkpoint)
                        _check_complete(segment, base)
                    except CorruptLogError as error:
                        damage, unusable = error, unusable | {segment.checkpoint.names}
                        _warn_damaged(error)
                        continue
            except ObjectNotFoundError as error:
                # Log cleanup took the file after it was listed.
                vanished, attempts = error, attempts + 1
                continue
            protocol, metadata = _latest(commits, base)
            if protocol is None or metadata is None:
                name = "protocol" if protocol is None else "metaData"
                raise CorruptLogError(
                    f"Version {segment.version} of {store.uri!r} has no {name!r} action.",
                    cause="The log is incomplete.",
                    fix="Restore the log from a backup.",
                )
            return cls(
                store=store,
                clock=clock,
                segment=segment,
                commits=commits,
                checkpoint=checkpoint,
                protocol=protocol,
                metadata=metadata,
                unusable=unusable,
            )
        assert vanished is not None
        raise vanished

    @staticmethod
    def exists(store: LogStore) -> bool:
        """Whether there is a Delta table at the store's root. One listing."""
        return not list_log(store).is_empty

    def refresh(self) -> Snapshot:
        """The latest version; this same snapshot when nothing was committed since.

        Reads only newer commits. One listing and one request for each.

        Raises:
            CorruptLogError: a newer commit is damaged.
            TableNotFoundError: the table is gone.
        """
        segment = extend_segment(self._store, self._segment)
        if segment is self._segment:
            return self
        if segment is None:
            return Snapshot.load(self._store, clock=self._clock)
        try:
            newer = read_commits(self._store, segment.commits[len(self._segment.commits) :])
        except ObjectNotFoundError:
            return Snapshot.load(self._store, clock=self._clock)
        return self._extended(segment, newer)

    def advance(self, commits: Sequence[CommitData]) -> Snapshot:
        """The version after some commits whose bytes the caller has just read or written.

        Lists nothing and reads no commit again. One request for each commit: its time.

        Args:
            commits: those that follow this version, without a gap.

        Raises:
            ObjectNotFoundError: a commit is gone.
        """
        if not commits:
            return self
        assert [c.version for c in commits] == list(range(self.version + 1, self.version + 1 + len(commits)))
        files = tuple(CommitFile(version=c.version, info=self._store.head(c.path)) for c in commits)
        segment = replace(
            self._segment,
            version=files[-1].version,
            commits=self._segment.commits + files,
            version_file=files[-1].info,
        )
        return self._extended(segment, tuple(commits))

    def _extended(self, segment: LogSegment, newer: tuple[CommitData, ...]) -> Snapshot:
        protocol, metadata = _latest(newer, (self._protocol, self._metadata))
        with self._lock:
            state, commits = self._loaded, self._commits
        assert protocol is not None
        assert metadata is not None
        return Snapshot(
            store=self._store,
            clock=self._clock,
            segment=segment,
            # Commits that are part of a state need no second look, and their bytes no memory.
            commits=(*commits, *newer) if state is None else newer,
            checkpoint=self._checkpoint,
            protocol=protocol,
            metadata=metadata,
            state=None if state is None else state.apply(replay_tail(newer)),
            unusable=self._unusable,
        )

    # ------------------------------------------------------------ what it is

    def __repr__(self) -> str:
        return f"Snapshot({self._store.uri!r}, version={self.version})"

    @property
    def store(self) -> LogStore:
        """The table's store."""
        return self._store

    @property
    def clock(self) -> Clock:
        """The clock the snapshot was made with."""
        return self._clock

    @property
    def segment(self) -> LogSegment:
        """The log files that make up the version."""
        return self._segment

    @property
    def version(self) -> int:
        """The version."""
        return self._segment.version

    @property
    def protocol(self) -> Protocol:
        """The protocol at this version."""
        return self._protocol

    @property
    def metadata(self) -> Metadata:
        """The metadata at this version."""
        return self._metadata

    @cached_property
    def schema(self) -> StructType:
        """The table's schema. Raises SchemaError or CorruptLogError when it cannot be read."""
        if not self._metadata.schema_string:
            raise CorruptLogError(
                f"Version {self.version} of {self._store.uri!r} has no schema.",
                cause="Its metaData action has no schemaString.",
                fix="Read a later version.",
            )
        return schema_from_json(self._metadata.schema_string)

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Names of the partition columns, in order."""
        return self._metadata.partition_columns

    @cached_property
    def column_mapping(self) -> ColumnMapping:
        """What columns are called in the data files. Raises InvalidTableError for an unknown mode."""
        return ColumnMapping.of(self._metadata.configuration)

    @cached_property
    def properties(self) -> TableProperties:
        """The table properties."""
        return TableProperties.of(self._metadata.configuration)

    @cached_property
    def timestamp_ms(self) -> int:
        """When the version was committed, in epoch milliseconds. At most one request."""
        return commit_timestamp_ms(self._store, self._segment, self._metadata, self._commits)

    # ------------------------------------------------------------ what it holds

    @property
    def transactions(self) -> Mapping[str, SetTransaction]:
        """Application transactions by application id. Reads no files from the checkpoint."""
        with self._lock:
            if self._loaded is not None:
                return self._loaded.transactions
            return {**checkpoint_transactions(self._checkpoint), **self._tail().transactions}

    @property
    def domain_metadata(self) -> Mapping[str, DomainMetadata]:
        """Domain metadata by domain."""
        return self._state().domain_metadata

    @property
    def files(self) -> LiveFiles:
        """The live files. The first call reads the checkpoint's paths, partition values and sizes.

        Raises:
            UnsupportedTableFeatureError: the list of files could be wrong.
            CorruptLogError: the log is damaged and there is no way around the damage.
        """
        return self._state().files

    def tombstones(self, *, since_ms: int | None = None) -> pa.Table:
        """Removed files whose retention has not passed, as TOMBSTONE_SCHEMA.

        Args:
            since_ms: those removed at this time or later; None takes the table's retention
                (`delta.deletedFileRetentionDuration`) back from now.
        """
        if since_ms is None:
            since_ms = self._clock.now_ms() - self.properties.deleted_file_retention_ms
        batches = []
        for batch in self._state().tombstones.batches():
            # A remove without a time counts as removed at time 0.
            times = pc.fill_null(batch.column("deletion_timestamp_ms"), 0)
            kept = batch.filter(pc.greater_equal(times, since_ms))
            if kept.num_rows:
                batches.append(kept)
        return pa.Table.from_batches(batches, schema=TOMBSTONE_SCHEMA)

    # ------------------------------------------------------------ what may be done

    @property
    def has_v2_checkpoint(self) -> bool:
        """Whether the version is read from a V2 checkpoint."""
        return self._checkpoint is not None and self._checkpoint.is_v2

    def require_readable(self, *, operation: str = "read the table", through_scan: bool = False) -> None:
        """Refuse when rows could be misread. Loads the live files; no column of them that is empty.

        Args:
            operation: what was asked, for the message.
            through_scan: the rows will be read with the table's deletion vectors and column mapping. Who
                opens data files by themselves leaves it False.

        Raises:
            UnsupportedTableFeatureError: naming the features and the operation.
            CorruptLogError: a live file has a deletion vector, and the protocol does not list the feature.
        """
        require_read_support(
            self._protocol,
            self._metadata,
            has_deletion_vectors=self._may_have_deletion_vectors(),
            has_v2_checkpoint=self.has_v2_checkpoint,
            through_scan=through_scan,
            operation=operation,
        )
        if (
            "deletionVectors" not in (self._protocol.reader_features or ())
            and self.files.has_deletion_vectors
        ):
            raise CorruptLogError(
                f"Cannot {operation}: a live file of version {self.version} of {self._store.uri!r} has a "
                "deletion vector, and the protocol does not list the feature deletionVectors.",
                cause="Reading the file whole would bring deleted rows back.",
                fix="Restore the table, with the engine that wrote the vector, to a version before it.",
            )

    def require_writable(self, *, operation: str = "write to the table") -> None:
        """Refuse when a commit of ours could damage the table.

        Raises:
            UnsupportedTableFeatureError: naming the features and the operation.
        """
        require_write_support(
            self._protocol,
            self._metadata,
            has_deletion_vectors=self._may_have_deletion_vectors(),
            has_v2_checkpoint=self.has_v2_checkpoint,
            operation=operation,
        )

    def _may_have_deletion_vectors(self) -> bool:
        # Files need not be read where no commit and no checkpoint could have brought one.
        if "deletionVectors" not in (self._protocol.reader_features or ()):
            return False
        return self.files.has_deletion_vectors

    def _state(self) -> ReplayState:
        with self._lock:
            if self._loaded is None:
                require_log_support(self._protocol, operation="list the table's files")
                self._loaded = self._replay()
            return self._loaded

    def _tail(self) -> Tail:
        if self._replayed_tail is None:
            self._replayed_tail = replay_tail(self._commits)
        return self._replayed_tail

    def _replay(self) -> ReplayState:
        tail = self._tail()
        try:
            state = build_state(
                checkpoint=self._checkpoint, tail=tail, protocol=self._protocol, metadata=self._metadata
            )
        except CorruptLogError as error:
            assert self._segment.checkpoint is not None
            unusable = self._unusable | {self._segment.checkpoint.names}
            _warn_damaged(error)
            try:
                other = Snapshot._load(
                    self._store, version=self.version, clock=self._clock, unusable=unusable
                )
            except InvalidTableError:
                raise error from None
            return other._state()
        self._replayed_tail, self._commits = None, self._commits[-1:]
        return state


def _latest(
    commits: tuple[CommitData, ...], base: tuple[Protocol | None, Metadata | None]
) -> tuple[Protocol | None, Metadata | None]:
    """The newest protocol and metadata, looking backwards and no further than needed."""
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    for commit in reversed(commits):
        found = commit.protocol_and_metadata()
        protocol, metadata = protocol or found[0], metadata or found[1]
        if protocol is not None and metadata is not None:
            break
    return protocol or base[0], metadata or base[1]


def _check_complete(segment: LogSegment, base: tuple[Protocol | None, Metadata | None]) -> None:
    """Every checkpoint holds both (PROTOCOL.md, "Checkpoints"); one that does not cannot be trusted."""
    assert segment.checkpoint is not None
    if None in base:
        raise CorruptLogError(
            f"The checkpoint {segment.checkpoint.names[0]!r} is incomplete.",
            cause=f"It has no {'protocol' if base[0] is None else 'metaData'!r} action.",
            fix="Delete the checkpoint if the commits before it still exist.",
        )


def _warn_damaged(error: CorruptLogError) -> None:
    warnings.warn(f"{error} The checkpoint is passed over.", DeltaWarning, stacklevel=4)
