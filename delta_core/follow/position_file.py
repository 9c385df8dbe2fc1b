"""The position of a stream in a local file, which is replaced as a whole."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

from delta_core.errors import ConfigurationError, StorageError
from delta_core.follow.position import StreamPosition
from delta_core.storage.uri import local_path_of_uri, uri_scheme


class PositionFile:
    """A local file with the position of a stream.

    A reader sees the position before or after a save, also after a crash. One stream at a time may use it.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Create it for a path or a `file:` URI. The file need not exist; its directory must.

        Raises:
            ConfigurationError: the URI is not that of a local file, or the directory does not exist.
        """
        name = os.fspath(path)
        if uri_scheme(name) == "file":
            name = os.fspath(local_path_of_uri(name))
        elif uri_scheme(name):
            raise ConfigurationError(
                f"The position of a stream cannot be kept in {name!r}.",
                cause="It is not a local file.",
                fix="Pass a local path, or keep the position of each batch in another place, and pass it as "
                "`since`.",
            )
        self._path = Path(name)
        if not self._path.parent.is_dir():
            raise ConfigurationError(
                f"The position of a stream cannot be kept in {name!r}.",
                cause="Its directory does not exist.",
                fix="Create the directory, or pass another path.",
            )

    def load(self) -> StreamPosition | None:
        """The saved position; None if there is no file.

        Raises:
            StreamPositionError: the file does not contain a position.
            StorageError: the file cannot be read.
        """
        try:
            return StreamPosition.from_json(self._path.read_text(encoding="utf-8", errors="replace"))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._failed("read", error) from error

    def save(self, position: StreamPosition) -> None:
        """Save a position, durable when the call returns.

        Raises:
            StorageError: the file cannot be written. It keeps the position from before.
        """
        scratch = self._path.with_name(f".{self._path.name}.{uuid.uuid4().hex}.tmp")
        try:
            with scratch.open("x", encoding="utf-8") as target:
                target.write(position.to_json() + "\n")
                target.flush()
                os.fsync(target.fileno())
            scratch.replace(self._path)
            directory = os.open(self._path.parent, os.O_RDONLY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)
        except OSError as error:
            scratch.unlink(missing_ok=True)
            raise self._failed("written", error) from error

    def _failed(self, done: str, error: OSError) -> StorageError:
        return StorageError(
            f"The position file {self._path} cannot be {done}.",
            cause=str(error),
            fix="Check the path and its permissions.",
        )
