"""The commit arguments of the `deltalake` package, and its call that commits files written elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from delta_core.actions.set_transaction import SetTransaction
from delta_core.deltalake.exceptions import ArgumentTypeError
from delta_core.errors import ConfigurationError
from delta_core.transaction.commit_properties import CommitProperties as CoreProperties

_STRINGS = ("userId", "userName", "userMetadata")
_ATTEMPTS = 50
_LEVELS = ("Serializable", "WriteSerializable", "SnapshotIsolation")


@dataclass(frozen=True, slots=True)
class Transaction:
    """A `txn` action: the version that an application has written."""

    app_id: str
    version: int
    last_updated: int | None = None

    def __str__(self) -> str:
        return f"Transaction(app_id={self.app_id}, version={self.version}, last_updated={self.last_updated})"


@dataclass(frozen=True, slots=True)
class CommitProperties:
    """Properties of a commit.

    `custom_metadata` becomes fields of `commitInfo`. `app_transactions` are recorded, not checked: to make a
    repeated write a no-op, use `delta_core.CommitProperties(txn=...)`, which these calls take, too.
    """

    custom_metadata: Mapping[str, Any] | None = field(default=None, hash=False)
    max_commit_retries: int | None = None
    app_transactions: Sequence[Transaction] | None = field(default=None, hash=False)


@dataclass(frozen=True, slots=True)
class PostCommitHookProperties:
    """The steps after a commit: a checkpoint that is due, and the deletion of expired log files with it."""

    create_checkpoint: bool = True
    cleanup_expired_logs: bool | None = None


@dataclass(frozen=True, slots=True)
class AddAction:
    """A data file that a caller has written below the table's root."""

    path: str
    size: int
    partition_values: Mapping[str, str | None] = field(hash=False)
    modification_time: int
    data_change: bool
    stats: str


@dataclass(frozen=True, slots=True)
class RemoveAction:
    """A data file of the table that a commit removes."""

    path: str
    data_change: bool
    deletion_timestamp: int
    size: int | None = None
    partition_values: Mapping[str, str | None] | None = field(default=None, hash=False)


class _Properties(CoreProperties):
    """Properties with checkpoints as in `deltalake`, where version 0 is the first of an interval."""

    first_counted_version = 0


CommitArgument: TypeAlias = CommitProperties | CoreProperties | None
HookArgument: TypeAlias = PostCommitHookProperties | None


def core_properties(commit: CommitArgument, hooks: HookArgument = None) -> CoreProperties:
    """The arguments as the commit properties of `delta_core`.

    Raises:
        ArgumentTypeError: an argument has another type.
        ConfigurationError: the custom metadata has a value that a commit cannot have.
    """
    if hooks is not None and not isinstance(hooks, PostCommitHookProperties):
        raise _refused("post_commithook_properties", hooks)
    hooks = PostCommitHookProperties() if hooks is None else hooks
    if isinstance(commit, CoreProperties):
        return commit
    if commit is not None and not isinstance(commit, CommitProperties):
        raise _refused("commit_properties", commit)
    given = CommitProperties() if commit is None else commit
    metadata = given.custom_metadata
    fields = dict(metadata) if isinstance(metadata, Mapping) else metadata
    if isinstance(fields, dict):
        _check_reserved(fields)
    retries = given.max_commit_retries
    keys = [
        SetTransaction(app_id=txn.app_id, version=txn.version, last_updated_ms=txn.last_updated)
        for txn in given.app_transactions or ()
    ]
    return _Properties(
        user_name=fields.pop("userName", None) if isinstance(fields, dict) else None,
        user_metadata=fields.pop("userMetadata", None) if isinstance(fields, dict) else None,
        custom_metadata=fields,
        app_transactions=keys,
        write_checkpoint=hooks.create_checkpoint,
        cleanup_expired_logs=hooks.cleanup_expired_logs,
        max_attempts=_ATTEMPTS if retries is None else retries + 1,
    )


def _check_reserved(fields: Mapping[str, Any]) -> None:
    """Refuse values that fields of `commitInfo` cannot have."""
    for name in _STRINGS:
        if not isinstance(fields.get(name, ""), str):
            raise _wrong(name, fields[name], "a string")
    if not isinstance(fields.get("operationParameters", {}), Mapping):
        raise _wrong("operationParameters", fields["operationParameters"], "a mapping")
    read = fields.get("readVersion", 0)
    if isinstance(read, bool) or not isinstance(read, int) or read < 0:
        raise _wrong("readVersion", read, "a whole number of 0 or more")
    if fields.get("isolationLevel", _LEVELS[0]) not in _LEVELS:
        raise _wrong("isolationLevel", fields["isolationLevel"], f"one of {', '.join(_LEVELS)}")
    if not isinstance(fields.get("isBlindAppend", True), bool):
        raise _wrong("isBlindAppend", fields["isBlindAppend"], "true or false")


def _wrong(name: str, value: object, expected: str) -> ConfigurationError:
    return ConfigurationError(
        f"The custom_metadata cannot have {value!r} as {name}.",
        cause="The commitInfo has a field of this name.",
        fix=f"Pass {expected}, or use another name.",
    )


def _refused(name: str, value: object) -> ArgumentTypeError:
    return ArgumentTypeError(
        f"A {type(value).__name__} was passed as {name}.",
        fix="Pass an object of the class that delta_core.deltalake has for it, or None.",
    )
