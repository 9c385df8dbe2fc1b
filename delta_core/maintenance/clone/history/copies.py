"""Which of the objects that the kept versions name are to be copied, which are there, which are gone."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from delta_core.errors import CloneError, MissingDataFileError, ObjectNotFoundError
from delta_core.maintenance.clone.history.named_files import NamedFiles, NamedObject
from delta_core.maintenance.clone.translation import Copy
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.log_store import LogStore
from delta_core.storage.side_by_side import MAX_REQUESTS


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


def plan_copies(
    named: NamedFiles, *, source: Snapshot, target: LogStore, present: Mapping[str, int]
) -> HistoryCopies:
    """Look for the objects. A walk of the source, and a request for each that the walk does not show.

    Args:
        named: what the kept versions name.
        source: the newest of them.
        target: the clone's store.
        present: sizes of what is in the clone's place, by path.

    Raises:
        MissingDataFileError: the newest version has a file that is gone.
        CloneError: a file of the clone has another size.
    """
    sizes = {info.path: info.size_bytes for info in source.store.walk()}
    found = _looked_up(named, sizes, source.store)
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


def _looked_up(named: NamedFiles, sizes: Mapping[str, int], source: LogStore) -> dict[str, int | None]:
    """The sizes of the objects; None for one that is not there."""

    def known(item: NamedObject) -> int | None:
        return sizes.get(item.place.path) if item.place.store.uri == source.uri else None

    found = {path: known(item) for path, item in named.objects.items()}
    # In another table, behind a link, or not shown yet by a store that is slow to list.
    unknown = [path for path, size_bytes in found.items() if size_bytes is None]
    with ThreadPoolExecutor(MAX_REQUESTS, thread_name_prefix="deltaward-look") as pool:
        asked = pool.map(lambda path: _size(named.objects[path]), unknown)
        found.update(zip(unknown, asked, strict=True))
    return found


def _size(item: NamedObject) -> int | None:
    try:
        return item.place.store.head(item.place.path).size_bytes
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
