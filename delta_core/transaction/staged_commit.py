"""The lines of a commit: its `commitInfo` and its actions, checked and encoded for each version.

PROTOCOL.md, "Commit Provenance Information". `commitInfo` has the form that delta-spark writes.
"""

from __future__ import annotations

import getpass
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import orjson

from delta_core.actions import Action, CommitInfo
from delta_core.actions.json_codec import MAX_LINE_BYTES, action_to_json, commit_order
from delta_core.actions.validation import CHECKS, InvalidAction
from delta_core.errors import CommitError
from delta_core.transaction.commit_properties import CommitProperties
from delta_core.transaction.isolation import IsolationLevel
from delta_core.transaction.rebase import CommitDraft, RebaseHook
from delta_core.transaction.reordering import ConflictCheck
from delta_core.transaction.winning_commit import WinningCommit
from delta_core.version import VERSION


@dataclass(slots=True, kw_only=True)
class StagedCommit:
    """Checked actions, the conflict check, and the hooks that adapt the commit to each version.

    Attributes:
        actions: all actions except `commitInfo`, without the fields that rebase hooks set.
        examination: the conflict check of the winning commits.
        info: returns the `commitInfo` of an attempt at a version.
        rebase_hooks: the hooks of the table's features. Most tables have none. Then only the first line is
            encoded again for another version.
    """

    actions: Sequence[Action]
    examination: ConflictCheck
    info: Callable[[int], CommitInfo]
    rebase_hooks: tuple[RebaseHook, ...] = ()
    _encoded: tuple[Sequence[Action], bytes] | None = None

    def render(self, version: int) -> bytes:
        """The commit's bytes at a version. Each call is a new attempt with its own time.

        Raises:
            CommitError: readers would refuse an action.
            DeltaError: an error of a rebase hook.
        """
        draft = CommitDraft(info=self.info(version), actions=self.actions)
        for rebase_hook in self.rebase_hooks:
            draft = rebase_hook.apply(draft, version)
        return encode_checked([draft.info]) + self._body(draft.actions)

    def follow(self, winner: WinningCommit) -> None:
        """Adapt the rebase hooks to a winning commit that this commit follows."""
        self.rebase_hooks = tuple(rebase_hook.after(winner) for rebase_hook in self.rebase_hooks)

    def replace_actions(self, other: StagedCommit) -> None:
        """Continue with the actions of `other`. The rebase hooks and the winners checked so far are kept."""
        self.actions, self.info = other.actions, other.info
        self.examination = self.examination.with_transaction(other.examination.transaction)

    def _body(self, actions: Sequence[Action]) -> bytes:
        last = self._encoded
        if last is None or (last[0] is not actions and last[0] != actions):
            self._encoded = last = (actions, encode_checked(actions))
        return last[1]


def encode_checked(actions: Sequence[Action]) -> bytes:
    """Encode like `encode_commit`, after a check that readers, including this library, accept the actions.

    A commit that cannot be parsed makes the whole table unreadable, so the check comes before the write.

    Raises:
        CommitError: a field does not have the type that the protocol defines for it, or a line is longer
            than `MAX_LINE_BYTES`.
    """
    return b"".join(map(_line, commit_order(actions)))


ENGINE_INFO = f"deltaward/{VERSION}"


def encode_parameters(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Operation parameters as strings. Strings are unchanged, other values become JSON, None is omitted.

    A list of columns becomes the string `["a","b"]`, as delta-spark stores it.
    """
    return {key: _as_string(value) for key, value in parameters.items() if value is not None}


def encode_metrics(metrics: Mapping[str, Any]) -> dict[str, str]:
    """Operation metrics as strings. None is omitted."""
    return {key: _as_string(value) for key, value in metrics.items() if value is not None}


def recounted(metrics: Mapping[str, str], changes: Mapping[str, int]) -> dict[str, str]:
    """Operation metrics with changed counts. Metrics that were never set stay unset."""
    new = {key: str(int(metrics[key]) + change) for key, change in changes.items() if key in metrics}
    return {**metrics, **new}


def commit_info(
    *,
    operation: str,
    parameters: Mapping[str, str],
    metrics: Mapping[str, str],
    properties: CommitProperties,
    isolation: IsolationLevel,
    is_blind_append: bool,
    read_version: int,
    txn_id: str,
    timestamp_ms: int,
) -> CommitInfo:
    """The `commitInfo` of one attempt. `read_version` is -1 for a table that did not exist."""
    return CommitInfo(
        timestamp_ms=timestamp_ms,
        operation=operation,
        operation_parameters={**_custom_parameters(properties), **parameters},
        operation_metrics=metrics,
        engine_info=properties.engine_info or ENGINE_INFO,
        user_name=properties.user_name or system_user(),
        user_metadata=properties.user_metadata,
        txn_id=txn_id,
        read_version=read_version if read_version >= 0 else None,
        isolation_level=isolation.value,
        is_blind_append=is_blind_append,
        extra=properties.custom_metadata,
    )


def _custom_parameters(properties: CommitProperties) -> dict[str, str]:
    """The operation parameters that the caller adds. They replace none of the operation's own."""
    custom = properties.custom_metadata.get("operationParameters")
    return {key: _as_string(value) for key, value in custom.items()} if isinstance(custom, dict) else {}


@cache
def system_user() -> str | None:
    """The operating system's user name; None where the user has no name, as in some containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None


def _line(action: Action) -> bytes:
    content = action_to_json(action)
    (kind,) = content
    try:
        CHECKS[kind](content[kind])
        line = orjson.dumps(content, option=orjson.OPT_APPEND_NEWLINE)
    except (InvalidAction, TypeError) as error:
        raise CommitError(
            f"The action {kind!r} cannot be committed.",
            cause=f"The field {error}. With this action in the log, no reader could read the table.",
            fix="Pass a value of the expected type.",
        ) from None
    if len(line) > MAX_LINE_BYTES:
        raise CommitError(
            f"The action {kind!r} cannot be committed.",
            cause=f"Its JSON has {len(line)} bytes, and readers accept at most {MAX_LINE_BYTES}.",
            fix="Store long strings elsewhere and commit a reference to them.",
        )
    return line


def _as_string(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), default=str)
