"""A table at one version.

Opening a snapshot reads the newest checkpoint's protocol and metadata, and the commits after the checkpoint.
The live files are loaded when they are first needed. A snapshot never changes: `refresh` returns a new
snapshot, which shares unchanged columns with the old one.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NoReturn

import pyarrow as pa

from delta_core.actions import CommitInfo, DomainMetadata, Metadata, Protocol, SetTransaction
from delta_core.arguments import whole_number
from delta_core.boundary import public_class, refuse_pickle
from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import (
    ConfigurationError,
    CorruptLogError,
    DeltaWarning,
    InvalidTableError,
    ObjectNotFoundError,
)
from delta_core.forks import renew_lock_in_children
from delta_core.log.checksum import VersionChecksum, read_checksum
from delta_core.log.commit_reader import CommitData, read_commits
from delta_core.log.last_checkpoint import read_last_checkpoint
from delta_core.log.listing import LogListing, commit_files, list_log
from delta_core.log.log_segment import LogSegment, build_segment, extend_segment, segment_of_listing
from delta_core.replay.live_files import LiveFiles
from delta_core.replay.state import (
    PendingState,
    ReplayState,
    build_state,
    checkpoint_domains,
    checkpoint_transactions,
)
from delta_core.replay.tail import Tail, replay_tail
from delta_core.schema.column_mapping import ColumnMapping
from delta_core.schema.types import StructType
from delta_core.snapshot.commit_time import commit_timestamp_ms, read_commit_info, version_at_timestamp
from delta_core.snapshot.domains import latest_domain
from delta_core.snapshot.monotonic_versions import load_monotonic, note_version
from delta_core.snapshot.open_log import (
    OpenLog,
    UnusableFiles,
    compaction_names,
    contradicting_checksum,
    latest_protocol_and_metadata,
    open_log,
    warn_damaged,
)
from delta_core.snapshot.table_definition import TableDefinition, unlisted_deletion_vector
from delta_core.storage.log_store import LogStore
from delta_core.table_features.feature import WriterKind
from delta_core.table_features.support import require_log_support, require_read_support
from delta_core.table_features.table_properties import TableProperties


@public_class
class Snapshot:
    """A table at one version. Create one with `Snapshot.load`."""

    def __init__(
        self,
        *,
        store: LogStore,
        clock: Clock,
        segment: LogSegment,
        protocol: Protocol,
        metadata: Metadata,
        log: OpenLog | None = None,
        state: PendingState | None = None,
        checksum: VersionChecksum | None = None,
    ) -> None:
        """Create a snapshot from its parts; callers use `load`.

        Without `log`, protocol and metadata are those of `checksum`, and the log is opened on demand.
        """
        self._store = store
        self._clock = clock
        self._segment = segment
        self._declared = TableDefinition(protocol, metadata)
        self._log = log
        self._loaded = state
        self._checksum = checksum
        self._discrepancies: tuple[str, ...] | None = None
        self._replayed_tail: Tail | None = None
        self._lock = threading.RLock()
        renew_lock_in_children(self)
        self.verified_at_ms = clock.now_ms()
        """A time by the clock at which the version was the latest one: the start of the last check."""

    def __reduce__(self) -> NoReturn:
        """Refuse pickling with a ConfigurationError, whose fix names what to pass instead."""
        raise refuse_pickle(
            "A Snapshot",
            "Pass a DeltaTable, or pass the URI and the version and load the snapshot in the other process.",
        )

    @classmethod
    def load(
        cls,
        store: LogStore,
        *,
        version: int | None = None,
        timestamp_ms: int | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> Snapshot:
        """Load the table at its latest version, at a given version, or as of a time.

        A damaged checkpoint is ignored with a DeltaWarning, if the version can be read without it. Requests:
        the hint, one listing, the checkpoint and each later commit. On a remote store, checkpoint and commits
        are read only on demand if the version's checksum contains protocol and metadata.

        Args:
            store: the table's store.
            version: the version; excludes `timestamp_ms`.
            timestamp_ms: epoch milliseconds; loads the latest version that was committed at this time or
                before.
            clock: the source of the current time.

        Raises:
            TableNotFoundError: the log has no commit and no checkpoint.
            VersionNotFoundError: the version does not exist, or no version is as old as the time.
            LogGapError: a commit is missing.
            CorruptLogError: the log is damaged.
            StaleListingError: the store lists an older version than this process has seen.
            ConfigurationError: both a version and a time were given, or a value is not a whole number.
        """
        if version is not None and timestamp_ms is not None:
            raise ConfigurationError("A version and a timestamp were given.", fix="Pass only one of them.")
        version = whole_number(version, what="version", fix="Pass a whole number such as 3.")
        timestamp_ms = whole_number(
            timestamp_ms, what="timestamp_ms", fix="Pass whole milliseconds since 1970 (UTC)."
        )
        if timestamp_ms is not None:
            version = version_at_timestamp(store, timestamp_ms)
        began_ms = clock.now_ms()
        if version is None:
            snapshot = load_monotonic(store, clock, lambda: cls._load(store, None, clock))
        else:
            snapshot = cls._load(store, version, clock)
        snapshot.verified_at_ms = began_ms
        return snapshot

    @classmethod
    def of_listing(cls, store: LogStore, listing: LogListing, *, clock: Clock = SYSTEM_CLOCK) -> Snapshot:
        """Load the latest version of a listing of the whole log.

        Reads neither the hint nor the version checksum, and lists nothing again. Requests: one for each
        commit after the checkpoint and each part of the checkpoint.

        Raises:
            TableNotFoundError: the listing is empty.
            LogGapError: commits are missing.
            CorruptLogError: the log is damaged.
            StaleListingError: the store lists an older version than this process has seen.
        """
        listings = [listing]

        def load() -> Snapshot:
            known = listings.pop() if listings else list_log(store)
            segment = segment_of_listing(store, known)
            return cls._of_log(store, clock, open_log(store, version=None, clock=clock, segment=segment))

        return load_monotonic(store, clock, load)

    @classmethod
    def _load(cls, store: LogStore, version: int | None, clock: Clock) -> Snapshot:
        if not store.remote:
            return cls._of_log(store, clock, open_log(store, version=version, clock=clock))
        segment = build_segment(store, version=version, clock=clock)
        checksum = None if segment.checksum is None else read_checksum(store, segment.checksum)
        if checksum is None or checksum.protocol is None or checksum.metadata is None:
            log = open_log(store, version=segment.version, clock=clock, segment=segment)
            return cls._of_log(store, clock, log, checksum=checksum)
        return cls(
            store=store,
            clock=clock,
            segment=segment,
            protocol=checksum.protocol,
            metadata=checksum.metadata,
            checksum=checksum,
        )

    @classmethod
    def _of_log(
        cls,
        store: LogStore,
        clock: Clock,
        log: OpenLog,
        *,
        state: PendingState | None = None,
        checksum: VersionChecksum | None = None,
    ) -> Snapshot:
        return cls(
            store=store,
            clock=clock,
            segment=log.segment,
            protocol=log.protocol,
            metadata=log.metadata,
            log=log,
            state=state,
            checksum=checksum,
        )

    @staticmethod
    def exists(store: LogStore) -> bool:
        """True when there is a Delta table at the store's root. Reads the hint and one or two listings."""
        hint = read_last_checkpoint(store)
        starts = (0,) if hint is None else (hint.version, 0)
        return any(not list_log(store, from_version=start).is_empty for start in starts)

    def refresh(self) -> Snapshot:
        """The latest version; this same snapshot when there are no newer commits.

        Reads only newer commits: one listing, and one request for each newer commit.

        Raises:
            CorruptLogError: a newer commit is damaged.
            TableNotFoundError: the table was deleted.
            StaleListingError: the store lists an older version than this process has seen.
        """
        began_ms = self._clock.now_ms()
        latest = load_monotonic(self._store, self._clock, self._refreshed)
        latest.verified_at_ms = began_ms
        return latest

    def _refreshed(self) -> Snapshot:
        segment = extend_segment(self._store, self._segment)
        if segment is self._segment:
            return self
        if segment is None or self._log is None:
            return self._load(self._store, None, self._clock)
        try:
            newer = read_commits(self._store, segment.commits[len(self._segment.commits) :])
        except ObjectNotFoundError:
            return self._load(self._store, None, self._clock)
        extended = self._extended(segment, newer)
        # These commits have not been decoded before, so damage must raise here and not later.
        extended._catch_up()
        return extended

    def advance(self, commits: Sequence[CommitData]) -> Snapshot:
        """The snapshot after `commits`, whose bytes the caller has just read or written.

        Does not read the commits again. One request for their times; on a local store one for each commit.

        Args:
            commits: the commits after this version, without a gap. The caller has decoded them before.

        Raises:
            ObjectNotFoundError: a commit does not exist any more.
        """
        if not commits:
            return self
        assert [c.version for c in commits] == list(range(self.version + 1, self.version + 1 + len(commits)))
        files = commit_files(self._store, [c.version for c in commits])
        return self._extended(self._segment.followed_by(files), tuple(commits))

    def _extended(self, segment: LogSegment, newer: tuple[CommitData, ...]) -> Snapshot:
        protocol, metadata = latest_protocol_and_metadata(newer, (self.protocol, self.metadata))
        with self._lock:
            log, state = self._open(), self._loaded
        assert protocol is not None and metadata is not None  # noqa: PT018 - this version has both
        log = replace(
            log,
            segment=segment,
            # Commits that are part of the state are not needed again, so their bytes are dropped.
            commits=(*log.commits, *newer) if state is None else newer,
            protocol=protocol,
            metadata=metadata,
        )
        state = None if state is None else state.followed_by(newer)
        extended = Snapshot._of_log(self._store, self._clock, log, state=state)
        if protocol is self.protocol and metadata is self.metadata:
            extended._declared = self._declared
        note_version(self._store, metadata.id, extended.version)
        return extended

    def __repr__(self) -> str:
        return f"Snapshot({self._store.uri!r}, version={self.version})"

    @property
    def store(self) -> LogStore:
        """The table's store."""
        return self._store

    @property
    def clock(self) -> Clock:
        """The clock of the snapshot."""
        return self._clock

    @property
    def segment(self) -> LogSegment:
        """The log segment of the version."""
        return self._segment

    @property
    def version(self) -> int:
        """The version."""
        return self._segment.version

    @property
    def protocol(self) -> Protocol:
        """The protocol at this version."""
        return self._declared.protocol

    @property
    def metadata(self) -> Metadata:
        """The metadata at this version."""
        return self._declared.metadata

    @property
    def schema(self) -> StructType:
        """The table's schema. Raises SchemaError or CorruptLogError when it cannot be read."""
        return self._declared.schema(where=f"Version {self.version} of {self._store.uri!r}")

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Names of the partition columns, in order."""
        return self.metadata.partition_columns

    @property
    def column_mapping(self) -> ColumnMapping:
        """The mapping of columns to physical names. Raises InvalidTableError for an unknown mode."""
        return self._declared.column_mapping

    @property
    def properties(self) -> TableProperties:
        """The table properties."""
        return self._declared.properties

    @cached_property
    def timestamp_ms(self) -> int:
        """The time when the version was committed, in epoch milliseconds. At most one request."""
        commits = () if self._log is None else self._log.commits
        return commit_timestamp_ms(self._store, self._segment, self.metadata, commits)

    @property
    def transactions(self) -> Mapping[str, SetTransaction]:
        """Application transactions by application id. Does not load the live files."""
        with self._lock:
            if self._loaded is not None:
                return self._loaded.transactions
            log = self._open()
            return {**checkpoint_transactions(log.checkpoint), **self._tail(log).transactions}

    @property
    def domain_metadata(self) -> Mapping[str, DomainMetadata]:
        """Domain metadata by domain."""
        return self._state().domain_metadata

    def domain(self, name: str) -> DomainMetadata | None:
        """The metadata of one domain, or None. Does not load the live files."""
        with self._lock:
            if self._loaded is not None:
                base = self._loaded.base
                return latest_domain(self._loaded.waiting, name, lambda: base.domain_metadata)
            log = self._open()
            return latest_domain(log.commits, name, lambda: checkpoint_domains(log.checkpoint))

    @property
    def files(self) -> LiveFiles:
        """The live files. The first call reads the checkpoint's paths, partition values and sizes.

        Raises:
            UnsupportedTableFeatureError: with a feature of the table, the list of files could be wrong.
            CorruptLogError: the log is damaged, and the version cannot be read without the damaged files.
        """
        return self._state().files

    def tombstones(self, *, since_ms: int | None = None) -> pa.Table:
        """Removed files within the retention, as TOMBSTONE_SCHEMA.

        Args:
            since_ms: only files that were removed at this time or later; None takes the start of the table's
                retention (`delta.deletedFileRetentionDuration`).
        """
        if since_ms is None:
            since_ms = self._clock.now_ms() - self.properties.deleted_file_retention_ms
        state = self._state()
        return state.tombstones.since(since_ms, state.files)

    def commit_infos(self) -> Mapping[int, CommitInfo]:
        """The `commitInfo` of the commits whose bytes are in memory, by version. No request.

        Before the live files are loaded, these are the commits after the checkpoint; afterwards only the
        latest commit. Empty if the version is read from log compaction files.
        """
        with self._lock:
            log = self._open()
        if log.segment.compactions:
            return {}
        return {
            commit.version: read_commit_info(commit.data, path=commit.path) or CommitInfo()
            for commit in log.commits
        }

    @property
    def has_loaded_files(self) -> bool:
        """True when the live files are available without reading the log."""
        return self._loaded is not None

    @property
    def checksum_discrepancies(self) -> tuple[str, ...]:
        """The differences between the version and its checksum; empty without one. Loads the live files."""
        self._state()
        return self._discrepancies or ()

    @property
    def has_v2_checkpoint(self) -> bool:
        """True when the version is read from a V2 checkpoint."""
        checkpoint = self._open().checkpoint
        return checkpoint is not None and checkpoint.is_v2

    def require_readable(self, *, operation: str = "read the table", through_scan: bool = False) -> None:
        """Refuse to read if rows could be misread. Loads the live files.

        Args:
            operation: the requested operation, for the message.
            through_scan: True if the rows are read with the table's deletion vectors and column mapping.
                Callers that open data files directly leave it False.

        Raises:
            UnsupportedTableFeatureError: the table uses unsupported features. The message names them.
            CorruptLogError: a live file has a deletion vector, and the protocol does not list the feature.
        """
        try:
            require_read_support(
                self.protocol,
                self.metadata,
                has_deletion_vectors=self._may_have_deletion_vectors(),
                has_v2_checkpoint=self.has_v2_checkpoint,
                through_scan=through_scan,
                operation=operation,
            )
        except CorruptLogError as error:
            problem = f"{error.problem.rstrip('.')}: version {self.version} of {self._store.uri!r}."
            raise CorruptLogError(problem, cause=error.cause, fix=error.fix) from error
        if "deletionVectors" not in (self.protocol.reader_features or ()) and self.files.has_deletion_vectors:
            raise unlisted_deletion_vector(operation, where=f"version {self.version} of {self._store.uri!r}")

    def require_writable(self, *, writer_kind: WriterKind, operation: str = "write to the table") -> None:
        """Refuse with an UnsupportedTableFeatureError if the writer kind could damage the table."""
        self._declared.require_writable(
            writer_kind=writer_kind,
            has_deletion_vectors=self._may_have_deletion_vectors(),
            has_v2_checkpoint=self.has_v2_checkpoint,
            operation=operation,
        )

    def _may_have_deletion_vectors(self) -> bool:
        # The live files are loaded only if the protocol allows deletion vectors.
        listed = "deletionVectors" in (self.protocol.reader_features or ())
        return listed and self.files.has_deletion_vectors

    def _open(self) -> OpenLog:
        """The opened log. Raises CorruptLogError if it contradicts the checksum that served until now."""
        with self._lock:
            if self._log is None:
                assert self._checksum is not None
                log = open_log(self._store, version=self.version, clock=self._clock, segment=self._segment)
                differences = self._checksum.contradictions(log.protocol, log.metadata)
                if differences:
                    raise contradicting_checksum(self._checksum, differences)
                self._log, self._segment = log, log.segment
            return self._log

    def _state(self) -> ReplayState:
        with self._lock:
            if self._loaded is None:
                require_log_support(self.protocol, operation="list the table's files")
                self._loaded = PendingState(base=self._replay())
                # Only after the state is set: an interruption in between would leave the last commit alone.
                self._forget_commits()
            state = self._catch_up()
            assert state is not None
            if self._discrepancies is None:
                self._discrepancies = self._checked(state)
            return state

    def _forget_commits(self) -> None:
        """Drop the bytes of the commits that are in the state, except for the latest one."""
        if self._log is not None:
            self._replayed_tail, self._log = None, replace(self._log, commits=self._log.commits[-1:])

    def _catch_up(self) -> ReplayState | None:
        with self._lock:
            self._loaded = None if self._loaded is None else self._loaded.caught_up()
            return None if self._loaded is None else self._loaded.base

    def _checked(self, state: ReplayState) -> tuple[str, ...]:
        info = self._segment.checksum
        if self._checksum is None and info is not None:
            self._checksum = read_checksum(self._store, info)
        differences = () if self._checksum is None else self._checksum.discrepancies(state)
        if differences:
            warnings.warn(
                f"Version {self.version} of {self._store.uri!r} contradicts its checksum: "
                f"{'; '.join(differences)}. The log or the checksum was changed. No checkpoint of this "
                "version will be written.",
                DeltaWarning,
                stacklevel=4,
            )
        return tuple(differences)

    def _tail(self, log: OpenLog) -> Tail:
        if self._replayed_tail is None:
            self._replayed_tail = replay_tail(log.commits)
        return self._replayed_tail

    def _replay(self) -> ReplayState:
        log = self._open()
        try:
            tail = self._tail(log)
        except CorruptLogError as error:
            return self._replay_without(log, compaction_names(log.segment), error)
        try:
            return build_state(
                checkpoint=log.checkpoint, tail=tail, protocol=self.protocol, metadata=self.metadata
            )
        except CorruptLogError as error:
            assert log.segment.checkpoint is not None
            return self._replay_without(log, frozenset({log.segment.checkpoint.names}), error)

    def _replay_without(self, log: OpenLog, damaged: UnusableFiles, error: CorruptLogError) -> ReplayState:
        """The state without the damaged files. Raises `error` if the version needs them."""
        if not damaged:
            raise error
        warn_damaged(error)
        try:
            other = open_log(
                self._store, version=self.version, clock=self._clock, unusable=log.unusable | damaged
            )
        except InvalidTableError:
            raise error from None
        if (other.protocol, other.metadata) != (self.protocol, self.metadata):
            # Callers may have used protocol and metadata of the damaged file already, and the files must not
            # be read by another definition.
            raise error
        return Snapshot._of_log(self._store, self._clock, other)._state()
