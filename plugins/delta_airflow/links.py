"""Extra links on a task's page.

The URL of a link is computed in the task's process when the task ends, and is stored in XCom. The UI reads it
from there and does not run this code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from airflow.sdk import Asset, BaseOperatorLink, conf

from delta_airflow.assets import same_table

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey


def ui_url(path: str) -> str:
    """The URL of a path in Airflow's UI."""
    base = conf.get("api", "base_url", fallback="") or ""
    return f"{base.rstrip('/')}/{path}"


class DeltaJobResultLink(BaseOperatorLink):
    """A link to the XCom page of the task instance: the job's versions, metrics, warnings and result file."""

    name = "Job result"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """The URL of the task instance's XCom page."""
        parts = ["dags", ti_key.dag_id, "runs", ti_key.run_id, "tasks", ti_key.task_id]
        if ti_key.map_index is not None and ti_key.map_index >= 0:
            parts += ["mapped", str(ti_key.map_index)]
        return ui_url("/".join(quote(part, safe="") for part in [*parts, "xcom"]))


class DeltaTableEventsLink(BaseOperatorLink):
    """A link to the table's asset, for which Airflow lists the tasks that changed it, with time and version.

    The link is empty, which the UI shows as a disabled button, if the table's asset is not an outlet of the
    task.
    """

    name = "Table events"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """The URL of the asset list, filtered to the table's asset."""
        table_uri = getattr(operator, "table_uri", "")
        for outlet in operator.outlets or []:
            if isinstance(outlet, Asset) and same_table(outlet.uri, table_uri):
                return ui_url("assets?" + urlencode({"name_pattern": outlet.name}))
        return ""
