"""The library with a fault of a kind that no kill point may miss. The suite is run against each."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from delta_core import run as surroundings
from delta_core.dml import write as writing
from delta_core.storage import local
from delta_core.storage.local import LocalLogStore
from delta_core.storage.object_store import ObjectLogStore
from delta_core.storage.s3_dynamodb import S3DynamoDbLogStore
from delta_core.transaction import transaction
from tests.concurrency.kill_points.places import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A fault.

    Attributes:
        break_it: puts it into this process.
        place, operation: where it shows.
        power: whether it takes a power failure to show it.
    """

    break_it: Callable[[], None]
    operation: str = "append"
    place: Place = Place.LOCAL
    power: bool = False


def _created_in_place() -> None:
    """A file that must not replace another, a commit or a checkpoint, has its name before its bytes."""

    def put_if_absent(self: LocalLogStore, path: str, data: bytes) -> None:
        target = self._resolve(path)
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        os.write(descriptor, data)
        os.fsync(descriptor)
        os.close(descriptor)
        local._sync_directory(target.parent)

    LocalLogStore.put_if_absent = put_if_absent  # type: ignore[method-assign]


def _key_is_not_looked_up() -> None:
    """A retry does not find what an earlier run has done."""
    for module in (transaction, writing, surroundings):
        module.already_applied = lambda snapshot, key, **others: None  # type: ignore[attr-defined]


def _commit_before_data() -> None:
    """The data files get their bytes after the commit that names them."""
    waiting: list[tuple[str, str]] = []
    put = LocalLogStore.put_if_absent

    def rename(self: LocalLogStore, temporary: str, target: str, path: str) -> None:
        if path.startswith("_delta_log/"):
            os.replace(temporary, target)
        else:
            waiting.append((temporary, target))

    def put_if_absent(self: LocalLogStore, path: str, data: bytes) -> None:
        put(self, path, data)
        for temporary, target in waiting:
            os.replace(temporary, target)

    LocalLogStore._rename = rename  # type: ignore[method-assign]
    LocalLogStore.put_if_absent = put_if_absent  # type: ignore[method-assign]


def _files_are_not_flushed() -> None:
    """Data files are complete, but only in memory."""
    local._sync_file = lambda path: None


def _created_files_are_not_flushed() -> None:
    """A commit or a checkpoint has its name, which the disk may write before its bytes."""

    def write_temporary(self: LocalLogStore, target: str, data: bytes, path: str) -> str:
        final = Path(target)
        temporary = final.parent / f"{local.TEMPORARY_PREFIX}{final.name}"
        temporary.write_bytes(data)
        return str(temporary)

    LocalLogStore._write_temporary = write_temporary  # type: ignore[method-assign]


def _directories_are_not_flushed() -> None:
    """A commit that was acknowledged may be without its name."""
    local._sync_directory = lambda directory: None


def _entry_before_bytes() -> None:
    """The entry decides before the bytes are there that another would need to finish the commit."""

    def put_temporary(self: S3DynamoDbLogStore, entry: Any, data: bytes) -> None:
        create = self._entries.create

        def create_then_put(entry: Any) -> None:
            create(entry)
            self._objects.put(f"_delta_log/{entry.temp_path}", data)

        self._entries.create = create_then_put  # type: ignore[method-assign]

    S3DynamoDbLogStore._put_temporary = put_temporary  # type: ignore[method-assign]


def _complete_before_copy() -> None:
    """The entry says that the commit file is there before it is."""
    copy = S3DynamoDbLogStore._copy

    def complete_then_copy(self: S3DynamoDbLogStore, entry: Any, data: bytes) -> None:
        self._entries.complete(entry)
        copy(self, entry, data)

    S3DynamoDbLogStore._copy = complete_then_copy  # type: ignore[method-assign]


def _deletes_first() -> None:
    """An object is deleted before it is replaced."""
    put = ObjectLogStore.put_if_absent

    def put_if_absent(self: ObjectLogStore, path: str, data: bytes) -> None:
        self.delete(f"{path[:-6]}{int(path[-6]) - 1}.json")
        put(self, path, data)

    ObjectLogStore.put_if_absent = put_if_absent  # type: ignore[method-assign]


VARIANTS: dict[str, Variant] = {
    "the commit is written in place": Variant(break_it=_created_in_place),
    "the key is not looked up": Variant(break_it=_key_is_not_looked_up),
    "the commit comes before the data": Variant(break_it=_commit_before_data),
    "the checkpoint is written in place": Variant(break_it=_created_in_place, operation="checkpoint"),
    "data files are not flushed": Variant(break_it=_files_are_not_flushed, power=True),
    "commits are not flushed": Variant(break_it=_created_files_are_not_flushed, power=True),
    "directories are not flushed": Variant(break_it=_directories_are_not_flushed, power=True),
    "a checkpoint is not flushed": Variant(
        break_it=_created_files_are_not_flushed, power=True, operation="checkpoint"
    ),
    "the entry comes before the bytes": Variant(break_it=_entry_before_bytes, place=Place.DYNAMODB),
    "the entry is complete before the file is there": Variant(
        break_it=_complete_before_copy, place=Place.DYNAMODB
    ),
    "the version before is taken away": Variant(break_it=_deletes_first, place=Place.OBJECTS),
}
