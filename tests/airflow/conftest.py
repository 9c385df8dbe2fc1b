"""Everything here imports Airflow."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.airflow import airflow_connection, airflow_database, airflow_home

__all__ = ["airflow_connection", "airflow_database", "airflow_home"]

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker(pytest.mark.airflow)
