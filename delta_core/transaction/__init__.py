"""Optimistic transactions: stage actions and a read set, then commit as exactly one table version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.on_demand import on_demand

if TYPE_CHECKING:
    from delta_core.transaction.commit_result import Committed as Committed
    from delta_core.transaction.read_set import ReadSet as ReadSet
    from delta_core.transaction.serializable_read import verify_serializable as verify_serializable
    from delta_core.transaction.transaction import Transaction as Transaction
else:
    __getattr__, __dir__, __all__ = on_demand(
        __name__,
        {
            "Committed": "delta_core.transaction.commit_result",
            "ReadSet": "delta_core.transaction.read_set",
            "Transaction": "delta_core.transaction.transaction",
            "verify_serializable": "delta_core.transaction.serializable_read",
        },
    )
