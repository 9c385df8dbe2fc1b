"""IN lists of thousands of values are made once, not for each file and batch."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.expressions import listed_values
from delta_core.expressions.evaluate import evaluate
from delta_core.expressions.parse import parse_predicate
from delta_core.schema.arrow import from_arrow


def test_values_are_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, listed = 10, 1_000
    rows = pa.table({"p": list(range(files)), "x": list(range(files))})
    write_deltalake(tmp_path, rows, partition_by="p")
    made = []
    literal_scalar = listed_values.literal_scalar

    def counting(literal: Any) -> pa.Scalar:
        made.append(literal)
        return literal_scalar(literal)

    monkeypatch.setattr(listed_values, "literal_scalar", counting)
    values = ",".join(map(str, range(5, 5 + listed)))
    found = DeltaTable(tmp_path).to_pyarrow_table(filters=f"x in ({values})")
    assert sorted(found["x"].to_pylist()) == [5, 6, 7, 8, 9]
    assert len(made) <= 3 * listed, "a few forms of the predicate, not one for each file"


@pytest.mark.parametrize(
    ("values", "kind", "text"),
    [
        ([True, False, None], pa.bool_(), "c in (true, null)"),
        ([1.5, float("nan"), -0.0], pa.float64(), "c in (0.0, CAST('NaN' AS DOUBLE), 7)"),
        ([Decimal("-1.5"), Decimal(2), None], pa.decimal128(38, 4), "c in (-1.5, 3)"),
        ([dt.date(2020, 1, 1), dt.date(1, 1, 1), None], pa.date32(), "c in (DATE '0001-01-01')"),
        (["a", "ü", None], pa.string(), "c in ('ü', 'z', null)"),
        ([b"a", b"b", None], pa.binary(), "c in (X'62')"),
        ([1, 2, None], pa.int16(), "c not in (2, 3)"),
    ],
)
def test_lists_are_chains_of_comparisons(values: list[Any], kind: pa.DataType, text: str) -> None:
    data = pa.table({"c": pa.array(values, kind)})
    schema = from_arrow(data.schema)
    operator, _, rest = text.removeprefix("c ").partition("(")
    parts = rest.removesuffix(")").split(", ")
    chain = " or ".join(f"c = {part}" for part in parts)
    chain = f"not ({chain})" if operator.strip() == "not in" else chain
    expected = evaluate(parse_predicate(chain, schema), data).to_pylist()
    assert evaluate(parse_predicate(text, schema), data).to_pylist() == expected
