"""Rewrites the files of one statement in parallel groups: one core decodes while another encodes.

A group is a run of consecutive files, so the new files are in the order of the rows, no matter which group
finishes first. Each group writes its own files, so each group adds at most one small file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from delta_core.actions import AddCdcFile, AddFile
from delta_core.dml.find_rows import FileMatch
from delta_core.storage.log_store import LogStore
from delta_core.transaction.owned_files import OwnedFiles

_GROUP_BYTES = 16 << 20
_MOST_GROUPS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenGroup:
    """The files that were written for a group of files.

    Attributes:
        written: data files.
        changes: change data files.
        changed_rows: the number of rows that the statement changed; 0 when it does not count them.
    """

    written: tuple[AddFile, ...] = ()
    changes: tuple[AddCdcFile, ...] = ()
    changed_rows: int = 0


def write_groups(
    store: LogStore,
    matches: Sequence[FileMatch],
    write: Callable[[Sequence[FileMatch]], WrittenGroup],
    *,
    cores: int | None = None,
) -> WrittenGroup:
    """Rewrite all files: in this thread when they are few or small, else in one thread for each group.

    Memory: that of `write`, once for each of at most four groups.

    Args:
        store: the table's store. When one group fails, the files that the other groups wrote are deleted.
        matches: the files.
        write: rewrites a group of files in any thread. It must leave no file when it fails.
        cores: the maximum number of groups; the number of this machine's cores when None.

    Raises:
        The error of `write` in the first group that failed. No written file of any group remains.
    """
    groups = _groups(matches, min(_MOST_GROUPS, cores or os.cpu_count() or 1))
    if len(groups) < 2:
        return write(matches)
    with ThreadPoolExecutor(len(groups), "deltaward-rewrite") as pool:
        running = [pool.submit(write, group) for group in groups]
    failed = next((error for future in running if (error := future.exception()) is not None), None)
    if failed is not None:
        _delete_written(store, running)
        raise failed
    parts = [future.result() for future in running]
    return WrittenGroup(
        written=tuple(add for part in parts for add in part.written),
        changes=tuple(file for part in parts for file in part.changes),
        changed_rows=sum(part.changed_rows for part in parts),
    )


def _groups(matches: Sequence[FileMatch], most: int) -> list[Sequence[FileMatch]]:
    """At most `most` groups of about equal size in bytes, each large enough to be worth a thread."""
    total = sum(match.file.size_bytes for match in matches)
    count = min(most, len(matches), total // _GROUP_BYTES)
    if count < 2:
        return [matches]
    groups: list[list[FileMatch]] = [[]]
    taken = 0
    for match in matches:
        if groups[-1] and len(groups) < count and taken * count >= total * len(groups):
            groups.append([])
        groups[-1].append(match)
        taken += match.file.size_bytes
    return list(groups)


def _delete_written(store: LogStore, ended: Sequence[Future[WrittenGroup]]) -> None:
    """Delete the files of the groups that succeeded. No commit was attempted that could refer to them."""
    for future in ended:
        if future.exception() is None:
            part = future.result()
            OwnedFiles(store=store).with_data(part.written).with_changes(part.changes).delete()
