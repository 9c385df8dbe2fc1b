"""How healthy a table is, and which maintenance is due. Facts and decisions; nothing is changed."""

from delta_core.maintenance.observe.due import Decision, MaintenanceRules, decide
from delta_core.maintenance.observe.health import TableHealth, observe
from delta_core.maintenance.observe.last_look import LastLook

__all__ = ["Decision", "LastLook", "MaintenanceRules", "TableHealth", "decide", "observe"]
