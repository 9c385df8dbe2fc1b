"""How Spark spells files: escaped for a reader's path list, encoded in `_metadata`."""

from __future__ import annotations

import re

# A path handed to Spark's reader is a glob; a backslash takes a character literally.
_GLOB = re.compile(r"([\[\]{}*?\\])")
# `_metadata` holds Java's URI text, which escapes these, and of non-ASCII control characters and spaces.
_JAVA_ESCAPED = re.compile(
    r'[\x00-\x20\x7f-\xa0"#%<>?\[\\\]^`{|}\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]'
)


def escape_glob(path: str) -> str:
    """A path that Spark's reader takes as it is."""
    return _GLOB.sub(r"\\\1", path)


def encode_as_java(text: str) -> str:
    """A real path or name as `_metadata.file_path` and `_metadata.file_name` show it."""
    return _JAVA_ESCAPED.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), text)


def base_name(path: str) -> str:
    """The last part of a path."""
    return path.rsplit("/", 1)[-1]


def is_hidden(path: str) -> bool:
    """True for a file that Spark skips without a word, even when it is named: `_x` and `.x`."""
    return base_name(path).startswith(("_", "."))


def is_unreadable(path: str) -> bool:
    """True for a file that Spark's native scan cannot open or would skip.

    A colon in the name is taken for a URI scheme when the local file system looks for the checksum file.
    """
    return is_hidden(path) or ":" in base_name(path)
