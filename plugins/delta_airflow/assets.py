"""Delta tables as Airflow assets: URIs of the scheme `delta`.

`delta://local/data/flights` is the table in the worker's directory `/data/flights`. The authority is
required: without one, Airflow's own normalisation would drop the slashes before the path.
"""

from __future__ import annotations

import posixpath
from urllib.parse import SplitResult, quote, unquote, urlsplit

from airflow.sdk import Asset

LOCAL_AUTHORITY = "local"


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


def asset_uri(table_uri: str) -> str:
    """The asset URI of a table's path or `file:` URI.

    Raises:
        ValueError: the path is relative or of another scheme.
    """
    if table_uri.startswith("file:"):
        parts = urlsplit(table_uri)
        if parts.netloc not in ("", "localhost"):
            raise ValueError(f"{table_uri!r} names a host")
        path = unquote(parts.path)
    else:
        path = table_uri
    if not path.startswith("/"):
        raise ValueError(f"{table_uri!r} is neither an absolute path nor a file: URI")
    quoted = quote(posixpath.normpath("/" + path.lstrip("/")), safe="/=:@!$&'()*+,;~-._")
    return f"delta://{LOCAL_AUTHORITY}{quoted}"


def table_asset(table_uri: str, *, name: str | None = None) -> Asset:
    """The asset of a table, to name as an outlet, an inlet or a DAG's schedule.

    Args:
        table_uri: an absolute path or a `file:` URI.
        name: how the UI calls it; the asset URI when left out.

    Raises:
        ValueError: the URI is not of a kind that has an asset.
    """
    uri = asset_uri(table_uri)
    return Asset(name=name or uri, uri=uri)


def same_table(candidate_asset_uri: str, table_uri: str) -> bool:
    """True when an asset URI is that of the table."""
    try:
        return candidate_asset_uri == asset_uri(table_uri)
    except ValueError:
        return False
