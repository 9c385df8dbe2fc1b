"""Streams of a table: batches of new rows or of changes, planned from a durable position.

The names below are public. The modules of this package are internal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.on_demand import on_demand

if TYPE_CHECKING:
    from delta_core.follow.batch import StreamBatch as StreamBatch
    from delta_core.follow.batch import StreamFile as StreamFile
    from delta_core.follow.follower import FollowLoop as FollowLoop
    from delta_core.follow.follower import follow_batches as follow_batches
    from delta_core.follow.options import BatchLimits as BatchLimits
    from delta_core.follow.options import FollowOptions as FollowOptions
    from delta_core.follow.options import PinOptions as PinOptions
    from delta_core.follow.planner import BatchPlanner as BatchPlanner
    from delta_core.follow.position import StreamPosition as StreamPosition
    from delta_core.follow.position_file import PositionFile as PositionFile
    from delta_core.follow.position_pin import PositionPin as PositionPin
else:
    __getattr__, __dir__, __all__ = on_demand(
        __name__,
        {
            "BatchLimits": "delta_core.follow.options",
            "BatchPlanner": "delta_core.follow.planner",
            "FollowLoop": "delta_core.follow.follower",
            "FollowOptions": "delta_core.follow.options",
            "PinOptions": "delta_core.follow.options",
            "PositionFile": "delta_core.follow.position_file",
            "PositionPin": "delta_core.follow.position_pin",
            "StreamBatch": "delta_core.follow.batch",
            "StreamFile": "delta_core.follow.batch",
            "StreamPosition": "delta_core.follow.position",
            "follow_batches": "delta_core.follow.follower",
        },
    )
