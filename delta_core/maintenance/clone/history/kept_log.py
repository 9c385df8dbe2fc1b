"""The files of the source's log that a clone with history copies.

They begin with commit 0, or with a checkpoint after which every commit exists (PROTOCOL.md, "Delta Log
Entries", "Checkpoints"; a log that was cleaned up starts at a checkpoint).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from delta_core.errors import CloneError, LogGapError, VersionNotFoundError
from delta_core.log.listing import CheckpointFiles, CommitFile, CompactedFile, LogListing
from delta_core.storage.log_store import ObjectInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptLog:
    """The files of the source's log to copy.

    Attributes:
        first_version: the oldest readable version; for an existing clone, its newest version.
        version: the last version.
        is_whole: False when the clone exists already and only later versions are copied.
        commits: ascending, without a gap; the first may be `first_version` + 1, after its checkpoint.
        checkpoints: the checkpoints of those versions, ascending.
        compactions: the log compactions of those versions, ascending by the last version of each.
        checksums: the checksums of those versions.
    """

    first_version: int
    version: int
    is_whole: bool
    commits: tuple[CommitFile, ...]
    checkpoints: tuple[CheckpointFiles, ...]
    compactions: tuple[CompactedFile, ...]
    checksums: tuple[tuple[int, ObjectInfo], ...]

    @property
    def starts_at_checkpoint(self) -> bool:
        """Whether the first version is read from a checkpoint and not from commit 0."""
        return self.is_whole and self.first_version > 0


def whole_log(listing: LogListing, *, version: int, from_version: int | None, uri: str) -> KeptLog:
    """The log from its oldest readable version, or from `from_version`, to `version`.

    When `from_version` has no checkpoint, the log begins at the newest checkpoint before it.

    Args:
        listing: the listing of the source's log.
        version: the last version.
        from_version: a version that must be readable; None for every readable version.
        uri: the source's URI, for messages.

    Raises:
        VersionNotFoundError: `from_version` is no longer readable, or later than the last version.
        LogGapError: the listing has no start from which the last version can be read.
    """
    numbers = [commit.version for commit in listing.commits if commit.version <= version]
    unbroken = version + 1
    while numbers and numbers[-1] == unbroken - 1:
        unbroken = numbers.pop()
    starts = {item.version for item in listing.checkpoints if unbroken - 1 <= item.version <= version}
    if unbroken == 0:
        starts.add(0)
    if not starts:
        raise LogGapError(
            f"The log of {uri!r} has no checkpoint from which version {version} can be read.",
            cause="A commit is missing, or a log clean-up deleted files after the version was opened.",
            fix="Clone again. If the error remains, restore the missing file from a backup.",
        )
    if from_version is not None and not min(starts) <= from_version <= version:
        raise VersionNotFoundError(
            f"The history of {uri!r} cannot be cloned from version {from_version} on.",
            cause=f"The log can be read from version {min(starts)} to version {version}.",
            fix="Pass a history_from in that range, or leave it out.",
        )
    first = min(starts) if from_version is None else max(one for one in starts if one <= from_version)
    return _cut(listing, first, version, is_whole=True)


def later_log(listing: LogListing, *, after: int, version: int, uri: str) -> KeptLog:
    """The source's log from version `after`, the clone's newest version, to `version`.

    The log files of version `after` are part of it, because the clone may lack some of them.

    Raises:
        CloneError: the source's log no longer has a commit that the clone lacks.
    """
    kept = _cut(listing, after, version, is_whole=False)
    expected = list(range(after + 1, version + 1))
    if [commit.version for commit in kept.commits if commit.version > after] != expected:
        raise CloneError(
            f"The clone at version {after} cannot be continued with the history of {uri}.",
            cause=f"The source's log no longer has every commit from version {after + 1} to {version}.",
            fix="Clone to another location.",
        )
    return kept


def _cut(listing: LogListing, first: int, last: int, *, is_whole: bool) -> KeptLog:
    def has(version: int) -> bool:
        return first <= version <= last

    compactions: Sequence[CompactedFile] = [
        item for item in listing.compactions if first < item.version and item.end_version <= last
    ]
    return KeptLog(
        first_version=first,
        version=last,
        is_whole=is_whole,
        commits=tuple(commit for commit in listing.commits if has(commit.version)),
        checkpoints=tuple(item for item in listing.checkpoints if has(item.version)),
        compactions=tuple(sorted(compactions, key=lambda item: item.end_version)),
        checksums=tuple((number, info) for number, info in listing.checksums.items() if has(number)),
    )
