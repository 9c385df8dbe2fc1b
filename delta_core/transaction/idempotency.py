"""`txn` actions as idempotency keys (PROTOCOL.md, "Transaction Identifiers")."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from delta_core.actions.set_transaction import SetTransaction
from delta_core.transaction.commit_result import AlreadyApplied

if TYPE_CHECKING:
    from delta_core.snapshot.snapshot import Snapshot


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
    recorded = None if key is None else snapshot.transactions.get(key.app_id)
    if recorded is None or key is None or recorded.version < key.version:
        recorded = None if delivery is None else snapshot.transactions.get(delivery.app_id)
        if recorded is None or delivery is None or recorded.version <= delivery.version:
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
