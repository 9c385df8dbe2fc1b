"""The first version since which no version of a log uses a feature, from a scan of all commits.

A client that does not support the feature reads the table from a checkpoint on. It must not read a version
that uses the feature. The same probes that check the newest version decide that (`removal_rules`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from delta_core.actions import Metadata, Protocol
from delta_core.actions.json_codec import metadata_from_json, protocol_from_json
from delta_core.errors import LogGapError, ObjectNotFoundError, VersionNotFoundError
from delta_core.log.checkpoint_reader import CheckpointReader
from delta_core.log.commit_reader import CommitData, read_commits
from delta_core.log.listing import LogListing
from delta_core.maintenance.feature_drop.complete_listing import WholeLog
from delta_core.replay.tail import file_key
from delta_core.snapshot.commit_time import CommitTimes
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.uri import canonical_log_path
from delta_core.table_features.removal_rules import RULES, TableState

_COMMITS_AT_ONCE = 64
_TRIES = 3
_DELETION_VECTORS = "deletionVectors"
_V2_CHECKPOINTS = "v2Checkpoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanSince:
    """The part of a log that does not use a feature.

    Attributes:
        oldest_version: the oldest readable version.
        version: the first version since which no version uses the feature, if the newest does not use it.
        time_ms: commit time of that version, in epoch milliseconds; None when its commit is missing.
    """

    oldest_version: int
    version: int
    time_ms: int | None


@dataclass(slots=True, kw_only=True)
class History:
    """The versions of a log that were checked for uses of a feature.

    After a conflict the next check continues at the first unchecked version. On a long log, a full check
    would take so long that another writer would win every time.

    Attributes:
        feature: a feature with a removal rule, in the protocol's spelling.
    """

    feature: str
    _past: _State | None = None
    _last: int = -1
    _are_v2: dict[tuple[str, ...], bool] = field(default_factory=dict)

    def clean_since(self, snapshot: Snapshot) -> CleanSince:
        """Check the versions that were not checked yet.

        Requests: a listing, the oldest version's checkpoint, every later commit; for `v2Checkpoint`
        the footer of every checkpoint. From the second call on, the listing and the new commits.

        Args:
            snapshot: the newest version.

        Raises:
            CorruptLogError: a commit or checkpoint is damaged.
            LogGapError, StaleListingError: a commit is missing, or the store does not list it.
            ObjectNotFoundError, VersionNotFoundError: another process repeatedly cleans up the log, or
                the store does not list the beginning of the log.
            UnsupportedTableFeatureError: the oldest version requires an unknown feature.
        """
        for _ in range(_TRIES - 1):
            # Files that were deleted after the listing no longer belong to the history.
            with suppress(LogGapError, ObjectNotFoundError, VersionNotFoundError):
                return self._check(snapshot)
        return self._check(snapshot)

    def _check(self, snapshot: Snapshot) -> CleanSince:
        log = WholeLog.of(snapshot)
        v2_versions = self._v2_versions(snapshot, log.listing)
        # After an error the next check starts from the beginning.
        state, self._past = self._past, None
        last = self._last
        if state is None or not log.begin <= state.version <= snapshot.version:
            state = _State.of(_version(snapshot, log.begin), self.feature)
            last = log.begin if state.has_traces() else log.begin - 1
        for commit in _commits(snapshot, log.listing, state.version):
            state.follow(commit)
            if state.has_traces():
                last = commit.version
        last = max((last, *v2_versions))
        self._past, self._last = state, last
        # The newest version is judged by its own state, in which old tombstones have expired.
        since = min(last + 1, snapshot.version)
        time_ms = _time_ms(snapshot, log.listing, since)
        return CleanSince(oldest_version=log.oldest, version=since, time_ms=time_ms)

    def _v2_versions(self, snapshot: Snapshot, listing: LogListing) -> list[int]:
        if self.feature != _V2_CHECKPOINTS:
            return []
        checkpoints = [files for files in listing.checkpoints if files.version <= snapshot.version]
        for files in checkpoints:
            if files.names not in self._are_v2:
                self._are_v2[files.names] = CheckpointReader.open(snapshot.store, files).is_v2
        return [files.version for files in checkpoints if self._are_v2[files.names]]


def oldest_version(snapshot: Snapshot) -> int:
    """The oldest readable version of the log. Requests and errors are those of `WholeLog.of`."""
    return WholeLog.of(snapshot).oldest


def version_time_ms(snapshot: Snapshot, version: int) -> int | None:
    """The commit time of a version, by the newest version's kind of timestamps; None without its commit.

    Requests and errors are those of `WholeLog.of`, and one commit if the table has in-commit timestamps.
    """
    return _time_ms(snapshot, WholeLog.of(snapshot).listing, version)


def _time_ms(snapshot: Snapshot, listing: LogListing, version: int) -> int | None:
    times = CommitTimes(snapshot.store, listing, metadata=snapshot.metadata)
    index = next((i for i, file in enumerate(times.files) if file.version == version), None)
    return None if index is None else times[index]


def _version(snapshot: Snapshot, version: int) -> Snapshot:
    if version == snapshot.version:
        return snapshot
    return Snapshot.load(snapshot.store, version=version, clock=snapshot.clock)


def _commits(snapshot: Snapshot, listing: LogListing, oldest: int) -> Iterator[CommitData]:
    files = [file for file in listing.commits if oldest < file.version <= snapshot.version]
    for start in range(0, len(files), _COMMITS_AT_ONCE):
        yield from read_commits(snapshot.store, files[start : start + _COMMITS_AT_ONCE])


@dataclass(slots=True, kw_only=True)
class _State:
    """The part of a version's state that the feature's probes read, advanced commit by commit.

    Attributes:
        dvs: live files with deletion vectors.
        removed: paths of files that were removed with a deletion vector.
        revived: paths in `removed` that are live without a deletion vector.
    """

    feature: str
    version: int
    protocol: Protocol
    metadata: Metadata
    dvs: set[tuple[str, str]] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)
    revived: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, oldest: Snapshot, feature: str) -> _State:
        state = cls(
            feature=feature,
            version=oldest.version,
            protocol=oldest.protocol,
            metadata=oldest.metadata,
        )
        if feature == _DELETION_VECTORS:
            state._begin(oldest)
        return state

    def has_traces(self) -> bool:
        """Whether the version uses the feature."""
        state = TableState(
            protocol=self.protocol,
            metadata=self.metadata,
            version=self.version,
            has_deletion_vectors=bool(self.dvs),
            has_removed_deletion_vectors=bool(self.revived),
            has_v2_checkpoint=False,  # Commits do not show this.
            has_row_ids=False,
        )
        return any(True for probe in RULES[self.feature].traces for _ in probe(state))

    def follow(self, commit: CommitData) -> None:
        """Advance to the version of a commit."""
        self.version = commit.version
        if self.feature != _DELETION_VECTORS:
            protocol, metadata = commit.protocol_and_metadata()
            self.protocol, self.metadata = protocol or self.protocol, metadata or self.metadata
            return
        actions = commit.actions()
        for kind in ("remove", "add"):  # One commit may remove and add the same path.
            self._files(kind, [fields for _, action_kind, fields in actions if action_kind == kind])
        for _, kind, fields in actions:
            if kind == "protocol":
                self.protocol = protocol_from_json(fields)
            elif kind == "metaData":
                self.metadata = metadata_from_json(fields)

    def _begin(self, oldest: Snapshot) -> None:
        columns = ["path", "deletion_vector"]
        removed = oldest.tombstones(since_ms=0).select(columns)
        self._files("remove", map(_as_json, removed.to_pylist()))
        live = (row for batch in oldest.files.batches(columns) for row in batch.to_pylist())
        self._files("add", map(_as_json, live))

    def _files(self, kind: str, actions: Iterable[Mapping[str, Any]]) -> None:
        for fields in actions:
            key, path = file_key(fields), canonical_log_path(fields["path"])
            has_deletion_vector = fields.get("deletionVector") is not None
            if kind == "add":
                if has_deletion_vector:
                    self.dvs.add(key)
                elif path in self.removed:
                    self.revived.add(path)
                continue
            self.dvs.discard(key)
            if has_deletion_vector:
                self.removed.add(path)
            else:
                self.revived.discard(path)


def _as_json(row: Mapping[str, Any]) -> dict[str, Any]:
    dv = row["deletion_vector"]
    if dv is None or dv["storage_type"] is None:
        return {"path": row["path"]}
    descriptor = {
        "storageType": dv["storage_type"],
        "pathOrInlineDv": dv["path_or_inline_dv"],
        "offset": dv["offset"],
    }
    return {"path": row["path"], "deletionVector": descriptor}
