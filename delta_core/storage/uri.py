"""Canonical table URIs, and the resolution of paths in the log to paths in the store.

Any writer of the table can choose the paths in the log, so they are hostile until resolved. They are decoded
exactly once and must stay below the table root (PROTOCOL.md, "Add File and Remove File": `path` is a URI as
specified by RFC 2396), or below another root that the reader allows.
"""

from __future__ import annotations

import os
import posixpath
import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote, unquote

from delta_core.errors import InvalidUriError, PathEscapeError
from delta_core.storage.remote_uri import REMOTE_SCHEMES, parse_remote_uri, path_below

_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.\-]*):/")
_BEYOND_ASCII = re.compile(r"(?:%[89A-F][0-9A-F])+")
_ESCAPED_CATEGORIES = frozenset({"Cc", "Zl", "Zp", "Zs"})
_URI_SAFE = "/=:@!$&'()*+,;~-._"
_FIRST_SEGMENT_SAFE = _URI_SAFE.replace(":", "")

# Python's error handler for local file names that are not UTF-8.
_AS_NAMED = "surrogateescape"

MAX_PATH_CHARACTERS = 1 << 15
"""No store has longer names. Resolving a path takes time with the square of its length."""

_SHOWN_CHARACTERS = 300

_UNDECODED_BYTE = re.compile("[\udc80-\udcff]")


def uri_scheme(uri: str) -> str | None:
    """The lower-case scheme of `scheme:/...`, or None for a plain path."""
    match = _SCHEME.match(uri)
    return match.group(1).lower() if match else None


def uri_string(uri: str | os.PathLike[str]) -> str:
    """A URI or path as a string.

    Raises:
        InvalidUriError: it is neither a string nor a path of strings; bytes are refused.
    """
    string: object = os.fspath(uri) if isinstance(uri, os.PathLike) else uri
    if not isinstance(string, str):
        raise InvalidUriError(
            f"The table URI cannot be of type {type(string).__name__}.", fix="Pass a string or a path."
        )
    return string


def canonical_table_uri(uri: str | os.PathLike[str]) -> str:
    """The canonical form of a table's URI: `file:///abs/path`, `s3://bucket/path`; no trailing slash.

    A plain path is taken literally, except that `~` or `~user` at its start is a home directory as in a
    shell. A URI is percent-decoded once. Local symbolic links are resolved, and `s3a:` becomes `s3:`. The
    result is percent-encoded and is its own canonical form. The path need not exist.

    Raises:
        InvalidUriError: the URI is not a string, is empty, contains NUL, has a remote host, an unknown home
            directory, a scheme without a store, or a name that is not UTF-8.
    """
    string = uri_string(uri)
    if not string:
        raise InvalidUriError("The table URI is empty.", fix="Pass a path or a file: URI.")
    if len(string) > MAX_PATH_CHARACTERS:
        raise InvalidUriError(
            f"The table URI has {len(string)} characters, more than {MAX_PATH_CHARACTERS}.",
            fix="Pass a path or a file: URI.",
        )
    if "\0" in string:
        raise InvalidUriError("The table URI contains a NUL character.", fix="Pass a path or a file: URI.")
    scheme = uri_scheme(string)
    if scheme is not None and not _is_string(string):
        raise InvalidUriError(
            "The table URI cannot be decoded.",
            cause="Its percent-escapes are not UTF-8.",
            fix="Pass the URI with UTF-8 escapes. Rename a local directory with such a name.",
        )
    if scheme is None:
        path = with_home(string)
    elif scheme == "file":
        path = _path_of_file_uri(string)
    elif scheme in REMOTE_SCHEMES or string.startswith(f"{scheme}://"):
        return str(parse_remote_uri(string))
    else:
        raise InvalidUriError(
            f"The URI has the scheme {scheme!r}, which no store supports.",
            cause="Local paths, file: URIs, and URIs of stores such as s3://bucket/path are supported.",
            fix="Pass a supported URI.",
        )
    if "\0" in path:
        raise InvalidUriError("The table URI contains a NUL character.", fix="Pass a path or a file: URI.")
    try:
        return "file://" + quote(os.path.realpath(path), safe=_URI_SAFE)
    except UnicodeEncodeError as error:
        raise InvalidUriError(
            "The table's path is not valid Unicode.",
            cause="The name of a directory on the path is not UTF-8.",
            fix="Rename the directory.",
        ) from error


def with_home(path: str) -> str:
    """A local path in which `~` or `~user` at the start is replaced by the home directory."""
    if not path.startswith("~"):
        return path
    try:
        expanded = os.path.expanduser(path)
    except UnicodeError:
        expanded = path
    # For a user without a home, the system returns a relative path, which differs in every directory.
    if not os.path.isabs(expanded):
        name = path.partition("/")[0]
        raise InvalidUriError(
            f"The path {path[:_SHOWN_CHARACTERS]!r} begins with a home directory that does not exist.",
            cause=f"This machine has no home directory for {name[:_SHOWN_CHARACTERS]!r}.",
            fix="Write the path in full, or ./~name for a directory with that name.",
        )
    return expanded


def local_path_of_uri(canonical_uri: str) -> Path:
    """The local path of a canonical `file://` URI."""
    return Path(_path_of_file_uri(canonical_uri))


def encode_data_path(path: str) -> str:
    """A store path (decoded, relative to the root) in the form that is written to the log.

    A colon in the first segment is escaped: other readers would take the part before it for a scheme (RFC
    2396, section 5), and would not find the file. Letters beyond ASCII are not escaped, as in Hadoop's
    spelling: delta-spark's VACUUM compares strings, and deletes a live file whose path has another spelling.
    Names that this library chooses have no such letters, since deltalake escapes them.
    """
    return with_letters(ascii_data_path(path))


def ascii_data_path(path: str) -> str:
    """As `encode_data_path`, with letters beyond ASCII escaped, as deltalake and others write paths."""
    first, slash, rest = path.partition("/")
    return quote(first, safe=_FIRST_SEGMENT_SAFE, errors=_AS_NAMED) + slash + quoted_path(rest)


def quoted_path(string: str) -> str:
    """The rest of a path after its first segment, percent-encoded."""
    return quote(string, safe=_URI_SAFE, errors=_AS_NAMED)


def absolute_log_path(path: str, *, root_uri: str) -> str:
    """A file below one table's root in the form that is written to the log of another table.

    Uses Hadoop's spelling, `file:/x` with letters beyond ASCII not escaped: delta-spark finds the files that
    it adds deletion vectors to by the string of their paths, and fails for another spelling.

    Args:
        path: decoded path, relative to the root.
        root_uri: the root's canonical URI.
    """
    uri = f"{root_uri}/{encode_data_path(path)}"
    if uri.startswith("file:///"):
        uri = "file:" + uri.removeprefix("file://")
    return with_letters(uri)


def with_letters(quoted: str) -> str:
    """A percent-encoded path in which letters beyond ASCII are not escaped."""
    return _BEYOND_ASCII.sub(_letters, quoted)


def _letters(escapes: re.Match[str]) -> str:
    """Decode percent-escapes; blanks, control characters and bytes that are not UTF-8 stay escaped."""
    try:
        string = unquote(escapes[0], errors="strict")
    except UnicodeDecodeError:
        return escapes[0]
    return "".join(quote(c) if unicodedata.category(c) in _ESCAPED_CATEGORIES else c for c in string)


def canonical_log_path(raw_log_path: str) -> str:
    """A form that is equal for all spellings of one file in the log: for comparing, not for opening.

    Percent-escapes are decoded. `file:/x`, `file:///x` and `/x` are one file; `s3a://b/x` and `s3://b/x` are
    one file. Different bytes that are not UTF-8 stay different, and differ from every UTF-8 name.
    """
    string = raw_log_path
    if "%" in string:
        string = unquote(string, errors=_AS_NAMED)
        # Arrow accepts no lone surrogates. No file name has a NUL, so no other path becomes this string.
        string = _UNDECODED_BYTE.sub(lambda match: f"\0{ord(match[0]) & 0xFF:02X}\0", string)
    if string.startswith("file:/"):
        return "/" + string[len("file:") :].lstrip("/")
    if string.startswith(("s3a://", "s3n://")):
        return "s3://" + string[len("s3a://") :]
    return string


def resolve_data_path(raw_log_path: str, *, root_uri: str) -> str:
    """The store path (decoded, relative to the root) of a path in the log.

    Bytes that are not UTF-8 become lone surrogates, Python's form of such local file names.

    Args:
        raw_log_path: `path` of an action: URL-encoded, relative to the table root or absolute.
        root_uri: the table's canonical URI.

    Raises:
        PathEscapeError: the path leaves the table root, or belongs to another store.
    """
    if len(raw_log_path) > MAX_PATH_CHARACTERS:
        raise _escape(raw_log_path, root_uri, "it is longer than any name in a store")
    scheme = uri_scheme(raw_log_path)
    if uri_scheme(root_uri) != "file":
        return _below_remote_root(raw_log_path, root_uri)
    if scheme not in (None, "file"):
        raise _escape(raw_log_path, root_uri, f"it belongs to the scheme {scheme!r}")
    decoded = unquote(raw_log_path, errors=_AS_NAMED)
    if "\0" in decoded:
        raise _escape(raw_log_path, root_uri, "it contains a NUL character")
    if scheme == "file" or decoded.startswith("/"):
        return _relative_to_root(raw_log_path, root_uri, is_uri=scheme == "file")
    return _plain(raw_log_path, decoded, root_uri)


def _below_remote_root(raw_log_path: str, root_uri: str) -> str:
    if not _is_string(raw_log_path):
        raise _escape(raw_log_path, root_uri, "its percent-escapes are not UTF-8")
    if uri_scheme(raw_log_path) is not None:
        path = path_below(raw_log_path, root_uri=root_uri)
        if path is None:
            raise _escape(raw_log_path, root_uri, "it is absolute and not below the root")
        return path
    decoded = unquote(raw_log_path)
    if "\0" in decoded:
        raise _escape(raw_log_path, root_uri, "it contains a NUL character")
    if decoded.startswith("/"):
        raise _escape(raw_log_path, root_uri, "it is absolute and has no scheme")
    return _plain(raw_log_path, decoded, root_uri)


def _plain(raw_log_path: str, decoded: str, root_uri: str) -> str:
    if ".." in decoded.replace("\\", "/").split("/"):
        raise _escape(raw_log_path, root_uri, "it contains '..'")
    normal = posixpath.normpath(decoded)
    if normal in (".", ""):
        raise _escape(raw_log_path, root_uri, "it is the table root itself")
    return normal


def resolve_data_location(
    raw_log_path: str, *, root_uri: str, allowed_root_uris: Sequence[str] = ()
) -> tuple[str, str]:
    """The root and the store path (decoded, relative to that root) of a path in the log.

    Args:
        raw_log_path: see `resolve_data_path`.
        root_uri: the table's canonical URI.
        allowed_root_uris: canonical URIs of other roots below which absolute paths may lead. Symbolic links
            are resolved before paths are compared.

    Raises:
        PathEscapeError: the path is not below any of the roots.
    """
    try:
        return root_uri, resolve_data_path(raw_log_path, root_uri=root_uri)
    except PathEscapeError:
        for allowed in allowed_root_uris:
            below = path_below(raw_log_path, root_uri=allowed) if uri_scheme(allowed) != "file" else None
            if below is not None:
                return allowed, below
        path = _absolute_path(raw_log_path)
        if path is None:
            raise
        real = os.path.realpath(path)
        for allowed in allowed_root_uris:
            root = str(local_path_of_uri(allowed)).rstrip("/") if uri_scheme(allowed) == "file" else None
            if root is not None and real.startswith(root + "/"):
                return allowed, real[len(root) + 1 :]
        raise


def _absolute_path(raw: str) -> str | None:
    """The local path of an absolute path in the log; None for other paths, and for paths with '..'."""
    if len(raw) > MAX_PATH_CHARACTERS:
        return None
    scheme = uri_scheme(raw)
    if scheme not in (None, "file"):
        return None
    try:
        path = _path_of_file_uri(raw) if scheme else unquote(raw, errors=_AS_NAMED)
    except InvalidUriError:
        return None
    if not path.startswith("/") or path.startswith("//") or "\0" in path:
        return None
    # A path that has '..' after decoding it twice was made to leave the table.
    climbs = any(".." in string.replace("\\", "/").split("/") for string in (path, unquote(path)))
    return None if climbs or "\0" in unquote(path) else path


def _relative_to_root(raw: str, root_uri: str, *, is_uri: bool) -> str:
    try:
        path = _path_of_file_uri(raw) if is_uri else unquote(raw, errors=_AS_NAMED)
    except InvalidUriError as error:
        raise _escape(raw, root_uri, error.problem) from error
    if path.startswith("//") or ".." in path.split("/"):
        raise _escape(raw, root_uri, "it has a host or contains '..'")
    root = str(local_path_of_uri(root_uri)).rstrip("/")
    normal = posixpath.normpath(path)
    if not normal.startswith(root + "/"):
        # The table may be opened through a symbolic link that its writer did not use.
        parent = os.path.realpath(posixpath.dirname(normal))
        normal = posixpath.join(parent, posixpath.basename(normal))
    if not normal.startswith(root + "/"):
        raise _escape(raw, root_uri, "it is absolute and not below the root")
    return normal[len(root) + 1 :]


def _path_of_file_uri(uri: str) -> str:
    rest = uri[len("file:") :]
    if rest.startswith("//"):
        host, slash, tail = rest[2:].partition("/")
        if host not in ("", "localhost"):
            raise InvalidUriError(
                f"The URI {uri!r} has the host {host!r}.",
                cause="A file: URI is local and has three slashes before its path.",
                fix=f"Write file:///{host}{slash}{tail} for a local path.",
            )
        rest = slash + tail
    return unquote(rest, errors=_AS_NAMED) or "/"


def _is_string(raw: str) -> bool:
    if "%" not in raw:
        return True
    try:
        unquote(raw, errors="strict")
    except UnicodeDecodeError:
        return False
    return True


def _escape(raw: str, root_uri: str, cause: str) -> PathEscapeError:
    if len(raw) > _SHOWN_CHARACTERS:
        raw = f"{raw[:_SHOWN_CHARACTERS]}..."
    return PathEscapeError(
        f"The path {raw!r} in the log is not below the table root {root_uri!r}.",
        cause=f"The path is refused because {cause}.",
        fix="Only files below the table root, and below roots that the reader allows, are opened. Allow the "
        "file's root, copy the file into the table, or remove the entry.",
    )
