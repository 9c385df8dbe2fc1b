"""What `benchmarks/soak/peer_versions.py` runs elsewhere: `python peer_programs.py duckdb|polars`.

Imports the wheel, the peer and pyarrow alone; the last line printed is a JSON object of checks.
"""

from __future__ import annotations

import datetime
import decimal
import json
import sys
import tempfile
from itertools import chain
from pathlib import Path

import pyarrow as pa

from delta_core import DeltaTable, write_deltalake

PLACES = ["New York", "a/b", None, "ü=50%"]


def rows(count: int = 20_000) -> pa.Table:
    """Rows of many types, with nulls."""
    start = datetime.datetime(2013, 1, 1, tzinfo=datetime.UTC)
    return pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "place": [PLACES[number % 4] for number in range(count)],
            "day": [start.date() + datetime.timedelta(days=number % 3) for number in range(count)],
            "delay": [None if number % 7 == 0 else number / 4 for number in range(count)],
            "amount": pa.array(
                [decimal.Decimal(number) / 100 for number in range(count)], pa.decimal128(9, 2)
            ),
            "seen": pa.array(
                [start + datetime.timedelta(seconds=number) for number in range(count)],
                pa.timestamp("us", "UTC"),
            ),
            "tags": [["x"] * (number % 3) for number in range(count)],
        }
    )


def ours(uri: str) -> list[int]:
    """A table of four versions: partitioned, appended to, a partition replaced, rows deleted."""
    data = rows()
    write_deltalake(uri, data, mode="append", partition_by=["place", "day"])
    write_deltalake(uri, data.slice(100, 50), mode="append")
    write_deltalake(uri, data.slice(0, 1), mode="overwrite", predicate="place = 'New York'")
    DeltaTable(uri).delete("id >= 15000")
    return list(range(DeltaTable(uri).version() + 1))


def same(one: pa.Table, other: pa.Table) -> bool:
    """Whether both have the same rows, in any order."""
    names = sorted(other.column_names)
    return sorted(map(repr, one.select(names).to_pylist())) == sorted(
        map(repr, other.select(names).to_pylist())
    )


def reader_of(table: DeltaTable) -> pa.RecordBatchReader:
    """The rows as a stream, which is read once."""
    batches = table.to_batches()
    first = next(batches)
    return pa.RecordBatchReader.from_batches(first.schema, chain([first], batches))


def by_duckdb(folder: Path) -> dict[str, object]:
    """Each version over Arrow, and one without partitions by its Parquet files."""
    import duckdb

    uri = str(folder / "t")
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    checks: dict[str, object] = {}
    versions = ours(uri)
    for version in versions:
        table = DeltaTable(uri, version=version)
        connection.register("t", reader_of(table))
        answer = connection.execute("SELECT * FROM t").to_arrow_table()
        assert same(answer, table.to_pyarrow_table()), version
        connection.unregister("t")
    checks["versions_over_arrow"] = len(versions)
    table = DeltaTable(uri)
    connection.register("t", reader_of(table))
    answer = connection.execute("SELECT place, count(*), sum(amount) FROM t GROUP BY ALL").to_arrow_table()
    wanted = table.to_pyarrow_table().group_by("place").aggregate([("id", "count"), ("amount", "sum")])
    assert sorted(map(repr, (tuple(row.values()) for row in answer.to_pylist()))) == sorted(
        repr((row["place"], row["id_count"], row["amount_sum"])) for row in wanted.to_pylist()
    )
    checks["groups_over_arrow"] = answer.num_rows
    plain = str(folder / "plain")
    write_deltalake(plain, rows().slice(0, 5000), mode="append")
    write_deltalake(plain, rows().slice(5000, 5000), mode="append")
    DeltaTable(plain).optimize.compact()
    files = DeltaTable(plain).file_uris()
    answer = connection.execute("SELECT * FROM read_parquet(?)", [files]).to_arrow_table()
    assert same(answer, DeltaTable(plain).to_pyarrow_table())
    checks["rows_by_parquet"] = answer.num_rows
    written = connection.execute("SELECT i AS id, 'p' || i % 3 AS p FROM range(1000) r(i)").to_arrow_table()
    write_deltalake(str(folder / "theirs"), written, mode="append", partition_by=["p"])
    assert same(DeltaTable(str(folder / "theirs")).to_pyarrow_table(), written)
    checks["rows_written_from_duckdb"] = written.num_rows
    return checks


def by_polars(folder: Path) -> dict[str, object]:
    """Each version by `read_delta`; a table of polars by us."""
    import polars as pl

    uri = str(folder / "t")
    versions = ours(uri)
    for version in versions:
        theirs = pl.read_delta(uri, version=version).to_arrow()
        assert same(theirs, DeltaTable(uri, version=version).to_pyarrow_table()), version
    frame = pl.from_arrow(rows())
    assert isinstance(frame, pl.DataFrame)
    frame.write_delta(str(folder / "theirs"), delta_write_options={"partition_by": ["place", "day"]})
    assert same(DeltaTable(str(folder / "theirs")).to_pyarrow_table(), frame.to_arrow())
    return {"versions_read": len(versions), "rows_written": frame.height}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="deltaward-peer-") as scratch:
        print(json.dumps({"duckdb": by_duckdb, "polars": by_polars}[sys.argv[1]](Path(scratch))))
