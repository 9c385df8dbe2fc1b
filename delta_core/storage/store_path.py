"""Paths inside a store: relative to its root, decoded, and plain."""

from __future__ import annotations

import re

from delta_core.errors import PathEscapeError

_NOT_IN_NAMES = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


def has_control_characters(string: str) -> bool:
    """Whether a string contains a control character or a lone surrogate, which requests cannot contain."""
    return not (string.isascii() and string.isprintable()) and _NOT_IN_NAMES.search(string) is not None


def plain_parts(path: str, *, root_uri: str) -> list[str]:
    """The parts of a path, which must stay below the root.

    Raises:
        PathEscapeError: the path is empty, absolute, or has an empty, `.` or `..` part, or a NUL character.
    """
    parts = path.split("/")
    if path.startswith("/") or "\0" in path or any(part in ("", ".", "..") for part in parts):
        raise PathEscapeError(
            f"The store path {path!r} is not a plain path below the root {root_uri!r}.",
            cause="The path is empty, absolute, or has an empty, '.' or '..' part.",
            fix="Resolve paths of the log with resolve_data_path.",
        )
    return parts
