"""Test suites for extensions of deltaward, such as stores of other packages.

The names below are public. The modules of this package are internal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.on_demand import on_demand

if TYPE_CHECKING:
    from delta_core.testing.log_store_contract import LogStoreContract as LogStoreContract
else:
    __getattr__, __dir__, __all__ = on_demand(
        __name__,
        {
            "LogStoreContract": "delta_core.testing.log_store_contract",
        },
    )
