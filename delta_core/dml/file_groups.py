"""Rewriting the files of one statement in groups side by side: one core decodes while another encodes.

Groups are runs of the files in their order, so the new files come in the order of the rows, whichever group
is ready first. Each group writes files of its own: there is one more small file for each group at most.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from delta_core.actions import AddCdcFile, AddFile
from delta_core.dml.find_rows import FileMatch
from delta_core.errors import CommitError
from delta_core.storage.log_store import LogStore
from delta_core.transaction.commit_result import Rejected
from delta_core.transaction.owned_files import OwnedFiles

_GROUP_BYTES = 16 << 20
_MOST_GROUPS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenGroup:
    """What was written for some files.

    Attributes:
        written: data files.
        changes: files of change data.
        changed_rows: rows that the statement changed; 0 where it does not count them.
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
    """What is written for all files: in this thread where they are few or small, else in one for each group.

    Memory: what `write` needs, once for each of four groups at most.

    Args:
        store: the table's, where files are deleted when one group fails.
        matches: the files.
        write: writes for a run of them, in any thread; leaves nothing when it fails.
        cores: so many groups at most; this machine's when None.

    Raises:
        whatever `write` raises, that of the first group which failed; no file of any group is left.
    """
    groups = _groups(matches, min(_MOST_GROUPS, cores or os.cpu_count() or 1))
    if len(groups) < 2:
        return write(matches)
    with ThreadPoolExecutor(len(groups), "deltaward-rewrite") as pool:
        running = [pool.submit(write, group) for group in groups]
    failed = next((error for one in running if (error := one.exception()) is not None), None)
    if failed is not None:
        _discard(store, running, failed)
        raise failed
    parts = [one.result() for one in running]
    return WrittenGroup(
        written=tuple(add for part in parts for add in part.written),
        changes=tuple(file for part in parts for file in part.changes),
        changed_rows=sum(part.changed_rows for part in parts),
    )


def _groups(matches: Sequence[FileMatch], most: int) -> list[Sequence[FileMatch]]:
    """Runs of about equal bytes, each large enough to be worth a thread."""
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


def _discard(store: LogStore, ended: Sequence[Future[WrittenGroup]], failed: BaseException) -> None:
    """Delete what the other groups have written: no commit was tried that could name it."""
    error = CommitError("The statement failed before its commit.", cause=str(failed))
    for one in ended:
        if one.exception() is None:
            part = one.result()
            owned = OwnedFiles(store=store).with_data(part.written).with_changes(part.changes)
            owned.discard(Rejected(error=error))
