"""CSV files of every kind of line end, quote and encoding: exact rows, or an error that names the file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from delta_core.errors import JobError
from spark_jobs.loading.csv_files import read_csv
from tests.support.soak import drawn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

Rows = list[tuple[Any, ...]]
Case = tuple[str, str | bytes, dict[str, str], Rows]

READ: list[Case] = [
    ("quotes in unquoted values", 'id,txt\n1,5" pipe\n2,b\n', {}, [("1", '5" pipe'), ("2", "b")]),
    ("inches at the end", 'id,txt\n1,5"\n2,7"\n3,9"\n', {}, [("1", '5"'), ("2", '7"'), ("3", '9"')]),
    ("escaped quotes", 'id,txt\n1,"a\\"b"\n', {"escape": "\\"}, [("1", 'a"b')]),
    ("an escaped escape", 'id,txt\n1,"a\\\\"\n2,b\n', {"escape": "\\"}, [("1", "a\\"), ("2", "b")]),
    ("no quotes", 'id,txt\n1,"a\n2,b\n', {"quote": ""}, [("1", '"a'), ("2", "b")]),
    ("a row of spaces", "txt\n   \nx\n", {}, [("   ",), ("x",)]),
    ("a row of spaces, CRLF", "txt\r\n   \r\nx\r\n", {}, [("   ",), ("x",)]),
    ("a row of nulls", "id\ttxt\n\t\n1\tx\n", {"sep": "\t"}, [(None, None), ("1", "x")]),
    ("a row of nulls and lines", 'id\ttxt\n\t\n1\t"x\ny"\n', {"sep": "\\t"}, [(None, None), ("1", "x\ny")]),
    ("empty lines", 'txt\n\nx\n\n"y\n\nz"\n\n', {}, [("x",), ("y\n\nz",)]),
    ("LF and DOS values", 'id,txt\n1,"a\r\nb"\n2,c\n', {}, [("1", "a\r\nb"), ("2", "c")]),
    ("CRLF and DOS values", 'id,txt\r\n1,"a\r\nb"\r\n2,c\r\n', {}, [("1", "a\r\nb"), ("2", "c")]),
    ("CRLF and Unix values", 'id,txt\r\n1,"a\nb"\r\n2,\r\n', {}, [("1", "a\nb"), ("2", None)]),
    ("CRLF and a lone CR", 'id,txt\r\n1,"a\rb"\r\n2,c', {}, [("1", "a\rb"), ("2", "c")]),
    ("LF and a lone CR", 'id,txt\n1,"a\rb"\n2,"c\r\n\nd"\n', {}, [("1", "a\rb"), ("2", "c\r\n\nd")]),
    ("CRLF after a header with LF", 'id,txt\n1,"a\nc"\r\n2,b\r\n', {}, [("1", "a\nc"), ("2", "b")]),
    ("CRLF without the last", 'id,txt\r\n1,"a\r\nb"\r\n2,c', {}, [("1", "a\r\nb"), ("2", "c")]),
    ("CRLF and one column", 'txt\r\n"a\nb"\r\n\r\nc\r\n', {}, [("a\nb",), ("c",)]),
    ("CRLF and nulls", 'id,t\r\n1,"a\nb"\r\n2,NA\r\n', {"nullValue": "NA"}, [("1", "a\nb"), ("2", None)]),
    ("CR", "id,txt\r1,a\r2,b\r", {}, [("1", "a"), ("2", "b")]),
    ("lineSep", 'id,txt\r\n1,"a\r\nb"\r\n', {"lineSep": "\r\n"}, [("1", "a\r\nb")]),
    ("a line end of its own", "id,txt;1,a;2,b;", {"lineSep": ";"}, [("1", "a"), ("2", "b")]),
    ("empty and null", 'id,txt\n1,""\n2,\n', {}, [("1", ""), ("2", None)]),
    ("empty and null in lines", 'id,txt\n1,""\n2,\n3,"a\nb"\n', {}, [("1", ""), ("2", None), ("3", "a\nb")]),
    ("empty is null", 'id,txt\n1,""\n2,\n', {"nullValue": ""}, [("1", None), ("2", None)]),
    ("UTF-8 by name", "id,txt\n1,café\n", {"encoding": "utf-8"}, [("1", "café")]),
    ("Latin-1", "id,txt\n1,café\n".encode("latin-1"), {"encoding": "ISO-8859-1"}, [("1", "café")]),
    (
        "UTF-16 and lines",
        'id,txt\r\n1,"ca\nfé"\r\n2,b\r\n'.encode("utf-16"),
        {"encoding": "UTF-16"},
        [("1", "ca\nfé"), ("2", "b")],
    ),
    ("a mark of the byte order", '\ufeff"id","txt"\n1,"a\nb"\n', {}, [("1", "a\nb")]),
]

REFUSED: list[tuple[str, str | bytes, dict[str, str], str]] = [
    ("an open quote", 'id,txt\n1,a\n2,"b\n3,c\n4,d\n', {}, "not closed"),
    ("an open quote after lines", 'id,txt\n1,"a\nb"\n2,"b\n3,c\n', {}, "not closed"),
    ("an open quote after an escaped one", 'id,txt\n1,"a\\"b"\n2,"b\n3,c\n', {"escape": "\\"}, "not closed"),
    ("an open quote, multiLine", 'id,txt\n2,"b\n3,c\n', {"multiLine": "true"}, "not closed"),
    ("an open quote, one line", 'id,txt\n2,"b\n3,c\n', {"multiLine": "false"}, "not closed"),
    ("an open quote in UTF-16", 'id,txt\n2,"b\n3,c\n'.encode("utf-16"), {"encoding": "UTF-16"}, "not closed"),
    ("lines, one line", 'id,txt\n2,"b\nc"\n', {"multiLine": "false"}, "multiLine"),
    ("lines that end in CR", 'id,txt\r1,"a\rb"\r2,"c\r\nd"\r', {}, "line ends"),
    ("CR before the last quote", 'id,txt\n1,"a\r\nb"\n2,"b\r"\n', {}, "line ends"),
    ("LF in an unquoted value", "id,txt;1,a\nb;2,c;", {"lineSep": ";"}, "LF"),
    ("Latin-1", "id,txt\n1,café\n".encode("latin-1"), {}, "not UTF-8"),
    ("Latin-1 as UTF-8", "id,txt\n1,café\n".encode("latin-1"), {"encoding": "UTF-8"}, "not UTF-8"),
    ("Latin-1 as utf8", "id,txt\n1,café\n".encode("latin-1"), {"charset": "utf8"}, "not UTF-8"),
    ("UTF-8 as ASCII", "id,txt\n1,café\n", {"encoding": "US-ASCII"}, "US-ASCII"),
    ("half a character", "id,txt\n1,é\n".encode("utf-16-le") + b"x", {"encoding": "UTF-16LE"}, "UTF-16LE"),
]


def written(path: Path, data: str | bytes) -> str:
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return str(path)


@pytest.mark.parametrize(
    ("data", "options", "expected"), [pytest.param(*case[1:], id=case[0]) for case in drawn(READ, usual=10)]
)
def test_lines_arrive_as_they_are(
    spark: SparkSession, tmp_path: Path, data: str | bytes, options: dict[str, str], expected: Rows
) -> None:
    frame = read_csv(spark, [written(tmp_path / "a.csv", data)], options)
    assert [tuple(row) for row in frame.collect()] == expected
    assert frame.columns == (["txt"] if len(expected[0]) == 1 else ["id", frame.columns[1]])
    assert "\r" not in "".join(frame.columns)


@pytest.mark.parametrize(
    ("data", "options", "words"), [pytest.param(*case[1:], id=case[0]) for case in drawn(REFUSED, usual=6)]
)
def test_lines_that_cannot_arrive_are_refused(
    spark: SparkSession, tmp_path: Path, data: str | bytes, options: dict[str, str], words: str
) -> None:
    with pytest.raises(JobError, match=words) as refused:
        read_csv(spark, [written(tmp_path / "a.csv", data)], options)
    assert refused.value.cause
    assert refused.value.fix


def test_the_quotes_of_each_file_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    """Two open quotes are an even number; a file without lines in values may have an odd one."""
    first = written(tmp_path / "a.csv", 'id,txt\n1,"a\n')
    second = written(tmp_path / "b.csv", 'id,txt\n2,"b\n')
    with pytest.raises(JobError, match=r"a\.csv"):
        read_csv(spark, [first, second], {})
    with pytest.raises(JobError, match=r"a\.csv"):
        read_csv(spark, [first, first], {})
    written(tmp_path / "a.csv", 'id,txt\n1,5" pipe\n')
    written(tmp_path / "b.csv", 'id,txt\n2,"b\nc"\n')
    rows = {tuple(row) for row in read_csv(spark, [first, second], {}).collect()}
    assert rows == {("1", '5" pipe'), ("2", "b\nc")}


@pytest.mark.parametrize("row", ["1,a,zzz", "1", '1,"a"b"'])
@pytest.mark.parametrize("selected", ["id", "count"])
def test_a_malformed_row_is_refused_whatever_is_selected(
    spark: SparkSession, tmp_path: Path, row: str, selected: str
) -> None:
    file = written(tmp_path / "a.csv", f"id,txt\n{row}\n2,b\n")
    with pytest.raises(Exception, match=r"a\.csv|[Mm]alformed"):  # noqa: PT012
        frame = read_csv(spark, [file], {})
        frame.select("id").collect() if selected == "id" else frame.count()
