"""Opening the store of a URI."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

from delta_core.clock import SYSTEM_CLOCK, Clock
from delta_core.errors import ConfigurationError, InvalidUriError
from delta_core.storage.cached import with_shared_cache
from delta_core.storage.local import LocalLogStore
from delta_core.storage.log_store import LogStore
from delta_core.storage.store_options import option_strings
from delta_core.storage.uri import uri_scheme, uri_string

StoreOpener = Callable[[str, Mapping[str, str], Clock], LogStore]


def _open_local(uri: str, storage_options: Mapping[str, str], clock: Clock) -> LogStore:
    if storage_options:
        raise ConfigurationError(
            f"The local store takes no storage options, got {sorted(storage_options)}.",
            fix="Leave out storage_options for local tables.",
        )
    return LocalLogStore(uri, clock=clock)


def _lazily(module: str, name: str) -> StoreOpener:
    """An opener whose module, with the service's client, is imported at the first use."""

    def open_it(uri: str, storage_options: Mapping[str, str], clock: Clock) -> LogStore:
        opener: StoreOpener = getattr(import_module(module), name)
        return opener(uri, storage_options, clock)

    return open_it


_S3 = _lazily("delta_core.storage.s3_dynamodb", "open_s3_or_dynamodb")
_GCS = _lazily("delta_core.storage.gcs", "open_gcs")
_AZURE = _lazily("delta_core.storage.azure", "open_azure")
_WEBHDFS = _lazily("delta_core.storage.webhdfs", "open_webhdfs")

_OPENERS: dict[str | None, StoreOpener] = {
    None: _open_local,
    "file": _open_local,
    **dict.fromkeys(("s3", "s3a", "s3n"), _S3),
    "gs": _GCS,
    **dict.fromkeys(("az", "azure", "abfs", "abfss"), _AZURE),
    **dict.fromkeys(("hdfs", "webhdfs", "swebhdfs"), _WEBHDFS),
}

ENTRY_POINT_GROUP = "deltaward.log_stores"
"""Entry points for stores of other packages: the name is the scheme, the object a `StoreOpener`."""


def open_store(
    uri: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, str] | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> LogStore:
    """The store rooted at a table's URI. Makes no request; the table need not exist.

    A remote store caches immutable log objects on the local disk: see `with_shared_cache`.

    Raises:
        InvalidUriError: the URI's scheme has no store, or the URI is not the URI of a table.
        ConfigurationError: a storage option is unknown or has an invalid value, or a package that the store
            needs is missing.
    """
    string = uri_string(uri)
    scheme = uri_scheme(string)
    opener = _OPENERS.get(scheme) or _installed_openers().get(scheme)
    if opener is None:
        supported = ", ".join(sorted(name for name in (*_OPENERS, *_installed_openers()) if name))
        raise InvalidUriError(
            f"The URI has the scheme {scheme!r}, which no installed store supports.",
            cause=f"The supported URIs are plain local paths and the schemes {supported}.",
            fix="Pass a supported URI, or install the package with the store.",
        )
    store = opener(string, option_strings(storage_options), clock)
    return with_shared_cache(store)


def options_for(uri: str | os.PathLike[str], storage_options: Mapping[str, str] | None) -> Mapping[str, str]:
    """The storage options to open `uri` with, when several stores are given the same options, as in a job.

    Empty for a local path, since a local store takes no options.
    """
    is_local = uri_scheme(uri_string(uri)) in (None, "file")
    return {} if is_local or storage_options is None else storage_options


@cache
def _installed_openers() -> Mapping[str | None, StoreOpener]:
    return {point.name: point.load() for point in entry_points(group=ENTRY_POINT_GROUP)}


def local_root(store: LogStore) -> Path | None:
    """The local root directory of a store, or None when the store is remote."""
    return store.root if isinstance(store, LocalLogStore) else None
