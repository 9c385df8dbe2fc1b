"""What became of a commit, as data.

Four answers, because two are not enough: a store can lose the response to a write that landed. Only
`Conflict` and `Rejected` say that nothing landed, so only they allow the written data files to be
deleted; `Unknown` must keep them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from delta_core.actions.set_transaction import SetTransaction
from delta_core.errors import CommitStateUnknownError, DeltaError

if TYPE_CHECKING:
    from delta_core.snapshot.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The transaction is in the table.

    Attributes:
        version: the version that it is.
        recovered: True when the response was lost and the commit was found in the log by its id.
        attempts: create-only writes made.
        txn_id: `commitInfo.txnId`.
        operation_metrics: as in `commitInfo.operationMetrics`.
        snapshot: the table at `version`, or later when others committed since; None when it could not be
            read after the commit.
    """

    version: int
    recovered: bool = False
    attempts: int = 1
    txn_id: str = ""
    operation_metrics: Mapping[str, str] = field(default_factory=dict, hash=False)
    snapshot: Snapshot | None = field(default=None, repr=False, compare=False)

    @property
    def already_applied(self) -> bool:
        """True when this call changed nothing because an earlier one had done the work."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlreadyApplied(Committed):
    """The idempotency key is already in the table: success without a new version.

    `version` is the newest version known to hold the key, not the one that wrote it; `attempts` may be
    above zero when a twin of this job won while this one was trying.

    Attributes:
        transaction: the `txn` action found in the table.
    """

    transaction: SetTransaction

    @property
    def already_applied(self) -> bool:
        """Always True."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Another writer's commit conflicts; nothing of this transaction landed.

    Attributes:
        winner: the version that conflicts.
        rule: name of the conflict rule that fired.
        error: what `raise_for_result` raises.
    """

    winner: int
    rule: str
    error: DeltaError
    attempts: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """The commit was refused and cannot land later.

    Attributes:
        error: what `raise_for_result` raises.
        files_referenced: True when an object in the log names the data files although no reader gets
            to it (a write below the checkpoint); they are then kept all the same.
    """

    error: DeltaError
    files_referenced: bool = False
    attempts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """It cannot be told whether the commit landed.

    Attributes:
        version: the version that it would be.
        txn_id: look this up in the log before running the job again.
        error: what `raise_for_result` raises.
    """

    version: int
    txn_id: str
    error: CommitStateUnknownError
    attempts: int = 1


CommitResult = Committed | AlreadyApplied | Conflict | Rejected | Unknown


def unknown_outcome(
    problem: str, *, cause: str, txn_id: str, version: int | None, has_key: bool
) -> CommitStateUnknownError:
    """The error of a commit of which nobody can tell whether it landed.

    Args:
        problem: what is not known.
        cause: why.
        txn_id: the commit's.
        version: that it would be; None when that is not known either.
        has_key: whether it carries an idempotency key, so that it may simply be made again.
    """
    advice = (
        f"Run it again with the same idempotency key: if txnId {txn_id} landed, that changes nothing; "
        if has_key
        else f"Look for txnId {txn_id} in the table's history before running it again "
        '(docs/writing.md, "When the outcome is unknown"); '
    )
    return CommitStateUnknownError(
        problem, cause=cause, fix=advice + "its data files were kept.", txn_id=txn_id, version=version
    )


def raise_for_result(result: CommitResult) -> Committed:
    """The result when it is a success (`AlreadyApplied` included), else its error.

    Raises:
        DeltaError: the error of a Conflict, Rejected or Unknown.
    """
    if isinstance(result, Committed):
        return result
    raise result.error


def may_discard_files(result: CommitResult) -> bool:
    """True when nothing in the log can name the files that the transaction wrote."""
    if isinstance(result, Conflict):
        return True
    return isinstance(result, Rejected) and not result.files_referenced
