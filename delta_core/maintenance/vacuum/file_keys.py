"""`protected_keys` and `is_protected` for columns of paths, and for whole sets of the log's files.

Most paths of a log are plain: each is the store path, and the key, of its file as it stands. Those stay
Arrow columns; only the others are looked at one by one.
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
from delta_core.storage.name_columns import NAME, is_ascii, name_column, names_in
from delta_core.storage.uri import MAX_PATH_CHARACTERS

Rows = npt.NDArray[np.bool_]
"""One truth a row."""

# Nothing that decodes, normalises, names a scheme or leads anywhere: printable ASCII but % / : and \, in
# parts that are not empty and do not begin with a dot.
_FIRST: Final = r"[ -$&-\-0-9;-\[\]-~]"
_MORE: Final = r"[ -$&-.0-9;-\[\]-~]*"
_PLAIN: Final = rf"^{_FIRST}{_MORE}(?:/{_FIRST}{_MORE})*$"


class ListedPaths:
    """Paths as a store lists them, with their keys.

    Args:
        column: a column of names, in one piece.
    """

    def __init__(self, column: pa.Array) -> None:
        self.column = column

    def __len__(self) -> int:
        return len(self.column)

    @cached_property
    def keys(self) -> pa.Array:
        """The key of each path: see `listed_key`."""
        if is_ascii(self.column):
            return self.column
        return name_column([listed_key(path) for path in names_in(self.column)])

    @cached_property
    def name_keys(self) -> pa.Array:
        """The key of each file's name, whatever folder it is in."""
        return name_column([f"\0{key.rpartition('/')[2]}" for key in names_in(self.keys)])


class FileKeys:
    """Keys of every store path that some files of the log may mean; no path is protected by none."""

    def __init__(self, *, root_uri: str) -> None:
        self._root_uri = root_uri
        self._plain: list[pa.Array] = []
        self._others: set[str] = set()
        self._names: set[str] = set()

    def add_files(self, files: pa.RecordBatch | pa.Table) -> None:
        """Those of files, or tombstones, and of the files of their deletion vectors.

        Args:
            files: with the columns `path` and `deletion_vector`.

        Raises:
            MaintenanceError: which file a deletion vector is in cannot be told.
        """
        self.add_paths(files.column("path"))
        self.add_keys(stored_deletion_vector_keys(files.column("deletion_vector"), root_uri=self._root_uri))

    def add_paths(self, raw: pa.Array | pa.ChunkedArray | Sequence[str]) -> None:
        """Those of paths in the log."""
        if not isinstance(raw, (pa.Array, pa.ChunkedArray)):
            try:
                raw = pa.array(raw, pa.large_string())
            except UnicodeEncodeError:  # half of a character, which JSON can hold
                self.add_keys(protected_keys(raw, root_uri=self._root_uri))
                return
        for chunk in raw.chunks if isinstance(raw, pa.ChunkedArray) else [raw]:
            plain = pc.and_(
                pc.match_substring_regex(chunk, _PLAIN),
                pc.less_equal(pc.binary_length(chunk), MAX_PATH_CHARACTERS),
            )
            if pc.all(plain, min_count=0).as_py():
                self._plain.append(chunk.cast(NAME))
                continue
            self._plain.append(chunk.filter(plain).cast(NAME))
            others = chunk.filter(pc.invert(plain)).to_pylist()
            self.add_keys(protected_keys(others, root_uri=self._root_uri))

    def add_all(self, other: FileKeys) -> None:
        """Those that another has of the same table."""
        self._plain += other._plain
        self._others |= other._others
        self._names |= other._names

    def named(self, paths: ListedPaths) -> Rows:
        """Which of some listed files have one of the keys, but for those of a name in any folder."""
        others = [name_column(list(self._others))] if self._others else []
        return _is_in(paths.keys, [*self._plain, *others])

    def protect(self, paths: ListedPaths) -> Rows:
        """Which of some listed files may be one that the keys are of: see `is_protected`."""
        found = self.named(paths)
        if self._names:
            found |= _is_in(paths.name_keys, [name_column(list(self._names))])
        return found

    def add_keys(self, keys: Iterable[str]) -> None:
        """Those that `protected_keys` or `deletion_vector_keys` gave."""
        for key in keys:
            (self._names if key.startswith("\0") else self._others).add(key)


def _is_in(keys: pa.Array, wanted: Sequence[pa.Array]) -> Rows:
    if not len(keys) or not any(len(chunk) for chunk in wanted):
        return np.zeros(len(keys), dtype=np.bool_)
    found: Any = pc.is_in(keys, value_set=pa.chunked_array(wanted, NAME))
    rows: Rows = found.to_numpy(zero_copy_only=False)
    return rows.copy() if not rows.flags.writeable else rows
