"""An open table: its verbs, and the namespaces `optimize` and `alter`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.on_demand import on_demand

if TYPE_CHECKING:
    from delta_core.table.alterer import TableAlterer as TableAlterer
    from delta_core.table.delta_table import DeltaTable as DeltaTable
    from delta_core.table.optimizer import TableOptimizer as TableOptimizer
else:
    __getattr__, __dir__, __all__ = on_demand(
        __name__,
        {
            "DeltaTable": "delta_core.table.delta_table",
            "TableAlterer": "delta_core.table.alterer",
            "TableOptimizer": "delta_core.table.optimizer",
        },
    )
