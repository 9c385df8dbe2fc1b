"""Delta tables as Airflow assets: URIs of the scheme `delta`.

`delta://local/data/flights` is the table in the worker's directory `/data/flights`, and
`delta://s3/bucket/flights` the table `s3://bucket/flights`: of other stores the authority is the scheme. The
authority is required: without one, Airflow's own normalisation would drop the slashes before the path.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, quote, unquote, urlsplit

from airflow.sdk import Asset

from delta_core.errors import InvalidUriError
from delta_core.storage.remote_uri import parse_remote_uri
from delta_core.storage.uri import uri_scheme, uri_string

if TYPE_CHECKING:
    from airflow.providers.common.compat.openlineage.facet import Dataset

LOCAL_AUTHORITY = "local"

_OBJECT_STORES = frozenset({"s3", "gs", "az", "abfss"})

_URI_SAFE = "/=:@!$&'()*+,;~-._"


def sanitize_uri(uri: SplitResult) -> SplitResult:
    """Normalise an asset URI; Airflow calls this for each asset of the scheme.

    Raises:
        ValueError: there is no authority or no path, the path has `..`, or there is a query or user.
    """
    if not uri.netloc:
        raise ValueError("a delta asset URI needs an authority, such as delta://local/data/flights")
    if uri.query or "@" in uri.netloc:
        raise ValueError("a delta asset URI has neither user nor query")
    if ".." in uri.path.split("/"):
        raise ValueError("a delta asset URI names the table's own path, without '..'")
    path = posixpath.normpath("/" + uri.path.lstrip("/"))
    if path == "/":
        raise ValueError("a delta asset URI names a table, such as delta://local/data/flights")
    return uri._replace(netloc=uri.netloc.lower(), path=path, fragment="")


def asset_uri(table_uri: str | os.PathLike[str]) -> str:
    """The asset URI of a table: one for all spellings of its path or URI, wherever it is read.

    Raises:
        InvalidUriError: the path is relative, or it is no URI of a table.
    """
    text = uri_string(table_uri)
    scheme = uri_scheme(text)
    if scheme not in (None, "file"):
        remote = parse_remote_uri(text)
        below = f"/{quote(remote.path, safe=_URI_SAFE)}" if remote.path else ""
        return f"delta://{remote.scheme}/{remote.authority}{below}"
    path = text
    if scheme == "file":
        parts = urlsplit(text)
        if parts.netloc not in ("", "localhost"):
            raise InvalidUriError(f"{text!r} names a host.", fix="Write file:///path of the table.")
        path = unquote(parts.path)
    if not path.startswith("/") or "\0" in path or posixpath.normpath(path).strip("/") == "":
        raise InvalidUriError(
            f"{text!r} is neither an absolute path nor a URI of a table.",
            cause="An asset has one name on every machine, and what a path starts from may be another there.",
            fix="Write, for example, /data/flights or s3://bucket/flights.",
        )
    quoted = quote(posixpath.normpath("/" + path.lstrip("/")), safe=_URI_SAFE)
    return f"delta://{LOCAL_AUTHORITY}{quoted}"


def table_asset(table_uri: str | os.PathLike[str], *, name: str | None = None) -> Asset:
    """The asset of a table, to name as an outlet, an inlet or a DAG's schedule.

    Args:
        table_uri: an absolute path, or a URI of any store: `s3://bucket/flights`.
        name: how the UI calls it; the asset URI when left out.

    Raises:
        InvalidUriError: the path is relative, or it is no URI of a table.
    """
    uri = asset_uri(table_uri)
    return Asset(name=name or uri, uri=uri)


def table_uri_of(asset: str | Asset) -> str:
    """The canonical URI of the table that an asset, or an asset's URI, stands for.

    Raises:
        InvalidUriError: it is the asset of no table.
    """
    text = asset if isinstance(asset, str) else asset.uri
    parts = urlsplit(text)
    if parts.scheme != "delta":
        raise InvalidUriError(f"{text!r} is the asset of no table.", fix="Pass an asset of table_asset.")
    if parts.netloc == LOCAL_AUTHORITY:
        return f"file://{parts.path}"
    return str(parse_remote_uri(f"{parts.netloc}:/{parts.path}"))


def create_asset(*, table_uri: str, name: str | None = None, extra: Mapping[str, Any] | None = None) -> Asset:
    """The asset of a table, for Airflow, which makes assets for the scheme `delta` of hook lineage by it.

    Raises:
        InvalidUriError: the path is relative, or it is no URI of a table.
    """
    uri = asset_uri(table_uri)
    return Asset(name=name or uri, uri=uri, extra=dict(extra or {}))


def convert_asset_to_openlineage(asset: Asset, lineage_context: Any) -> Dataset:
    """The data set of a table in OpenLineage, under the name that others give what lies there.

    A namespace is the store, a name the path in it: without its first slash in object stores, with it in file
    systems. Airflow's OpenLineage provider calls this.

    Raises:
        InvalidUriError: it is the asset of no table.
    """
    from airflow.providers.common.compat.openlineage.facet import Dataset

    uri = table_uri_of(asset)
    if uri.startswith("file:"):
        return Dataset(namespace="file", name=unquote(urlsplit(uri).path))
    remote = parse_remote_uri(uri)
    below = remote.path if remote.scheme in _OBJECT_STORES and remote.path else f"/{remote.path}"
    return Dataset(namespace=f"{remote.scheme}://{remote.authority}", name=below)


def same_table(candidate_asset_uri: str, table_uri: str) -> bool:
    """True when an asset URI is that of the table."""
    try:
        return candidate_asset_uri == asset_uri(table_uri)
    except InvalidUriError:
        return False
