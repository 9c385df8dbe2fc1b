"""docs/interop.md says what the results of the soaks say."""

from __future__ import annotations

import copy
import json

import pytest

from tests.support.interop_page import PAGE, READ, WRITTEN, page
from tests.support.written_features import all_ways, closed_ways, unknown_features

_measured = pytest.mark.skipif(not WRITTEN.exists(), reason="make soak-written-tables has not been run")


@_measured
def test_the_page_is_of_the_newest_results() -> None:
    made = page(json.loads(WRITTEN.read_text()), json.loads(READ.read_text()))
    assert PAGE.read_text(encoding="utf-8") == made, "python -m tests.support.interop_page writes it again"


@_measured
def test_a_refusal_is_told_in_the_peers_words() -> None:
    written, read = json.loads(WRITTEN.read_text()), json.loads(READ.read_text())
    changed = copy.deepcopy(written)
    alone = next(table for table in changed["tables"] if len(table["features"]) == 1)
    alone["reads"]["duckdb"] = {"equal": 0, "refused": {"not supported, it says": alone["versions"]}}
    told = page(changed, read)
    assert "duckdb: not supported, it says\n" in told
    assert "duckdb: not supported, it says\n" not in page(written, read)


def test_every_feature_is_in_the_sets_or_left_out_for_a_reason() -> None:
    assert unknown_features() == frozenset()
    assert not all_ways().keys() & closed_ways().keys()
    assert all(closed_ways().values())
