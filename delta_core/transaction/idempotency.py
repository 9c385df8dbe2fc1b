"""`txn` actions as idempotency keys (PROTOCOL.md, "Transaction Identifiers")."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from delta_core.actions.set_transaction import SetTransaction

if TYPE_CHECKING:
    from delta_core.snapshot.snapshot import Snapshot


def already_applied(snapshot: Snapshot, key: SetTransaction | None) -> SetTransaction | None:
    """The table's `txn` action that covers the key, or None when the work is still to be done.

    A key is covered when the table has its application id at the same version or a later one. Reads no
    file actions.
    """
    if key is None:
        return None
    recorded = snapshot.transactions.get(key.app_id)
    return recorded if recorded is not None and recorded.version >= key.version else None


def superseded(snapshot: Snapshot, delivery: SetTransaction | None) -> SetTransaction | None:
    """The table's `txn` action of a later delivery than this one, or None when this one is not outdated.

    A delivery does not supersede itself: it may be applied again under another idempotency key.
    """
    recorded = None if delivery is None else snapshot.transactions.get(delivery.app_id)
    return None if recorded is None or delivery is None or recorded.version <= delivery.version else recorded


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
