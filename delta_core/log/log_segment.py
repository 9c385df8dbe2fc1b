"""The log segment of a version: at most one checkpoint and every commit after it.

A log compaction file may be read instead of the commits that it combines (PROTOCOL.md, "Log Compaction
Files"). The commits must exist nevertheless, since a gap in them means that the history was changed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import LogGapError, TableNotFoundError, VersionNotFoundError
from delta_core.log.last_checkpoint import read_last_checkpoint
from delta_core.log.listing import (
    MAX_LOOKUPS,
    CheckpointFiles,
    CommitFile,
    CompactedFile,
    LogListing,
    commit_file,
    list_log,
    may_omit_commits,
    with_commits,
)
from delta_core.storage.log_store import LogStore, ObjectInfo

_LISTINGS = 4
_BACKOFF_SECONDS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSegment:
    """The log files from which one version is read.

    Attributes:
        commits: the commits after the checkpoint up to `version`: contiguous and ascending.
        checkpoint: the checkpoint; None when the log is read from version 0.
        compactions: log compaction files that combine some of the commits: ascending, without overlaps.
        checksum: the version's checksum, or None.
        version_file: the commit of `version`, also when a checkpoint makes reading it unnecessary;
            None when it has been cleaned up.
    """

    version: int
    commits: tuple[CommitFile, ...]
    checkpoint: CheckpointFiles | None = None
    version_file: ObjectInfo | None = None
    compactions: tuple[CompactedFile, ...] = ()
    checksum: ObjectInfo | None = None

    @property
    def replayed_files(self) -> tuple[CommitFile, ...]:
        """The files to read for the replay: log compaction files, and the commits that they do not combine.

        The `version` of a log compaction file is the last version that it combines.
        """
        compacted = [CommitFile(version=item.end_version, info=item.info) for item in self.compactions]
        replaced = {
            version for item in self.compactions for version in range(item.version, item.end_version + 1)
        }
        rest = [commit for commit in self.commits if commit.version not in replaced]
        return tuple(sorted([*compacted, *rest], key=lambda file: file.version))

    @property
    def checkpoint_version(self) -> int | None:
        """The checkpoint's version, or None."""
        return None if self.checkpoint is None else self.checkpoint.version

    @property
    def checkpoint_parts(self) -> tuple[ObjectInfo, ...]:
        """The checkpoint's files."""
        return () if self.checkpoint is None else self.checkpoint.parts

    def followed_by(self, newer: tuple[CommitFile, ...], checksum: ObjectInfo | None = None) -> LogSegment:
        """The segment of the version of the last commit in `newer`, which continue this segment."""
        return replace(
            self,
            version=newer[-1].version,
            commits=self.commits + newer,
            version_file=newer[-1].info,
            checksum=checksum,
        )


class _MissingCommits(Exception):  # noqa: N818 - a signal inside this module
    """Commits that a version needs and that are not listed.

    `versions` are the first missing versions, and `count` is the number of all: a single stray file name can
    make the gap arbitrarily long.
    """

    def __init__(self, versions: list[int], count: int) -> None:
        self.versions = versions
        self.count = count
        super().__init__(versions)


def build_segment(
    store: LogStore,
    *,
    version: int | None = None,
    unusable: frozenset[tuple[str, ...]] = frozenset(),
    clock: Clock = SYSTEM_CLOCK,
) -> LogSegment:
    """Find the files of a version (None: the latest).

    Commits that a listing omits are looked up by name, and the log is listed again, before a gap is reported.

    Requests: the hint and one listing. A second listing if the hint leads to no usable checkpoint. On stores
    with weakly consistent listings one more request, for the next version. If listings may omit names, one
    request for an unlisted commit of the checkpoint's version.

    Args:
        store: the table's store.
        version: the version; None takes the latest.
        unusable: names of checkpoints and log compaction files that are known to be damaged.
        clock: waits between repeated listings.

    Raises:
        TableNotFoundError: the log has no commit and no checkpoint.
        VersionNotFoundError: the version is newer than the table or has been cleaned up.
        LogGapError: a commit that the version needs is missing.
    """
    hint = None if unusable else read_last_checkpoint(store)
    from_version = 0 if hint is None or (version is not None and hint.version > version) else hint.version
    for attempt in range(_LISTINGS):
        if attempt and not store.consistent_listing:
            clock.sleep(_BACKOFF_SECONDS * 2**attempt)
        listing = list_log(store, from_version=from_version)
        if from_version and not _usable(listing, version, unusable):
            from_version = 0  # the hint was wrong or outdated
            listing = list_log(store)
        if version is None and not store.consistent_listing:
            listing = _with_unlisted_tail(store, listing)
        try:
            return _select_named(store, listing, version=version, unusable=unusable)
        except _MissingCommits as gap:
            missing, from_version = gap, 0
    shown = ", ".join(map(str, missing.versions[:5])) + (", ..." if missing.count > 5 else "")
    raise LogGapError(
        f"The log of {store.uri!r} has a gap: version {shown} is missing, and later versions exist.",
        cause="A commit was deleted, or the table was copied incompletely.",
        fix="Restore the missing file from a backup. Without it, later versions cannot be trusted.",
    )


def segment_of_listing(store: LogStore, listing: LogListing) -> LogSegment | None:
    """The segment of the latest version in a listing of the whole log; None when the listing has a gap.

    No request on a store with consistent listings. Raises TableNotFoundError when the listing is empty.
    """
    if not store.consistent_listing:
        listing = _with_unlisted_tail(store, listing)
    try:
        return _select_named(store, listing, version=None, unusable=frozenset())
    except _MissingCommits:
        return None


def extend_segment(store: LogStore, segment: LogSegment) -> LogSegment | None:
    """The segment extended by newer commits; None when the log must be read from the beginning.

    That is so when another table has replaced the segment's table, when commits are missing, or when a newer
    checkpoint saves reading many commits. One listing.
    """
    listing = list_log(store, from_version=segment.version)
    if not store.consistent_listing:
        listing = _with_unlisted_tail(store, with_commits(store, listing, [segment.version]))
    commits = {commit.version: commit for commit in listing.commits}
    own = commits.get(segment.version)
    if own is None or (segment.version_file is not None and own.info != segment.version_file):
        return None
    latest = max(commits)
    if len(commits) != latest - segment.version + 1 or listing.latest_version > latest:
        return None
    if latest == segment.version:
        return segment
    newer = tuple(commits[version] for version in range(segment.version + 1, latest + 1))
    if len(newer) > 100 and any(item.version > segment.version for item in listing.checkpoints):
        return None
    return segment.followed_by(newer, listing.checksums.get(latest))


def _select_named(
    store: LogStore, listing: LogListing, *, version: int | None, unusable: frozenset[tuple[str, ...]]
) -> LogSegment:
    """Like `_select`, with unlisted commits looked up by name."""
    try:
        segment = _select(store, listing, version=version, unusable=unusable)
    except _MissingCommits as gap:
        if gap.count > MAX_LOOKUPS:
            raise  # too many to look up, and a part of them would not help
        named = with_commits(store, listing, gap.versions)
        segment = _select(store, named, version=version, unusable=unusable)
    if segment.version_file is None and may_omit_commits(store):
        # The version's checkpoint is listed, so the commit is not replayed. But it has the version's time.
        own = commit_file(store, segment.version)
        return replace(segment, version_file=None if own is None else own.info)
    return segment


def _usable(
    listing: LogListing, target: int | None, unusable: frozenset[tuple[str, ...]]
) -> list[CheckpointFiles]:
    """The checkpoints from which a version (None: any) can be read, the preferred one last."""
    return [
        item
        for item in listing.checkpoints
        if (target is None or item.version <= target) and item.names not in unusable
    ]


def _select(
    store: LogStore, listing: LogListing, *, version: int | None, unusable: frozenset[tuple[str, ...]]
) -> LogSegment:
    if listing.is_empty:
        raise TableNotFoundError(
            f"Found no Delta table at {store.uri!r}.",
            cause="Its _delta_log holds no commit and no checkpoint.",
            fix="Check the URI, or create the table first.",
        )
    latest = listing.latest_version
    target = latest if version is None else version
    commits = {commit.version: commit for commit in listing.commits}
    usable = _usable(listing, target, unusable)
    checkpoint = usable[-1] if usable else None
    first = 0 if checkpoint is None else checkpoint.version + 1
    if target > latest or target < 0:
        raise _no_version(store, listing, target)
    if checkpoint is None and 0 not in commits and not unusable and listing.checkpoints:
        raise _no_version(store, listing, target)
    # Counted without listing the numbers, of which there may be up to 2^63.
    count = target + 1 - first - sum(first <= number <= target for number in commits)
    if count:
        missing = (number for number in range(first, target + 1) if number not in commits)
        raise _MissingCommits(list(islice(missing, MAX_LOOKUPS)), count)
    own = commits.get(target)
    return LogSegment(
        version=target,
        commits=tuple(commits[number] for number in range(first, target + 1)),
        checkpoint=checkpoint,
        version_file=None if own is None else own.info,
        compactions=_chosen_compactions(listing, first, target, unusable),
        checksum=listing.checksums.get(target),
    )


def _chosen_compactions(
    listing: LogListing, first: int, last: int, unusable: frozenset[tuple[str, ...]]
) -> tuple[CompactedFile, ...]:
    """The log compaction files to read instead of commits.

    Takes the longest usable file at each version, from the first version on. The number of files is small,
    but not guaranteed to be minimal.
    """
    longest: dict[int, CompactedFile] = {}
    for item in listing.compactions:  # of several files with one first version, the longest comes last
        # An empty file is more likely an incomplete write than a compaction of commits without effect.
        usable = item.info.size_bytes > 0 and (item.info.path,) not in unusable
        if usable and item.version < item.end_version <= last:
            longest[item.version] = item
    chosen = []
    version = first
    while version <= last:
        compaction = longest.get(version)
        if compaction is None:
            version += 1
            continue
        chosen.append(compaction)
        version = compaction.end_version + 1
    return tuple(chosen)


def earliest_readable_version(listing: LogListing) -> int | None:
    """The first version that can be read, from a complete listing; None without any."""
    if listing.commits and listing.commits[0].version == 0:
        return 0
    return listing.checkpoints[0].version if listing.checkpoints else None


def _no_version(store: LogStore, listing: LogListing, version: int) -> VersionNotFoundError:
    full = list_log(store)
    # A weakly consistent store may show fewer files in the second listing, or none.
    seen = [shown.latest_version for shown in (listing, full) if not shown.is_empty]
    if not seen:
        return VersionNotFoundError(
            f"Version {version} of {store.uri!r} is not in the log.",
            cause="The store lists no version at all.",
            fix="Open the table again. If the error persists, check the table's URI.",
        )
    return VersionNotFoundError(
        f"Version {version} of {store.uri!r} is not in the log.",
        cause=f"The log has the versions from {earliest_readable_version(full)} to {max(seen)}.",
        fix="Ask for a version in that range.",
    )


def _with_unlisted_tail(store: LogStore, listing: LogListing) -> LogListing:
    """The listing with newer commits that the store does not list yet, looked up by name."""
    commits = list(listing.commits)
    version = listing.latest_version if not listing.is_empty else -1
    while (commit := commit_file(store, version + 1)) is not None:
        commits.append(commit)
        version += 1
    return replace(listing, commits=tuple(commits))
