"""The health of a table, and the maintenance that is due. Read-only."""

from delta_core.maintenance.observe.due import Decision, MaintenanceRules, decide
from delta_core.maintenance.observe.health import TableHealth, observe
from delta_core.maintenance.observe.last_observation import LastObservation
from delta_core.maintenance.observe.outlook import Outlook, asked, look, look_again

__all__ = [
    "Decision",
    "LastObservation",
    "MaintenanceRules",
    "Outlook",
    "TableHealth",
    "asked",
    "decide",
    "look",
    "look_again",
    "observe",
]
