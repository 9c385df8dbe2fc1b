"""Delta tables as Airflow assets: URIs of the scheme `delta`.

`delta://local/data/flights` is the table in the worker's directory `/data/flights`.
`delta://s3/bucket/flights` is the table `s3://bucket/flights`: for other stores the authority is the scheme
of the store. The authority is required, because without it Airflow's own normalisation would drop the slashes
before the path.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, quote, unquote, urlsplit

from airflow.sdk import Asset

from delta_core.errors import InvalidUriError
from delta_core.fleet.assets import LOCAL_AUTHORITY, table_uri_of_asset
from delta_core.storage import uri_scheme, uri_string
from delta_core.storage.remote_uri import parse_remote_uri

if TYPE_CHECKING:
    from airflow.providers.common.compat.openlineage.facet import Dataset

_OBJECT_STORES = frozenset({"s3", "gs", "az", "abfss"})

_URI_SAFE = "/=:@!$&'()*+,;~-._"


def sanitize_uri(uri: SplitResult) -> SplitResult:
    """Normalise an asset URI. Airflow calls this for each asset of the scheme.

    Raises:
        ValueError: the URI has no authority, no path, a path with `..`, a query or a user.
    """
    if not uri.netloc:
        raise ValueError("a delta asset URI needs an authority, such as delta://local/data/flights")
    if uri.query or "@" in uri.netloc:
        raise ValueError("a delta asset URI has neither user nor query")
    if ".." in uri.path.split("/"):
        raise ValueError("a delta asset URI contains the table's path without '..'")
    path = posixpath.normpath("/" + uri.path.lstrip("/"))
    if path == "/":
        raise ValueError("a delta asset URI names a table, such as delta://local/data/flights")
    return uri._replace(netloc=uri.netloc.lower(), path=path, fragment="")


def asset_uri(table_uri: str | os.PathLike[str]) -> str:
    """The asset URI of a table. It is the same for all spellings of its path or URI, on every machine.

    Raises:
        InvalidUriError: the path is relative, or the URI is not that of a table.
    """
    uri = uri_string(table_uri)
    scheme = uri_scheme(uri)
    if scheme not in (None, "file"):
        remote = parse_remote_uri(uri)
        below = f"/{quote(remote.path, safe=_URI_SAFE)}" if remote.path else ""
        return f"delta://{remote.scheme}/{remote.authority}{below}"
    path = uri
    if scheme == "file":
        parts = urlsplit(uri)
        if parts.netloc not in ("", "localhost"):
            raise InvalidUriError(
                f"The file URI {uri!r} contains a host.",
                fix="Use file:// with the absolute path of the table.",
            )
        path = unquote(parts.path)
    if not path.startswith("/") or "\0" in path or posixpath.normpath(path).strip("/") == "":
        raise InvalidUriError(
            f"{uri!r} is neither an absolute path nor a URI of a table.",
            cause="An asset has the same name on every machine, but a relative path depends on the machine.",
            fix="Use an absolute path or a URI, for example /data/flights or s3://bucket/flights.",
        )
    quoted = quote(posixpath.normpath("/" + path.lstrip("/")), safe=_URI_SAFE)
    return f"delta://{LOCAL_AUTHORITY}{quoted}"


def table_asset(table_uri: str | os.PathLike[str], *, name: str | None = None) -> Asset:
    """The asset of a table, for use as an outlet, an inlet or a DAG's schedule.

    Args:
        table_uri: an absolute path, or a URI of any store: `s3://bucket/flights`.
        name: the name in the UI; the asset URI by default.

    Raises:
        InvalidUriError: the path is relative, or the URI is not that of a table.
    """
    uri = asset_uri(table_uri)
    return Asset(name=name or uri, uri=uri)


def table_uri_of(asset: str | Asset) -> str:
    """The canonical URI of the table of an asset, or of an asset URI.

    Raises:
        InvalidUriError: the asset is not that of a table.
    """
    return table_uri_of_asset(asset if isinstance(asset, str) else asset.uri)


def create_asset(*, table_uri: str, name: str | None = None, extra: Mapping[str, Any] | None = None) -> Asset:
    """The asset of a table. Airflow's hook lineage calls this to create assets of the scheme `delta`.

    Raises:
        InvalidUriError: the path is relative, or the URI is not that of a table.
    """
    uri = asset_uri(table_uri)
    return Asset(name=name or uri, uri=uri, extra=dict(extra or {}))


def convert_asset_to_openlineage(asset: Asset, lineage_context: Any) -> Dataset:
    """The OpenLineage data set of a table, under the name that other tools use for the same location.

    The namespace is the store. The name is the path in the store: without the leading slash in object stores,
    with it in file systems. Airflow's OpenLineage provider calls this.

    Raises:
        InvalidUriError: the asset is not that of a table.
    """
    from airflow.providers.common.compat.openlineage.facet import Dataset

    uri = table_uri_of(asset)
    if uri.startswith("file:"):
        return Dataset(namespace="file", name=unquote(urlsplit(uri).path))
    remote = parse_remote_uri(uri)
    below = remote.path if remote.scheme in _OBJECT_STORES and remote.path else f"/{remote.path}"
    return Dataset(namespace=f"{remote.scheme}://{remote.authority}", name=below)


def same_table(candidate_asset_uri: str, table_uri: str) -> bool:
    """Whether an asset URI is that of the table."""
    try:
        return candidate_asset_uri == asset_uri(table_uri)
    except InvalidUriError:
        return False
