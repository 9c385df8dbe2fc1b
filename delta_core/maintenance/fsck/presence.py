"""Whether the store has what a log lists: for taking files out, so only a sure "no" counts as one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import ObjectNotFoundError, PathEscapeError
from delta_core.storage.data_access import RETRY_PAUSES_SECONDS, DataAccess, ObjectPlace
from delta_core.storage.log_store import LogStore
from delta_core.storage.parallel import parallel


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """Why an object cannot be read.

    Attributes:
        is_sure: the store was asked for the object by its name, and does not have it. Otherwise nobody can
            tell from here.
        reason: for people.
    """

    is_sure: bool
    reason: str


GONE = Absence(is_sure=True, reason="the store does not have it")


def absences(
    store: LogStore,
    places: Mapping[str, ObjectPlace | Absence],
    *,
    listed: Iterable[str] = (),
    allowed_roots: Sequence[LogStore] = (),
    clock: Clock = SYSTEM_CLOCK,
) -> dict[str, Absence]:
    """Those of some objects that are not there, or of which it cannot be told, by the key they were given.

    What a listing of the table shows is there. Whatever it does not show is asked for by its name: a listing
    may lag, and follows no links. A store whose listings lag is asked again, four times in a second and a
    half. A root besides the table's that shows no object at all may be one that is not there at the moment,
    such as a disk that is not mounted: then nothing is said to be gone from it.

    Args:
        store: the table's.
        places: where the objects are, or why nobody may look there.
        listed: paths below the table's root that a listing has shown.
        allowed_roots: as in `DataAccess`; links may lead there.
        clock: for pauses between tries.

    Raises:
        StorageError: the store could not say whether it has an object; then nothing is known of any.
    """
    access = DataAccess(allowed_roots=tuple(allowed_roots))
    shown = listed if isinstance(listed, set) else set(listed)
    found: dict[str, Absence] = {}
    asked: list[tuple[str, ObjectPlace]] = []
    for key, place in places.items():
        if isinstance(place, Absence):
            found[key] = place
        elif place.store.uri != store.uri or place.path not in shown:
            try:
                asked.append((key, access.followed(place)))
            except PathEscapeError:
                found[key] = Absence(is_sure=False, reason="a link on the way to it leads out of the table")
    asked.sort(key=lambda item: item[1].store.uri)
    for uri, group in groupby(asked, key=lambda item: item[1].store.uri):
        gone = _gone_of(dict(group), clock)
        absence = GONE
        if gone and uri != store.uri:
            root = next(root for root in allowed_roots if root.uri == uri)
            if next(iter(root.walk()), None) is None:
                absence = Absence(is_sure=False, reason=f"nothing at all is in {uri}, or it is not there")
        found.update(dict.fromkeys(gone, absence))
    return {key: found[key] for key in places if key in found}


def place_of(raw: str, store: LogStore, access: DataAccess) -> ObjectPlace | Absence:
    """Where a path in the log leads, or that nobody may look there."""
    try:
        return access.locate(raw, store=store)
    except PathEscapeError:
        return Absence(is_sure=False, reason="it is outside the table, below no root that is allowed")


def _gone_of(places: Mapping[str, ObjectPlace], clock: Clock) -> list[str]:
    """The keys of the objects that their store, which is the same for all, does not have."""
    gone = dict(places)
    store = next(iter(gone.values())).store
    for pause in (*(() if store.consistent_listing else RETRY_PAUSES_SECONDS), None):
        found = parallel(store, [partial(_has, place) for place in gone.values()])
        gone = {key: place for (key, place), there in zip(gone.items(), found, strict=True) if not there}
        if pause is None or not gone:
            break
        clock.sleep(pause)
    return list(gone)


def _has(place: ObjectPlace) -> bool:
    try:
        place.store.head(place.path)
    except ObjectNotFoundError:
        return False
    return True
