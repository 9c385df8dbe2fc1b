"""Lookup of a log's files in the store. Files count as missing only when the store's answer is certain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import groupby

from delta_core.clock import Clock
from delta_core.errors import ObjectNotFoundError, PathEscapeError
from delta_core.storage.data_access import RETRY_PAUSES_SECONDS, TABLE_ONLY, DataAccess, ObjectLocation
from delta_core.storage.log_store import LogStore
from delta_core.storage.parallel import parallel


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """Why an object cannot be read.

    Attributes:
        is_sure: True when the store was asked for the object by its name, and does not have it. Otherwise it
            is unknown whether the object exists.
        reason: an explanation for users.
    """

    is_sure: bool
    reason: str


_MISSING = Absence(is_sure=True, reason="the store does not have the file")


def absences(
    store: LogStore,
    places: Mapping[str, ObjectLocation | Absence],
    *,
    listed: Iterable[str] = (),
    access: DataAccess = TABLE_ONLY,
) -> dict[str, Absence]:
    """The objects that are missing, or whose existence is unknown, by their keys in `places`.

    An object in the listing exists. Every other object is looked up by its name, since a listing may lag and
    does not follow links. A store whose listings lag is asked again, four times within 1.5 seconds. A root
    other than the table's that has no objects may be unavailable at the moment, such as a disk that is not
    mounted. No object counts as missing from such a root.

    Args:
        store: the table's store.
        places: the places of the objects, or why a place must not be read.
        listed: paths below the table's root that a listing has shown.
        access: the roots besides the table's to which links may lead, and the clock of the pauses between
            attempts.

    Raises:
        StorageError: the store failed to report whether it has an object. The other objects stay unchecked.
    """
    shown = listed if isinstance(listed, set) else set(listed)
    absent: dict[str, Absence] = {}
    asked: list[tuple[str, ObjectLocation]] = []
    for key, place in places.items():
        if isinstance(place, Absence):
            absent[key] = place
        elif place.store.uri != store.uri or place.path not in shown:
            try:
                asked.append((key, access.followed(place)))
            except PathEscapeError:
                absent[key] = Absence(is_sure=False, reason="a link in its path leads outside the table")
    asked.sort(key=lambda item: item[1].store.uri)
    for uri, group in groupby(asked, key=lambda item: item[1].store.uri):
        missing = _missing_keys(dict(group), access.clock)
        absence = _MISSING
        if missing and uri != store.uri:
            root = next(root for root in access.allowed_roots if root.uri == uri)
            if next(iter(root.walk()), None) is None:
                absence = Absence(is_sure=False, reason=f"{uri} is empty or unavailable")
        absent.update(dict.fromkeys(missing, absence))
    return {key: absent[key] for key in places if key in absent}


def place_of(raw: str, store: LogStore, access: DataAccess) -> ObjectLocation | Absence:
    """The place that a path in the log leads to, or an `Absence` when that place must not be read."""
    try:
        return access.locate(raw, store=store)
    except PathEscapeError:
        return Absence(is_sure=False, reason="the file is outside the table and the allowed roots")


def _missing_keys(places: Mapping[str, ObjectLocation], clock: Clock) -> list[str]:
    """The keys of the objects that their store does not have. All objects must be in the same store."""
    missing = dict(places)
    store = next(iter(missing.values())).store
    for pause in (*(() if store.consistent_listing else RETRY_PAUSES_SECONDS), None):
        exists = parallel(store, [partial(_has, place) for place in missing.values()])
        missing = {key: place for (key, place), has in zip(missing.items(), exists, strict=True) if not has}
        if pause is None or not missing:
            break
        clock.sleep(pause)
    return list(missing)


def _has(place: ObjectLocation) -> bool:
    try:
        place.store.head(place.path)
    except ObjectNotFoundError:
        return False
    return True
