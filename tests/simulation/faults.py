"""What can go wrong in one history: which kinds, and how often.

Each history draws a subset of the kinds (a swarm): a fault that always occurs hides what happens without
it, and faults that all occur at once let little else happen.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from random import Random

RATES = (0.02, 0.1, 0.3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """Rates per request; 0 where the kind does not occur.

    Attributes:
        weak: listings lag and reads of missing names are cached (`consistent_listing` is False).
        lost_request: a write is lost, the client sees a broken connection.
        lost_response: a write lands, the client sees a broken connection.
        late: as `lost_request`, but the write lands afterwards, up to a quarter of an hour later.
        duplicate: a write lands, and is delivered a second time afterwards.
        exists_unwritten: nothing is written, the client reports that the name is taken (409, 412).
        exists_mine: the write lands, the client's second attempt is told that the name is taken (412).
        unavailable: an error of the server, nothing is written (503).
        internal: an error of the server, and the write lands (500).
        denied: refused; nothing is written.
        read: a read, listing or deletion fails.
        stale_listing: a listing shows an earlier state. Weak stores alone.
        truncated_listing: a listing lacks its end, or some of its entries. Weak stores alone.
        duplicated_listing: a listing repeats entries. Weak stores alone.
        negative_cache: a read that finds nothing hides the object for a minute. Weak stores alone.
        torn_listing: other workers go on while a directory is read, and each name that they make meanwhile is
            met or not. Stores that are not remote alone.
        pause: the worker is held before or after a request, for up to 40 days.
        held_commit: the worker is held right before a create-only write, for up to 40 days: no check that it
            has made can be relied upon any more.
        crash: the worker's process ends before or after a request.
    """

    weak: bool = False
    lost_request: float = 0.0
    lost_response: float = 0.0
    late: float = 0.0
    duplicate: float = 0.0
    exists_unwritten: float = 0.0
    exists_mine: float = 0.0
    unavailable: float = 0.0
    internal: float = 0.0
    denied: float = 0.0
    read: float = 0.0
    stale_listing: float = 0.0
    truncated_listing: float = 0.0
    duplicated_listing: float = 0.0
    negative_cache: float = 0.0
    pause: float = 0.0
    held_commit: float = 0.0
    crash: float = 0.0
    torn_listing: float = 0.0

    @classmethod
    def draw(cls, random: Random) -> Faults:
        """A subset of the kinds, each at a rate of its own."""
        weak = random.random() < 0.3
        rates = {}
        for name in RATED:
            chosen = random.random() < 0.35
            rate = random.choice(RATES)
            if chosen and (weak or name not in _WEAK_ALONE):
                # These strike at every request, of which a job makes dozens.
                rates[name] = rate / 10 if name in ("read", "pause", "crash") else rate
        return cls(weak=weak, **rates)

    def with_torn_listings(self, random: Random) -> Faults:
        """The same, perhaps with torn listings; drawn last, so that older seeds still draw the rest."""
        return replace(self, torn_listing=random.choice((0.0, *RATES)))

    def shown(self) -> str:
        """The kinds that occur, for messages."""
        found = [f"{name}={value}" for name, value in asdict(self).items() if value]
        return " ".join(found) or "none"


RATED = tuple(item.name for item in fields(Faults) if item.name not in ("weak", "torn_listing"))
_WEAK_ALONE = ("stale_listing", "truncated_listing", "duplicated_listing", "negative_cache")
WRITE_FAULTS = (
    "lost_request",
    "lost_response",
    "late",
    "duplicate",
    "exists_unwritten",
    "exists_mine",
    "unavailable",
    "internal",
    "denied",
)
