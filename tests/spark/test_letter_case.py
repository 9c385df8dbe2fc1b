"""Upper and lower case are what Spark makes of the same letters."""

from __future__ import annotations

import unicodedata

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from delta_core.expressions.evaluate import evaluate
from delta_core.expressions.parse import parse_value
from delta_core.schema.arrow import from_arrow

NEWER = {0x19B, 0x264, 0x295}
"""Letters that have got another case, or none, since the Unicode that this Python knows."""


@pytest.mark.slow
def test_letters_and_sigmas(spark: SparkSession) -> None:
    codes = [*range(1, 0x2000), *range(0xFB00, 0xFB18), *range(0x10400, 0x10450)]
    letters = [chr(code) for code in codes if code not in NEWER and unicodedata.category(chr(code)) != "Cn"]
    words = [text for one in letters for text in (one, f"a\u03a3{one}", f"a{one}\u03a3")]
    table = pa.table({"s": words})
    expected = spark.createDataFrame(table).selectExpr("s", "upper(s) AS u", "lower(s) AS l").toArrow()
    schema = from_arrow(table.schema)
    ours = {
        name: evaluate(parse_value(f"{name}(s)", schema), expected).to_pylist() for name in ("upper", "lower")
    }
    for name, column in (("upper", "u"), ("lower", "l")):
        pairs = zip(expected["s"].to_pylist(), ours[name], expected[column].to_pylist(), strict=True)
        assert [pair for pair in pairs if pair[1] != pair[2]] == []
