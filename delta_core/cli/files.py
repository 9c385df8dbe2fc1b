"""Files that a command writes its result into: known to be writable before it works for them."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from delta_core.errors import ConfigurationError


def require_writable(path: Path) -> None:
    """Make a file's folder where there is none, and see that files can be made in it.

    Raises:
        ConfigurationError: they cannot, or the path is that of a folder.
    """
    try:
        if path.is_dir():
            raise ConfigurationError(f"{str(path)!r} is a folder.", fix="Name a file in it.")
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise _unwritable(path, error) from error


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that whoever waits for it sees all of it or nothing.

    Raises:
        ConfigurationError: it cannot be written.
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
