"""`DeltaStorageHandler` of the `deltalake` package: a table's files as a file system of Arrow."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from delta_core import table as core
from delta_core.deltalake._changes import store_options
from delta_core.errors import ConfigurationError
from delta_core.log.log_path import LOG_DIRECTORY
from delta_core.storage.arrow_filesystem import StoreFileSystemHandler
from delta_core.storage.log_store import LogStore
from delta_core.storage.open import open_store

_SMALL_BUFFER_BYTES = 5 << 20


class DeltaStorageHandler(StoreFileSystemHandler):
    """The files below a table's root, for `pyarrow.fs.PyFileSystem`.

    A file that is written appears when it is closed, and replaces one of the same name; its content is held
    in memory until then. It belongs to the table only after a commit, such as `create_write_transaction`.
    """

    def __init__(
        self,
        table_uri: str | os.PathLike[str],
        options: Mapping[str, str] | None = None,
        known_sizes: Mapping[str, int] | None = None,
    ) -> None:
        """Open the store of a table. Makes no request.

        Raises:
            InvalidUriError, ConfigurationError: the URI or an option is not valid.
        """
        super().__init__(
            open_store(table_uri, storage_options=store_options(table_uri, options)), known_sizes
        )
        self._arguments = os.fspath(table_uri), options, known_sizes

    @classmethod
    def from_table(
        cls,
        table: core.DeltaTable,
        options: Mapping[str, str] | None = None,
        known_sizes: Mapping[str, int] | None = None,
    ) -> DeltaStorageHandler:
        """The files of an open table of `delta_core`."""
        return cls(table.table_uri, options, known_sizes)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self._arguments

    def _info(self, path: str) -> pafs.FileInfo:
        """The type, size and time of an object; the time of a local file in nanoseconds."""
        info = super()._info(path)
        if info.mtime is not None and self._store.uri.startswith("file://"):
            _, local = pafs.FileSystem.from_uri(f"{self._store.uri.rstrip('/')}/{path}")
            modified_ns = os.stat(local).st_mtime_ns
            return pafs.FileInfo(info.path, info.type, size=info.size, mtime_ns=modified_ns)
        return info

    def open_input_file(self, path: str) -> pa.NativeFile:
        """A seekable reader of an object. Its size is the known one, which the caller vouches for."""
        opened = super().open_input_file(path)
        size = self._sizes.get(path.strip("/"))
        return opened if size is None else pa.PythonFile(_Sized(opened, size), mode="r")

    def create_dir(self, path: str, recursive: bool = True) -> None:
        """Do nothing: a directory exists when it contains a file."""

    def delete_dir(self, path: str) -> None:
        """Delete the files below a directory."""
        self.delete_dir_contents(path)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        """Delete the files below a directory.

        Raises:
            ConfigurationError: the directory is the table's root, or in its log.
        """
        base = _unprotected(path)
        for one in list(self._store.walk(base)):
            self._store.delete(one.path)

    def delete_file(self, path: str) -> None:
        """Delete a file outside of the log."""
        self._store.delete(_unprotected(path))

    def move(self, src: str, dest: str) -> None:
        """Copy a file, and delete the source."""
        self.copy_file(src, dest)
        self._store.delete(_unprotected(src))

    def copy_file(self, src: str, dest: str) -> None:
        """Copy a file."""
        self._store.put(_unprotected(dest), self._store.read(src.strip("/")))

    def open_output_stream(self, path: str, metadata: Mapping[Any, Any] | None = None) -> pa.NativeFile:
        """A writer of a new file, which is written whole: `max_buffer_size` has no effect."""
        size = (self._arguments[1] or {}).get("max_buffer_size")
        if size is not None and str(size).isdecimal() and int(size) < _SMALL_BUFFER_BYTES:
            warnings.warn(
                f"You specified a `max_buffer_size` of {size} bits less than {_SMALL_BUFFER_BYTES} bits. "
                "The size has no effect: a file is held in memory and written whole.",
                UserWarning,
                stacklevel=2,
            )
        return pa.PythonFile(_Upload(self._store, _unprotected(path)), mode="w")


class _Sized(io.RawIOBase):
    """A reader of an object whose size is known already."""

    def __init__(self, opened: pa.NativeFile, size: int) -> None:
        super().__init__()
        self._opened, self._size, self._position = opened, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = (0, self._position, self._size)[whence]
        self._position = start + offset
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        self._opened.seek(self._position)
        left = max(self._size - self._position, 0)
        data = bytes(self._opened.read(left if size is None or size < 0 else min(size, left)))
        self._position += len(data)
        return data

    def close(self) -> None:
        self._opened.close()
        super().close()


class _Upload(io.BytesIO):
    """The content of a file; closing it writes the file."""

    def __init__(self, store: LogStore, path: str) -> None:
        super().__init__()
        self._store = store
        self._path = path

    def close(self) -> None:
        if not self.closed:
            self._store.put(self._path, self.getvalue())
        super().close()


def _unprotected(path: str) -> str:
    """The path below the root, when a caller may change it."""
    plain = path.strip("/")
    if not plain or plain.split("/")[0] == LOG_DIRECTORY:
        raise ConfigurationError(
            f"{path!r} cannot be changed through this file system.",
            cause="It is the root of the table, or in its log.",
            fix="Change the table through write_deltalake or a method of DeltaTable.",
        )
    return plain
