"""The parameters of a merge: their schema, their values, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from delta_core.errors import InvalidJobSpecError
from delta_core.jobs.json_schema import check_params
from delta_core.jobs.params.merge import KIND, MERGE_SCHEMA, MergeParams, parse_merge
from delta_core.jobs.params.merge_clauses import ClauseParams, MergeAction


def parsed(**params: Any) -> MergeParams:
    """The parameters after both checks of a driver."""
    document = {"source": {"format": "parquet", "uris": ["/s"]}, "on": "t.id = s.id", **params}
    check_params(KIND, document, MERGE_SCHEMA)
    return parse_merge(document)


def test_clauses_are_values() -> None:
    update = {"action": "update", "condition": "s.x > 1", "set": {"x": "s.x", "n": 1}}
    params = parsed(matched=[update, {"action": "delete"}], not_matched=[{"action": "insert_all"}])
    assert params.clauses == {
        "matched": (
            ClauseParams(action=MergeAction.UPDATE, condition="s.x > 1", values={"x": "s.x", "n": "1"}),
            ClauseParams(action=MergeAction.DELETE),
        ),
        "not_matched": (ClauseParams(action=MergeAction.INSERT_ALL),),
        "not_matched_by_source": (),
    }
    assert (params.target_alias, params.source_alias, params.merge_schema) == ("t", "s", False)
    assert params.contract.columns is None


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({}, "no clause"),
        ({"matched": [{"action": "insert_all"}]}, r"matched\[0\]\.action must be one of"),
        ({"not_matched": [{"action": "delete"}]}, r"not_matched\[0\]\.action must be one of"),
        ({"not_matched_by_source": [{"action": "update_all"}]}, "action must be one of"),
        ({"matched": [{"action": "update"}]}, "sets no column"),
        ({"on": "t.id IN (SELECT 1)", "matched": [{"action": "delete"}]}, "condition on has a subquery"),
        (
            {"matched": [{"action": "update", "set": {"id": "(select 1)"}}]},
            r"value of 'id' in the clause matched\[0\] has a subquery",
        ),
        ({"matched": [{"action": "delete", "condition": "exists(from t)"}]}, "has a subquery"),
        (
            {"matched": [{"action": "update", "set": {"id": None}}]},
            r"value of 'id' in the clause matched\[0\]",
        ),
        ({"matched": [{"action": "delete", "set": {"id": "1"}}]}, "takes no values"),
        ({"matched": [{"action": "delete", "condition": " "}]}, r"condition of the clause matched\[0\]"),
        ({"matched": [{"action": "delete"}, {"action": "update_all"}]}, "later clauses can never apply"),
    ],
)
def test_what_makes_no_merge_is_refused(params: dict[str, Any], match: str) -> None:
    with pytest.raises(InvalidJobSpecError, match=match):
        parsed(**params)
