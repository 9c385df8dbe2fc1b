"""Access to the objects that a table's log lists: data files, change data files, deletion vectors.

This is the only module that decides where such an object may be and when it counts as missing. Besides the
table's own root, the caller may allow further roots, to read the files that a shallow clone shares with its
source. Writes and deletions always stay below the table's own root.
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
"""The pauses between attempts to open an object that a store may not show yet."""


@dataclass(frozen=True, slots=True)
class ObjectLocation:
    """The location of an object: a store, and the decoded path below its root."""

    store: LogStore
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DataAccess:
    """Finds and opens the objects that a log lists.

    Attributes:
        allowed_roots: stores at other locations than the table. Absolute paths may refer to objects below
            their roots.
        clock: used for pauses between attempts.
    """

    allowed_roots: tuple[LogStore, ...] = ()
    clock: Clock = SYSTEM_CLOCK

    def locate(self, raw_log_path: str, *, store: LogStore) -> ObjectLocation:
        """Resolve a path from the table's log to the location of its object.

        Raises:
            PathEscapeError: the path is neither below the table's root nor below an allowed root.
        """
        root_uri, path = resolve_data_location(
            raw_log_path, root_uri=store.uri, allowed_root_uris=[root.uri for root in self.allowed_roots]
        )
        return ObjectLocation(next(s for s in (store, *self.allowed_roots) if s.uri == root_uri), path)

    def followed(self, place: ObjectLocation) -> ObjectLocation:
        """The location from which `open` reads an object, with symbolic links resolved.

        Raises:
            PathEscapeError: a link leads out of the roots.
        """
        return self._behind_links(place.store, place.path)

    def open_logged(self, raw_log_path: str, *, store: LogStore) -> pa.NativeFile:
        """Resolve a path from the table's log and open its data file; see `locate` and `open`.

        Raises:
            MissingDataFileError: the store does not have it.
            PathEscapeError: the path is not below any of the roots, or a link leads out of them.
        """
        place = self.locate(raw_log_path, store=store)
        return self.open(place.store, place.path)

    def open(self, store: LogStore, path: str, *, kind: str = "data file", fix: str = "") -> pa.NativeFile:
        """A seekable reader of an object that a log lists.

        When the store's listings may lag, a missing object is tried four times in one and a half seconds. On
        a local disk, symbolic links below a root are followed when they stay below it or lead below an
        allowed root. A root itself may be a symbolic link.

        Args:
            store: the store that has it.
            path: decoded path below the store's root.
            kind: kind of the object, for messages.
            fix: fix for the message when the object is missing.

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
                f"The {kind} {path} is missing.",
                cause="The log lists it, but the store does not have it.",
                fix=fix or "Restore the file. If it is lost, repair() removes it from the newest version.",
            ) from error

    def require_allowed_paths(self, raw_log_paths: Iterable[str], *, store: LogStore) -> None:
        """Check that objects may be opened, before the first of them is opened.

        Does not check whether the objects exist. Cost: as `require_links_inside_roots`.

        Raises:
            PathEscapeError: a path is not below any of the roots, or a link leads out of them.
        """
        by_root: dict[str, tuple[LogStore, list[str]]] = {}
        for raw in raw_log_paths:
            place = self.locate(raw, store=store)
            by_root.setdefault(place.store.uri, (place.store, []))[1].append(place.path)
        for root, paths in by_root.values():
            self.require_links_inside_roots(root, paths)

    def require_links_inside_roots(self, store: LogStore, paths: Iterable[str]) -> None:
        """Check that no symbolic link leads out of the roots, for objects that others open, such as Spark.

        Args:
            store: the store that has them.
            paths: decoded paths below its root.

        Raises:
            PathEscapeError: a link leads out of the roots.

        Cost: on a local disk two system calls for each object and directory; in other stores nothing.
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

    def _behind_links(self, store: LogStore, path: str) -> ObjectLocation:
        if uri_scheme(store.uri) != "file":
            return ObjectLocation(store, path)
        root = str(local_path_of_uri(store.uri))
        real = os.path.realpath(os.path.join(root, path))
        if _is_below(real, root):
            return ObjectLocation(store, path)
        for allowed in self.allowed_roots:
            other = str(local_path_of_uri(allowed.uri)) if uri_scheme(allowed.uri) == "file" else ""
            if other and _is_below(real, other):
                return ObjectLocation(allowed, os.path.relpath(real, other))
        raise PathEscapeError(
            f"The path {path!r} leads through a symbolic link out of the root {store.uri!r}.",
            cause="The file, or a directory on its path, is a symbolic link.",
            fix="Put the file itself into the table, or allow the root that the symbolic link leads to.",
        )


TABLE_ONLY = DataAccess()
"""Access without further roots: nothing outside the table is opened."""


def open_allowed_roots(
    uris: Iterable[str | os.PathLike[str]],
    *,
    storage_options: Mapping[str, str] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> tuple[LogStore, ...]:
    """The stores of `DataAccess.allowed_roots`. Makes no request.

    Raises:
        InvalidUriError: a URI has a scheme without a store.
        ConfigurationError: the roots are one string instead of a list, or a root is the whole file system.
    """
    if not isinstance(uris, Iterable):
        raise ConfigurationError(
            f"The allowed roots cannot be of type {type(uris).__name__}.",
            cause="Allowed roots must be a list.",
            fix="Pass a list of URIs or paths, or an empty list.",
        )
    if isinstance(uris, str | os.PathLike):
        raise ConfigurationError(
            f"The allowed roots cannot be the single string {os.fspath(uris)!r}.",
            fix="Pass a list of URIs or paths.",
        )
    stores: Sequence[LogStore] = [
        open_store(uri, storage_options=storage_options, clock=clock) for uri in uris
    ]
    for store in stores:
        if uri_scheme(store.uri) == "file" and len(local_path_of_uri(store.uri).parts) < 2:
            raise ConfigurationError(
                "The whole file system is an allowed root.",
                cause="A log could then refer to any file of this machine.",
                fix="Allow the roots of the tables that share their files with this table.",
            )
    return tuple(stores)


def _is_below(path: str, root: str) -> bool:
    return path.startswith(root.rstrip("/") + "/")
