"""Since which version a log has no trace of a feature, looked at commit by commit.

A client that does not know the feature reads the table from a checkpoint on. What it must not meet is a
version that needs the feature, by the same probes that judge the newest version (`removal_rules`).
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
from delta_core.maintenance.feature_drop.whole_log import WholeLog
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
    """What the log says of a feature's past.

    Attributes:
        oldest_version: that the log can still show.
        version: from which on none has traces of the feature, where the newest has none.
        time_ms: when that version was committed, epoch milliseconds; None where its commit is gone.
    """

    oldest_version: int
    version: int
    time_ms: int | None


@dataclass(slots=True, kw_only=True)
class History:
    """The versions of a log, as far as somebody has looked at them.

    Whoever looks again, since another writer was first, goes on where it ended: on a log of many versions the
    time that the first look takes would else never be short enough.

    Attributes:
        feature: one with a rule, in the protocol's spelling.
    """

    feature: str
    _past: _Past | None = None
    _last: int = -1
    _are_v2: dict[tuple[str, ...], bool] = field(default_factory=dict)

    def clean_since(self, snapshot: Snapshot) -> CleanSince:
        """Look at the versions that nobody has looked at.

        Requests: a listing, the oldest version's checkpoint, every commit behind it; for `v2Checkpoint`
        the footer of every checkpoint. From the second time on, the listing and what is new.

        Args:
            snapshot: the newest version.

        Raises:
            CorruptLogError: a commit or checkpoint is damaged.
            LogGapError, StaleListingError: a commit is missing, or the store does not show it.
            ObjectNotFoundError, VersionNotFoundError: somebody cleans up the log, again and again, or
                the store does not list its beginning.
            UnsupportedTableFeatureError: the oldest version needs what is not known.
        """
        for _ in range(_TRIES - 1):
            # What is gone since the listing is no part of the history any more.
            with suppress(LogGapError, ObjectNotFoundError, VersionNotFoundError):
                return self._look(snapshot)
        return self._look(snapshot)

    def _look(self, snapshot: Snapshot) -> CleanSince:
        log = WholeLog.of(snapshot)
        v2_versions = self._v2_versions(snapshot, log.listing)
        # What fails half way is begun anew.
        past, self._past = self._past, None
        last = self._last
        if past is None or not log.begin <= past.version <= snapshot.version:
            past = _Past.of(_version(snapshot, log.begin), self.feature)
            last = log.begin if past.has_traces() else log.begin - 1
        for commit in _commits(snapshot, log.listing, past.version):
            past.follow(commit)
            if past.has_traces():
                last = commit.version
        last = max((last, *v2_versions))
        self._past, self._last = past, last
        # What the newest version needs is told from its own state, in which old tombstones have expired.
        since = min(last + 1, snapshot.version)
        time_ms = _time_ms(snapshot, log.listing, since)
        return CleanSince(oldest_version=log.oldest, version=since, time_ms=time_ms)

    def _v2_versions(self, snapshot: Snapshot, listing: LogListing) -> list[int]:
        if self.feature != _V2_CHECKPOINTS:
            return []
        found = [files for files in listing.checkpoints if files.version <= snapshot.version]
        for files in found:
            if files.names not in self._are_v2:
                self._are_v2[files.names] = CheckpointReader.open(snapshot.store, files).is_v2
        return [files.version for files in found if self._are_v2[files.names]]


def oldest_version(snapshot: Snapshot) -> int:
    """The oldest version that the log can still show. Requests and errors as those of `WholeLog.of`."""
    return WholeLog.of(snapshot).oldest


def version_time_ms(snapshot: Snapshot, version: int) -> int | None:
    """When a version was committed, as the newest version tells time; None where its commit is gone.

    Requests and errors as those of `WholeLog.of`, and a commit where commits carry their time.
    """
    return _time_ms(snapshot, WholeLog.of(snapshot).listing, version)


def _time_ms(snapshot: Snapshot, listing: LogListing, version: int) -> int | None:
    times = CommitTimes(snapshot.store, listing, metadata=snapshot.metadata)
    found = next((i for i, file in enumerate(times.files) if file.version == version), None)
    return None if found is None else times[found]


def _version(snapshot: Snapshot, version: int) -> Snapshot:
    if version == snapshot.version:
        return snapshot
    return Snapshot.load(snapshot.store, version=version, clock=snapshot.clock)


def _commits(snapshot: Snapshot, listing: LogListing, oldest: int) -> Iterator[CommitData]:
    files = [file for file in listing.commits if oldest < file.version <= snapshot.version]
    for start in range(0, len(files), _COMMITS_AT_ONCE):
        yield from read_commits(snapshot.store, files[start : start + _COMMITS_AT_ONCE])


@dataclass(slots=True, kw_only=True)
class _Past:
    """A version's state as far as the feature's probes look at it, moved on commit by commit.

    Attributes:
        vectors: live files with deletion vectors.
        removed: paths of files that were removed with a deletion vector.
        revived: those of them that are live without one.
    """

    feature: str
    version: int
    protocol: Protocol
    metadata: Metadata
    dvs: set[tuple[str, str]] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)
    revived: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, oldest: Snapshot, feature: str) -> _Past:
        past = cls(
            feature=feature,
            version=oldest.version,
            protocol=oldest.protocol,
            metadata=oldest.metadata,
        )
        if feature == _DELETION_VECTORS:
            past._begin(oldest)
        return past

    def has_traces(self) -> bool:
        """Whether the version needs the feature."""
        state = TableState(
            protocol=self.protocol,
            metadata=self.metadata,
            version=self.version,
            has_deletion_vectors=bool(self.dvs),
            has_removed_deletion_vectors=bool(self.revived),
            has_v2_checkpoint=False,  # no commit tells
            has_row_ids=False,
        )
        return any(True for probe in RULES[self.feature].traces for _ in probe(state))

    def follow(self, commit: CommitData) -> None:
        """Move on to the version of a commit."""
        self.version = commit.version
        if self.feature != _DELETION_VECTORS:
            protocol, metadata = commit.protocol_and_metadata()
            self.protocol, self.metadata = protocol or self.protocol, metadata or self.metadata
            return
        actions = commit.actions()
        for kind in ("remove", "add"):  # a file may leave and come back in one commit
            self._files(kind, [fields for _, found, fields in actions if found == kind])
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

    def _files(self, kind: str, found: Iterable[Mapping[str, Any]]) -> None:
        for fields in found:
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
    kept = {
        "storageType": dv["storage_type"],
        "pathOrInlineDv": dv["path_or_inline_dv"],
        "offset": dv["offset"],
    }
    return {"path": row["path"], "deletionVector": kept}
