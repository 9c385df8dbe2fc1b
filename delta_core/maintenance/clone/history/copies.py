"""Which of the objects that the kept versions name are to be copied, which are there, which are gone."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from delta_core.errors import CloneError, MissingDataFileError, ObjectNotFoundError
from delta_core.maintenance.clone.history.named_files import NamedFiles
from delta_core.maintenance.clone.translation import Copy
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import ObjectPlace
from delta_core.storage.log_store import LogStore
from delta_core.storage.parallel import MAX_REQUESTS

_FEW = 1000
"""So many objects are asked for by name; a store lists as many with one request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryCopies:
    """What to do with the objects.

    Attributes:
        missing: to be copied.
        present: in the clone already, with the size that they must have.
        gone: paths that the source does not have, which only versions before the newest one need.
    """

    missing: tuple[Copy, ...]
    present: tuple[Copy, ...]
    gone: tuple[str, ...]


def plan_copies(named: NamedFiles, *, source: Snapshot, target: LogStore) -> HistoryCopies:
    """Look for the objects, in the source and in the clone.

    Requests: of few objects two for each, side by side; of many a walk of both tables, and one for each
    object that the walk of the source does not show.

    Args:
        named: what the kept versions name.
        source: the newest of them.
        target: the clone's store.

    Raises:
        MissingDataFileError: the newest version has a file that is gone.
        CloneError: a file of the clone has another size.
    """
    found = _looked_up(named, source.store)
    present = _sizes(target, named.objects)
    missing, there, gone = [], [], []
    for path, item in named.objects.items():
        size_bytes = found.get(path)
        if size_bytes is None and path not in present:
            gone.append(path)
            continue
        copy = Copy(source=item.place, path=path, size_bytes=item.size_bytes)
        if path not in present:
            missing.append(copy)
            continue
        expected = size_bytes if item.size_bytes is None else item.size_bytes
        if expected is not None and present[path] != expected:
            raise CloneError(
                f"The file {path!r} of {target.uri} is no copy of the source's.",
                cause=f"It has {present[path]} bytes instead of {expected}.",
                fix="Clone to another place.",
            )
        if size_bytes is not None:
            there.append(copy)
    if gone:
        _require_unneeded(named, source, set(gone))
    return HistoryCopies(missing=tuple(missing), present=tuple(there), gone=tuple(gone))


def _looked_up(named: NamedFiles, source: LogStore) -> dict[str, int]:
    """The sizes of the objects that are there, by their paths in the clone."""
    places = {path: item.place for path, item in named.objects.items()}
    found: dict[str, int] = {}
    if len(places) > _FEW:
        own = {place.path: path for path, place in places.items() if place.store.uri == source.uri}
        for info in source.walk():
            if info.path in own:
                found[own[info.path]] = info.size_bytes
    # In another table, behind a link, or not shown yet by a store that is slow to list.
    return found | _asked({path: place for path, place in places.items() if path not in found})


def _sizes(store: LogStore, paths: Collection[str]) -> dict[str, int]:
    """The sizes of the objects that are there."""
    if len(paths) > _FEW:
        return {info.path: info.size_bytes for info in store.walk() if info.path in paths}
    return _asked({path: ObjectPlace(store, path) for path in paths})


def _asked(places: Mapping[str, ObjectPlace]) -> dict[str, int]:
    with ThreadPoolExecutor(MAX_REQUESTS, thread_name_prefix="deltaward-look") as pool:
        sizes = pool.map(_size, places.values())
        return {path: size for path, size in zip(places, sizes, strict=True) if size is not None}


def _size(place: ObjectPlace) -> int | None:
    try:
        return place.store.head(place.path).size_bytes
    except ObjectNotFoundError:
        return None


def _require_unneeded(named: NamedFiles, source: Snapshot, gone: set[str]) -> None:
    needed = sorted(gone & named.live_paths(source))
    if needed:
        raise MissingDataFileError(
            f"The file {needed[0]!r} of {source.store.uri} is missing.",
            cause=f"Version {source.version} has it, and the store does not.",
            fix="Restore the file, or the source to a version without it, and clone again.",
        )
