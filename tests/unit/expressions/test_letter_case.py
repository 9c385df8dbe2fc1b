"""Upper and lower case are those of Spark: by the full mapping of Unicode."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import DeltaTable, define_column, write_deltalake
from delta_core.expressions.evaluate import evaluate
from delta_core.expressions.parse import parse_predicate
from delta_core.schema.arrow import from_arrow

DATA = pa.table({"s": ["ΟΔΟΣ", "İ", "straße", "ﬁn", "plain", None]})
SCHEMA = from_arrow(DATA.schema)


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("s ILIKE 'ΟΔΟΣ'", [0]),
        ("s ILIKE 'οδος'", [0]),
        ("s ILIKE 'ΟΔ%'", [0]),
        ("s ILIKE 'İ'", [1]),
        ("lower(s) = 'οδος'", [0]),
        ("lower(s) = 'i\u0307'", [1]),
        ("upper(s) = 'STRASSE'", [2]),
        ("upper(s) LIKE 'FIN'", [3]),
        ("s ILIKE 'PLAIN'", [4]),
        ("lower('ΟΔΟΣ') = lower(s)", [0]),
        ("s NOT ILIKE 'ΟΔΟΣ'", [1, 2, 3, 4]),
    ],
)
def test_letters_beyond_ascii(text: str, matches: list[int]) -> None:
    for chunks in (DATA, pa.concat_tables([DATA.slice(0, 2), DATA.slice(2)])):
        found = evaluate(parse_predicate(text, SCHEMA), chunks).to_pylist()
        assert [index for index, value in enumerate(found) if value] == matches
        assert found[-1] is None


def test_a_generated_column_takes_the_values_of_spark(tmp_path: Path) -> None:
    generated = define_column("u", pa.string(), generated_always_as="upper(s)")
    DeltaTable.create(tmp_path, [pa.field("s", pa.string()), generated])
    write_deltalake(tmp_path, pa.table({"s": ["straße"]}), mode="append")
    write_deltalake(tmp_path, pa.table({"s": ["straße"], "u": ["STRASSE"]}), mode="append")
    assert DeltaTable(tmp_path).to_pyarrow_table()["u"].to_pylist() == ["STRASSE"] * 2
