"""Row ids that our commits give out: delta-spark counts on from them, and we from its."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import write_deltalake
from delta_core.actions import Metadata, Protocol
from delta_core.data.row_files import write_data_files
from delta_core.maintenance.clone import clone_table
from delta_core.schema.arrow import from_arrow
from delta_core.schema.json import schema_to_json
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from delta_core.table import DeltaTable
from delta_core.transaction.commit_result import raise_for_result
from delta_core.transaction.row_ids import DOMAIN, watermark_of
from delta_core.transaction.transaction import Transaction
from tests.support.delta_spark import by_delta_spark

pytestmark = [pytest.mark.extra, pytest.mark.spark]

ENABLED = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": "_row-id-col",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col",
}


def append(store: LocalLogStore, ids: Sequence[int]) -> None:
    data = pa.table({"id": pa.array(ids, pa.int64())})
    adds = write_data_files(store, data, schema=from_arrow(data.schema), partition_columns=())
    transaction = Transaction.begin(Snapshot.load(store), operation="WRITE")
    raise_for_result(transaction.add(*adds).commit())


def ids(root: Path) -> dict[int, tuple[int, int]]:
    """Each row's id and commit version."""
    found = DeltaTable(root).to_pyarrow_table(row_ids=True).to_pydict()
    return {
        number: (row_id, version)
        for number, row_id, version in zip(
            found["id"], found["_row_id"], found["_row_commit_version"], strict=True
        )
    }


def _rows(*numbers: int) -> pa.Table:
    return pa.table({"id": pa.array(numbers, pa.int64()), "p": [f"p{n % 2}" for n in numbers]})


def test_delta_spark_reads_the_ids_that_our_statements_keep(tmp_path: Path) -> None:
    """Created, appended to, replaced, deleted from, compacted, cloned and altered by us."""
    tables = []
    for name, more in (
        ("rewriting", {}),
        ("vectors", {"delta.enableDeletionVectors": "true"}),
        ("mapped", {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}),
    ):
        root = tmp_path / name
        write_deltalake(root, _rows(*range(20)), configuration={"delta.enableRowTracking": "true", **more})
        write_deltalake(root, _rows(*range(20, 40)), mode="append", max_rows_per_file=7)
        first = ids(root)
        DeltaTable(root).delete("id % 5 = 0")
        write_deltalake(root, _rows(3, 7), mode="overwrite", predicate="id >= 3 AND id < 9 AND p = 'p1'")
        DeltaTable(root).optimize.compact()
        DeltaTable(root).delete("id = 21")
        assert {n: ids(root)[n] for n in ids(root) if n not in (3, 7)} == {
            n: known for n, known in first.items() if n % 5 and n != 21 and n not in (3, 7)
        }
        clone_table(root, tmp_path / f"{name}-clone")
        tables += [root, tmp_path / f"{name}-clone"]
    altered = tmp_path / "altered"
    write_deltalake(altered, _rows(1, 2, 3))
    DeltaTable(altered).alter.set_properties({"delta.enableRowTracking": "true"})
    write_deltalake(altered, _rows(4), mode="append")
    DeltaTable(altered).delete("id = 2")
    tables.append(altered)
    out = tmp_path / "out.json"
    by_delta_spark("row_ids", str(out), "id", *map(str, tables))
    answers = json.loads(out.read_text())
    for root in tables:
        ours = [[number, *known] for number, known in sorted(ids(root).items())]
        assert answers[str(root)] == ours, root.name
        assert len({row_id for _, row_id, _ in ours}) == len(ours)
        found = DeltaTable(root).snapshot.domain(DOMAIN)
        assert found is not None
        assert watermark_of(found) >= max(row_id for _, row_id, _ in ours)


def test_delta_spark_counts_on_from_our_watermark(tmp_path: Path) -> None:
    root = tmp_path / "t"
    store = LocalLogStore(root)
    schema = from_arrow(pa.schema([("id", pa.int64())]))
    features = frozenset({"rowTracking", "domainMetadata"})
    protocol = Protocol(min_reader_version=1, min_writer_version=7, writer_features=features)
    metadata = Metadata(id="tracked", schema_string=schema_to_json(schema), configuration=ENABLED)
    raise_for_result(Transaction.create(store).add(protocol, metadata).commit())
    append(store, [1, 2, 3])
    append(store, [4, 5])
    assert ids(root) == {1: (0, 1), 2: (1, 1), 3: (2, 1), 4: (3, 2), 5: (4, 2)}
    by_delta_spark(
        "statements",
        str(root),
        str(tmp_path / "out.json"),
        "INSERT INTO {t} SELECT /*+ COALESCE(1) */ id FROM range(100, 104)",
        "UPDATE {t} SET id = 40 WHERE id = 4",
    )
    between = ids(root)
    assert between[5] == (4, 2)  # copied by delta-spark, which kept what we gave
    assert between[40] == (3, 4)
    found = Snapshot.load(store).domain(DOMAIN)
    assert found is not None
    watermark = watermark_of(found)
    append(store, [200, 201])
    after = ids(root)
    assert {number: after[number] for number in between} == between
    assert after[200] == (watermark + 1, 5)
    assert len({row_id for row_id, _ in after.values()}) == len(after) == 11
