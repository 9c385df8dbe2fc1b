"""MERGE with the calls of `deltalake`: the same rows and metrics as the package itself."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import deltalake as theirs
import pyarrow as pa
import pytest

from delta_core import deltalake as ours
from delta_core.errors import DeltaError
from tests.support.arrow_merges import deltalake_rows, rows_as_text, with_clauses
from tests.support.merge_model import SCHEMA, DuplicateMatchError, random_case
from tests.support.rows import canonical_rows
from tests.support.soak import rounds

NOT_COMPARED = {"execution_time_ms", "scan_time_ms", "rewrite_time_ms"}


def _table(library: Any, uri: Path) -> Any:
    library.write_deltalake(str(uri), pa.table({"x": [1, 2, 3], "1y": [4, 5, 6]}))
    return library.DeltaTable(str(uri))


@pytest.mark.parametrize(
    "clauses",
    [
        lambda merger: merger.when_matched_update({"x": "source.x", "`1y`": "source.`1y`"}),
        lambda merger: merger.when_matched_update({"target.x": "source.x"}, "source.x > 2"),
        lambda merger: merger.when_matched_update_all(except_cols=["1y"]).when_not_matched_insert_all(),
        lambda merger: merger.when_matched_delete('source."1y" = 8'),
        lambda merger: merger.when_not_matched_insert({"x": "source.x"}),
        lambda merger: merger.when_not_matched_by_source_update({"x": "0"}, "target.x < 2"),
        lambda merger: merger.when_not_matched_by_source_delete(),
        lambda merger: merger.when_matched_update({"x": "9"}).when_matched_delete(),
    ],
)
def test_rows_and_metrics_equal_those_of_the_package(tmp_path: Path, clauses: Any) -> None:
    source = pa.table({"x": [2, 3, 4], "1y": [7, 8, 9]})
    rows, metrics = [], []
    for library, name in ((ours, "ours"), (theirs, "theirs")):
        table = _table(library, tmp_path / name)
        merger = table.merge(
            source=source,
            predicate="target.x = source.x",
            source_alias="source",
            target_alias="target",
            streamed_exec=True,
        )
        found = clauses(merger).execute()
        metrics.append({key: value for key, value in found.items() if key not in NOT_COMPARED})
        rows.append(canonical_rows(pa.table(table.to_pyarrow_table())))
        assert table.version() == 1
        assert table.history(1)[0]["operation"] == "MERGE"
    assert rows[0] == rows[1]
    assert set(metrics[1]) <= set(metrics[0])
    changed = [name for name in metrics[1] if name.startswith(("num_target_rows", "num_source"))]
    same = [name for name in changed if name != "num_target_rows_copied"]
    assert {name: metrics[0][name] for name in same} == {name: metrics[1][name] for name in same}


def test_random_merges_equal_those_of_the_package(tmp_path: Path, seed: str) -> None:
    compared = 0
    for number in range(rounds(usual=8, soak=100)):
        case = random_case(random.Random(f"{seed}:{number}"))
        # DataFusion has no `<=>`, and its `concat` skips nulls. An empty table is not created there.
        if not any(case.target) or any(text in case.sql("t", "s") for text in ("<=>", "concat(")):
            continue
        try:
            case.expected()
        except DuplicateMatchError:
            continue
        expected = deltalake_rows(case, tmp_path / f"theirs{number}")
        uri = tmp_path / f"ours{number}"
        for rows in case.target:
            ours.write_deltalake(
                str(uri), pa.Table.from_pylist(rows, SCHEMA), mode="append", partition_by=case.partition_by
            )
        table = ours.DeltaTable(str(uri))
        data = pa.Table.from_pylist(case.source, SCHEMA)
        builder = table.merge(data, case.on.text, source_alias="s", target_alias="t")
        with_clauses(case, builder).execute()
        found = canonical_rows(pa.table(table.to_pyarrow_table()))
        assert found == expected == rows_as_text(case.expected()[0]), case.sql("t", "s")
        compared += 1
    assert compared


def test_wrong_arguments_and_duplicates(tmp_path: Path) -> None:
    table = _table(ours, tmp_path / "t")
    twice = pa.table({"x": [1, 1], "1y": [7, 8]})
    with pytest.raises(DeltaError, match="duplicate relevant WHEN MATCHED"):
        table.merge(twice, "target.x = source.x").when_matched_update_all().execute()
    with pytest.raises(TypeError):
        table.merge("rows", "target.x = source.x")
    with pytest.raises(TypeError):
        table.merge(twice, "target.x = source.x").when_matched_update({"x": 1})
    with pytest.raises(ValueError, match="no column"):
        table.merge(twice, "target.x = source.x").when_matched_update_all(except_cols=["x", "1y"])
