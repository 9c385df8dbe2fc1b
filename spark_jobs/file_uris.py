"""File paths in Spark: escaped in a reader's path list, and URI-encoded in `_metadata`."""

from __future__ import annotations

import re

# A path for Spark's reader is a glob; a backslash escapes a character.
_GLOB = re.compile(r"([\[\]{}*?\\])")
# `_metadata` contains Java URIs. Java escapes these characters; of non-ASCII, only control characters and
# spaces.
_JAVA_ESCAPED = re.compile(
    r'[\x00-\x20\x7f-\xa0"#%<>?\[\\\]^`{|}\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]'
)


def escape_glob(path: str) -> str:
    """The path with escaped glob characters, so that Spark's reader takes it literally."""
    return _GLOB.sub(r"\\\1", path)


def encode_as_java(path: str) -> str:
    """A path or name in the encoding of `_metadata.file_path` and `_metadata.file_name`."""
    return _JAVA_ESCAPED.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), path)


def base_name(path: str) -> str:
    """The last part of a path."""
    return path.rsplit("/", 1)[-1]


def is_hidden(path: str) -> bool:
    """True for a file that Spark skips silently, even when it is named explicitly: `_x` and `.x`."""
    return base_name(path).startswith(("_", "."))


def is_unreadable(path: str) -> bool:
    """True for a file that Spark's native scan cannot open or would skip.

    The local file system takes a colon in the name for a URI scheme when it opens the checksum file.
    """
    return is_hidden(path) or ":" in base_name(path)
