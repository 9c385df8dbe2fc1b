"""docs/interop.md says what the results of the soaks say."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from tests.support.interop_page import MAINTAINED, PAGE, READ, WRITTEN, page
from tests.support.written_features import all_ways, closed_ways, unknown_features

_measured = pytest.mark.skipif(not WRITTEN.exists(), reason="make soak-written-tables has not been run")


def results() -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in (WRITTEN, READ, MAINTAINED)]


@_measured
def test_the_page_is_of_the_newest_results() -> None:
    made = page(*results())
    assert PAGE.read_text(encoding="utf-8") == made, "python -m tests.support.interop_page writes it again"


@_measured
def test_a_refusal_is_told_in_the_peers_words() -> None:
    written, read, maintained = results()
    changed = copy.deepcopy(written)
    alone = next(table for table in changed["tables"] if len(table["features"]) == 1)
    alone["reads"]["duckdb"] = {"equal": 0, "refused": {"not supported, it says": alone["versions"]}}
    told = page(changed, read, maintained)
    assert "duckdb: not supported, it says\n" in told
    assert "duckdb: not supported, it says\n" not in page(written, read, maintained)


@_measured
def test_a_step_that_a_peer_refused_is_counted() -> None:
    written, read, maintained = results()
    steps = {"deltalake": {"compact": 3}, "delta-spark": {"vacuum": 4}}
    changed = {
        **maintained,
        "steps_done": steps,
        "steps_refused": {"deltalake": {"compact": 9}, "delta-spark": {}},
    }
    told = page(written, read, changed)
    assert "| deltalake | compact | 3 / 12 |\n" in told
    assert "| delta-spark | vacuum | **4** |\n" in told


def test_every_feature_is_in_the_sets_or_left_out_for_a_reason() -> None:
    assert unknown_features() == frozenset()
    assert not all_ways().keys() & closed_ways().keys()
    assert all(closed_ways().values())
