"""Paths inside a store: relative to its root, decoded, and plain."""

from __future__ import annotations

import re

from delta_core.errors import PathEscapeError

_NOT_IN_NAMES = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


def has_control_characters(text: str) -> bool:
    """Whether a text holds what no request to a store can: a control character, or half a character."""
    return not (text.isascii() and text.isprintable()) and _NOT_IN_NAMES.search(text) is not None


def plain_parts(path: str, *, root_uri: str) -> list[str]:
    """The parts of a path that stays below the root.

    Raises:
        PathEscapeError: it is empty, absolute, or has an empty, `.` or `..` part, or a NUL character.
    """
    parts = path.split("/")
    if path.startswith("/") or "\0" in path or any(part in ("", ".", "..") for part in parts):
        raise PathEscapeError(
            f"The store path {path!r} is not a plain path below the root {root_uri!r}.",
            cause="It is empty, absolute, or has an empty, '.' or '..' part.",
            fix="Resolve paths of the log with resolve_data_path.",
        )
    return parts
