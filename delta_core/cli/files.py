"""Result files of a command. The command checks that it can write them before it starts to work."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from delta_core.errors import ConfigurationError


def require_writable(path: Path) -> None:
    """Create the file's folder when it does not exist, and check that the folder is writable.

    Raises:
        ConfigurationError: the folder is not writable, or the path is a folder.
    """
    try:
        if path.is_dir():
            raise ConfigurationError(
                f"{str(path)!r} is a folder, not a file.", fix="Name a file in this folder."
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise _unwritable(path, error) from error


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that a reader sees either the whole file or no file.

    Raises:
        ConfigurationError: the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> ConfigurationError:
    return ConfigurationError(
        f"The file {str(path)!r} cannot be written.",
        cause=error.strerror or type(error).__name__,
        fix="Name a file in a folder that you may write to.",
    )
