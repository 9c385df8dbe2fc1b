"""Suites and expectations for tests of the quality gate."""

from __future__ import annotations

from typing import Any

NOT_NULL = "expect_column_values_to_not_be_null"
BETWEEN = "expect_column_values_to_be_between"
IN_SET = "expect_column_values_to_be_in_set"
UNIQUE = "expect_column_values_to_be_unique"
ROW_COUNT = "expect_table_row_count_to_be_between"


def expect(kind: str, severity: str = "critical", **kwargs: Any) -> dict[str, Any]:
    """One expectation of a suite."""
    return {"type": kind, "kwargs": kwargs, "severity": severity}


def quality(*expectations: dict[str, Any], **settings: Any) -> dict[str, Any]:
    """The `quality` object of a load."""
    return {"suite": {"name": "orders", "expectations": list(expectations)}, **settings}
