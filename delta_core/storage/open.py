"""From a URI to a store."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import InvalidUriError
from delta_core.storage.local import LocalLogStore
from delta_core.storage.log_store import LogStore
from delta_core.storage.uri import uri_scheme

StoreOpener = Callable[[str, Mapping[str, str], Clock], LogStore]


def _open_local(uri: str, storage_options: Mapping[str, str], clock: Clock) -> LogStore:
    if storage_options:
        raise InvalidUriError(
            f"The local store takes no storage options, got {sorted(storage_options)}.",
            fix="Leave storage_options out for local tables.",
        )
    return LocalLogStore(uri, clock=clock)


_OPENERS: dict[str | None, StoreOpener] = {None: _open_local, "file": _open_local}


def open_store(
    uri: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, str] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> LogStore:
    """The store rooted at a table's URI. Makes no request; the table need not exist.

    Raises:
        InvalidUriError: no store serves the URI's scheme.
    """
    text = os.fspath(uri)
    scheme = uri_scheme(text)
    opener = _OPENERS.get(scheme)
    if opener is None:
        supported = ", ".join(sorted(name for name in _OPENERS if name))
        raise InvalidUriError(
            f"The URI {text!r} has the scheme {scheme!r}, for which there is no store.",
            cause=f"Supported are plain local paths and the schemes: {supported}.",
            fix="Pass a local path or a file: URI.",
        )
    return opener(text, storage_options or {}, clock)


def local_root(store: LogStore) -> Path | None:
    """The local directory of a store, or None when it is not on this machine."""
    return store.root if isinstance(store, LocalLogStore) else None
