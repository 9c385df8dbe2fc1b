"""The contents of `_delta_log`, from listings that may be unsorted or incomplete or repeat names."""

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
"""The maximum number of unlisted commits that are looked up by name."""

# Of several checkpoints of one version, readers take the one that needs the fewest requests.
_PREFERENCE = {
    LogFileKind.CLASSIC_CHECKPOINT: 2,
    LogFileKind.MULTIPART_CHECKPOINT: 1,
    LogFileKind.V2_CHECKPOINT: 0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitFile:
    """A commit's version and file."""

    version: int
    info: ObjectInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointFiles:
    """The files of a complete checkpoint: all of its parts, in order."""

    version: int
    kind: LogFileKind
    parts: tuple[ObjectInfo, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The paths of the parts. They distinguish the checkpoints of one version."""
        return tuple(part.path for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactedFile:
    """A log compaction file, which combines the commits from `version` to `end_version`, both included."""

    version: int
    end_version: int
    info: ObjectInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class LogListing:
    """The files of a log.

    Attributes:
        commits: ascending by version.
        checkpoints: the complete checkpoints, ascending by version; the preferred one of a version last.
        compactions: ascending by first version, then by last.
        checksums: the version checksums, by version.
    """

    commits: tuple[CommitFile, ...]
    checkpoints: tuple[CheckpointFiles, ...]
    compactions: tuple[CompactedFile, ...] = ()
    checksums: Mapping[int, ObjectInfo] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """True when the listing shows no commit and no checkpoint."""
        return not self.commits and not self.checkpoints

    @property
    def latest_version(self) -> int:
        """The highest listed version. The listing must not be empty."""
        return max(item[-1].version for item in (self.commits, self.checkpoints) if item)


def commit_files(store: LogStore, versions: Sequence[int]) -> tuple[CommitFile, ...]:
    """The files of commits that are known to exist.

    One request for several commits on a remote store, otherwise one request for each commit.

    Args:
        store: the table's store.
        versions: the versions, ascending.

    Raises:
        ObjectNotFoundError: a commit does not exist.
    """
    listed: dict[int, CommitFile] = {}
    if store.remote and len(versions) > 1:
        listing = list_log(store, from_version=versions[0])
        listed = {commit.version: commit for commit in listing.commits}
    # A store may list new files with a delay.
    return tuple(
        listed.get(version) or CommitFile(version=version, info=store.head(commit_path(version)))
        for version in versions
    )


def commit_file(store: LogStore, version: int) -> CommitFile | None:
    """A commit, looked up by name; None if it does not exist. One request."""
    try:
        return CommitFile(version=version, info=store.head(commit_path(version)))
    except ObjectNotFoundError:
        return None


def with_commits(store: LogStore, listing: LogListing, versions: Iterable[int]) -> LogListing:
    """Add the commits of `versions` that exist in the store and that the listing omits.

    One request for each unlisted commit, at most MAX_LOOKUPS.
    """
    commits = {commit.version: commit for commit in listing.commits}
    for version in islice((number for number in versions if number not in commits), MAX_LOOKUPS):
        commit = commit_file(store, version)
        if commit is not None:
            commits[version] = commit
    return replace(listing, commits=tuple(commits[version] for version in sorted(commits)))


def list_log(store: LogStore, *, from_version: int = 0) -> LogListing:
    """List the log from a version on. One listing.

    Unknown names are ignored, and names that are listed twice count once. A multi-part checkpoint counts only
    when all of its parts exist (PROTOCOL.md, "Checkpoints"). If a listing of the store may omit a commit and
    show a later one, missing commits are looked up by name.
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
    if may_omit_commits(store):
        commits |= _between(store, sorted(commits))
    return LogListing(
        commits=tuple(commits[version] for version in sorted(commits)),
        checkpoints=tuple(checkpoints),
        compactions=tuple(compactions[key] for key in sorted(compactions)),
        checksums=checksums,
    )


def may_omit_commits(store: LogStore) -> bool:
    """True when a listing may omit a file and show one that was created later.

    A listing of a directory does not show one point in time: of two files that are created during the
    listing, it may show the second and omit the first.
    """
    return not store.remote or not store.consistent_listing


def _between(store: LogStore, versions: Sequence[int]) -> dict[int, CommitFile]:
    """The commits that exist in the gaps of a listing, looked up by name."""
    commits: dict[int, CommitFile] = {}
    for before, after in pairwise(versions):
        for version in range(before + 1, after):
            commit = commit_file(store, version)
            if commit is None:
                break  # a gap that log cleanup left, perhaps a long one
            commits[version] = commit
    return commits
