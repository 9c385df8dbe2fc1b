"""A statement of the reference, the tables that it finds, and what is checked after it.

Every statement finds two tables: `t` has four versions (created, then the rows 1, 2 and 3, with a commit and
a day each), and `s` the rows 2, 3 and 4. In the folder `{folder}` are files to load or convert.
"""

from __future__ import annotations

import datetime as dt
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from delta_core import DeltaTable, write_deltalake

DAYS = (dt.date(2024, 1, 1), dt.date(2024, 1, 2), dt.date(2024, 1, 3), dt.date(2024, 1, 4))
"""The days of the rows 1 to 4; the version n of `t` is of noon of day n, in UTC."""

NAMES = ("a", "b", "c", "d")

FEATURES = {
    "delta.enableChangeDataFeed": "true",
    "delta.columnMapping.mode": "name",
    "delta.enableTypeWidening": "true",
    "delta.feature.allowColumnDefaults": "supported",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a statement, and where its tables are."""

    folder: Path
    rows: Sequence[Mapping[str, Any]] = ()
    columns: Sequence[str] = ()

    def table(self, name: str = "t") -> DeltaTable:
        """A table of the folder, as `delta_core` opens it."""
        return DeltaTable(str(self.folder / name))


Check = Callable[[Outcome], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One statement.

    Attributes:
        sql: the statement; `{folder}` is the folder.
        checks: what holds after it.
        is_refused: whether it raises, and changes nothing.
        refused: a part of the error's message.
        error: the name of the error's class.
        before: statements that run before it.
        arguments: the values of its parameters.
    """

    sql: str
    checks: tuple[Check, ...] = ()
    is_refused: bool = False
    refused: str = ""
    error: str = "UnsupportedSqlError"
    before: tuple[str, ...] = ()
    arguments: Any = None


def right(sql: str, *checks: Check, before: Sequence[str] = (), arguments: Any = None) -> Case:
    """A statement that has an effect, or a result."""
    return Case(sql=sql, checks=checks, before=tuple(before), arguments=arguments)


def refused(sql: str, part: str, error: str = "UnsupportedSqlError", before: Sequence[str] = ()) -> Case:
    """A statement that is refused by name, and changes nothing."""
    return Case(sql=sql, is_refused=True, refused=part, error=error, before=tuple(before))


# ---------------------------------------------------------------- checks


def ids(*expected: int | None, table: str = "t") -> Check:
    """The table has rows with these ids."""

    def check(outcome: Outcome) -> None:
        found = outcome.table(table).to_pyarrow_table(columns=["id"])["id"].to_pylist()
        assert sorted(found, key=str) == sorted(expected, key=str), found

    return check


def names(*expected: str | None, table: str = "t") -> Check:
    """The column `name`, in the order of the ids."""

    def check(outcome: Outcome) -> None:
        found = outcome.table(table).to_pyarrow_table(columns=["id", "name"]).sort_by("id")["name"]
        assert found.to_pylist() == list(expected), found

    return check


def result(*expected: Any) -> Check:
    """The first column of the result, in any order; tuples for all columns."""

    def check(outcome: Outcome) -> None:
        whole = bool(expected) and isinstance(expected[0], tuple)
        found = [tuple(row.values()) if whole else next(iter(row.values())) for row in outcome.rows]
        assert sorted(found, key=repr) == sorted(expected, key=repr), found

    return check


def value(column: str, expected: Any) -> Check:
    """A column of the only row of the result."""

    def check(outcome: Outcome) -> None:
        assert len(outcome.rows) == 1, outcome.rows
        found: Any = outcome.rows[0]
        for part in column.split("."):
            found = found[part]
        assert found == expected, found

    return check


def columns(*expected: str) -> Check:
    """The names of the result's columns."""

    def check(outcome: Outcome) -> None:
        assert tuple(outcome.columns) == expected, outcome.columns

    return check


def at_least(count: int) -> Check:
    """The number of rows of the result."""

    def check(outcome: Outcome) -> None:
        assert len(outcome.rows) >= count, outcome.rows

    return check


def field_types(expected: str, table: str = "t") -> Check:
    """The columns and types of a table, such as `id long, name string`."""

    def check(outcome: Outcome) -> None:
        found = ", ".join(f"{item.name} {item.data_type}" for item in outcome.table(table).schema().fields)
        assert found == expected, found

    return check


def property_is(key: str, expected: str | None, table: str = "t") -> Check:
    """A table property; None when it is not set."""

    def check(outcome: Outcome) -> None:
        found = outcome.table(table).metadata().configuration.get(key)
        assert found == expected, found

    return check


def description(expected: str | None, table: str = "t") -> Check:
    """The comment of a table."""

    def check(outcome: Outcome) -> None:
        assert (outcome.table(table).metadata().description or None) == expected

    return check


def partitions(*expected: str, table: str = "new") -> Check:
    """The partition columns of a table."""

    def check(outcome: Outcome) -> None:
        assert tuple(outcome.table(table).metadata().partition_columns) == expected

    return check


def field_has(name: str, expected: Mapping[str, Any], *, nullable: bool = True, table: str = "t") -> Check:
    """Metadata of a column, and whether it may be null."""

    def check(outcome: Outcome) -> None:
        found = next(item for item in outcome.table(table).schema().fields if item.name == name)
        assert found.nullable == nullable
        for key, wanted in expected.items():
            assert found.metadata.get(key) == wanted, found.metadata

    return check


def operation(expected: str, table: str = "t") -> Check:
    """The operation of the newest commit."""

    def check(outcome: Outcome) -> None:
        assert outcome.table(table).history(1)[0].commit_info.operation == expected

    return check


def version(expected: int, table: str = "t") -> Check:
    """The newest version."""

    def check(outcome: Outcome) -> None:
        assert outcome.table(table).version() == expected

    return check


def is_missing(table: str) -> Check:
    """There is no table."""

    def check(outcome: Outcome) -> None:
        assert not DeltaTable.is_deltatable(str(outcome.folder / table))

    return check


# ---------------------------------------------------------------- tables


def rows_of(*numbers: int) -> pa.Table:
    """Rows with these ids."""
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "name": pa.array([NAMES[number - 1] for number in numbers], pa.string()),
            "d": pa.array([DAYS[number - 1] for number in numbers], pa.date32()),
        }
    )


def make_template(folder: Path) -> None:
    """Make the tables and files, which each statement gets a copy of."""
    table = folder / "t"
    write_deltalake(str(table), rows_of(), partition_by=["d"], configuration=FEATURES)
    for number in (1, 2, 3):
        write_deltalake(str(table), rows_of(number), mode="append")
    for number in range(4):
        noon = dt.datetime(2023, 12, 31, 12, tzinfo=dt.UTC) + dt.timedelta(days=number)
        os.utime(table / "_delta_log" / f"{number:020d}.json", (noon.timestamp(),) * 2)
    write_deltalake(str(folder / "s"), rows_of(2, 3, 4))
    _files_to_load(folder / "files")
    (folder / "plain").mkdir()
    pq.write_table(rows_of(1, 2).select(["id", "name"]), folder / "plain" / "part-0.parquet")
    for number in (1, 2):
        (folder / "partitioned" / f"k={number}").mkdir(parents=True)
        pq.write_table(
            rows_of(number).select(["id", "name"]), folder / "partitioned" / f"k={number}" / "part-0.parquet"
        )


def _files_to_load(folder: Path) -> None:
    (folder / "csv").mkdir(parents=True)
    (folder / "csv" / "one.csv").write_text("id,name,d\n10,x,2024-02-01\n11,y,2024-02-01\n")
    (folder / "csv" / "two.csv").write_text("id,name,d\n12,z,2024-02-02\n")
    (folder / "plain_csv").mkdir()
    (folder / "plain_csv" / "a.csv").write_text("20|p|2024-02-01\n21|q|2024-02-02\n")
    (folder / "bad_csv").mkdir()
    (folder / "bad_csv" / "a.csv").write_text("id,name,d\nmany,x,2024-02-01\n")
    (folder / "json").mkdir()
    (folder / "json" / "a.json").write_text('{"id": 30, "name": "j", "d": "2024-02-03"}\n{"id": 31}\n')
    (folder / "wide").mkdir()
    (folder / "wide" / "a.json").write_text('{"id": 40, "extra": 1.5}\n')
    (folder / "parquet").mkdir()
    pq.write_table(rows_of(4), folder / "parquet" / "a.parquet")


def copy_template(template: Path, folder: Path) -> None:
    """A copy for one statement, with the times of the files."""
    shutil.copytree(template, folder)
