"""What is in `_delta_log`, from listings that may be unsorted, repeated or incomplete."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise

from delta_core.errors import ObjectNotFoundError
from delta_core.log.log_path import (
    CHECKPOINT_KINDS,
    LOG_DIRECTORY,
    LogFileKind,
    LogPath,
    commit_path,
    version_prefix,
)
from delta_core.storage.log_store import LogStore, ObjectInfo

MAX_LOOKUPS = 1000
"""So many commits that a listing leaves out are looked up by name, and no more."""

# Of several checkpoints of one version the one that needs the fewest requests is read.
_PREFERENCE = {
    LogFileKind.CLASSIC_CHECKPOINT: 2,
    LogFileKind.MULTIPART_CHECKPOINT: 1,
    LogFileKind.V2_CHECKPOINT: 0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFile:
    """A commit's version and object."""

    version: int
    info: ObjectInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointFiles:
    """A complete checkpoint: all of its parts, in order."""

    version: int
    kind: LogFileKind
    parts: tuple[ObjectInfo, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The parts' paths: what tells two checkpoints of one version apart."""
        return tuple(part.path for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactedFile:
    """A log compaction file: it stands for the commits from `version` to `end_version`, both included."""

    version: int
    end_version: int
    info: ObjectInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class LogListing:
    """What a log holds.

    Attributes:
        commits: ascending by version.
        checkpoints: the complete ones, best last.
        compactions: ascending by first version, then by last.
        checksums: the version checksums, by version.
    """

    commits: tuple[CommitFile, ...]
    checkpoints: tuple[CheckpointFiles, ...]
    compactions: tuple[CompactedFile, ...] = ()
    checksums: Mapping[int, ObjectInfo] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """True when no version can be told from the listing."""
        return not self.commits and not self.checkpoints

    @property
    def latest_version(self) -> int:
        """The highest version seen; the listing must not be empty."""
        return max(item[-1].version for item in (self.commits, self.checkpoints) if item)


def commit_files(store: LogStore, versions: Sequence[int]) -> tuple[CommitFile, ...]:
    """The objects of commits that are known to be there.

    One request where there are several and the store is remote, else one for each.

    Args:
        versions: ascending.

    Raises:
        ObjectNotFoundError: a commit is gone.
    """
    listed: dict[int, CommitFile] = {}
    if store.remote and len(versions) > 1:
        listing = list_log(store, from_version=versions[0])
        listed = {commit.version: commit for commit in listing.commits}
    # Not every store lists at once what it has.
    return tuple(
        listed.get(version) or CommitFile(version=version, info=store.head(commit_path(version)))
        for version in versions
    )


def commit_file(store: LogStore, version: int) -> CommitFile | None:
    """A commit that may not be there, looked up by name. One request."""
    try:
        return CommitFile(version=version, info=store.head(commit_path(version)))
    except ObjectNotFoundError:
        return None


def with_commits(store: LogStore, listing: LogListing, versions: Iterable[int]) -> LogListing:
    """The listing with those of some commits that exist but were not listed. A request for each."""
    commits = {commit.version: commit for commit in listing.commits}
    for version in islice((number for number in versions if number not in commits), MAX_LOOKUPS):
        found = commit_file(store, version)
        if found is not None:
            commits[version] = found
    return replace(listing, commits=tuple(commits[version] for version in sorted(commits)))


def list_log(store: LogStore, *, from_version: int = 0) -> LogListing:
    """List the log from a version on. One listing.

    Names that mean nothing are ignored, names listed twice are taken once, and a multi-part checkpoint
    counts only when all of its parts are there (PROTOCOL.md, "Checkpoints"). Where a listing may leave out
    a commit that landed while it was made, and show the next, holes are looked up by name.
    """
    start_after = version_prefix(from_version) if from_version else None
    commits: dict[int, CommitFile] = {}
    pieces: dict[tuple[int, LogFileKind, object], dict[int, ObjectInfo]] = {}
    compactions: dict[tuple[int, int], CompactedFile] = {}
    checksums: dict[int, ObjectInfo] = {}
    for info in store.list_directory(LOG_DIRECTORY, start_after=start_after):
        path = LogPath.parse(info.path)
        if path is None or path.version < from_version:
            continue
        if path.kind is LogFileKind.COMMIT:
            commits[path.version] = CommitFile(version=path.version, info=info)
        elif path.kind in CHECKPOINT_KINDS:
            group = path.name if path.kind is LogFileKind.V2_CHECKPOINT else path.num_parts
            pieces.setdefault((path.version, path.kind, group), {})[path.part or 1] = info
        elif path.kind is LogFileKind.CHECKSUM:
            checksums[path.version] = info
        elif path.end_version is not None:
            key = (path.version, path.end_version)
            compactions[key] = CompactedFile(version=key[0], end_version=key[1], info=info)
    checkpoints = [
        CheckpointFiles(version=version, kind=kind, parts=tuple(parts[number] for number in sorted(parts)))
        for (version, kind, group), parts in pieces.items()
        if kind is not LogFileKind.MULTIPART_CHECKPOINT or len(parts) == group
    ]
    checkpoints.sort(key=lambda item: (item.version, _PREFERENCE[item.kind], item.names))
    if may_leave_out(store):
        commits |= _between(store, sorted(commits))
    return LogListing(
        commits=tuple(commits[version] for version in sorted(commits)),
        checkpoints=tuple(checkpoints),
        compactions=tuple(compactions[key] for key in sorted(compactions)),
        checksums=checksums,
    )


def may_leave_out(store: LogStore) -> bool:
    """Whether a listing may lack a name, and show one that was made after it.

    Reading a directory takes a while and is no picture of one moment: of two files that are made meanwhile
    the second may be met, and the first not.
    """
    return not store.remote or not store.consistent_listing


def _between(store: LogStore, versions: Sequence[int]) -> dict[int, CommitFile]:
    """Commits in the holes of a listing."""
    found: dict[int, CommitFile] = {}
    for before, after in pairwise(versions):
        for version in range(before + 1, after):
            commit = commit_file(store, version)
            if commit is None:
                break  # a hole that log cleanup left, perhaps a long one
            found[version] = commit
    return found
