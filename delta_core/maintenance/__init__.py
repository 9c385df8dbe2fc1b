"""Maintenance: one folder per verb, each a pure plan and its application."""

from __future__ import annotations

from typing import TYPE_CHECKING

from delta_core.on_demand import on_demand

if TYPE_CHECKING:
    from delta_core.maintenance.fsck.apply import (
        FsckResult as FsckResult,
    )
    from delta_core.maintenance.fsck.apply import (
        apply_fsck as apply_fsck,
    )
    from delta_core.maintenance.fsck.apply import (
        planned_only as planned_only,
    )
    from delta_core.maintenance.fsck.plan import plan_fsck as plan_fsck
    from delta_core.maintenance.restore.apply import apply_restore as apply_restore
    from delta_core.maintenance.restore.plan import RestorePlan as RestorePlan
    from delta_core.maintenance.restore.plan import plan_restore as plan_restore
    from delta_core.maintenance.vacuum.apply import apply_vacuum as apply_vacuum
    from delta_core.maintenance.vacuum.plan import plan_vacuum as plan_vacuum
else:
    __getattr__, __dir__, __all__ = on_demand(
        __name__,
        {
            "FsckResult": "delta_core.maintenance.fsck.apply",
            "RestorePlan": "delta_core.maintenance.restore.plan",
            "apply_fsck": "delta_core.maintenance.fsck.apply",
            "apply_restore": "delta_core.maintenance.restore.apply",
            "apply_vacuum": "delta_core.maintenance.vacuum.apply",
            "plan_fsck": "delta_core.maintenance.fsck.plan",
            "plan_restore": "delta_core.maintenance.restore.plan",
            "plan_vacuum": "delta_core.maintenance.vacuum.plan",
            "planned_only": "delta_core.maintenance.fsck.apply",
        },
    )
