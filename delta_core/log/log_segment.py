"""Which files make up a version: at most one checkpoint and every commit after it.

A log compaction file may be read instead of the commits that it stands for (PROTOCOL.md, "Log Compaction
Files"); the commits must exist all the same, since a gap in them means that history was tampered with.
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
    may_leave_out,
    with_commits,
)
from delta_core.storage.log_store import LogStore, ObjectInfo

_LISTINGS = 4
_BACKOFF_SECONDS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSegment:
    """The files of one version.

    Attributes:
        commits: contiguous, ascending, the first one after the checkpoint, the last one `version`.
        checkpoint: None when the log is read from version 0.
        compactions: log compaction files that stand for some of the commits; ascending, none overlaps.
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
        """What is read to replay the commits: each by itself, or the compaction that stands for it.

        A compaction counts as its last version.
        """
        compacted = [CommitFile(version=item.end_version, info=item.info) for item in self.compactions]
        spared = {
            version for item in self.compactions for version in range(item.version, item.end_version + 1)
        }
        rest = [commit for commit in self.commits if commit.version not in spared]
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
        """The segment of the last of the commits that come next, of which there is one at least."""
        return replace(
            self,
            version=newer[-1].version,
            commits=self.commits + newer,
            version_file=newer[-1].info,
            checksum=checksum,
        )


class _MissingCommits(Exception):  # noqa: N818 - a signal inside this module
    """A hole; `versions` are the first of it, `count` are all: one stray name makes it any length."""

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

    A hole in the listing is looked up by name, and the log listed again, before it counts. Requests: the
    hint and one listing; a second one when no checkpoint that serves is where the hint says; on stores with
    weak listings one more that looks for the next version. Where listings may leave out names, one for a
    checkpoint's own commit that is not listed.

    Args:
        store: the table's store.
        version: the version to build.
        unusable: names of checkpoints and log compaction files that turned out to be damaged.
        clock: paces the repeated listings.

    Raises:
        TableNotFoundError: no commit and no checkpoint.
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
            from_version = 0  # the hint was wrong, or its checkpoint has gone and a later one come
            listing = list_log(store)
        if version is None and not store.consistent_listing:
            listing = _with_unlisted_tail(store, listing)
        try:
            return _select_named(store, listing, version=version, unusable=unusable)
        except _MissingCommits as gap:
            hole, from_version = gap, 0
    shown = ", ".join(map(str, hole.versions[:5])) + (", ..." if hole.count > 5 else "")
    raise LogGapError(
        f"The log of {store.uri!r} has a gap: version {shown} is missing, later ones exist.",
        cause="A commit was deleted, or the table was copied incompletely.",
        fix="Restore the missing file from a backup; without it later versions cannot be trusted.",
    )


def extend_segment(store: LogStore, segment: LogSegment) -> LogSegment | None:
    """The segment with the commits that came after it; None when the log must be read anew.

    It must be read anew when the table at this URI is not the one the segment was made of, when commits
    are missing, or when a newer checkpoint saves reading many of them. One listing.
    """
    listing = list_log(store, from_version=segment.version)
    if not store.consistent_listing:
        listing = _with_unlisted_tail(store, with_commits(store, listing, [segment.version]))
    found = {commit.version: commit for commit in listing.commits}
    own = found.get(segment.version)
    if own is None or (segment.version_file is not None and own.info != segment.version_file):
        return None
    latest = max(found)
    if len(found) != latest - segment.version + 1 or listing.latest_version > latest:
        return None
    if latest == segment.version:
        return segment
    newer = tuple(found[version] for version in range(segment.version + 1, latest + 1))
    if len(newer) > 100 and any(item.version > segment.version for item in listing.checkpoints):
        return None
    return segment.followed_by(newer, listing.checksums.get(latest))


def _select_named(
    store: LogStore, listing: LogListing, *, version: int | None, unusable: frozenset[tuple[str, ...]]
) -> LogSegment:
    """As `_select`, with commits that the listing lacks looked up by name."""
    try:
        segment = _select(store, listing, version=version, unusable=unusable)
    except _MissingCommits as gap:
        if gap.count > MAX_LOOKUPS:
            raise  # so many cannot be looked up, and a part of them does not help
        named = with_commits(store, listing, gap.versions)
        segment = _select(store, named, version=version, unusable=unusable)
    if segment.version_file is None and may_leave_out(store):
        # Its checkpoint was listed. Nothing is replayed from the commit, but it says the version's time.
        own = commit_file(store, segment.version)
        return replace(segment, version_file=None if own is None else own.info)
    return segment


def _usable(
    listing: LogListing, target: int | None, unusable: frozenset[tuple[str, ...]]
) -> list[CheckpointFiles]:
    """The checkpoints that a version (None: any) can be read from, best last."""
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
            f"There is no Delta table at {store.uri!r}.",
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
    # Counted before the numbers are made: they may go up to 2^63.
    count = target + 1 - first - sum(first <= number <= target for number in commits)
    if count:
        gone = (number for number in range(first, target + 1) if number not in commits)
        raise _MissingCommits(list(islice(gone, MAX_LOOKUPS)), count)
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
    """From the first version on, always the longest one that fits; fewest files, not provably the fewest."""
    longest: dict[int, CompactedFile] = {}
    for item in listing.compactions:  # of one first version the longest comes last
        # An empty one is more likely half-written than the sum of commits that did nothing.
        usable = item.info.size_bytes > 0 and (item.info.path,) not in unusable
        if usable and item.version < item.end_version <= last:
            longest[item.version] = item
    chosen = []
    version = first
    while version <= last:
        found = longest.get(version)
        if found is None:
            version += 1
            continue
        chosen.append(found)
        version = found.end_version + 1
    return tuple(chosen)


def earliest_readable_version(listing: LogListing) -> int | None:
    """The first version that can be built from a full listing, or None."""
    if listing.commits and listing.commits[0].version == 0:
        return 0
    return listing.checkpoints[0].version if listing.checkpoints else None


def _no_version(store: LogStore, listing: LogListing, version: int) -> VersionNotFoundError:
    full = list_log(store)
    # A store that is slow to show what was written may have shown more the first time, or nothing at all.
    seen = [found.latest_version for found in (listing, full) if not found.is_empty]
    if not seen:
        return VersionNotFoundError(
            f"Version {version} of {store.uri!r} is not in the log.",
            cause="The store lists no version at all.",
            fix="Try again; if it stays so, check the table's URI.",
        )
    return VersionNotFoundError(
        f"Version {version} of {store.uri!r} is not in the log.",
        cause=f"The log reaches from version {earliest_readable_version(full)} to {max(seen)}.",
        fix="Ask for a version in that range.",
    )


def _with_unlisted_tail(store: LogStore, listing: LogListing) -> LogListing:
    """The listing with newer commits that a stale listing has not shown yet."""
    commits = list(listing.commits)
    version = listing.latest_version if not listing.is_empty else -1
    while (found := commit_file(store, version + 1)) is not None:
        commits.append(found)
        version += 1
    return replace(listing, commits=tuple(commits))
