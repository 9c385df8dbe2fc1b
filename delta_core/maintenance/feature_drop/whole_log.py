"""All of a log, for who asks what is not in it.

Whoever reads a table is served well enough by what a listing shows. Who drops a feature concludes from what
it does not show: a commit that is there and not listed may be the one that needs the feature, and a log whose
beginning is not listed looks as if it had been cleaned up.
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
        listing: with every commit that is there, listed or not.
        oldest: the oldest version that the log can still show, as far as can be told: no younger one is.
        begin: the oldest version from which every later one can be followed commit by commit; younger than
            `oldest` where the log has a hole, or where an older checkpoint may be there and not listed.
    """

    listing: LogListing
    oldest: int
    begin: int

    @classmethod
    def of(cls, snapshot: Snapshot) -> WholeLog:
        """The log of a table up to the snapshot's version.

        Requests: one listing; where listings lag, a look at every commit that is not listed, and at the one
        before the first.

        Raises:
            LogGapError: a commit is missing that no checkpoint makes up for.
            StaleListingError: more commits are not listed than are looked up by name.
        """
        listing = list_log(snapshot.store)
        if not snapshot.store.consistent_listing:
            listing = _with_unlisted(snapshot.store, listing, snapshot.version)
        oldest = earliest_readable_version(listing)
        begin = _begin(listing, snapshot.version)
        if oldest is None or begin is None:
            raise LogGapError(
                f"The log of {snapshot.store.uri!r} has a gap before version {snapshot.version}.",
                cause="A commit was deleted, or the store does not show it.",
                fix="Try again; if it stays so, restore the missing file from a backup.",
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
    """The listing with the commits before, in and after it that it leaves out."""
    first = listing.commits[0].version if listing.commits else version + 1
    listed = {commit.version for commit in listing.commits}
    later = [number for number in range(first, version + 1) if number not in listed]
    named = [*_before(store, first), *later]
    if len(named) > MAX_LOOKUPS:
        raise StaleListingError(
            f"The store leaves {len(named)} or more commits of {store.uri!r} out of its listing.",
            cause="It shows new objects late, and so many are not looked up by name.",
            fix="Try again in a while.",
        )
    return with_commits(store, listing, named)


def _before(store: LogStore, first: int) -> Iterator[int]:
    """Commits right before the first one that is listed."""
    for version in range(first - 1, max(first - 2 - MAX_LOOKUPS, -1), -1):
        if commit_file(store, version) is None:
            return
        yield version
