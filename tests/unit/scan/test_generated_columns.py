from __future__ import annotations

import pyarrow as pa
import pytest

from delta_core.actions.arrow_schema import LIVE_FILE_SCHEMA
from delta_core.expressions.parse import parse_predicate
from delta_core.replay.live_files import LiveFiles
from delta_core.scan.data_skipping import prune_by_partitions
from delta_core.scan.generated_columns import KEY
from delta_core.scan.scan import Scan
from delta_core.schema.json import schema_to_json
from delta_core.schema.types import (
    BINARY,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    StructField,
    StructType,
)
from delta_core.snapshot.snapshot import Snapshot
from tests.support.log_builder import LogBuilder, add, metadata, protocol


def schema_of(base, generated, *, name="base"):
    fields = [StructField(name=name, data_type=base), StructField(name="other", data_type=LONG)]
    for column, (kind, text) in generated.items():
        fields.append(StructField(name=column, data_type=kind, metadata={KEY: text}))
    return StructType(tuple(fields))


def kept(schema, partitions, predicate, *, enforced=True, plain=()):
    """The positions of the files that stay, each with its partition values; `plain` are not generated."""
    records = [
        {"path": str(at), "partition_values": list(values.items()), "size_bytes": 1}
        for at, values in enumerate(partitions)
    ]
    files = LiveFiles.from_batch(pa.RecordBatch.from_pylist(records, schema=LIVE_FILE_SCHEMA))
    names = [*plain, *(field.name for field in schema if KEY in field.metadata)]
    found, _ = prune_by_partitions(
        files, parse_predicate(predicate, schema), schema, names, generation_enforced=enforced
    )
    return [int(path) for path in found.to_table(["path"]).column("path").to_pylist()]


DAYS = [{"g": day} for day in ("2020-01-01", "2020-01-03", "2020-02-29", "2021-01-01")] + [{"g": None}]
MONTHS = [{"g": f"{month}-01"} for month in ("2020-01", "2020-02", "2021-01")] + [{"g": None}]

STRINGS = [{"g": "ab"}, {"g": "b"}, {"g": "bc"}, {"g": None}]
ENDS = [{"g": "bc"}, {"g": "x"}, {"g": None}]
HOURS = [{"g": "2020-01-01-05"}, {"g": "2020-06-01-00"}]
STARTS = [{"g": "2020-01-01T23:00:00.000000Z"}, {"g": "2020-06-01 00:00:00"}]
TS = [{"g": "2020-01-01T05"}, {"g": "2020-06-01T00"}]
QUOTED = [{"g": "2020%d01"}, {"g": "2020%d06"}]
PERCENT = [{"g": "2020%01"}, {"g": "2021%03"}]
ODD_MONTHS = [{"g": "+10000-01"}, {"g": "2020-13"}]
FAR_DAYS = [{"g": "9999-12-31"}, {"g": "0001-01-01"}]


@pytest.mark.parametrize(
    ("base", "kind", "expression", "partitions", "predicate", "expected"),
    [
        (TIMESTAMP_NTZ, DATE, "CAST(base AS DATE)", DAYS, "base = '2020-01-03 12:00:00'", [1]),
        (TIMESTAMP_NTZ, DATE, "DATE(base)", DAYS, "base < '2020-01-03 00:00:00'", [0]),
        (TIMESTAMP_NTZ, DATE, "CAST(base AS DATE)", DAYS, "base <= '2020-01-03 00:00:00'", [0, 1]),
        (TIMESTAMP_NTZ, DATE, "CAST(base AS DATE)", DAYS, "base >= '2020-02-29 23:59:59.999999'", [2, 3]),
        (TIMESTAMP_NTZ, DATE, "CAST(base AS DATE)", DAYS, "base is null", [4]),
        (TIMESTAMP_NTZ, DATE, "CAST(base AS DATE)", DAYS, "base is not null", [0, 1, 2, 3]),
        (TIMESTAMP_NTZ, DATE, "CAST(base AS DATE)", DAYS, "base <=> null", [4]),
        (TIMESTAMP_NTZ, DATE, "CAST(base AS DATE)", DAYS, "year(base) = 2021 or base is null", [3, 4]),
        (TIMESTAMP_NTZ, DATE, "CAST(base AS DATE)", DAYS, "date_format(base, 'yyyy-MM') = '2020-01'", [0, 1]),
        (TIMESTAMP_NTZ, DATE, "CAST(base AS DATE)", DAYS, "base = '2020-01-03 12:00:00' and other > 1", [1]),
        (TIMESTAMP_NTZ, DATE, "CAST(base AS DATE)", DAYS, "base > '2020-02-01' and g < '2021-01-01'", [2]),
        (TIMESTAMP_NTZ, DATE, "CAST(base AS DATE)", DAYS[:2], "base = '2021-01-01' or other > 1", [0, 1]),
        # In some zone it was already, or still, another day.
        (TIMESTAMP, DATE, "CAST(base AS DATE)", DAYS, "base = '2020-01-02 10:00:00'", [0, 1]),
        (TIMESTAMP, DATE, "CAST(base AS DATE)", DAYS, "base > '2020-03-02 00:00:00'", [3]),
        (TIMESTAMP, DATE, "TRUNC(base, 'MM')", MONTHS, "base > '2020-02-01 19:00:00'", [1, 2]),
        (DATE, DATE, "TRUNC(base, 'MONTH')", MONTHS, "base = '2020-02-29'", [1]),
        (DATE, STRING, "DATE_FORMAT(base, 'yyyy-MM')", [{"g": "2020-01"}], "base = '2020-06-05'", []),
        (TIMESTAMP, STRING, "DATE_FORMAT(base, 'yyyy-MM-dd-HH')", HOURS, "base < '2020-02-01'", [0]),
        (TIMESTAMP, STRING, "DATE_FORMAT(base, 'MM-yyyy')", [{"g": "01-2020"}], "base > '2021-02-01'", [0]),
        (TIMESTAMP, TIMESTAMP, "DATE_TRUNC('DAY', base)", STARTS, "base > '2020-02-01'", [1]),
        (STRING, STRING, "SUBSTRING(base, 1, 2)", STRINGS, "base = 'abc'", [0]),
        (STRING, STRING, "SUBSTRING(base, 1, 2)", STRINGS, "base > 'b'", [2, 3]),
        (STRING, STRING, "LEFT(base, 2)", [{"g": "ab"}, {"g": "bc"}], "base like 'bc%'", [1]),
        (STRING, STRING, "SUBSTRING(base, 2, 2)", ENDS, "base in ('abcd', null)", [0]),
        (STRING, STRING, "SUBSTRING(base, 2, 2)", ENDS, "base = 'a'", [2]),
        (STRING, STRING, "SUBSTRING(base, 2, 2)", [{"g": "bc"}, {"g": "x"}], "base > 'abcd'", [0, 1]),
        (STRING, STRING, "SUBSTRING(base, 1, 2)", [{"g": None}], "base = ''", [0]),
        (STRING, STRING, "SUBSTRING(base, 1, 2)", [{"g": None}], "base is null", [0]),
        (STRING, STRING, "SUBSTRING(base, 1, 2)", [{"g": "\U0010ffff"}], "base > 'z'", [0]),
        (BINARY, BINARY, "base", [{"g": "a"}, {"g": None}], "base is not null", [0, 1]),
        (LONG, LONG, "base", [{"g": "1"}, {"g": "2"}], "base + 1 = 3", [1]),
        (LONG, INTEGER, "CAST(base AS INT)", [{"g": "1"}, {"g": "2"}], "base in (2, 3)", [1]),
        (DOUBLE, INTEGER, "CAST(base AS INT)", [{"g": "1"}, {"g": "2"}], "base = 2.5e0", [0, 1]),
        # Of another case in another version of Unicode, perhaps.
        (STRING, STRING, "lower(base)", [{"g": "a"}], "base = 'B'", [0]),
        # Unknown here.
        (STRING, STRING, "soundex(base)", [{"g": "a"}], "base = 'B'", [0]),
        # Of no length, or of another type than the expression's: the values say nothing.
        (STRING, STRING, "SUBSTRING(base, 1, 0)", [{"g": None}, {"g": "a"}], "base > 'b'", [0, 1]),
        (STRING, STRING, "LEFT(base, 0)", [{"g": None}, {"g": "a"}], "base > 'b'", [0, 1]),
        (STRING, BINARY, "LEFT(base, 1)", [{"g": "a"}, {"g": "b"}], "base > 'c'", [0, 1]),
        (DATE, STRING, "YEAR(base)", [{"g": "2019"}, {"g": "2020"}], "base > '2030-01-01'", [0, 1]),
        (DATE, LONG, "YEAR(base)", [{"g": "2019"}, {"g": "2020"}], "base = '2020-05-05'", [1]),
        (TIMESTAMP_NTZ, TIMESTAMP, "DATE_TRUNC('DAY', base)", STARTS, "base > '2020-02-01'", [0, 1]),
        # A text may stand for a number in ways of its own.
        (STRING, INTEGER, "CAST(base AS INT)", [{"g": "1"}, {"g": "2"}], "base = ' 1'", [0, 1]),
        # An instant, whose text may be in any zone, but a number or a text only what it is.
        (TIMESTAMP, TIMESTAMP, "base", STARTS, "base > '2020-01-03 00:00:00'", [1]),
        (TIMESTAMP, TIMESTAMP, "base", STARTS, "base = '2020-01-02 00:00:00'", [0]),
        (LONG, LONG, "base", [{"g": "1"}, {"g": "2"}], "base = 2", [1]),
        (STRING, STRING, "base", STRINGS, "base in ('ab', 'bc') and other = 3", [0, 2]),
        (VOID, DATE, "TRUNC(base, 'MM')", MONTHS, "base is null", [0, 1, 2, 3]),
        (DATE, DATE, "LAST_DAY(base)", MONTHS[:1], "base > '2021-01-01'", [0]),
        (DATE, STRING, "DATE_FORMAT(base, 'yyyy%MM')", PERCENT, "base > '2021-01-01'", [1]),
        (TIMESTAMP_NTZ, STRING, "DATE_FORMAT(base, \"yyyy-MM-dd'T'HH\")", TS, "base > '2020-01-04'", [1]),
        (TIMESTAMP_NTZ, STRING, "DATE_FORMAT(base, \"yyyy'%d'MM\")", QUOTED, "base > '2020-02-04'", [1]),
        # Beyond the calendar, or in breach of the type: no reason to leave anything out.
        (DATE, STRING, "DATE_FORMAT(base, 'yyyy-MM')", ODD_MONTHS, "base = '2020-06-05'", [0, 1]),
        (TIMESTAMP, DATE, "CAST(base AS DATE)", FAR_DAYS, "base = '2020-06-05'", [0, 1]),
    ],
)  # fmt: skip
def test_kept_files(base, kind, expression, partitions, predicate, expected):
    assert kept(schema_of(base, {"g": (kind, expression)}), partitions, predicate) == expected


PARTS = {
    "y": (INTEGER, "YEAR(base)"),
    "m": (INTEGER, "MONTH(base)"),
    "d": (INTEGER, "DAY(base)"),
    "h": (INTEGER, "HOUR(base)"),
}
MOMENTS = [
    {"y": "2020", "m": "1", "d": "1", "h": "5"},
    {"y": "2020", "m": "1", "d": "31", "h": "23"},
    {"y": "2020", "m": "12", "d": "1", "h": "0"},
    {"y": None, "m": None, "d": None, "h": None},
]


@pytest.mark.parametrize(
    ("names", "predicate", "expected"),
    [
        ("y", "base > '2021-01-01'", []),
        ("y", "base = '2020-07-01'", [0, 1, 2]),
        ("ym", "base = '2020-01-07'", [0, 1]),
        ("ymd", "base < '2020-01-05'", [0]),
        ("ymdh", "base >= '2020-01-31 20:00:00' and base < '2020-02-03'", [1]),
        # A day without its month says nothing.
        ("yd", "base > '2020-07-31'", [0, 1, 2]),
        ("md", "base > '2020-07-31'", [0, 1, 2, 3]),
        # But of a constant every part is known.
        ("yd", "base = '2020-07-31'", [1]),
        ("md", "base = '2020-07-31'", []),
    ],
)
def test_columns_of_year_month_day_and_hour_name_a_span_together(names, predicate, expected):
    schema = schema_of(TIMESTAMP_NTZ, {name: PARTS[name] for name in names})
    partitions = [{name: moment[name] for name in names} for moment in MOMENTS]
    found = kept(schema, partitions, predicate)
    # What has no year may be anything.
    assert [at for at in found if partitions[at].get("y", "") is not None] == expected


def test_a_nested_field():
    schema = schema_of(
        StructType((StructField(name="at", data_type=DATE),)), {"g": (INTEGER, "YEAR(base.at)")}
    )
    for predicate in ("base.at > '2020-03-01'", "base.at = '2020-03-01'", "base.at in ('2020-03-01')"):
        assert kept(schema, [{"g": "2019"}, {"g": "2020"}], predicate) == [1]


def test_columns_generated_from_one_column_narrow_it_together():
    schema = schema_of(
        TIMESTAMP_NTZ, {"m": (DATE, "TRUNC(base, 'MONTH')"), "d": (DATE, "CAST(base AS DATE)")}
    )
    days = ("2020-01-05", "2020-01-25", None)
    partitions = [{"m": None if day is None else "2020-01-01", "d": day} for day in days]
    assert kept(schema, partitions, "base > '2020-01-20'") == [1]
    assert kept(schema, partitions, "base < '2020-01-20'") == [0]
    assert kept(schema, partitions, "base > '2020-02-02'") == []
    assert kept(schema, partitions, "base is null") == [2]
    # A day that is beyond the calendar leaves what the month says.
    far = [{"m": "2020-01-01", "d": "9999-12-31"}, {"m": "0001-01-01", "d": "2020-01-25"}]
    assert kept(schema, far, "base > '2020-02-03'") == []
    assert kept(schema, far, "base < '2020-01-20'") == [0]


def test_an_expression_of_two_columns_says_nothing_of_either():
    schema = schema_of(STRING, {"g": (STRING, "CONCAT(base, CAST(other AS STRING))")})
    assert kept(schema, [{"g": "a1"}, {"g": "b2"}], "base = 'a' and other = 1") == [0, 1]


def test_only_columns_of_the_data_are_told_by_partitions():
    """A plain partition column beside, and one that is generated from a partition column."""
    schema = schema_of(DATE, {"y": (INTEGER, "YEAR(base)"), "z": (INTEGER, "y + 1")})
    partitions = [{"other": "7", "y": "2019", "z": "1"}, {"other": "8", "y": "2020", "z": "1"}]
    assert kept(schema, partitions, "base > '2020-03-01'", plain=["other"]) == [1]
    assert kept(schema, partitions, "base > '2020-03-01' and other = 7", plain=["other"]) == []
    assert kept(
        schema, partitions, "base < '2019-03-01' or other = 8 and base > '2020-01-01'", plain=["other"]
    ) == [
        0,
        1,
    ]


def test_nothing_is_pruned_where_the_table_does_not_enforce_its_expressions():
    schema = schema_of(DATE, {"g": (INTEGER, "YEAR(base)")})
    assert kept(schema, [{"g": "2019"}, {"g": "2020"}], "base > '2020-03-01'", enforced=False) == [0, 1]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"min_writer_version": 2}, 2),
        ({"min_writer_version": 4}, 1),
        ({"min_writer_version": 7, "writer_features": frozenset({"generatedColumns"})}, 1),
        ({"min_writer_version": 7, "writer_features": frozenset({"appendOnly"})}, 2),
    ],
)
def test_a_scan_asks_the_protocol(tmp_path, changes, expected):
    schema = schema_of(DATE, {"g": (INTEGER, "YEAR(base)")})
    log = LogBuilder(tmp_path)
    log.commit(
        protocol(**changes),
        metadata(schema_string=schema_to_json(schema), partition_columns=("g",)),
        *(add(year, partition_values={"g": year}) for year in ("2019", "2020")),
    )
    scan = Scan(Snapshot.load(log.store), predicate="base > '2020-03-01'")
    assert scan.files(["path"]).num_rows == expected
    assert scan.report.files_after_partitions == expected
