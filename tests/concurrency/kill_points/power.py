"""What is left of a directory when the power fails: what was flushed, and of the rest what the disk chose.

While a process runs, `Journal` keeps what is certain: a file's bytes as of its last fsync, a directory's
names as of its own. Afterwards `leave_durable` turns the directory into one that may be found then.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import stat
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class PowerLoss(StrEnum):
    """How much of what is not certain the disk has lost."""

    ALL = "all that was not flushed is lost"
    BYTES = "names are kept, bytes that were not flushed are zeros"
    SOME = "of names and bytes that were not flushed some are lost"


class Journal:
    """Notes, outside of a directory, what is flushed in it. To be made before the first change."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._root = root.resolve()
        self._names, self._bytes = folder / "names", folder / "bytes"
        self._names.mkdir(parents=True)
        self._bytes.mkdir()
        # An open file keeps its number: no other file gets it while the process lives.
        self._held: list[int] = []
        for directory, _, files in os.walk(self._root):
            self._note_names(Path(directory))
            for name in files:
                self._held.append(os.open(f"{directory}/{name}", os.O_RDONLY))
                self._note_bytes(self._held[-1])

    def synced(self, descriptor: int) -> None:
        """Something in the directory, or it itself, was flushed."""
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            self._note_names(Path(os.readlink(f"/proc/self/fd/{descriptor}")))
        else:
            self._held.append(os.dup(descriptor))
            self._note_bytes(descriptor)

    def _note_bytes(self, descriptor: int) -> None:
        found = os.fstat(descriptor)
        noted = self._bytes / str(found.st_ino)
        noted.write_bytes(Path(f"/proc/self/fd/{descriptor}").read_bytes())
        os.utime(noted, ns=(found.st_mtime_ns, found.st_mtime_ns))

    def _note_names(self, directory: Path) -> None:
        with os.scandir(directory) as entries:
            names = {entry.name: entry.inode() for entry in entries}
        _noted(self._names, self._root, directory).write_text(json.dumps(names))


def leave_durable(root: Path, journal: Path, loss: PowerLoss, chance: random.Random) -> None:
    """Turn a directory, whose process has ended, into what is left of it."""
    root = root.resolve()
    image = _Remains(root, journal, loss, chance).directory(root)
    shutil.rmtree(root)
    _build(root, image)


@dataclass(frozen=True, slots=True)
class _File:
    data: bytes
    modified_ns: int


Image = dict[str, "_File | Image"]


class _Remains:
    """Works out the image of a directory."""

    def __init__(self, root: Path, journal: Path, loss: PowerLoss, chance: random.Random) -> None:
        self._root, self._loss, self._chance = root, loss, chance
        self._names, self._bytes = journal / "names", journal / "bytes"

    def directory(self, path: Path) -> Image:
        noted = _noted(self._names, self._root, path)
        certain: dict[str, int] = json.loads(noted.read_text()) if noted.exists() else {}
        now = {entry.name: entry for entry in os.scandir(path)} if path.is_dir() else {}
        image: Image = {}
        for name in sorted({*now, *certain}):
            old = certain.get(name)
            entry = now.get(name)
            new = entry.inode() if entry is not None else None
            chosen = new if old == new or self._is_kept(PowerLoss.BYTES) else old
            if chosen is None:
                continue
            if entry is not None and entry.is_dir(follow_symlinks=False):
                image[name] = self.directory(path / name)
            else:
                image[name] = self._file(chosen, path / name if chosen == new else None)
        return image

    def _is_kept(self, but_for: PowerLoss) -> bool:
        """Whether something that is not certain has survived all the same."""
        return self._loss is but_for or (self._loss is PowerLoss.SOME and self._chance.random() < 0.5)

    def _file(self, inode: int, path: Path | None) -> _File:
        flushed = self._bytes / str(inode)
        durable = _read(flushed) if flushed.exists() else None
        current = _read(path) if path is not None else None
        if current is None:
            return durable or _File(b"", 0)
        if durable is not None and durable.data == current.data:
            return durable
        if self._loss is PowerLoss.SOME and self._chance.random() < 0.5:
            return current
        return durable or _File(bytes(len(current.data)), current.modified_ns)


def _read(path: Path) -> _File:
    return _File(path.read_bytes(), path.stat().st_mtime_ns)


def _noted(names: Path, root: Path, directory: Path) -> Path:
    return names / f"of {os.path.relpath(directory, root)}".replace("/", "|")


def _build(path: Path, image: Image) -> None:
    path.mkdir(parents=True)
    for name, content in image.items():
        if isinstance(content, _File):
            (path / name).write_bytes(content.data)
            os.utime(path / name, ns=(content.modified_ns, content.modified_ns))
        else:
            _build(path / name, content)
