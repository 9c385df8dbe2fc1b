"""File paths in Spark: escaped in a reader's path list, and URI-encoded in `_metadata`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

FILE_NAME: Final = "file_name"
"""The field of `_metadata` with the name of a row's file."""
FILE_PATH: Final = "file_path"
"""The field of `_metadata` with the URI of a row's file."""
ROW_INDEX: Final = "row_index"
"""The field of `_metadata` with a row's position in its file."""

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


def identifying_field(paths: Sequence[str]) -> str:
    """The field of `_metadata` with a different value for each of these paths."""
    return FILE_NAME if len({base_name(path) for path in paths}) == len(paths) else FILE_PATH


def metadata_value(field: str, root: str, path: str) -> str:
    """The value of FILE_NAME or FILE_PATH for a file.

    Args:
        field: the field of `_metadata`.
        root: the root of the file in Spark's paths, not encoded.
        path: the decoded path below the root.
    """
    if field == FILE_NAME:
        return encode_as_java(base_name(path))
    # For a local file, the value has one slash after the scheme.
    start = "file:" + root.removeprefix("file://") if root.startswith("file://") else root
    return encode_as_java(f"{start}/{path}")


def is_hidden(path: str) -> bool:
    """True for a file that Spark skips silently, even when it is named explicitly: `_x` and `.x`."""
    return base_name(path).startswith(("_", "."))


def is_unreadable(path: str) -> bool:
    """True for a file that Spark's native scan cannot open or would skip.

    The local file system takes a colon in the name for a URI scheme when it opens the checksum file.
    """
    return is_hidden(path) or ":" in base_name(path)
