"""What Spark makes of texts that would be SQL: the constants and names that they are."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.types import StringType, StructField, StructType

from delta_core.expressions.ast import Column, Comparison, ComparisonOperator, Literal
from delta_core.expressions.render import quote_name, to_spark_sql
from delta_core.schema.types import STRING
from tests.support.injection import payloads

pytestmark = pytest.mark.spark


def test_spark_reads_every_constant_as_it_is(spark: SparkSession) -> None:
    strings = payloads()
    frame = spark.createDataFrame([(text,) for text in strings], "name string").coalesce(1)
    equal = [
        fn.expr(to_spark_sql(Comparison(ComparisonOperator.EQ, Column(("name",)), Literal(text, STRING))))
        for text in strings[::3]
    ]
    counts = frame.agg(*[fn.count_if(condition).alias(f"c{n}") for n, condition in enumerate(equal)]).first()
    assert counts is not None
    assert set(counts) == {1}


def test_spark_reads_every_name_as_it_is(spark: SparkSession) -> None:
    names = [text for text in payloads()[::9] if "\0" not in text]
    schema = StructType([StructField(name, StringType()) for name in names])
    frame = spark.createDataFrame([tuple(str(n) for n in range(len(names)))], schema)
    row = frame.select(*[fn.expr(quote_name(name)).alias(f"c{n}") for n, name in enumerate(names)]).first()
    assert row is not None
    assert list(row) == [str(n) for n in range(len(names))]
