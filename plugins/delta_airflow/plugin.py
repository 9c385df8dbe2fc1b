"""The Airflow plugin: registers the extra links, so that the UI knows them in serialized DAGs."""

from __future__ import annotations

from typing import Any, ClassVar

from airflow.plugins_manager import AirflowPlugin

from delta_airflow.links import DeltaJobResultLink, DeltaTableEventsLink


class DeltawardPlugin(AirflowPlugin):
    """Deltaward's links. Loading it touches no database and no storage."""

    name = "deltaward"
    operator_extra_links: ClassVar[list[Any]] = [  # type: ignore[misc]
        DeltaJobResultLink(),
        DeltaTableEventsLink(),
    ]
