"""The Airflow plugin. It registers the extra links, so that the UI shows them for serialized DAGs."""

from __future__ import annotations

from typing import Any, ClassVar

from airflow.plugins_manager import AirflowPlugin

from delta_airflow.links import DeltaJobResultLink, DeltaTableEventsLink


class DeltawardPlugin(AirflowPlugin):
    """Deltaward's extra links. Loading the plugin accesses no database and no storage."""

    name = "deltaward"
    operator_extra_links: ClassVar[list[Any]] = [  # type: ignore[misc]
        DeltaJobResultLink(),
        DeltaTableEventsLink(),
    ]
