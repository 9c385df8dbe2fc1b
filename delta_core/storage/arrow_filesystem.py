"""A store as a file system of Arrow, for libraries that open data files by themselves. It only reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.fs as pafs

from delta_core.errors import ObjectNotFoundError, StorageError
from delta_core.storage.log_store import LogStore, ObjectInfo


class StoreFileSystemHandler(pafs.FileSystemHandler):  # type: ignore[misc]
    """The objects of a store, by paths relative to its root. Calls that write raise StorageError."""

    def __init__(self, store: LogStore, sizes: Mapping[str, int] | None = None) -> None:
        """Create the handler. Makes no request.

        Args:
            store: the store to read.
            sizes: the sizes of objects that are known already, by path. They save a request each.
        """
        self._store = store
        self._sizes = dict(sizes or {})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoreFileSystemHandler) and other._store.uri == self._store.uri

    def __hash__(self) -> int:
        return hash(self._store.uri)

    def get_type_name(self) -> str:
        """The name of this kind of file system."""
        return "deltaward"

    def normalize_path(self, path: str) -> str:
        """The path itself."""
        return path

    def get_file_info(self, paths: list[str]) -> list[pafs.FileInfo]:
        """Type and size of objects. One request for each object of unknown size."""
        return [self._info(path.strip("/")) for path in paths]

    def get_file_info_selector(self, selector: pafs.FileSelector) -> list[pafs.FileInfo]:
        """The objects below a directory. One listing."""
        base = selector.base_dir.strip("/")
        files: list[pafs.FileInfo] = []
        directories: set[str] = set()
        for one in self._store.walk(base):
            below = one.path[len(base) :].strip("/").split("/")[:-1]
            for depth in range(1, len(below) + 1 if selector.recursive else min(len(below), 1) + 1):
                directories.add("/".join([*([base] if base else []), *below[:depth]]))
            if selector.recursive or not below:
                files.append(_file_info(one))
        return [*(pafs.FileInfo(path, pafs.FileType.Directory) for path in sorted(directories)), *files]

    def open_input_file(self, path: str) -> pa.NativeFile:
        """A seekable reader of an object."""
        return self._store.open_input(path.strip("/"))

    def open_input_stream(self, path: str) -> pa.NativeFile:
        """A reader of an object."""
        return self._store.open_input(path.strip("/"))

    def _info(self, path: str) -> pafs.FileInfo:
        size = self._sizes.get(path)
        if size is not None:
            return pafs.FileInfo(path, pafs.FileType.File, size=size)
        if not path:
            return pafs.FileInfo(path, pafs.FileType.Directory)
        try:
            return _file_info(self._store.head(path))
        except ObjectNotFoundError:
            inside = next(iter(self._store.walk(path)), None)
            kind = pafs.FileType.NotFound if inside is None else pafs.FileType.Directory
            return pafs.FileInfo(path, kind)

    def _refuse(self, path: object) -> NoReturn:
        raise StorageError(
            f"{path!r} cannot be written through this file system.",
            cause="Files of a table are only written together with a commit.",
            fix="Use write_deltalake, or the methods of DeltaTable.",
        )

    def create_dir(self, path: str, recursive: bool = True) -> None:
        """Raises StorageError."""
        self._refuse(path)

    def delete_dir(self, path: str) -> None:
        """Raises StorageError."""
        self._refuse(path)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        """Raises StorageError."""
        self._refuse(path)

    def delete_root_dir_contents(self) -> None:
        """Raises StorageError."""
        self._refuse("")

    def delete_file(self, path: str) -> None:
        """Raises StorageError."""
        self._refuse(path)

    def move(self, src: str, dest: str) -> None:
        """Raises StorageError."""
        self._refuse(src)

    def copy_file(self, src: str, dest: str) -> None:
        """Raises StorageError."""
        self._refuse(dest)

    def open_output_stream(self, path: str, metadata: Mapping[Any, Any]) -> pa.NativeFile:
        """Raises StorageError."""
        self._refuse(path)

    def open_append_stream(self, path: str, metadata: Mapping[Any, Any]) -> pa.NativeFile:
        """Raises StorageError."""
        self._refuse(path)


def _file_info(info: ObjectInfo) -> pafs.FileInfo:
    modified_ns = info.modified_ms * 1_000_000
    return pafs.FileInfo(info.path, pafs.FileType.File, size=info.size_bytes, mtime_ns=modified_ns)


def arrow_filesystem(store: LogStore, sizes: Mapping[str, int] | None = None) -> pafs.FileSystem:
    """The store as a file system of Arrow. Arrow itself reads a directory of this machine."""
    if store.uri.startswith("file://"):
        _, root = pafs.FileSystem.from_uri(store.uri)
        return pafs.SubTreeFileSystem(root, pafs.LocalFileSystem())
    return pafs.PyFileSystem(StoreFileSystemHandler(store, sizes))
