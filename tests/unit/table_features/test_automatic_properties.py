"""Properties that tables get by themselves, as delta-spark gives them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from delta_core.table_features.automatic_properties import automatic_properties
from delta_core.table_features.enablement import ProtocolRequest
from delta_core.table_features.internal_properties import (
    COLUMN_MAPPING_MODE,
    MAX_COLUMN_ID,
    ROW_COMMIT_VERSION_COLUMN,
    ROW_ID_COLUMN,
)

ANSWERS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "delta_spark_protocols.json").read_text(encoding="utf-8")
)
ELSEWHERE = {MAX_COLUMN_ID, "delta.universalFormat.iceberg.atomicConversion.supported"}
"""Column mapping assigns the one; the other is delta-spark's own note."""


@pytest.mark.parametrize(
    "answer",
    [item for item in ANSWERS if item["states"] and item["name"] != "iceberg 3"],
    ids=lambda item: item["name"],
)
def test_a_new_table_gets_what_delta_spark_gives_it(answer: dict[str, Any]) -> None:
    given = dict(ProtocolRequest.of(answer["properties"]).properties)
    state = answer["states"][0]
    features = state["protocol"].get("writerFeatures", [])
    added = automatic_properties(features, given, is_new=True)
    assert not set(added) & set(given)
    assert set(added) | set(given) == set(state["configuration"]) - ELSEWHERE


def test_hidden_columns_get_names_of_their_own_and_keep_them() -> None:
    first = automatic_properties(["rowTracking"], {}, is_new=False)
    second = automatic_properties(["rowTracking"], {}, is_new=False)
    assert len({*first.values(), *second.values()}) == 4
    assert automatic_properties(["rowTracking"], first, is_new=False) == {}
    half = automatic_properties(["rowTracking"], {ROW_ID_COLUMN: "mine"}, is_new=True, fresh_name=lambda: "1")
    assert half == {ROW_COMMIT_VERSION_COLUMN: "_row-commit-version-col-1"}


def test_only_a_new_table_is_mapped_by_itself() -> None:
    given = {"delta.enableIcebergCompatV2": "true"}
    assert automatic_properties(["icebergCompatV2"], given, is_new=True) == {COLUMN_MAPPING_MODE: "name"}
    assert automatic_properties(["icebergCompatV2"], given, is_new=False) == {}
    chosen = {**given, COLUMN_MAPPING_MODE: "id"}
    assert automatic_properties(["icebergCompatV2"], chosen, is_new=True) == {}
    assert automatic_properties(["icebergCompatV2"], {}, is_new=True) == {}
