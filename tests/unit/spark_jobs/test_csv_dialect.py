"""Which lines of a CSV file are whole records: the pattern is the same in Python and in Java."""

from __future__ import annotations

import re

import pytest

from spark_jobs.loading.csv_lines import Dialect

WHOLE = ["", "1,a", "1,", ",", '1,"a"', '"a",1', '1,"a"\r', '"a" ,1', '1,5" pipe', '5",x', '"a""b"', '""']
OPEN = ['1,"a', '"', '1,"a""', '5","a', '"a""', '1,"a,b']


def whole(line: str, **options: str) -> bool:
    pattern = Dialect.of(options).whole_record()
    assert pattern is not None
    return re.search(pattern, line) is not None


@pytest.mark.parametrize("line", WHOLE)
def test_a_whole_record(line: str) -> None:
    assert whole(line)


@pytest.mark.parametrize("line", OPEN)
def test_a_record_with_an_open_quote(line: str) -> None:
    assert not whole(line)


def test_dialects() -> None:
    assert whole('1|"a"', sep="|")
    assert whole("1\t'a", sep=r"\t")
    assert not whole("1]'a", sep="]", quote="'")
    assert whole("1^'a'", sep="^", quote="'")
    assert whole(r'1,"a\"b"', escape="\\")
    assert not whole(r'1,"a\"', escape="\\")
    assert whole(r'1,"a\\"', escape="\\")
    assert not whole('1,"a\\', escape="\\")
    assert Dialect.of({"sep": "||"}).whole_record() is None
    assert Dialect.of({"quote": ""}).whole_record() is None


def test_the_encoding_of_a_dialect() -> None:
    assert Dialect.of({}).encoding is None
    assert Dialect.of({"encoding": "Utf-8"}).encoding is None
    assert Dialect.of({"charset": "utf8"}).encoding is None
    assert Dialect.of({"charset": "UTF-16", "encoding": "ISO-8859-1"}).encoding == "ISO-8859-1"


@pytest.mark.parametrize("line", ["a," * 200_000 + '"', '"a""b",' * 100_000 + "c", '""' * 200_000])
def test_long_lines(line: str) -> None:
    assert whole(line) is not line.endswith(',"')
