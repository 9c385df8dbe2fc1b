"""Writing checkpoints and cleaning up the log behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.on_demand import on_demand

if TYPE_CHECKING:
    from delta_core.checkpoint.classic import CheckpointInfo as CheckpointInfo
    from delta_core.checkpoint.log_cleanup import (
        LogCleanup as LogCleanup,
    )
    from delta_core.checkpoint.log_cleanup import (
        cleanup_expired_logs as cleanup_expired_logs,
    )
    from delta_core.checkpoint.write import write_checkpoint as write_checkpoint
else:
    __getattr__, __dir__, __all__ = on_demand(
        __name__,
        {
            "CheckpointInfo": "delta_core.checkpoint.classic",
            "LogCleanup": "delta_core.checkpoint.log_cleanup",
            "cleanup_expired_logs": "delta_core.checkpoint.log_cleanup",
            "write_checkpoint": "delta_core.checkpoint.write",
        },
    )
