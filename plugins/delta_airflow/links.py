"""Extra links on a task's page.

A link's URL is computed in the task's process when the task ends and kept in XCom; the UI reads it from
there and runs none of this code.
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
    """`path` below the address of Airflow's UI."""
    base = conf.get("api", "base_url", fallback="") or ""
    return f"{base.rstrip('/')}/{path}"


class DeltaJobResultLink(BaseOperatorLink):
    """To the XCom page of the task instance: the job's versions, figures, warnings and result file."""

    name = "Job result"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """The address of the task instance's XCom page."""
        parts = ["dags", ti_key.dag_id, "runs", ti_key.run_id, "tasks", ti_key.task_id]
        if ti_key.map_index is not None and ti_key.map_index >= 0:
            parts += ["mapped", str(ti_key.map_index)]
        return ui_url("/".join(quote(part, safe="") for part in [*parts, "xcom"]))


class DeltaTableEventsLink(BaseOperatorLink):
    """To the table's asset, where Airflow lists who changed it when, with the version of each event.

    Empty, which the UI shows as a disabled button, when the task names no asset of its table as an outlet.
    """

    name = "Table events"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """The address of the asset list, narrowed to the table's asset."""
        table_uri = getattr(operator, "table_uri", "")
        for outlet in operator.outlets or []:
            if isinstance(outlet, Asset) and same_table(outlet.uri, table_uri):
                return ui_url("assets?" + urlencode({"name_pattern": outlet.name}))
        return ""
