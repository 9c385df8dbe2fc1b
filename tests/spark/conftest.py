"""Everything here starts Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.spark import spark_session

__all__ = ["spark_session"]

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.spark)
