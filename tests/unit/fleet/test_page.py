"""The page of a report against the ledger as another reader sees it."""

from __future__ import annotations

import pytest

from benchmarks.fleet_page import measure


@pytest.mark.slow
def test_the_numbers_of_the_page_are_those_of_the_ledger() -> None:
    found = measure(tables=120, rounds=1, browser=False)
    assert found["differences"] == []
    assert found["page_bytes"] < 200_000
