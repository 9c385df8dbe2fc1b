"""A fleet in an object store far away: few requests a table, and one for an unchanged table."""

from __future__ import annotations

import pytest

from benchmarks.fleet_store import measure

pytestmark = pytest.mark.extra


def test_a_fleet_in_an_object_store_costs_few_requests() -> None:
    found = measure(tables=24, files=12, milliseconds=5, maintained=4)
    assert found["tables"] == 24
    assert found["unreadable"] == 0
    assert found["first"]["requests_per_table"] <= 8
    assert found["unchanged"]["requests_per_table"] == 1
    assert set(found["maintained"]["outcomes"]) == {"succeeded"}
    assert found["after_maintenance"]["requests_per_table"] <= 4
