"""Optimistic transactions: stage actions and a read set, then commit as exactly one table version.

The names below are public. The modules of this package are internal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.on_demand import on_demand

if TYPE_CHECKING:
    from delta_core.transaction.commit_properties import (
        DEFAULT_COMMIT_PROPERTIES as DEFAULT_COMMIT_PROPERTIES,
    )
    from delta_core.transaction.commit_properties import CommitProperties as CommitProperties
    from delta_core.transaction.commit_result import AlreadyApplied as AlreadyApplied
    from delta_core.transaction.commit_result import CommitResult as CommitResult
    from delta_core.transaction.commit_result import Committed as Committed
    from delta_core.transaction.commit_result import Conflict as Conflict
    from delta_core.transaction.commit_result import Rejected as Rejected
    from delta_core.transaction.commit_result import Unknown as Unknown
    from delta_core.transaction.commit_result import already_applied as already_applied
    from delta_core.transaction.commit_result import raise_for_result as raise_for_result
    from delta_core.transaction.file_actions import add_actions as add_actions
    from delta_core.transaction.file_actions import num_records as num_records
    from delta_core.transaction.file_actions import remove_actions as remove_actions
    from delta_core.transaction.isolation import IsolationLevel as IsolationLevel
    from delta_core.transaction.observer import NULL_OBSERVER as NULL_OBSERVER
    from delta_core.transaction.observer import TransactionObserver as TransactionObserver
    from delta_core.transaction.owned_files import OwnedFiles as OwnedFiles
    from delta_core.transaction.read_set import ReadSet as ReadSet
    from delta_core.transaction.serializable_read import verify_serializable as verify_serializable
    from delta_core.transaction.transaction import Transaction as Transaction
else:
    __getattr__, __dir__, __all__ = on_demand(
        __name__,
        {
            "AlreadyApplied": "delta_core.transaction.commit_result",
            "CommitProperties": "delta_core.transaction.commit_properties",
            "CommitResult": "delta_core.transaction.commit_result",
            "Committed": "delta_core.transaction.commit_result",
            "Conflict": "delta_core.transaction.commit_result",
            "DEFAULT_COMMIT_PROPERTIES": "delta_core.transaction.commit_properties",
            "IsolationLevel": "delta_core.transaction.isolation",
            "NULL_OBSERVER": "delta_core.transaction.observer",
            "OwnedFiles": "delta_core.transaction.owned_files",
            "ReadSet": "delta_core.transaction.read_set",
            "Rejected": "delta_core.transaction.commit_result",
            "Transaction": "delta_core.transaction.transaction",
            "TransactionObserver": "delta_core.transaction.observer",
            "Unknown": "delta_core.transaction.commit_result",
            "add_actions": "delta_core.transaction.file_actions",
            "already_applied": "delta_core.transaction.commit_result",
            "num_records": "delta_core.transaction.file_actions",
            "raise_for_result": "delta_core.transaction.commit_result",
            "remove_actions": "delta_core.transaction.file_actions",
            "verify_serializable": "delta_core.transaction.serializable_read",
        },
    )
