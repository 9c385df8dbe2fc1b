"""`protected_keys` and `is_protected` for columns of paths and for large sets of files.

Most paths in a log are plain: the path is equal to the store path of its file and to the key. Plain paths
remain Arrow columns. Only the other paths are processed one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from delta_core.maintenance.vacuum.deletion_vectors import stored_deletion_vector_keys
from delta_core.maintenance.vacuum.path_identity import listed_key, protected_keys
from delta_core.numpy_columns import to_numpy
from delta_core.schema.arrow_values import arrow_scalar
from delta_core.storage.name_columns import NAME, is_ascii, name_column, names_in
from delta_core.storage.uri import MAX_PATH_CHARACTERS

Rows = npt.NDArray[np.bool_]
"""A mask with one boolean per row."""

# Paths that no decoding, normalization or URI scheme changes: printable ASCII without %, : and \, in parts
# that are not empty and do not begin with a dot.
_FIRST: Final = r"[ -$&-\-0-9;-\[\]-~]"
_MORE: Final = r"[ -$&-.0-9;-\[\]-~]*"
_MAX_LENGTH: Final = arrow_scalar(MAX_PATH_CHARACTERS, pa.int64())
_PLAIN: Final = rf"^{_FIRST}{_MORE}(?:/{_FIRST}{_MORE})*$"


class ListedPaths:
    """Paths as a store lists them, with their keys.

    Args:
        column: the paths, in one chunk.
    """

    def __init__(self, column: pa.Array) -> None:
        self.column = column

    def __len__(self) -> int:
        return len(self.column)

    @cached_property
    def keys(self) -> pa.Array:
        """The key of each path; see `listed_key`."""
        if is_ascii(self.column):
            return self.column
        return name_column([listed_key(path) for path in names_in(self.column)])

    @cached_property
    def name_keys(self) -> pa.Array:
        """The key of each file name without its directory."""
        return name_column([f"\0{key.rpartition('/')[2]}" for key in names_in(self.keys)])


class FileKeys:
    """The keys of all store paths that files in the log may mean. Initially empty: protects no path."""

    def __init__(self, *, root_uri: str) -> None:
        self._root_uri = root_uri
        self._plain: list[pa.Array] = []
        self._others: set[str] = set()
        self._names: set[str] = set()

    def add_files(self, files: pa.RecordBatch | pa.Table) -> None:
        """Add the keys of files or tombstones, and of the files of their deletion vectors.

        Args:
            files: a table with the columns `path` and `deletion_vector`.

        Raises:
            MaintenanceError: the file of a deletion vector cannot be determined.
        """
        self.add_paths(files.column("path"))
        self.add_keys(stored_deletion_vector_keys(files.column("deletion_vector"), root_uri=self._root_uri))

    def add_paths(self, raw: pa.Array | pa.ChunkedArray | Sequence[str]) -> None:
        """Add the keys of paths, as in the log."""
        if not isinstance(raw, (pa.Array, pa.ChunkedArray)):
            try:
                raw = pa.array(raw, pa.large_string())
            except UnicodeEncodeError:  # A lone surrogate, which JSON can contain.
                self.add_keys(protected_keys(raw, root_uri=self._root_uri))
                return
        for chunk in raw.chunks if isinstance(raw, pa.ChunkedArray) else [raw]:
            plain = pc.and_(
                pc.match_substring_regex(chunk, _PLAIN),
                pc.less_equal(pc.binary_length(chunk), _MAX_LENGTH),
            )
            if pc.all(plain, min_count=0).as_py():
                self._plain.append(chunk.cast(NAME))
                continue
            self._plain.append(chunk.filter(plain).cast(NAME))
            others = chunk.filter(pc.invert(plain)).to_pylist()
            self.add_keys(protected_keys(others, root_uri=self._root_uri))

    def add_all(self, other: FileKeys) -> None:
        """Add the keys of `other`, which belongs to the same table."""
        self._plain += other._plain
        self._others |= other._others
        self._names |= other._names

    def match_paths(self, paths: ListedPaths) -> Rows:
        """The listed files whose path is one of the keys; ignores keys of file names in any directory."""
        others = [name_column(list(self._others))] if self._others else []
        return _is_in(paths.keys, [*self._plain, *others])

    def protect(self, paths: ListedPaths) -> Rows:
        """The listed files that may be one of the files of the keys; see `is_protected`."""
        protected = self.match_paths(paths)
        if self._names:
            protected |= _is_in(paths.name_keys, [name_column(list(self._names))])
        return protected

    def add_keys(self, keys: Iterable[str]) -> None:
        """Add keys from `protected_keys` or `deletion_vector_keys`."""
        for key in keys:
            (self._names if key.startswith("\0") else self._others).add(key)


def _is_in(keys: pa.Array, values: Sequence[pa.Array]) -> Rows:
    if not len(keys) or not any(len(chunk) for chunk in values):
        return np.zeros(len(keys), dtype=np.bool_)
    mask: Any = pc.is_in(keys, value_set=pa.chunked_array(values, NAME))
    return to_numpy(mask)
