"""Deleting the data files of a commit that did not happen."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from urllib.parse import unquote

from delta_core.actions import AddFile
from delta_core.errors import DeltaError
from delta_core.storage.log_store import LogStore
from delta_core.storage.uri import resolve_data_path
from delta_core.transaction.commit_result import CommitResult, may_discard_files

_log = logging.getLogger(__name__)


def discard_files(store: LogStore, adds: Iterable[AddFile], result: CommitResult) -> int:
    """Delete written files when the result proves that no commit names them.

    After `Committed`, `AlreadyApplied` and `Unknown` nothing is deleted. A file that cannot be deleted
    stays as an orphan for vacuum; that is logged and is no error. One request for each file.

    Args:
        store: the table's store.
        adds: files that the transaction itself wrote, and no others.
        result: what became of the commit.

    Returns:
        How many files were deleted.
    """
    if not may_discard_files(result):
        return 0
    deleted = 0
    for add in adds:
        try:
            store.delete(resolve_data_path(add.path, root_uri=store.uri))
            deleted += 1
        except DeltaError as error:
            _log.warning("written file left behind", extra={"path": unquote(add.path), "error": str(error)})
    return deleted
