"""CSV and JSON as the world writes them: each value arrives exactly, or the load is refused."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from delta_core.jobs.context import JobContext
from delta_core.jobs.job_spec import JobSpec, TableRef
from delta_core.jobs.registry import JobRegistry
from delta_core.jobs.run_job import run_job
from delta_core.policies.contract import schema_of_columns
from spark_jobs.job_kinds import register
from spark_jobs.loading.csv_files import read_csv
from spark_jobs.loading.json_numbers import MarkedNumbers
from spark_jobs.loading.string_casts import cast_string
from spark_jobs.spark_executor import SparkExecutor
from tests.spark.test_load import load
from tests.support.spark import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

UTC = dt.UTC


def contract(*columns: tuple[str, str], **more: Any) -> dict[str, Any]:
    return {"columns": [{"name": name, "type": kind} for name, kind in columns], **more}


STRINGS = contract(("id", "long"), ("text", "string"), ("z", "string"))
VALUES = [
    '5" pipe',
    'a"',
    '"',
    '""',
    "\\",
    '\\"',
    "a\\",
    '{"k": "a, b"}',
    'say "hi", ok',
    "see\n7,item",
    "two\n\nlines",
    "of DOS\r\nhere",
    " padded ",
    "żółć 雪 😀",
    "\ufffd",
    "'",
    "#no comment",
]


def written(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_what_pandas_writes_arrives(spark: SparkSession, tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": range(len(VALUES)), "text": VALUES, "z": "end"})
    file = written(tmp_path / "a.csv", frame.to_csv(index=False))
    result = load(spark, tmp_path / "t", [file], contract=STRINGS)
    assert result.error is None
    found = sorted(rows_of(tmp_path / "t"), key=lambda row: row["id"])
    assert found == frame.to_dict("records")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('id,text,z\n1,"say \\"hi\\"",end\n', "Unescaped quote"),
        ('id,text,z\n1,"open,end\n', "a.csv"),
        ("id,text,z\n1,caf\u00e9,end\n".encode("latin-1"), "not UTF-8"),
    ],
    ids=["backslashes", "unclosed", "latin-1"],
)
def test_what_is_no_such_csv_is_refused(
    spark: SparkSession, tmp_path: Path, text: str | bytes, words: str
) -> None:
    result = load(spark, tmp_path / "t", [written(tmp_path / "a.csv", text)], contract=STRINGS)
    assert result.error is not None
    assert words in result.error.message
    assert not (tmp_path / "t" / "_delta_log").exists()


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ('id,text,z\n1,"say \\"hi\\"",end\n', {"escape": "\\"}),
        ('id,text,z\n1,say "hi",end\n'.encode("utf-16"), {"encoding": "utf-16"}),
        ("id,text,z\n1,say \u00abhi\u00bb,end\n".encode("latin-1"), {"charset": "ISO-8859-1"}),
        ('id;text;z\n1;|say "hi"|;end\n', {"quote": "|", "sep": ";"}),
    ],
    ids=["backslashes", "utf-16", "latin-1", "other marks"],
)
def test_options_read_what_is_written_otherwise(
    spark: SparkSession, tmp_path: Path, text: str | bytes, options: dict[str, str]
) -> None:
    file = written(tmp_path / "a.csv", text)
    result = load(spark, tmp_path / "t", [file], contract=STRINGS, source={"options": options})
    assert result.error is None
    (row,) = rows_of(tmp_path / "t")
    assert row["text"] in ('say "hi"', "say \u00abhi\u00bb")


def test_files_without_line_ends_in_quotes_are_read_in_parts(spark: SparkSession, tmp_path: Path) -> None:
    plain = written(tmp_path / "plain.csv", "id,text\n" + '1,"a ""b"""\n' * 1000)
    folded = written(tmp_path / "folded.csv", "id,text\n" + '1,"a\nb"\n' * 1000)
    key = "spark.sql.files.maxPartitionBytes"
    before = spark.conf.get(key)
    spark.conf.set(key, "2000")
    try:
        assert read_csv(spark, [str(plain)], {}).rdd.getNumPartitions() > 3
        assert read_csv(spark, [str(folded)], {}).rdd.getNumPartitions() == 1
        assert read_csv(spark, [str(plain)], {"multiline": "true"}).rdd.getNumPartitions() == 1
    finally:
        spark.conf.set(key, before)


REFUSED = None
CASTS: list[tuple[str, str, Any]] = [
    ("decimal(10,2)", "1.25", Decimal("1.25")),
    ("decimal(10,2)", "1.2500", Decimal("1.25")),
    ("decimal(10,2)", " 1.25 ", Decimal("1.25")),
    ("decimal(10,2)", "-.5", Decimal("-0.50")),
    ("decimal(10,2)", "125e-2", Decimal("1.25")),
    ("decimal(10,2)", "12500E-4", Decimal("1.25")),
    ("decimal(10,2)", "1.2E3", Decimal("1200.00")),
    ("decimal(10,2)", "0.000", Decimal("0.00")),
    ("decimal(10,2)", "1.255", REFUSED),
    ("decimal(10,2)", "0.001", REFUSED),
    ("decimal(10,2)", "125e-3", REFUSED),
    ("decimal(10,2)", "1.2500000000000000000000000000000000000000001", REFUSED),
    ("decimal(10,2)", "123456789.1", REFUSED),
    ("decimal(10,2)", "1,5", REFUSED),
    ("decimal(10,2)", "\u0661.\u0662\u0665\u0665", REFUSED),
    ("decimal(10,2)", "\u0661.\u0662", REFUSED),
    ("decimal(10,2)", "5.", Decimal("5.00")),
    ("decimal(10,2)", "0e-99999999999", REFUSED),
    ("decimal(38,38)", "0.5", Decimal("0.5")),
    ("date", "2024-01-31", dt.date(2024, 1, 31)),
    ("date", "2024-01-31 00:00:00", dt.date(2024, 1, 31)),
    ("date", "2024-01-31T00:00:00.000", dt.date(2024, 1, 31)),
    ("date", "2024-01-31 23:59:59", REFUSED),
    ("date", "2024-01-31T00:00:00Z", REFUSED),
    ("date", "2024-01-31T23:30:00-05:00", REFUSED),
    ("date", "2024-01-31 soon", REFUSED),
    ("date", "2024-01-31 : junk", REFUSED),
    ("date", "2024-01-31T:", REFUSED),
    ("date", "2024-01-31T0000000.0:0+00", REFUSED),
    ("date", "2024-01-31 00:00:00-00", REFUSED),
    ("date", "2024-01-31\u00a023:00", REFUSED),
    ("date", " 2024-1-3 ", dt.date(2024, 1, 3)),
    ("date", "31.01.2024", REFUSED),
    ("timestamp", "2024-01-31T10:00:00.123456+02:00", dt.datetime(2024, 1, 31, 8, 0, 0, 123456, UTC)),
    ("timestamp", "2024-01-31 10:00:00.123456000Z", dt.datetime(2024, 1, 31, 10, 0, 0, 123456, UTC)),
    ("timestamp", "2024-01-31 10:00:00.1234567Z", REFUSED),
    ("timestamp", "2024-01-31 10:00:00 Europe/Berlin", dt.datetime(2024, 1, 31, 9, tzinfo=UTC)),
    ("timestamp", "2024-01-31T10:00:00.0000001+01:00", REFUSED),
    ("timestamp", "10:00:00", REFUSED),
    ("timestamp", "T10:00:00", REFUSED),
    ("timestamp_ntz", "2024-01-31", dt.datetime(2024, 1, 31)),
    ("timestamp_ntz", "2024-01-31 10:00+02", REFUSED),
    ("timestamp_ntz", "2024-01-31 10:00:00.5", dt.datetime(2024, 1, 31, 10, 0, 0, 500000)),
    ("timestamp_ntz", "2024-01-31 10:00:00+02:00", REFUSED),
    ("timestamp_ntz", "2024-01-31T10:00:00Z", REFUSED),
    ("timestamp_ntz", "2024-01-31 10:00:00 Europe/Berlin", REFUSED),
    ("double", "0.1", 0.1),
    ("double", "-1.5e300", -1.5e300),
    ("double", "Infinity", float("inf")),
    ("double", "-inf", float("-inf")),
    ("double", "1e400", REFUSED),
    ("double", "1e-400", REFUSED),
    ("double", "0e-400", 0.0),
    ("double", "1.5d", REFUSED),
    ("double", "0x1p3", REFUSED),
    ("float", "1e39", REFUSED),
    ("float", "0.5", 0.5),
    ("long", "9223372036854775807", 2**63 - 1),
    ("long", "9223372036854775808", REFUSED),
    ("long", "1.5", REFUSED),
    ("boolean", "true", True),
    ("boolean", "2", REFUSED),
]


def test_text_that_a_type_would_round_or_cut_is_no_value_of_it(spark: SparkSession) -> None:
    from pyspark.sql import functions as fn

    for kind in dict.fromkeys(kind for kind, _, _ in CASTS):
        cases = [(text, expected) for of, text, expected in CASTS if of == kind]
        (field,) = schema_of_columns([{"name": "x", "type": kind}])
        texts = spark.createDataFrame([(text,) for text, _ in cases] + [(None,)], "text string")
        value, wrong = cast_string(fn.col("text"), field.data_type, exact=True)
        if kind == "timestamp":
            value = fn.to_utc_timestamp(value, fn.current_timezone()).cast("timestamp_ntz")
        found = texts.select("text", value.alias("value"), wrong.alias("wrong")).collect()
        for row, (text, expected) in zip(found, [*cases, (None, None)], strict=True):
            if isinstance(expected, dt.datetime):
                expected = expected.replace(tzinfo=None)
            assert row["value"] == expected, (kind, text)
            assert row["wrong"] is (text is not None and expected is None), (kind, text)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("date", "2024-01-31 : junk"),
        ("double", "1.5d"),
        ("decimal(10,2)", "\u0661.\u0662\u0665\u0665"),
        ("timestamp", "2024-01-31 10:00:00 :"),
    ],
)
def test_what_is_no_value_is_not_rounded(spark: SparkSession, kind: str, text: str) -> None:
    from pyspark.sql import functions as fn

    (field,) = schema_of_columns([{"name": "x", "type": kind}])
    value, wrong = cast_string(fn.lit(text), field.data_type, exact=False)
    assert spark.range(1).select(value.isNull(), wrong).collect() == [(True, True)]


@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_contract_may_allow_rounding(spark: SparkSession, tmp_path: Path, form: str) -> None:
    text = "m\n1.255\n" if form == "csv" else '{"m": 1.255}\n'
    file = written(tmp_path / f"a.{form}", text)
    refused = load(spark, tmp_path / "t", [file], contract=contract(("m", "decimal(10,2)")))
    assert refused.error is not None
    assert "exact_string" in refused.error.message or "TYPE m" in refused.error.message
    allowed = load(
        spark, tmp_path / "t", [file], contract=contract(("m", "decimal(10,2)"), exact_string=False)
    )
    assert allowed.error is None
    assert rows_of(tmp_path / "t") == [{"m": Decimal("1.26")}]


def test_a_quoted_empty_string_is_no_number(spark: SparkSession, tmp_path: Path) -> None:
    file = written(tmp_path / "a.csv", '"id","text","z"\n"","",\n')
    refused = load(spark, tmp_path / "t", [file], contract=STRINGS)
    assert refused.error is not None
    assert "TYPE id" in refused.error.message
    source = {"options": {"nullValue": ""}}
    assert load(spark, tmp_path / "t", [file], contract=STRINGS, source=source).error is None
    assert rows_of(tmp_path / "t") == [{"id": None, "text": None, "z": None}]


OBJECTS = contract(("m", "decimal(20,2)"), ("n", "string"), ("o", "string"), ("s", "string"), ("d", "double"))


def test_a_json_number_is_its_text_until_it_is_cast(spark: SparkSession, tmp_path: Path) -> None:
    lines = [
        '{"m": 123456789012345678.91, "n": 1.10, "o": {"a": [1.10, -2.5e3, "7.5"]}, "s": "a 1.5, 2.50", '
        '"d": 1.5}',
        '{"m": "0.10", "n": "1.10", "o": [], "s": "\\"1.50\\": 2.5", "d": -0.0}',
        '{"m": 5, "n": true, "o": null, "s": "deltaward_ 1.5", "d": 1E5}',
        '{"m": -0.5, "n": 10000000000000000000000001.5, "o": {"b": "1.5"}, "s": "it\'s 1.5", "d": 7}',
    ]
    file = written(tmp_path / "a.json", "\n".join(lines))
    result = load(spark, tmp_path / "t", [file], contract=OBJECTS)
    assert result.error is None
    found = {row["m"]: row for row in rows_of(tmp_path / "t")}
    assert set(found) == {
        Decimal("123456789012345678.91"),
        Decimal("0.10"),
        Decimal("5.00"),
        Decimal("-0.50"),
    }
    first = found[Decimal("123456789012345678.91")]
    assert (first["n"], first["s"], first["d"]) == ("1.10", "a 1.5, 2.50", 1.5)
    assert first["o"] == '{"a":[1.10,-2.5e3,"7.5"]}'
    assert found[Decimal("0.10")]["s"] == '"1.50": 2.5'
    assert found[Decimal("5.00")]["n"] == "true"
    assert found[Decimal("-0.50")]["n"] == "10000000000000000000000001.5"
    assert found[Decimal("-0.50")]["s"] == "it's 1.5"


def test_exact_numbers_in_structs_and_lists(spark: SparkSession, tmp_path: Path) -> None:
    money = "decimal(30,4)"
    struct = {"type": "struct", "fields": [{"name": "m", "type": money}]}
    columns = [
        {"name": "s", "type": struct},
        {"name": "l", "type": {"type": "array", "elementType": struct, "containsNull": True}},
    ]
    line = (
        '{"s": {"m": 123456789012345678901234.5678}, "l": [{"m": 0.0001}, {"m": 12345678901234567890.5}]}\n'
    )
    result = load(spark, tmp_path / "t", [written(tmp_path / "a.json", line)], contract={"columns": columns})
    assert result.error is None
    (row,) = rows_of(tmp_path / "t")
    assert row["s"] == {"m": Decimal("123456789012345678901234.5678")}
    assert [item["m"] for item in row["l"]] == [Decimal("0.0001"), Decimal("12345678901234567890.5000")]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ('{"id": 1}\n{"ID": 2}\n', "case"),
        ('{"s": {"id": 1}}\n{"s": {"Id": 2}}\n', "case"),
        ('{"id": "a"}\n{"id": "caf\u00e9"}\n'.encode("latin-1"), "not exactly one JSON object"),
        ('{"id": 1}\n{"id": 01.5}\n', "not exactly one JSON object"),
        ('{"id": 1}\n{"id": 1.5.5}\n', "not exactly one JSON object"),
    ],
    ids=["case", "case in an object", "latin-1", "zero before", "two points"],
)
def test_json_that_would_lose_something_is_refused(
    spark: SparkSession, tmp_path: Path, data: str | bytes, words: str
) -> None:
    result = load(spark, tmp_path / "t", [written(tmp_path / "a.json", data)])
    assert result.error is not None
    assert words in result.error.message, result.error


def test_numbers_are_marked_outside_strings_alone(spark: SparkSession) -> None:
    """Held against Python's own parser, with strings and lists as long as lines get."""
    from pyspark.sql import functions as fn

    tricky = ["1.5", '"', "\\", '\\"1.5', "'", "it's 2.5", ", 1.5,", ":1.5}", "\u2028 1.5", "-", "1.5e"]
    documents = [
        {"a": tricky, "b": {text: text for text in tricky}, "c": [1.5, -1e-7, 0, -0.25, None, True]},
        {"long": "x1.5," * 200_000, "n": 2.5},
        {"escapes": '\\"1.5' * 100_000, "n": 2.5},
        {"list": [1.5, "a 1.5"] * 50_000},
        {"none": ["no number"] * 50_000, "n": 0.5},
    ]
    numbers = MarkedNumbers()
    lines = spark.createDataFrame([(json.dumps(item),) for item in documents], "line string")
    marked = [row[0] for row in lines.select(numbers.marked(fn.col("line"))).collect()]
    mark = numbers._mark

    def restored(value: Any) -> Any:
        if isinstance(value, str) and value.startswith(mark):
            return json.loads(value.removeprefix(mark))
        if isinstance(value, list):
            return [restored(item) for item in value]
        if isinstance(value, dict):
            return {key: restored(item) for key, item in value.items()}
        assert value is None or isinstance(value, str | bool), value
        return value

    assert [restored(json.loads(text)) for text in marked] == documents


def test_a_broken_row_is_not_quoted_where_rows_are_not_shown(spark: SparkSession, tmp_path: Path) -> None:
    """What Spark says of a malformed record has the record."""
    table = tmp_path / "t"
    good = written(tmp_path / "good.csv", "id,text,z\n1,a,end\n")
    assert load(spark, table, [good], contract=STRINGS).error is None
    bad = written(tmp_path / "bad.csv", "id,text,z\n2,salary of ann\n")
    hidden = {**STRINGS, "show_rows": False}
    source = {"format": "csv", "uris": [str(bad)]}
    merge = JobSpec(
        kind="merge",
        table=TableRef(uri=str(table)),
        params={
            "source": source,
            "on": "t.id = s.id",
            "matched": [{"action": "update_all"}],
            "contract": hidden,
        },
    )
    registry = JobRegistry(group=None)
    register(registry)
    merged = run_job(merge, JobContext(executor=SparkExecutor(spark)), registry=registry)
    for result in (merged, load(spark, table, [bad], contract=hidden)):
        assert result.error is not None
        assert result.error.code == "JOB_FAILED", result.error
        assert "salary" not in result.error.message
    shown = load(spark, table, [bad], contract=STRINGS)
    assert shown.error is not None
    assert "bad.csv" in shown.error.message
