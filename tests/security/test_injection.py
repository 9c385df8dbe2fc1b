"""Five hundred texts that would be SQL, if text became SQL: values, names and partitions stay data."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest
import sqlglot
from sqlglot import expressions as exp

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import ExpressionError
from delta_core.expressions.ast import Column, Comparison, ComparisonOperator, Literal
from delta_core.expressions.parse import parse, parse_predicate
from delta_core.expressions.render import quote_name, to_spark_sql
from delta_core.schema.types import STRING, StructField, StructType
from tests.support.injection import CODE, payloads

SCHEMA = StructType((StructField(name="name", data_type=STRING), StructField(name="part", data_type=STRING)))


def test_there_are_enough_of_them() -> None:
    assert len(payloads()) >= 500
    assert len(set(payloads())) == len(payloads())


def test_a_value_is_one_constant_and_comes_back() -> None:
    wrong = []
    for text in payloads():
        rendered = _is("name", text)
        again = parse_predicate(rendered, SCHEMA)
        (statement,) = sqlglot.parse(rendered, dialect="spark")
        assert statement is not None
        literals = [node.this for node in statement.find_all(exp.Literal)]
        others = [
            type(node) for node in statement.walk() if isinstance(node, exp.Func | exp.Query | exp.Command)
        ]
        if literals != [text] or others or to_spark_sql(again) != rendered:
            wrong.append((text, rendered))
    assert wrong == []


def test_a_name_is_one_name_and_comes_back() -> None:
    wrong = []
    for text in payloads():
        (statement,) = sqlglot.parse(quote_name(text), dialect="spark")
        column = statement if isinstance(statement, exp.Column) else None
        if (
            column is None
            or len(column.parts) != 1
            or column.name != text
            or parse(quote_name(text)) != Column((text,))
        ):
            wrong.append(text)
    assert wrong == []


@pytest.mark.parametrize("text", CODE)
def test_code_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError) as refused:
        parse_predicate(text, SCHEMA)
    assert refused.value.fix or refused.value.cause


def _is(name: str, text: str) -> str:
    return to_spark_sql(Comparison(ComparisonOperator.EQ, Column((name,)), Literal(text, STRING)))


def test_rows_partitions_and_replacements_take_them_as_data(tmp_path: Path) -> None:
    strings = payloads()
    some = strings[::25]
    write_deltalake(tmp_path, pa.table({"name": strings}))
    for text in some:
        found = DeltaTable(tmp_path).to_pyarrow_table(filters=_is("name", text))
        assert found["name"].to_pylist() == [text]

    by_name = tmp_path / "by-name"
    write_deltalake(by_name, pa.table({"part": some, "n": list(range(len(some)))}), partition_by=["part"])
    for number, text in enumerate(some[:8]):
        rows = pa.table({"part": [text], "n": [1000 + number]})
        write_deltalake(by_name, rows, mode="overwrite", predicate=_is("part", text))
    rows = DeltaTable(by_name).to_pyarrow_table().to_pylist()
    expected = {text: 1000 + number if number < 8 else number for number, text in enumerate(some)}
    assert {row["part"]: row["n"] for row in rows} == expected
    assert len(rows) == len(some)


def test_columns_are_called_what_they_are_called(tmp_path: Path) -> None:
    for number, (text, other) in enumerate(product(payloads()[::60], ["x"])):
        if any(sign in text for sign in " ,;{}()\n\t=") or not text:
            continue
        uri = tmp_path / str(number)
        write_deltalake(uri, pa.table({text: [1, 2], other: [3, 4]}))
        assert DeltaTable(uri).to_pyarrow_table(filters=f"{quote_name(text)} > 1")[other].to_pylist() == [4]
