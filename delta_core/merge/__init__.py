"""MERGE: its clauses and their meaning, which every engine shares, and MERGE in Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.on_demand import on_demand

if TYPE_CHECKING:
    from delta_core.merge.builder import TableMerger as TableMerger
    from delta_core.merge.result import MergeResult as MergeResult
    from delta_core.merge.statement import MergeRequest as MergeRequest
    from delta_core.merge.statement import merge_rows as merge_rows
else:
    __getattr__, __dir__, __all__ = on_demand(
        __name__,
        {
            "MergeRequest": "delta_core.merge.statement",
            "MergeResult": "delta_core.merge.result",
            "TableMerger": "delta_core.merge.builder",
            "merge_rows": "delta_core.merge.statement",
        },
    )
