"""`DeltaStorageHandler` of the `deltalake` package: a table's files as a file system of Arrow."""

from __future__ import annotations

import os
from collections.abc import Mapping

from delta_core import table as core
from delta_core.deltalake._changes import store_options
from delta_core.storage.arrow_filesystem import StoreFileSystemHandler
from delta_core.storage.open import open_store


class DeltaStorageHandler(StoreFileSystemHandler):
    """The files below a table's root, for `pyarrow.fs.PyFileSystem`. It only reads.

    Files of a table are written together with a commit, so calls that write raise StorageError.
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
