"""The parameters of `delete` and `update`: their schemas, their values, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from delta_core.errors import InvalidJobSpecError
from delta_core.jobs.json_schema import check_params
from delta_core.jobs.params import delete, update
from delta_core.jobs.params.engine_io import EngineIO

Parse = Callable[[Mapping[str, Any]], object]
KINDS: dict[str, tuple[Mapping[str, Any], Parse]] = {
    delete.KIND: (delete.DELETE_SCHEMA, delete.parse_delete),
    update.KIND: (update.UPDATE_SCHEMA, update.parse_update),
}


def parsed(kind: str, params: Mapping[str, Any]) -> object:
    """The parameters after both checks of a driver."""
    schema, parse = KINDS[kind]
    check_params(kind, params, schema)
    return parse(params)


def test_parameters_are_values() -> None:
    given = {"where": "t.id = 1", "target_alias": "t", "engine_io": "arrow", "allowed_root_uris": ["/a"]}
    assert parsed("delete", given) == delete.DeleteParams(
        where="t.id = 1", target_alias="t", engine_io=EngineIO.ARROW, allowed_root_uris=("/a",)
    )
    assert parsed("delete", {"where": "true"}) == delete.DeleteParams(where="true")
    assert parsed("update", {"set": {"a": "b"}, **given}) == update.UpdateParams(
        set={"a": "b"},
        where="t.id = 1",
        target_alias="t",
        engine_io=EngineIO.ARROW,
        allowed_root_uris=("/a",),
    )


@pytest.mark.parametrize(
    ("kind", "params", "words"),
    [
        ("delete", {}, "where"),
        ("delete", {"where": ""}, "where"),
        ("delete", {"where": "x", "set": {"a": "1"}}, "set"),
        ("delete", {"where": "x", "engine_io": "fast"}, "engine_io"),
        ("update", {"where": "x"}, "set"),
        ("update", {"set": {}}, "set"),
        ("update", {"set": {"a": 1}}, "set"),
        ("update", {"set": {"a": "1"}, "allowed_root_uris": "/a"}, "allowed_root_uris"),
    ],
)
def test_what_is_not_valid_is_refused(kind: str, params: Mapping[str, Any], words: str) -> None:
    with pytest.raises(InvalidJobSpecError, match=words):
        parsed(kind, params)
