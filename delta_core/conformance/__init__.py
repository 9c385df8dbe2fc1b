"""Checks whether a store keeps the contract of `LogStore`, and a run of all checks on a user's store.

The names below are public. The modules of this package are internal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.on_demand import on_demand

if TYPE_CHECKING:
    from delta_core.conformance.log_store_contract import LogStoreContract as LogStoreContract
else:
    __getattr__, __dir__, __all__ = on_demand(
        __name__,
        {
            "LogStoreContract": "delta_core.conformance.log_store_contract",
        },
    )
