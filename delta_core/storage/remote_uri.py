"""Canonical URIs of tables in remote stores.

`s3a:` and `s3n:` are Hadoop's names for `s3:`, `abfs:` is `abfss:`, `azure:` is `az:`. The part after the
scheme is percent-decoded once, and encoded in one way. A URI never contains a secret, since it is written
into logs, job specifications and error messages.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from urllib.parse import quote, unquote

from delta_core.errors import InvalidUriError
from delta_core.storage.log_store import has_control_characters

_SAME = {"s3a": "s3", "s3n": "s3", "abfs": "abfss", "azure": "az"}

REMOTE_SCHEMES = frozenset({"s3", "gs", "az", "abfss", "hdfs", "webhdfs", "swebhdfs"}) | frozenset(_SAME)
"""The schemes of all remote stores."""

_URI = re.compile(r"^([A-Za-z][A-Za-z0-9+.\-]*)://([^/]*)(/.*)?$", re.DOTALL)
_AUTHORITY = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._\-]*(@[A-Za-z0-9._\-]+)?(:[0-9]{1,5})?$")
_URI_SAFE = "/=:@!$&'()*+,;~-._"


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteUri:
    """A table's root in a remote store.

    Attributes:
        scheme: as in the canonical URI.
        authority: bucket, `container@account-host`, or `host:port`.
        path: keys below the authority, decoded, without a slash at either end; may be empty.
    """

    scheme: str
    authority: str
    path: str

    def __str__(self) -> str:
        """The canonical URI, without a trailing slash. Parsing it gives the same URI."""
        root = f"{self.scheme}://{self.authority}"
        return f"{root}/{quote(self.path, safe=_URI_SAFE)}" if self.path else root

    @property
    def parent(self) -> RemoteUri | None:
        """The URI of the directory above; None without a path."""
        return replace(self, path=self.path.rpartition("/")[0]) if self.path else None


def parse_remote_uri(uri: str) -> RemoteUri:
    """Parse the URI of a table root.

    Raises:
        InvalidUriError: the URI is not remote, has no bucket or host, or has a password, a query or a path
            with '..'. The message never repeats a part that may be a secret.
    """
    match = _URI.match(uri)
    if match is None:
        raise InvalidUriError(
            f"The URI begins with {uri.partition('/')[0]!r} but has no bucket or host.",
            cause="A remote URI has two slashes before the bucket or host.",
            fix="Write, for example, s3://bucket/path/of/table.",
        )
    scheme, authority, raw_path = match.group(1).lower(), match.group(2), match.group(3) or ""
    scheme = _SAME.get(scheme, scheme)
    if ":" in authority.partition("@")[0] and "@" in authority:
        raise _invalid(scheme, "it contains a password", "Pass credentials as options.")
    if "?" in raw_path or "#" in raw_path or "?" in authority or "#" in authority:
        raise _invalid(
            scheme,
            "it has a query or a fragment, so it may be a signed URL",
            "Encode '?' as %3F and '#' as %23 if they are part of the path.",
        )
    if not _AUTHORITY.match(authority):
        raise _invalid(scheme, "it has no bucket or host", f"Write {scheme}://bucket/path/of/table.")
    path = unquote(raw_path).strip("/")
    if has_control_characters(authority) or has_control_characters(path):
        raise _invalid(scheme, "it contains a control character", "Remove it, or rename the directory.")
    if "\0" in path or any(part in ("", ".", "..") for part in path.split("/") if path):
        raise _invalid(scheme, "its path has an empty, '.' or '..' part", "Write the path in full.")
    return RemoteUri(scheme=scheme, authority=authority.lower() if "@" in authority else authority, path=path)


def path_below(raw: str, *, root_uri: str) -> str | None:
    """The decoded path of an absolute URI below a remote root; None when it is not below the root."""
    try:
        parsed, root = parse_remote_uri(raw), parse_remote_uri(root_uri)
    except InvalidUriError:
        return None
    if (parsed.scheme, parsed.authority) != (root.scheme, root.authority):
        return None
    if not root.path:
        return parsed.path or None
    below = parsed.path.removeprefix(f"{root.path}/")
    return below if below != parsed.path else None


def _invalid(scheme: str, why: str, fix: str) -> InvalidUriError:
    return InvalidUriError(
        f"The {scheme}: URI is not valid.", cause=f"The URI is refused because {why}.", fix=fix
    )
