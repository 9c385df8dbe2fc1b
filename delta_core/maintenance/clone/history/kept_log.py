"""Which files of the source's log are the history that a clone keeps.

They begin with commit 0, or with the checkpoint of a version of which all later commits are there
(PROTOCOL.md, "Delta Log Entries", "Checkpoints"; a log that was cleaned up starts at a checkpoint).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from delta_core.errors import CloneError, LogGapError, VersionNotFoundError
from delta_core.log.listing import CheckpointFiles, CommitFile, CompactedFile, LogListing
from delta_core.storage.log_store import ObjectInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptLog:
    """Files of the source's log.

    Attributes:
        first_version: where it can be read from; of a clone that goes on, the first version that is new.
        version: the last one.
        is_whole: False where it goes on from what the clone has.
        commits: ascending, without a gap; the first may be `first_version` + 1, after its checkpoint.
        checkpoints: of those versions, ascending.
        compactions: of those versions, ascending by the last version of each.
        checksums: of those versions.
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
        """Whether the first version is read from a checkpoint, not from commit 0."""
        return self.is_whole and self.first_version > 0


def whole_log(listing: LogListing, *, version: int, from_version: int | None, uri: str) -> KeptLog:
    """The log from its oldest readable version on, or from a named one.

    Where the named version has no checkpoint the log begins at the newest one before it.

    Args:
        listing: of the source's whole log.
        version: the last version.
        from_version: a version that is to be readable; None for all that are.
        uri: the source's, for messages.

    Raises:
        VersionNotFoundError: the named version cannot be read any more, or lies behind the last.
        LogGapError: no version up to the last one can be read from the listing.
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
            f"The log of {uri!r} cannot be read up to version {version} from any of its checkpoints.",
            cause="A commit or a checkpoint went since the version was opened, or a commit is missing.",
            fix="Clone again; if that does not help, restore the file from a backup.",
        )
    if from_version is not None and not min(starts) <= from_version <= version:
        raise VersionNotFoundError(
            f"The history of {uri!r} cannot be kept from version {from_version} on.",
            cause=f"It can be read from version {min(starts)} to {version}.",
            fix="Name a version in that range, or none.",
        )
    first = min(starts) if from_version is None else max(one for one in starts if one <= from_version)
    return _cut(listing, first, version, is_whole=True)


def later_log(listing: LogListing, *, after: int, version: int, uri: str) -> KeptLog:
    """What is new since the clone's newest version, which belongs to it: its checkpoint may be missing.

    Raises:
        CloneError: commits that the clone does not have are gone from the source's log.
    """
    kept = _cut(listing, after, version, is_whole=False)
    expected = list(range(after + 1, version + 1))
    if [commit.version for commit in kept.commits if commit.version > after] != expected:
        raise CloneError(
            f"The clone, at version {after}, cannot go on with the history of {uri}.",
            cause=f"The source's log no longer has every commit from version {after + 1} to {version}.",
            fix="Clone to another place.",
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
