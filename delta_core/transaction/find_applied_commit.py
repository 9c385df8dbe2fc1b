"""Finds the commit that carried an idempotency key, and its user metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from delta_core.actions.commit_info import CommitInfo
from delta_core.actions.set_transaction import SetTransaction
from delta_core.errors import DeltaError
from delta_core.log.listing import CommitFile, list_log
from delta_core.snapshot.history import commit_actions
from delta_core.storage.log_store import LogStore
from delta_core.transaction.applied_commit import AppliedCommit

MAX_COMMITS: Final = 200
"""How many commits are read at most to find a key."""


def find_applied_commit(store: LogStore, key: SetTransaction) -> AppliedCommit | None:
    """The commit that recorded `key`, a `txn` action of the table; None when the commit is not found.

    A checkpoint contains the key but not the commit that recorded it, so the commit must still be in the log.
    The commits are read in order of the distance between their file time and the time of the key. Usually
    one or two commits are read.

    Requests: one listing, and two for each commit that is read.

    Raises:
        DeltaError: the log cannot be listed.
    """

    def distance(file: CommitFile) -> tuple[int, int]:
        away = 0 if key.last_updated_ms is None else abs(file.info.modified_ms - key.last_updated_ms)
        return away, -file.version

    for file in islice(sorted(list_log(store).commits, key=distance), MAX_COMMITS):
        try:
            actions = commit_actions(store, file.version)
        except DeltaError:
            continue  # The commit was cleaned up since the listing, or is damaged.
        if any(
            isinstance(action, SetTransaction)
            and (action.app_id, action.version) == (key.app_id, key.version)
            for action in actions
        ):
            info = next((action for action in actions if isinstance(action, CommitInfo)), None)
            return AppliedCommit(version=file.version, user_metadata=_metadata(info))
    return None


def _metadata(info: CommitInfo | None) -> Mapping[str, Any]:
    """`commitInfo.userMetadata` where it is a JSON object; other writers put any string there."""
    try:
        document = json.loads((info.user_metadata if info else None) or "{}")
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
