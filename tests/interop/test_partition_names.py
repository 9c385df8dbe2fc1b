"""Peers find, and let go of, the files of partitions with any name.

delta-spark's VACUUM and deltalake's replay compare the texts of paths, each with a spelling of its own.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

import deltalake
import duckdb
import duckdb_extension_delta
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, convert_to_deltalake, write_deltalake
from delta_core.maintenance.clone import clone_table
from tests.support.delta_spark import by_delta_spark
from tests.support.soak import drawn

COLUMN = "größe"
ASCII = [chr(code) for code in range(1, 0x80)]
OTHERS = [
    *(
        "ü ß",
        "日本",
        "a\u00a0b",
        "\x85",
        "\u2028",
        "😀",
        "u\u0308",
        "é:x/y",
        "50% off",
        "%C3%BC",
        "+%2B",
        "it's",
    ),
    *("日" * 25, "..", ".hidden", "_hidden"),
]
STRINGS = [*ASCII, *OTHERS]
SOME_STRINGS = [
    *(text for text in ASCII if text.isprintable() and not text.isalnum()),
    *drawn((text for text in ASCII if not text.isprintable()), usual=4),
    *drawn((text for text in ASCII if text.isalnum()), usual=3),
    *OTHERS,
]
"""Every character that some writer escapes, and some of each class whose characters are all alike."""
BEYOND_ASCII = [text for text in STRINGS if not text.isascii()]

Rows = set[tuple[int, str]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of ours, two files in each partition, as if written eight days ago."""
    return written(tmp_path_factory.mktemp("names") / "table", STRINGS)


def written(root: Path, strings: Sequence[str]) -> Path:
    for first in (0, 1000):
        rows = pa.table({"id": range(first, first + len(strings)), COLUMN: strings})
        write_deltalake(root, rows, mode="append", partition_by=[COLUMN])
    return aged(root)


def deleted(strings: Sequence[str]) -> range:
    """Rows of every third partition."""
    return range(0, len(strings), 3)


def kept(strings: Sequence[str]) -> Rows:
    gone = deleted(strings)
    return {(i + more, text) for i, text in enumerate(strings) if i not in gone for more in (0, 1000)}


def aged(root: Path) -> Path:
    """VACUUM leaves alone what is younger than a week."""
    eight_days_ago = time.time() - 8 * 86_400
    for file in root.rglob("*.parquet"):
        os.utime(file, (eight_days_ago, eight_days_ago))
    return root


def rows_of(found: pa.Table) -> Rows:
    rows = list(zip(found["id"].to_pylist(), found[COLUMN].to_pylist(), strict=True))
    assert len(rows) == len(set(rows))
    return set(rows)


def by_us(root: Path) -> Rows:
    return rows_of(DeltaTable(root).to_pyarrow_table())


def by_deltalake(root: Path) -> Rows:
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(str(root)))
    return rows_of(pa.table(query.execute(f'SELECT id, "{COLUMN}" FROM t').read_all()))


def by_duckdb(root: Path) -> Rows:
    (extension,) = Path(duckdb_extension_delta.__file__).parent.rglob("delta.duckdb_extension")
    with duckdb.connect() as connection:
        connection.load_extension(str(extension))
        scan = f'SELECT id, "{COLUMN}" FROM delta_scan(?)'
        return rows_of(connection.execute(scan, [str(root)]).to_arrow_table())


def vacuumed_by_delta_spark(root: Path, tmp_path: Path, *then: str) -> None:
    by_delta_spark("statements", str(root), str(tmp_path / "said.json"), "VACUUM {t} RETAIN 168 HOURS", *then)


def test_every_reader_finds_the_rows(made: Path) -> None:
    expected = {(i + more, text) for i, text in enumerate(STRINGS) for more in (0, 1000)}
    assert by_us(made) == expected
    assert by_deltalake(made) == expected
    assert by_duckdb(made) == expected


def test_every_reader_finds_a_partition_whose_name_no_file_system_takes(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2, 3], COLUMN: ["x" * 300, "日" * 80, "日" * 200]})
    write_deltalake(tmp_path, rows, partition_by=[COLUMN])
    assert by_us(tmp_path) == by_deltalake(tmp_path) == by_duckdb(tmp_path) == rows_of(rows)


def test_deltalake_deletes_compacts_and_vacuums(made: Path, tmp_path: Path) -> None:
    root = shutil.copytree(made, tmp_path / "table")
    table = deltalake.DeltaTable(str(root))
    gone = ", ".join(str(i + more) for i in deleted(STRINGS) for more in (0, 1000))
    expected = kept(STRINGS)
    assert table.delete(f"id in ({gone})")["num_deleted_rows"] == 2 * len(deleted(STRINGS))
    assert by_us(root) == by_deltalake(root) == by_duckdb(root) == expected
    assert table.optimize.compact()["numFilesRemoved"] == len(expected)
    assert by_us(root) == expected
    table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    assert len(list(root.rglob("*.parquet"))) == len(expected) // 2
    assert by_us(root) == by_deltalake(root) == by_duckdb(root) == expected


@pytest.mark.parametrize("rewrites", ["delete", "compact"])
def test_our_checkpoint_mends_what_deltalake_rewrites_in_names_that_were_there(
    tmp_path: Path, rewrites: str
) -> None:
    """It removes a path of another text than was added, and finds both files from then on."""
    directory = tmp_path / f"{COLUMN}=ü"
    directory.mkdir()
    for i in (0, 2):
        pq.write_table(pa.table({"id": [i, i + 1]}), directory / f"{i}.parquet")
    convert_to_deltalake(tmp_path, partition_by=pa.schema({COLUMN: pa.string()}))
    table = deltalake.DeltaTable(str(tmp_path))
    if rewrites == "delete":
        table.delete("id in (0, 2)")
    else:
        table.optimize.compact()
    expected = {(i, "ü") for i in ((1, 3) if rewrites == "delete" else range(4))}
    assert by_us(tmp_path) == expected
    DeltaTable(tmp_path).create_checkpoint()
    DeltaTable(tmp_path).vacuum(retention_hours=0, dry_run=False, enforce_retention=False, force=True)
    assert by_us(tmp_path) == by_deltalake(tmp_path) == by_duckdb(tmp_path) == expected


@pytest.mark.extra
@pytest.mark.spark
@pytest.mark.soak
def test_delta_spark_vacuums_no_live_file_and_goes_on(tmp_path: Path) -> None:
    root = written(tmp_path / "table", SOME_STRINGS)
    live = set(root.rglob("*.parquet"))
    assert len(live) == 2 * len(SOME_STRINGS)
    (root / "orphan.parquet").write_bytes(b"")
    aged(root)
    gone = ", ".join(str(i + more) for i in deleted(SOME_STRINGS) for more in (0, 1000))
    vacuumed_by_delta_spark(root, tmp_path, f"DELETE FROM {{t}} WHERE id IN ({gone})", "OPTIMIZE {t}")
    assert not (root / "orphan.parquet").exists()
    # Its DELETE and OPTIMIZE came after, and the retention keeps what they removed.
    assert live <= set(root.rglob("*.parquet"))
    assert by_us(root) == by_duckdb(root) == kept(SOME_STRINGS)


@pytest.mark.extra
@pytest.mark.spark
@pytest.mark.soak
def test_delta_spark_vacuums_no_live_file_of_what_we_convert(tmp_path: Path) -> None:
    """The names are there already; the log spells them as Hadoop does."""
    root = tmp_path / "table"
    for i, text in enumerate(BEYOND_ASCII):
        directory = root / f"{COLUMN}={text.replace(':', '%3A').replace('/', '%2F')}"
        directory.mkdir(parents=True)
        pq.write_table(pa.table({"id": [i]}), directory / "part.parquet")
    convert_to_deltalake(root, partition_by=pa.schema({COLUMN: pa.string()}))
    aged(root)
    vacuumed_by_delta_spark(root, tmp_path)
    assert by_us(root) == by_deltalake(root) == by_duckdb(root) == set(enumerate(BEYOND_ASCII))


@pytest.mark.extra
@pytest.mark.spark
def test_delta_spark_vacuums_no_live_file_of_a_copy(tmp_path: Path) -> None:
    """A deep clone of a table whose log, deltalake's, spells names its way: the copies get names of ours."""
    rows = pa.table({"id": range(len(BEYOND_ASCII)), COLUMN: BEYOND_ASCII})
    deltalake.write_deltalake(str(tmp_path / "source"), rows, partition_by=[COLUMN])
    root = tmp_path / "table"
    clone_table(tmp_path / "source", root)
    aged(root)
    vacuumed_by_delta_spark(root, tmp_path)
    assert by_us(root) == by_deltalake(root) == by_duckdb(root) == set(enumerate(BEYOND_ASCII))
