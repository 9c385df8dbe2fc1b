"""The copies of a clone with history: objects to copy, objects already copied, and missing objects."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from delta_core.errors import CloneError, MissingDataFileError, ObjectNotFoundError
from delta_core.maintenance.clone.history.referenced_files import ReferencedFiles
from delta_core.maintenance.clone.translation import Copy
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.data_access import ObjectLocation
from delta_core.storage.log_store import LogStore
from delta_core.storage.parallel import MAX_REQUESTS

_FEW = 1000
"""Up to this many objects are looked up by name. A store lists as many with one request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryCopies:
    """The objects that the kept versions refer to, by what must be done with them.

    Attributes:
        to_copy: objects that the clone does not have yet.
        present: objects that the clone has with the expected size.
        missing: paths of objects that the source does not have, and that the newest version does not need.
    """

    to_copy: tuple[Copy, ...]
    present: tuple[Copy, ...]
    missing: tuple[str, ...]


def plan_copies(referenced: ReferencedFiles, *, source: Snapshot, target: LogStore) -> HistoryCopies:
    """Look up the objects in the source and in the clone.

    Requests: for few objects, two for each, in parallel; for many objects, a listing of both tables and one
    request for each object that the listing of the source does not show.

    Args:
        referenced: the objects that the kept versions refer to.
        source: the newest kept version.
        target: the clone's store.

    Raises:
        MissingDataFileError: the source does not have a file of the newest version.
        CloneError: a file of the clone has an unexpected size.
    """
    source_sizes = _source_sizes(referenced, source.store)
    target_sizes = _sizes(target, referenced.objects)
    to_copy, present, missing = [], [], []
    for path, item in referenced.objects.items():
        size_bytes = source_sizes.get(path)
        if size_bytes is None and path not in target_sizes:
            missing.append(path)
            continue
        copy = Copy(source=item.place, path=path, size_bytes=item.size_bytes)
        if path not in target_sizes:
            to_copy.append(copy)
            continue
        expected = size_bytes if item.size_bytes is None else item.size_bytes
        if expected is not None and target_sizes[path] != expected:
            raise CloneError(
                f"The file {path!r} of {target.uri} is not a copy of the source's file.",
                cause=f"The file has {target_sizes[path]} bytes instead of {expected}.",
                fix="Clone to another location.",
            )
        if size_bytes is not None:
            present.append(copy)
    if missing:
        _require_unneeded(referenced, source, set(missing))
    return HistoryCopies(to_copy=tuple(to_copy), present=tuple(present), missing=tuple(missing))


def _source_sizes(referenced: ReferencedFiles, source: LogStore) -> dict[str, int]:
    """The sizes of the objects that the source has, by their paths in the clone."""
    places = {path: item.place for path, item in referenced.objects.items()}
    sizes: dict[str, int] = {}
    if len(places) > _FEW:
        own = {place.path: path for path, place in places.items() if place.store.uri == source.uri}
        for info in source.walk():
            if info.path in own:
                sizes[own[info.path]] = info.size_bytes
    # The rest may be in another table, behind a link, or not listed yet by a store whose listings lag.
    return sizes | _head_sizes({path: place for path, place in places.items() if path not in sizes})


def _sizes(store: LogStore, paths: Collection[str]) -> dict[str, int]:
    """The sizes of the objects that exist."""
    if len(paths) > _FEW:
        return {info.path: info.size_bytes for info in store.walk() if info.path in paths}
    return _head_sizes({path: ObjectLocation(store, path) for path in paths})


def _head_sizes(places: Mapping[str, ObjectLocation]) -> dict[str, int]:
    with ThreadPoolExecutor(MAX_REQUESTS, thread_name_prefix="deltaward-look") as pool:
        sizes = pool.map(_size, places.values())
        return {path: size for path, size in zip(places, sizes, strict=True) if size is not None}


def _size(place: ObjectLocation) -> int | None:
    try:
        return place.store.head(place.path).size_bytes
    except ObjectNotFoundError:
        return None


def _require_unneeded(referenced: ReferencedFiles, source: Snapshot, missing: set[str]) -> None:
    needed = sorted(missing & referenced.live_paths(source))
    if needed:
        raise MissingDataFileError(
            f"The file {needed[0]!r} of {source.store.uri} is missing.",
            cause=f"Version {source.version} refers to the file, but the store does not have it.",
            fix="Recover the file, or restore the source to a version without it. Then clone again.",
        )
