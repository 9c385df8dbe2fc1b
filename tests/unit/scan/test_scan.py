from __future__ import annotations

import datetime as dt

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from delta_core.actions.json_codec import encode_commit
from delta_core.actions.metadata import Metadata
from delta_core.actions.protocol import Protocol
from delta_core.data.row_files import write_data_files
from delta_core.errors import ExpressionError, SchemaError
from delta_core.scan.scan import Scan
from delta_core.schema.arrow import from_arrow
from delta_core.schema.json import schema_to_json
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore

ROWS = 1000
DATA = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "part": [None if i % 10 == 0 else f"p {i % 10}/é" for i in range(ROWS)],
        "day": [dt.date(2013, 1, 1) + dt.timedelta(days=i // 100) for i in range(ROWS)],
        "x": [None if i % 7 == 0 else (float("nan") if i % 11 == 0 else i / 4) for i in range(ROWS)],
        "y": [i / 8 for i in range(ROWS)],
        "s": [f"{'long prefix that is more than thirty-two ' if i % 3 else ''}{i:04d}" for i in range(ROWS)],
    }
)


@pytest.fixture(params=["ours", "deltalake"])
def table_path(request, tmp_path):
    if request.param == "deltalake":
        for start in range(0, ROWS, 250):
            write_deltalake(tmp_path, DATA.slice(start, 250), mode="append", partition_by=["part"])
        return tmp_path
    write_ours(tmp_path, ["part"])
    return tmp_path


def write_ours(path, partition_columns):
    schema = from_arrow(DATA.schema)
    store = LocalLogStore(path)
    adds = []
    for start in range(0, ROWS, 250):
        part = DATA.slice(start, 250)
        adds += write_data_files(store, part, schema=schema, partition_columns=partition_columns)
    metadata = Metadata(
        id="0" * 32, schema_string=schema_to_json(schema), partition_columns=tuple(partition_columns)
    )
    actions = [Protocol(min_reader_version=1, min_writer_version=2), metadata, *adds]
    store.put_if_absent("_delta_log/00000000000000000000.json", encode_commit(actions))


def scan(path, **options):
    return Scan(Snapshot.load(LocalLogStore(path)), **options)


PREDICATES = [
    ("id < 100", "id < 100"),
    ("part = 'p 3/é' and id > 700", "part = 'p 3/é' and id > 700"),
    ("part is null and day >= '2013-01-09'", "part is null and day >= DATE '2013-01-09'"),
    ("x > 200", "x > 200"),
    ("x < 5 or part = 'p 1/é'", "x < 5 or part = 'p 1/é'"),
    (
        "s like 'long prefix that is more than thirty-two 09%'",
        "s like 'long prefix that is more than thirty-two 09%'",
    ),
    ("s in ('0000', '0999')", "s in ('0000', '0999')"),
    ("not (id > 5) and x is not null", "not (id > 5) and x is not null"),
    ("year(day) = 2014", "year(day) = 2014"),
    ("part > 'p 8'", "part > 'p 8'"),
]


@pytest.mark.parametrize(("text", "sql"), PREDICATES, ids=[p[0] for p in PREDICATES])
def test_rows_are_exact_and_files_fewer(table_path, text, sql):
    found = scan(table_path, predicate=text)
    with duckdb.connect() as connection:
        # A table of its own: filters that DuckDB hands to Arrow see NaN differently.
        connection.register("arrow_data", DATA)
        connection.execute("CREATE TABLE data AS SELECT * FROM arrow_data")
        expected = [
            r[0] for r in connection.execute(f"SELECT id FROM data WHERE {sql} ORDER BY id").fetchall()
        ]
    table = found.to_table()
    assert table.schema == DATA.schema
    assert sorted(table.column("id").to_pylist()) == expected
    assert sorted(r for b in found.to_batches() for r in b.column("id").to_pylist()) == expected
    report = found.report
    assert report.files_total == 40
    assert report.files_total >= report.files_after_partitions >= report.files_after_statistics
    assert report.files_after_statistics == found.files().num_rows
    assert report.bytes_selected <= report.bytes_total


def test_whole_table_and_columns(table_path):
    everything = scan(table_path).to_table().sort_by("id")
    assert repr(everything.to_pylist()) == repr(DATA.to_pylist())
    some = scan(table_path, columns=["S", "part"], predicate="id = 13").to_table()
    assert some.to_pylist() == [{"s": DATA.column("s")[13].as_py(), "part": "p 3/é"}]
    count = sum(batch.num_rows for batch in scan(table_path, columns=[]).to_batches())
    assert count == ROWS


def test_pruning_reports(tmp_path):
    write_ours(tmp_path, ["part"])
    by_partition = scan(tmp_path, predicate="part = 'p 3/é'").report
    assert (by_partition.files_after_partitions, by_partition.files_after_statistics) == (4, 4)
    by_both = scan(tmp_path, predicate="part = 'p 3/é' and id < 250").report
    assert (by_both.files_after_partitions, by_both.files_after_statistics) == (4, 1)
    assert by_both.files_skipped == 39
    nothing = scan(tmp_path, predicate="id > 100000")
    assert nothing.report.files_after_statistics == 0
    assert nothing.to_table().schema == DATA.schema


def test_bad_requests(table_path):
    with pytest.raises(ExpressionError, match="nope"):
        scan(table_path, predicate="nope = 1")
    with pytest.raises(ExpressionError, match="Spark SQL"):
        scan(table_path, predicate=[("n", "=", 1)])
    with pytest.raises(SchemaError, match="nope"):
        scan(table_path, columns=["nope"])


def test_peers_read_what_we_write(tmp_path):
    """Statistics with our addition included."""
    write_ours(tmp_path, ["part"])
    assert '\\"nanCount\\":' in (tmp_path / "_delta_log/00000000000000000000.json").read_text()
    peer = DeltaTable(tmp_path)
    assert repr(peer.to_pyarrow_table().sort_by("id").to_pylist()) == repr(DATA.to_pylist())
    filtered = peer.to_pyarrow_table(filters=[("id", "<", 100)])
    assert sorted(filtered.column("id").to_pylist()) == list(range(100))
    adds = pa.table(peer.get_add_actions(flatten=True))
    assert sorted(adds.column("num_records").to_pylist()) == [25] * 40
