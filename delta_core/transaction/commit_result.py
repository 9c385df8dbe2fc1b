"""The outcome of a commit, as data.

There are four outcomes, because a store can lose the response to a write that landed. Only `Conflict` and
`Rejected` state that nothing landed, so only they allow the written data files to be deleted. `Unknown` must
keep them. A repeated call with an idempotency key (PROTOCOL.md, "Transaction Identifiers") is
`AlreadyApplied`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
        version: the version that the transaction created.
        recovered: True when the response was lost and the commit was found in the log by its id.
        attempts: the number of create-only writes.
        txn_id: `commitInfo.txnId`.
        operation_metrics: as in `commitInfo.operationMetrics`.
        snapshot: the table at `version`, or at a later version when others have committed since. None when
            the table could not be read after the commit.
    """

    version: int
    recovered: bool = False
    attempts: int = 1
    txn_id: str = ""
    operation_metrics: Mapping[str, str] = field(default_factory=dict, hash=False)
    snapshot: Snapshot | None = field(default=None, repr=False, compare=False)

    @property
    def already_applied(self) -> bool:
        """True when this call changed nothing because an earlier call had done the work."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlreadyApplied(Committed):
    """The idempotency key is already in the table: success without a new version.

    `version` is the newest version known to hold the key, not the version that wrote it. `attempts` may be
    above zero when a second run of the same job won during this commit.

    Attributes:
        transaction: the table's `txn` action that covers the key.
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
        winner: the conflicting version.
        rule: the name of the conflict rule that fired.
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
        files_referenced: True when an object in the log names the data files although no reader reads that
            object (a write below the checkpoint). The data files are then kept.
    """

    error: DeltaError
    files_referenced: bool = False
    attempts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """It is not known whether the commit landed.

    Attributes:
        version: the version that the commit would have created.
        txn_id: the commit's `txnId`. Look it up in the log before running the job again.
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
    """The error of a commit that may or may not have landed.

    Args:
        problem: what is not known.
        cause: why it is not known.
        txn_id: the commit's `txnId`.
        version: the version that the commit would have created; None when that is not known either.
        has_key: whether the commit carries an idempotency key, so that the caller may safely repeat it.
    """
    advice = (
        f"Run it again with the same idempotency key: if txnId {txn_id} landed, that changes nothing. "
        if has_key
        else f"Look for txnId {txn_id} in the table's history before running it again "
        '(docs/writing.md, "When the outcome is unknown"). '
    )
    return CommitStateUnknownError(
        problem, cause=cause, fix=advice + "Its data files were kept.", txn_id=txn_id, version=version
    )


def raise_for_result(result: CommitResult) -> Committed:
    """Return a successful result (`AlreadyApplied` included); raise the error of any other.

    Raises:
        DeltaError: the error of a Conflict, Rejected or Unknown.
    """
    if isinstance(result, Committed):
        return result
    raise result.error


def may_discard_files(result: CommitResult) -> bool:
    """True when no object in the log can name the files that the transaction wrote."""
    if isinstance(result, Conflict):
        return True
    return isinstance(result, Rejected) and not result.files_referenced


def already_applied(
    snapshot: Snapshot,
    key: SetTransaction | None,
    *,
    delivery: SetTransaction | None = None,
    attempts: int = 0,
    txn_id: str = "",
) -> AlreadyApplied | None:
    """The result of a commit whose work the table already has, or None when it is still to be done.

    A key is covered when the table has its application id at the same version or a later one. A delivery is
    outdated when the table has its application id at a later version: a delivery does not supersede itself,
    because it may be applied again under another idempotency key. Reads no file actions.
    """
    recorded = covering(_recorded(snapshot, key), key) or superseding(_recorded(snapshot, delivery), delivery)
    if recorded is None:
        return None
    return AlreadyApplied(
        version=snapshot.version, attempts=attempts, txn_id=txn_id, snapshot=snapshot, transaction=recorded
    )


def covering(transactions: Iterable[SetTransaction], key: SetTransaction | None) -> SetTransaction | None:
    """The action among `transactions` that covers the key, or None."""
    if key is None:
        return None
    return next((t for t in transactions if t.app_id == key.app_id and t.version >= key.version), None)


def superseding(
    transactions: Iterable[SetTransaction], delivery: SetTransaction | None
) -> SetTransaction | None:
    """The action among `transactions` of a later delivery than this one, or None."""
    if delivery is None:
        return None
    later = (t for t in transactions if t.app_id == delivery.app_id and t.version > delivery.version)
    return next(later, None)


def _recorded(snapshot: Snapshot, wanted: SetTransaction | None) -> tuple[SetTransaction, ...]:
    """The transaction that the table has for the application id, or none."""
    found = None if wanted is None else snapshot.transactions.get(wanted.app_id)
    return () if found is None else (found,)
