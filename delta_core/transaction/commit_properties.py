"""The provenance, idempotency key and limits that a caller sets for a commit."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar, cast

from delta_core.actions.json_codec import action_to_json
from delta_core.actions.set_transaction import SetTransaction
from delta_core.actions.validation import CHECKS, InvalidAction
from delta_core.boundary import public
from delta_core.errors import ConfigurationError
from delta_core.plain_values import plain

IdempotencyKey = SetTransaction | tuple[str, int]
"""An application id and its version, as an action or as a pair."""


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class CommitProperties:
    """Provenance, idempotency and limits of one commit.

    Attributes:
        user_metadata: free text stored in `commitInfo.userMetadata`; orchestrated jobs put JSON there.
        user_name: the user who commits; the operating system's user when None.
        engine_info: the program that commits; `deltaward/<version>` when None.
        txn: idempotency key, given as `SetTransaction` or as a pair `(app_id, version)`. When the table
            already has this application id at this version or a later one, the commit is a no-op that
            reports `AlreadyApplied`. Versions of one application only increase, so a lower version counts as
            applied too.
        delivery: the application id and version of the original work, for work that is repeated under
            a new `txn`. It is recorded in addition to `txn`. When the table has a later version of that
            application id, the commit is a no-op.
        custom_metadata: more fields of `commitInfo`, as values of JSON. They replace no field of their own.
        app_transactions: more `txn` actions. They are recorded without a check: a repeated commit with the
            same actions is a new commit.
        write_checkpoint: whether a checkpoint that is due is written after the commit.
        cleanup_expired_logs: whether that checkpoint deletes expired log files; the table's property when
            None.
        max_attempts: how many times another writer may win before the commit fails.
        deadline_seconds: how long the commit may take in total.
    """

    user_metadata: str | None
    user_name: str | None
    engine_info: str | None
    txn: SetTransaction | None
    max_attempts: int
    deadline_seconds: float
    delivery: SetTransaction | None
    custom_metadata: Mapping[str, Any] = field(hash=False)
    app_transactions: tuple[SetTransaction, ...]
    write_checkpoint: bool
    cleanup_expired_logs: bool | None

    first_counted_version: ClassVar[int] = 1
    """The version that counts as the first of `delta.checkpointInterval`: 1, as in delta-spark."""

    @public
    def __init__(
        self,
        *,
        user_metadata: str | None = None,
        user_name: str | None = None,
        engine_info: str | None = None,
        txn: IdempotencyKey | None = None,
        max_attempts: int = 50,
        deadline_seconds: float = 600.0,
        delivery: IdempotencyKey | None = None,
        custom_metadata: Mapping[str, Any] | None = None,
        app_transactions: Sequence[IdempotencyKey] = (),
        write_checkpoint: bool = True,
        cleanup_expired_logs: bool | None = None,
    ) -> None:
        """Accept keys in either form. Raises ConfigurationError for values that no table can hold."""
        for name, string in (
            ("user_metadata", user_metadata),
            ("user_name", user_name),
            ("engine_info", engine_info),
        ):
            if string is not None and not isinstance(string, str):
                raise ConfigurationError(
                    f"The argument `{name}` cannot be of type {type(string).__name__}.",
                    cause=f"Other engines cannot read a commit in which {name} is not a string.",
                    fix="Pass a string, such as json.dumps(...) of the value.",
                )
        if isinstance(max_attempts, bool) or not isinstance(max_attempts, int) or max_attempts < 1:
            raise ConfigurationError(
                f"The argument `max_attempts` cannot be {max_attempts!r}.",
                fix="Pass a whole number of 1 or more.",
            )
        if not isinstance(deadline_seconds, int | float) or not 0 <= deadline_seconds < math.inf:
            raise ConfigurationError(
                f"The argument `deadline_seconds` cannot be {deadline_seconds!r}.",
                fix="Pass a finite number of seconds that is 0 or more.",
            )
        if cleanup_expired_logs is not None and not isinstance(cleanup_expired_logs, bool):
            raise ConfigurationError(
                f"The argument `cleanup_expired_logs` cannot be {cleanup_expired_logs!r}.",
                fix="Pass True, False or None.",
            )
        values = {
            "user_metadata": user_metadata,
            "user_name": user_name,
            "engine_info": engine_info,
            "txn": None if txn is None else idempotency_key(txn),
            "max_attempts": max_attempts,
            "deadline_seconds": deadline_seconds,
            "delivery": None if delivery is None else idempotency_key(delivery),
            "custom_metadata": MappingProxyType(
                {} if custom_metadata is None else json_fields(custom_metadata)
            ),
            "app_transactions": tuple(idempotency_key(key) for key in app_transactions),
            "write_checkpoint": write_checkpoint,
            "cleanup_expired_logs": cleanup_expired_logs,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arguments. A read-only mapping cannot be pickled."""
        names = (*self.__dataclass_fields__,)
        return _from_fields, (
            {name: getattr(self, name) for name in names} | {"custom_metadata": dict(self.custom_metadata)},
        )

    def without_key(self) -> CommitProperties:
        """A copy without `txn` and `delivery`, for a commit that only prepares or announces the work."""
        return replace(self, txn=None, delivery=None)


_RESERVED = frozenset(
    {"engineInfo", "inCommitTimestamp", "operation", "operationMetrics", "timestamp", "txnId"}
)


def _from_fields(values: Mapping[str, Any]) -> CommitProperties:
    return CommitProperties(**values)


def json_fields(values: object) -> dict[str, Any]:
    """The mapping, when JSON can hold it.

    Raises:
        ConfigurationError: the value is not a mapping, a key is not a string, or JSON has no such value.
    """
    fix = "Pass a mapping of names to strings, numbers, lists and mappings."
    if not isinstance(values, Mapping):
        raise ConfigurationError(
            "custom_metadata must be a mapping.", cause=f"It is of type {type(values).__name__}.", fix=fix
        )
    reserved = sorted(_RESERVED.intersection(name for name in values if isinstance(name, str)))
    if reserved:
        raise ConfigurationError(
            f"The custom_metadata cannot set {reserved[0]}.",
            cause="The commit itself determines this field of commitInfo.",
            fix="Use another name.",
        )
    if not all(isinstance(name, str) for name in values):
        raise ConfigurationError("The keys of custom_metadata: keys must be strings.", fix=fix)
    try:
        return cast(dict[str, Any], json.loads(json.dumps(dict(values), allow_nan=False)))
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigurationError(
            "The custom_metadata has a value that JSON cannot hold.", cause=str(error), fix=fix
        ) from None


def idempotency_key(key: IdempotencyKey) -> SetTransaction:
    """The idempotency key as a `txn` action.

    Raises:
        ConfigurationError: the key is not one that a table can hold.
    """
    given = key
    if isinstance(key, tuple) and len(key) == 2:
        key = SetTransaction(app_id=plain(key[0]), version=plain(key[1]))
    if not isinstance(key, SetTransaction):
        raise ConfigurationError(
            f"{given!r} is not an idempotency key.",
            cause=f"It is of type {type(given).__name__}.",
            fix="Pass a pair such as ('job', 9), or SetTransaction(app_id='job', version=9).",
        )
    try:
        CHECKS["txn"](action_to_json(key)["txn"])
    except InvalidAction as error:
        raise ConfigurationError(
            f"{given!r} is not an idempotency key.",
            cause=str(error),
            fix="Pass a string as the app_id and a 64-bit whole number as the version.",
        ) from None
    return key


def require_commit_properties(value: object) -> None:
    """Refuse a value that is not a `CommitProperties`, such as a mapping.

    Raises:
        ConfigurationError: the value is of another type.
    """
    if not isinstance(value, CommitProperties):
        raise ConfigurationError(
            f"A {type(value).__name__} was passed as commit_properties.",
            cause="commit_properties takes a delta_core.CommitProperties.",
            fix="Pass CommitProperties(user_metadata='...', txn=('job', 9)), or omit the argument.",
        )


DEFAULT_COMMIT_PROPERTIES = CommitProperties()
