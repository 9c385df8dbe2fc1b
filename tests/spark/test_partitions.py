"""Partition columns are exactly the log's values, whatever they look like as directory names."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import duckdb
import duckdb_extension_delta
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import delta_core
import spark_jobs
from delta_core.errors import ConstraintViolationError, SchemaMismatchError
from delta_core.merge.clauses import MergeAction
from delta_core.scan.scan import Scan
from delta_core.schema.partition_values import hive_directory
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.open import open_store
from spark_jobs.dml.clauses import MergeClause, MergeClauses
from spark_jobs.dml.merge import MergeRequest, merge_into
from tests.support.rows import canonical_rows
from tests.support.soak import drawn
from tests.support.spark import collected, files_below, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

AWKWARD = [
    "plain", "007", "a b", "x/y", "50%", "%41", "k=v", "a:b", "ü日本", "it's", 'q"q', "#?&+",
    "[1]{2}*^", "b\\s",
    "tab\there", ".dot", "..", "_x", "trailing ", "null", "NULL", None,
    "~", "a\u00a0b", "\u2028", "😀", "%C3%BC",
]  # fmt: skip


def duckdb_rows(table: Path) -> list[str]:
    (extension,) = Path(duckdb_extension_delta.__file__).parent.rglob("delta.duckdb_extension")
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"LOAD '{extension}'")
        return canonical_rows(
            connection.execute("SELECT * FROM delta_scan(?)", [str(table)]).to_arrow_table()
        )


def awkward_frame(spark: SparkSession) -> Any:
    table = pa.table({"id": pa.array(range(len(AWKWARD)), pa.int32()), "p": pa.array(AWKWARD, pa.string())})
    return spark.createDataFrame(table)


EXPECTED = sorted([{"id": index, "p": value} for index, value in enumerate(AWKWARD)], key=repr)


def test_awkward_strings_round_trip(spark: SparkSession, tmp_path: Path) -> None:
    spark_jobs.write(awkward_frame(spark), str(tmp_path), mode="append", partition_by=["p"])
    assert collected(spark_jobs.read(spark, str(tmp_path))) == EXPECTED
    assert rows_of(tmp_path) == EXPECTED


@pytest.mark.parametrize("column", ["p", "größe~", "_p"])
def test_directories_have_names_that_engines_spell_alike(
    spark: SparkSession, tmp_path: Path, column: str
) -> None:
    """Spark leaves letters beyond ASCII, and hides the partitions of `_p` from those who list files."""
    frame = awkward_frame(spark).withColumnRenamed("p", column).selectExpr("*", "id % 2 as q")
    spark_jobs.write(frame, str(tmp_path), mode="append", partition_by=[column, "q"])
    expected = sorted([{"id": i, column: text, "q": i % 2} for i, text in enumerate(AWKWARD)], key=repr)
    assert collected(spark_jobs.read(spark, str(tmp_path))) == expected
    assert rows_of(tmp_path) == expected
    where_they_lie(tmp_path, column, AWKWARD)


def test_a_merge_into_partitions_beyond_ascii(spark: SparkSession, tmp_path: Path) -> None:
    spark_jobs.write(awkward_frame(spark), str(tmp_path), mode="append", partition_by=["p"])
    updates = spark.sql("SELECT CAST(id AS INT) AS id, 'é~' AS p FROM range(5, 30)").alias("s")
    clauses = MergeClauses(
        matched=(MergeClause(action=MergeAction.UPDATE_ALL),),
        not_matched=(MergeClause(action=MergeAction.INSERT_ALL),),
    )
    snapshot = Snapshot.load(open_store(str(tmp_path)))
    merge_into(updates, snapshot, MergeRequest(on="t.id = s.id", clauses=clauses))
    strings = [*AWKWARD[:5], *["é~"] * 25]
    assert rows_of(tmp_path) == sorted([{"id": i, "p": text} for i, text in enumerate(strings)], key=repr)
    where_they_lie(tmp_path, "p", strings)


def where_they_lie(table: Path, column: str, strings: list[str | None]) -> None:
    """Every live file is in the directory of its partition, and no directory is empty."""
    live = Scan(Snapshot.load(open_store(str(table)))).files().column("path").to_pylist()
    found = {path.split("/")[1] for path in map(unquote, live)}
    assert found == {hive_directory(column, text) for text in strings}
    assert {unquote(path) for path in live} <= files_below(table)
    assert all(any(folder.iterdir()) for folder in table.rglob("*") if folder.is_dir())


def test_awkward_strings_of_several_jobs_and_few_files(spark: SparkSession, tmp_path: Path) -> None:
    """Two prefixes rule the directories out; then more files than a map literal takes, and fewer."""
    frame = awkward_frame(spark)
    for half in ("id < 11", "id >= 11"):
        spark_jobs.write(frame.where(half).coalesce(1), str(tmp_path), mode="append", partition_by=["p"])
    assert collected(spark_jobs.read(spark, str(tmp_path))) == EXPECTED
    few = spark_jobs.read(spark, str(tmp_path), where="id between 9 and 12")
    assert collected(few) == [row for row in EXPECTED if 9 <= row["id"] <= 12]


def test_reads_awkward_strings_of_another_writer(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table({"id": pa.array(range(len(AWKWARD)), pa.int32()), "p": pa.array(AWKWARD, pa.string())})
    write_deltalake(str(tmp_path), table, partition_by=["p"])
    assert collected(spark_jobs.read(spark, str(tmp_path))) == EXPECTED


def test_the_empty_string_is_null_as_the_protocol_says(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame([(1, ""), (2, None)], "id int, p string")
    spark_jobs.write(frame, str(tmp_path), mode="append", partition_by=["p"])
    assert collected(spark_jobs.read(spark, str(tmp_path))) == [{"id": 1, "p": None}, {"id": 2, "p": None}]


def test_the_text_that_means_null_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame([(1, "__HIVE_DEFAULT_PARTITION__")], "id int, p string")
    with pytest.raises(ConstraintViolationError, match="partition column p"):
        spark_jobs.write(frame, str(tmp_path), mode="append", partition_by=["p"])
    assert files_below(tmp_path) == set()


@pytest.mark.parametrize("text", drawn(["x" * 254, "ü" * 127, "/" * 85, "x" * 400], usual=2))
def test_a_text_that_spark_can_name_no_directory_by_is_refused(
    spark: SparkSession, tmp_path: Path, text: str
) -> None:
    """Spark names directories itself; `delta_core` writes such partitions, so a MERGE may meet them."""
    delta_core.write_deltalake(tmp_path / "t", pa.table({"id": [1, 2], "p": [text, "b"]}), partition_by=["p"])
    before = files_below(tmp_path / "t")
    updates = spark.sql("SELECT 1 AS id, 'c' AS q").alias("s")
    matched = MergeClause(action=MergeAction.UPDATE, values={"id": "s.id + 2"})
    request = MergeRequest(on="t.id = s.id", clauses=MergeClauses(matched=(matched,)))
    with pytest.raises(ConstraintViolationError, match="at most 255 bytes"):
        merge_into(updates, Snapshot.load(open_store(str(tmp_path / "t"))), request)
    assert files_below(tmp_path / "t") == before
    frame = spark.createDataFrame(pa.table({"id": [1], "p": [text]}))
    with pytest.raises(ConstraintViolationError, match="at most 255 bytes"):
        spark_jobs.write(frame, str(tmp_path / "new"), mode="append", partition_by=["p"])
    assert files_below(tmp_path / "new") == set()


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"x" * 254, "at most 255 bytes"),
        (b"__HIVE_DEFAULT_PARTITION__", "<>"),
        (b"\xff\xfe", "UTF-8 without NUL"),
        (b"a\0b", "UTF-8 without NUL"),
    ],
)
def test_binary_partitions_are_named_like_texts(
    spark: SparkSession, tmp_path: Path, value: bytes, why: str
) -> None:
    frame = spark.createDataFrame(pa.table({"id": [1], "p": pa.array([value], pa.binary())}))
    with pytest.raises(ConstraintViolationError, match=why):
        spark_jobs.write(frame, str(tmp_path), mode="append", partition_by=["p"])
    assert files_below(tmp_path) == set()


@pytest.mark.parametrize("text", drawn(["x" * 253, "ü" * 126, "/" * 84, "\t'\\" * 28], usual=2))
def test_a_text_that_just_fits_a_name_is_written(spark: SparkSession, tmp_path: Path, text: str) -> None:
    frame = spark.createDataFrame(pa.table({"id": [1], "p": [text]}))
    spark_jobs.write(frame, str(tmp_path), mode="append", partition_by=["p"])
    assert collected(spark_jobs.read(spark, str(tmp_path))) == [{"id": 1, "p": text}]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_every_partition_type(spark: SparkSession, tmp_path: Path, zone: str) -> None:
    rows = pa.Table.from_pylist(
        [
            {
                "id": 1, "b": True, "i": -5, "s": 7, "d": dt.date(1883, 11, 18),
                "n": Decimal("-1.0000001"), "x": 1e-7,
                "t": dt.datetime(2013, 11, 3, 5, 30, 0, 5, tzinfo=dt.UTC),
            },
            {
                "id": 2, "b": False, "i": 2**40, "s": -7, "d": dt.date(2024, 2, 29),
                "n": Decimal("12.5000000"), "x": float("inf"),
                "t": dt.datetime(1883, 11, 18, 6, 30, 0, tzinfo=dt.UTC),
            },
            {"id": 3, "b": None, "i": None, "s": None, "d": None, "n": None, "x": None, "t": None},
        ],
        schema=pa.schema(
            {
                "id": pa.int32(), "b": pa.bool_(), "i": pa.int64(), "s": pa.int16(), "d": pa.date32(),
                "n": pa.decimal128(12, 7), "x": pa.float64(), "t": pa.timestamp("us", "UTC"),
            }
        ),
    )  # fmt: skip
    columns = ["b", "i", "s", "d", "n", "x", "t"]
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        spark_jobs.write(spark.createDataFrame(rows), str(tmp_path), mode="append", partition_by=columns)
        found = (
            spark_jobs.read(spark, str(tmp_path)).selectExpr("*", "unix_micros(t) as m").drop("t").toArrow()
        )
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    micros = rows.column("t").cast(pa.int64())
    expected = rows.drop_columns(["t"]).append_column("m", micros)
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, expected.to_pylist()))
    # deltalake misreads a negative decimal with zeros after the point, in tables of its own too; the log
    # is compared for that column instead.
    actions = [
        json.loads(line) for line in (tmp_path / "_delta_log" / f"{0:020}.json").read_text().splitlines()
    ]
    strings = {action["add"]["partitionValues"]["n"] for action in actions if "add" in action}
    assert strings == {"-1.0000001", "12.5000000", None}
    theirs = duckdb_rows(tmp_path)
    assert theirs == canonical_rows(rows)


def test_the_log_wins_over_the_directories(spark: SparkSession, tmp_path: Path) -> None:
    """A file that lies in one partition's directory and belongs, by the log, to another."""
    write_deltalake(str(tmp_path), pa.table({"id": [1, 2], "p": ["a", "b"]}), partition_by=["p"])
    commit = tmp_path / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    for line in lines:
        if "add" in line:
            line["add"]["partitionValues"]["p"] = "z" + line["add"]["partitionValues"]["p"]
    commit.write_text("\n".join(map(json.dumps, lines)) + "\n")
    assert collected(spark_jobs.read(spark, str(tmp_path))) == [{"id": 1, "p": "za"}, {"id": 2, "p": "zb"}]


def test_repeated_base_names_are_told_apart(spark: SparkSession, tmp_path: Path) -> None:
    values = [f"v {number}" for number in range(20)]
    table = pa.table({"id": pa.array(range(20), pa.int32()), "p": values})
    write_deltalake(str(tmp_path), table, partition_by=["p"])
    commit = tmp_path / "_delta_log" / f"{0:020}.json"
    text = commit.read_text()
    for path in DeltaTable(str(tmp_path)).file_uris():
        file = Path(path.removeprefix("file://"))
        if not file.exists():
            file = next(p for p in tmp_path.rglob("*.parquet") if p.name == file.name)
        text = text.replace(file.name, "same.parquet").replace('"p":"', '"p":"', 1)
        file.rename(file.parent / "same.parquet")
    # Other values than the directories', so that these cannot be used.
    commit.write_text(text.replace('"partitionValues":{"p":"v ', '"partitionValues":{"p":"w '))
    found = collected(spark_jobs.read(spark, str(tmp_path)))
    assert found == sorted([{"id": n, "p": f"w {n}"} for n in range(20)], key=repr)


def test_a_partitioning_that_is_not_the_tables_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(4).selectExpr("id", "id % 2 as p", "id % 3 as q")
    spark_jobs.write(frame, str(tmp_path), mode="append", partition_by=["p"])
    before = files_below(tmp_path)
    with pytest.raises(SchemaMismatchError, match="partitioned by"):
        spark_jobs.write(frame, str(tmp_path), mode="append", partition_by=["q"])
    assert files_below(tmp_path) == before


def test_files_that_spark_would_skip_are_read(spark: SparkSession, tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), pa.table({"id": [1, 2, 3], "p": ["a", "b", "c"]}), partition_by=["p"])
    commit = tmp_path / "_delta_log" / f"{0:020}.json"
    text = commit.read_text()
    for file, prefix in zip(sorted(tmp_path.glob("p=*/*.parquet")), ("_", ".", "x:"), strict=True):
        text = text.replace(file.name, prefix + file.name)
        file.rename(file.parent / (prefix + file.name))
    commit.write_text(text)
    expected = [{"id": 1, "p": "a"}, {"id": 2, "p": "b"}, {"id": 3, "p": "c"}]
    assert collected(spark_jobs.read(spark, str(tmp_path))) == expected
    assert collected(spark_jobs.read(spark, str(tmp_path), where="p > 'a'")) == expected[1:]
