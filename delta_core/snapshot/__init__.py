"""Snapshots: a table at one version. Also the table's history.

The names below are public. The modules of this package are internal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.on_demand import on_demand

if TYPE_CHECKING:
    from delta_core.snapshot.snapshot import Snapshot as Snapshot
else:
    __getattr__, __dir__, __all__ = on_demand(
        __name__,
        {
            "Snapshot": "delta_core.snapshot.snapshot",
        },
    )
