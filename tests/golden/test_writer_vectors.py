"""The writer vectors: what our writer does is what they say, and what a peer reads are their rows.

`UPDATE=1` writes them again. The format is in docs/writer-vectors.md.
"""

from __future__ import annotations

import copy
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from delta_core.schema.json import schema_from_json
from tests.state_machine.reading import deltalake_rows
from tests.support.repository import ROOT
from tests.support.rows import canonical_rows
from tests.support.writer_vector_inputs import INPUTS
from tests.support.writer_vectors import FOLDER, NotOpenError, from_json, replay, replay_at, string_of

pytestmark = pytest.mark.slow

COMMITTED = sorted(path.stem for path in FOLDER.glob("*.json"))


def committed(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return found


def operations_of(dv: dict[str, Any]) -> list[dict[str, Any]]:
    return [step["operation"] for step in dv["steps"]]


@pytest.mark.parametrize("name", sorted(INPUTS))
def test_our_writer_does_what_the_vector_says(name: str) -> None:
    path = FOLDER / f"{name}.json"
    try:
        made = replay(name, INPUTS[name])
    except NotOpenError as error:
        if path.exists():
            pytest.fail(f"we wrote this once: {error}")
        pytest.skip(str(error)[:200])
    if os.environ.get("UPDATE"):
        path.write_text(string_of(made), encoding="utf-8")
    assert path.exists(), "UPDATE=1 writes it"
    expected = committed(name)
    assert operations_of(expected) == operations_of(json.loads(string_of(made)))
    for number, (theirs, ours) in enumerate(zip(expected["steps"], made["steps"], strict=True)):
        assert json.loads(json.dumps(ours)) == theirs, f"step {number}: {theirs['operation']}"


def test_every_vector_has_its_inputs() -> None:
    assert set(COMMITTED) <= set(INPUTS)
    assert len(COMMITTED) >= 15


@pytest.mark.parametrize("name", COMMITTED)
def test_deltalake_reads_the_rows_of_the_vector(name: str, tmp_path: Path) -> None:
    dv = committed(name)
    replay_at(tmp_path / "table", name, operations_of(dv))
    version = -1
    for step in dv["steps"]:
        version += len(step["commits"])
        found = deltalake_rows(tmp_path / "table", version)
        if found is None:
            assert any(_is_newer(action) for one in dv["steps"] for action in _actions(one))
            return
        assert len(found) == len(step["rows"]), f"version {version}"
        if step["rows"]:
            schema = _schema_at(dv, version)
            visible = [{key: row[key] for key in row if not key.startswith("_row_")} for row in step["rows"]]
            assert found == canonical_rows(from_json(schema, visible)), f"version {version}"


def _actions(step: dict[str, Any]) -> list[dict[str, Any]]:
    return [action for commit in step["commits"] for action in commit]


def _is_newer(action: dict[str, Any]) -> bool:
    listed = action.get("protocol", {}).get("readerFeatures", [])
    return bool({"typeWidening", "vacuumProtocolCheck"} & set(listed))


def _schema_at(dv: dict[str, Any], version: int) -> Any:
    found, seen = None, -1
    for step in dv["steps"]:
        for commit in step["commits"]:
            seen += 1
            for action in commit:
                if "metaData" in action and seen <= version:
                    found = action["metaData"]["schemaString"]
    return schema_from_json(json.dumps(found))


def test_another_outcome_is_noticed() -> None:
    """The comparison above sees one bit of difference in each part of a step."""
    made = json.loads(string_of(replay("plain", INPUTS["plain"])))
    expected = committed("plain")
    assert made == expected
    for part, change in (
        ("rows", lambda step: step["rows"][0].update(id=77)),
        ("commits", lambda step: step["commits"][0][-1]["add"].update(dataChange=False)),
        ("commits", lambda step: step["commits"][0][-1]["add"]["stats"].update(numRecords=9)),
    ):
        other = copy.deepcopy(made)
        change(other["steps"][1])
        assert other["steps"][1][part] != expected["steps"][1][part]


@pytest.mark.parametrize("name", COMMITTED)
def test_nothing_that_a_writer_draws_is_in_a_vector(name: str) -> None:
    text = (FOLDER / f"{name}.json").read_text(encoding="utf-8")
    assert not re.search(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}|modificationTime|part-0", text)
    assert str(ROOT) not in text
    assert len(text) < 40_000


def test_the_page_names_every_operation_and_every_vector() -> None:
    page = (ROOT / "docs" / "writer-vectors.md").read_text(encoding="utf-8")
    used = {operation["do"] for operations in INPUTS.values() for operation in operations}
    assert [verb for verb in sorted(used) if f"`{verb}`" not in page] == []
    assert [name for name in COMMITTED if f"`{name}`" not in page] == []
