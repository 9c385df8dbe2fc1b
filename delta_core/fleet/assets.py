"""Asset URIs of tables: `delta://local/data/orders`, `delta://s3/bucket/orders`. Pure.

Airflow's assets of the scheme `delta` have these URIs. A policy file may list them, with or without Airflow.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from delta_core.errors import InvalidUriError
from delta_core.storage.remote_uri import REMOTE_SCHEMES, parse_remote_uri

SCHEME: Final = "delta"
"""The scheme of asset URIs."""

LOCAL_AUTHORITY: Final = "local"
"""The authority of a table on the local disk. For other stores it is the store's scheme."""


def table_uri_of_asset(uri: str) -> str:
    """The canonical URI of the table of an asset URI.

    Raises:
        InvalidUriError: it is not the asset URI of a table.
    """
    parts = urlsplit(uri)
    known = parts.netloc == LOCAL_AUTHORITY or parts.netloc in REMOTE_SCHEMES
    if parts.scheme != SCHEME or not known or not parts.path.strip("/"):
        raise InvalidUriError(
            f"{uri!r} is not the asset URI of a Delta table.",
            fix="Write a URI such as delta://local/data/orders or delta://s3/bucket/orders.",
        )
    if parts.netloc == LOCAL_AUTHORITY:
        return f"file://{parts.path}"
    return str(parse_remote_uri(f"{parts.netloc}:/{parts.path}"))
