"""Deletion vectors of ours, read by deltalake, DuckDB and, with its jars, delta-spark at every version."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import duckdb
import duckdb_extension_delta
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable as PeerTable
from deltalake import QueryBuilder

from delta_core import DeltaTable, write_deltalake
from tests.support.deletion_vector_tables import (
    DeletionVectorTable,
    every_kind_of_deletion_vector,
    random_table,
)
from tests.support.delta_spark import by_delta_spark
from tests.support.soak import rounds

Rows = set[tuple[int, int]]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> DeletionVectorTable:
    made = every_kind_of_deletion_vector(tmp_path_factory.mktemp("vectors"))
    assert {dv.storage_type for dv in made.live_deletion_vectors} == {"u", "i"}
    assert len({len(rows) for rows in made.expected}) == 4
    return made


def rows_of(found: pa.Table) -> Rows:
    """The rows; a row that comes twice is none of the table's."""
    rows = list(zip(found["file"].to_pylist(), found["id"].to_pylist(), strict=True))
    assert len(rows) == len(set(rows))
    return set(rows)


def by_us(root: Path, version: int) -> Rows:
    return rows_of(DeltaTable(root, version=version).to_pyarrow_table())


def by_deltalake(root: Path, version: int) -> Rows:
    # Its Arrow datasets refuse such tables; its queries read them.
    query = QueryBuilder().register("t", PeerTable(str(root), version=version))
    return rows_of(pa.table(query.execute("SELECT file, id FROM t").read_all()))


def by_duckdb(root: Path, version: int) -> Rows:
    (extension,) = Path(duckdb_extension_delta.__file__).parent.rglob("delta.duckdb_extension")
    with duckdb.connect() as connection:
        connection.load_extension(str(extension))
        scan = "SELECT file, id FROM delta_scan(?, version := ?::UBIGINT)"
        return rows_of(connection.execute(scan, [str(root), version]).to_arrow_table())


@pytest.mark.slow
@pytest.mark.parametrize("reader", [by_us, by_deltalake, by_duckdb], ids=lambda reader: reader.__name__)
def test_every_version_has_its_rows(table: DeletionVectorTable, reader: Callable[[Path, int], Rows]) -> None:
    for version, expected in enumerate(table.expected, start=1):
        assert reader(table.root, version) == expected, version


@pytest.mark.slow
def test_random_deletions_are_read_by_deltalake_and_duckdb(tmp_path: Path, rng: random.Random) -> None:
    for number in range(rounds(usual=1, soak=3)):
        made = random_table(tmp_path / str(number), rng)
        for version, expected in enumerate(made.expected, start=1):
            for reader in (by_us, by_deltalake, by_duckdb):
                assert reader(made.root, version) == expected, (number, version, reader.__name__)


@pytest.mark.extra
@pytest.mark.spark
def test_delta_spark_reads_the_same_rows(table: DeletionVectorTable, tmp_path: Path) -> None:
    # The first version has no vectors.
    versions = range(2, len(table.expected) + 1)
    asked = tmp_path / "asked.json"
    asked.write_text(json.dumps([{"uri": str(table.root), "version": version} for version in versions]))
    by_delta_spark("reader", str(asked), str(tmp_path))
    for index, version in enumerate(versions):
        found = rows_of(pq.read_table(tmp_path / f"{index}.parquet"))
        assert found == table.expected[version - 1], version


@pytest.mark.extra
@pytest.mark.spark
def test_delta_spark_vacuums_a_table_whose_rows_we_delete(tmp_path: Path) -> None:
    """Of vectors in the log its vacuum knows nothing and fails, were it only of a file that is gone."""
    root = tmp_path / "table"
    properties = {"delta.enableDeletionVectors": "true"}
    write_deltalake(root, pa.table({"id": range(20), "n": [0] * 20}), configuration=properties)
    table = DeltaTable(root)
    table.delete("id = 3")
    table.delete("id = 4")
    table.update({"n": "1"}, "id = 5")
    by_delta_spark(
        "statements", str(root), str(tmp_path / "said.json"), "VACUUM {t} RETAIN 168 HOURS DRY RUN"
    )
