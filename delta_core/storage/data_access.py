"""Finding and opening what a table's log lists: data files, change data files, deletion vectors.

The one place that decides where such an object may be and when it counts as missing. Besides the table's
own root there can be others that the caller allows, for reading the files that a shallow clone shares with
its source. Whatever is written or deleted lies below the table's own, whoever allows what.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import (
    ConfigurationError,
    MissingDataFileError,
    ObjectNotFoundError,
    PathEscapeError,
)
from delta_core.storage.log_store import LogStore
from delta_core.storage.open import open_store
from delta_core.storage.uri import local_path_of_uri, resolve_data_location, uri_scheme

if TYPE_CHECKING:
    import pyarrow as pa

RETRY_PAUSES_SECONDS = (0.1, 0.4, 1.0)
"""How long to wait between tries at an object that a store may not show yet."""


@dataclass(frozen=True, slots=True)
class ObjectPlace:
    """Where an object is: a store, and the path below its root, decoded."""

    store: LogStore
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DataAccess:
    """How the objects that a log lists are found and opened.

    Attributes:
        allowed_roots: stores below whose roots absolute paths may lead, besides the table's own.
        clock: for pauses between tries.
    """

    allowed_roots: tuple[LogStore, ...] = ()
    clock: Clock = SYSTEM_CLOCK

    def locate(self, raw_log_path: str, *, store: LogStore) -> ObjectPlace:
        """Where the object is that a path in the log of the store's table names.

        Raises:
            PathEscapeError: neither below the table's root nor below one that is allowed.
        """
        root_uri, path = resolve_data_location(
            raw_log_path, root_uri=store.uri, allowed_root_uris=[root.uri for root in self.allowed_roots]
        )
        return ObjectPlace(next(s for s in (store, *self.allowed_roots) if s.uri == root_uri), path)

    def followed(self, place: ObjectPlace) -> ObjectPlace:
        """Where `open` looks for an object: behind the links on the way to it.

        Raises:
            PathEscapeError: a link leads out of the roots.
        """
        return self._behind_links(place.store, place.path)

    def open_logged(self, raw_log_path: str, *, store: LogStore) -> pa.NativeFile:
        """A seekable reader of the data file that a path in the log of the store's table names: see `open`.

        Raises:
            MissingDataFileError: the store does not have it.
            PathEscapeError: it is below none of the roots, or a link leads out of them.
        """
        place = self.locate(raw_log_path, store=store)
        return self.open(place.store, place.path)

    def open(self, store: LogStore, path: str, *, kind: str = "data file", fix: str = "") -> pa.NativeFile:
        """A seekable reader of an object that a log lists.

        A store that may not show yet what was written is asked again, four times in a second and a half.
        On a local disk, links below a root are followed as long as they stay below it or lead below an
        allowed one; a root itself may be a link.

        Args:
            store: the store that has it.
            path: below the store's root, decoded.
            kind: what it is, for messages.
            fix: what to do when it is missing, for messages.

        Raises:
            MissingDataFileError: the store does not have it.
            PathEscapeError: a link leads out of the roots.
        """
        place = self._behind_links(store, path)
        pauses = () if place.store.consistent_listing else RETRY_PAUSES_SECONDS
        for pause in pauses:
            try:
                return place.store.open_input(place.path)
            except ObjectNotFoundError:
                self.clock.sleep(pause)
        try:
            return place.store.open_input(place.path)
        except ObjectNotFoundError as error:
            raise MissingDataFileError(
                f"The {kind} {path} is missing",
                cause="The log lists it, but the store does not have it",
                fix=fix
                or "Restore the file; if it is lost for good, repair() takes it out of the newest version",
            ) from error

    def require_reach(self, raw_log_paths: Iterable[str], *, store: LogStore) -> None:
        """Make sure that objects may be opened, for who must know before the first of them is.

        Whether they are there is not looked at. Cost: as `require_no_way_out`.

        Raises:
            PathEscapeError: one is below none of the roots, or a link leads out of them.
        """
        found: dict[str, tuple[LogStore, list[str]]] = {}
        for raw in raw_log_paths:
            place = self.locate(raw, store=store)
            found.setdefault(place.store.uri, (place.store, []))[1].append(place.path)
        for root, paths in found.values():
            self.require_no_way_out(root, paths)

    def require_no_way_out(self, store: LogStore, paths: Iterable[str]) -> None:
        """Make sure that no link leads out of the roots, for objects that others will open, such as Spark.

        Args:
            store: the store that has them.
            paths: below its root, decoded.

        Raises:
            PathEscapeError: a link leads out of the roots.

        Cost: on a local disk two system calls for each object and directory; elsewhere none.
        """
        if uri_scheme(store.uri) != "file":
            return
        root = str(local_path_of_uri(store.uri))
        inside: dict[str, bool] = {}
        for path in paths:
            full = os.path.join(root, path)
            directory = os.path.dirname(full)
            if directory not in inside:
                inside[directory] = directory == root or os.path.realpath(directory) == directory
            if not inside[directory] or os.path.islink(full):
                self._behind_links(store, path)

    def _behind_links(self, store: LogStore, path: str) -> ObjectPlace:
        if uri_scheme(store.uri) != "file":
            return ObjectPlace(store, path)
        root = str(local_path_of_uri(store.uri))
        real = os.path.realpath(os.path.join(root, path))
        if _is_below(real, root):
            return ObjectPlace(store, path)
        for allowed in self.allowed_roots:
            other = str(local_path_of_uri(allowed.uri)) if uri_scheme(allowed.uri) == "file" else ""
            if other and _is_below(real, other):
                return ObjectPlace(allowed, os.path.relpath(real, other))
        raise PathEscapeError(
            f"The path {path!r} is a link out of the root {store.uri!r}.",
            cause="It, or a directory on the way, is a symbolic link.",
            fix="Put the file itself into the table, or allow the root that the link leads to.",
        )


TABLE_ONLY = DataAccess()
"""Nothing outside the table is opened."""


def open_allowed_roots(
    uris: Iterable[str | os.PathLike[str]],
    *,
    storage_options: Mapping[str, str] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> tuple[LogStore, ...]:
    """The stores of `DataAccess.allowed_roots`. Makes no request.

    Raises:
        InvalidUriError: no store serves a URI.
        ConfigurationError: a root is one text instead of several, or the whole file system.
    """
    if not isinstance(uris, Iterable):
        raise ConfigurationError(
            f"The allowed roots are of the type {type(uris).__name__}.",
            cause="There may be several.",
            fix="Pass a list of URIs or paths, an empty one for none.",
        )
    if isinstance(uris, str | os.PathLike):
        raise ConfigurationError(
            f"The allowed roots are the one text {os.fspath(uris)!r}.", fix="Pass a list of URIs or paths."
        )
    stores: Sequence[LogStore] = [
        open_store(uri, storage_options=storage_options, clock=clock) for uri in uris
    ]
    for store in stores:
        if uri_scheme(store.uri) == "file" and len(local_path_of_uri(store.uri).parts) < 2:
            raise ConfigurationError(
                "The whole file system is an allowed root.",
                cause="Then a log could name any file of this machine.",
                fix="Allow the roots of the tables that share their files with this one.",
            )
    return tuple(stores)


def _is_below(path: str, root: str) -> bool:
    return path.startswith(root.rstrip("/") + "/")
