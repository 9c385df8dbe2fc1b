"""How healthy a table is, and which maintenance is due. Facts and decisions; nothing is changed."""

from delta_core.maintenance.observe.due import Decision, MaintenanceRules, decide
from delta_core.maintenance.observe.health import TableHealth, observe

__all__ = ["Decision", "MaintenanceRules", "TableHealth", "decide", "observe"]
