"""A complete listing of the log, for checks that depend on the absence of commits.

A listing that lags is sufficient for reading a table, but not for dropping a feature. A commit that exists
and is not listed may use the feature, and a log whose beginning is not listed looks like a log that was
cleaned up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from delta_core.errors import LogGapError, StaleListingError
from delta_core.log.listing import MAX_LOOKUPS, LogListing, commit_file, list_log, with_commits
from delta_core.log.log_segment import earliest_readable_version
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import LogStore


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeLog:
    """A log up to a version.

    Attributes:
        listing: every existing commit, including those that the store did not list.
        oldest: a lower bound of the oldest readable version.
        begin: the oldest version after which every commit exists. It is later than `oldest` when the log has
            a gap, or when an older checkpoint may exist without being listed.
    """

    listing: LogListing
    oldest: int
    begin: int

    @classmethod
    def of(cls, snapshot: Snapshot) -> WholeLog:
        """The log of a table up to the snapshot's version.

        Requests: one listing; if the store's listings may lag, one for every commit that is not listed, and
        one for the commit before the first listed one.

        Raises:
            LogGapError: a commit is missing, and no checkpoint replaces it.
            StaleListingError: the number of unlisted commits exceeds the number that is looked up by name.
        """
        listing = list_log(snapshot.store)
        if not snapshot.store.consistent_listing:
            listing = _with_unlisted(snapshot.store, listing, snapshot.version)
        oldest = earliest_readable_version(listing)
        begin = _begin(listing, snapshot.version)
        if oldest is None or begin is None:
            raise LogGapError(
                f"The log of {snapshot.store.uri!r} has a gap before version {snapshot.version}.",
                cause="A commit was deleted, or the store does not list it.",
                fix="Drop the feature again. If the error remains, restore the missing file from a backup.",
            )
        if not snapshot.store.consistent_listing and listing.commits:
            oldest = min(oldest, listing.commits[0].version)
        return cls(listing=listing, oldest=oldest, begin=begin)


def _begin(listing: LogListing, version: int) -> int | None:
    commits = {commit.version for commit in listing.commits}
    first = version + 1
    while first - 1 in commits:
        first -= 1
    begins = [item.version for item in listing.checkpoints if item.version <= version]
    begins += [0] if 0 in commits else []
    return min((begin for begin in begins if begin >= first - 1), default=None)


def _with_unlisted(store: LogStore, listing: LogListing, version: int) -> LogListing:
    """The listing with the existing commits before, in and after it that the store did not list."""
    first = listing.commits[0].version if listing.commits else version + 1
    listed = {commit.version for commit in listing.commits}
    later = [number for number in range(first, version + 1) if number not in listed]
    candidates = [*_before(store, first), *later]
    if len(candidates) > MAX_LOOKUPS:
        raise StaleListingError(
            f"The store does not list {len(candidates)} or more commits of {store.uri!r}.",
            cause=f"The store lists new objects late. At most {MAX_LOOKUPS} commits are looked up by name.",
            fix="Drop the feature again later, when the store lists these commits.",
        )
    return with_commits(store, listing, candidates)


def _before(store: LogStore, first: int) -> Iterator[int]:
    """The existing commits directly before the first listed one."""
    for version in range(first - 1, max(first - 2 - MAX_LOOKUPS, -1), -1):
        if commit_file(store, version) is None:
            return
        yield version
