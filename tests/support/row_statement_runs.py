"""Random DELETEs and UPDATEs by Spark and by delta_core on equal tables: the same rows, changes and ids."""

from __future__ import annotations

import random
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import DeltaTable as PeerTable
from deltalake import QueryBuilder

import spark_jobs
from delta_core import DeltaTable, IdentityGenerator, define_column, write_deltalake
from delta_core.schema.types import StructType
from tests.support.rows import canonical_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
TRACKED = {"delta.enableRowTracking": "true"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of table."""

    properties: Mapping[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    is_computed: bool = False
    peer_reads: bool = True


KINDS = {
    "plain": Kind(),
    "partitioned": Kind(partition_by=("p",)),
    "vectors": Kind(properties=VECTORS),
    "partitioned vectors": Kind(properties=VECTORS, partition_by=("p",)),
    "feed": Kind(properties=FEED, partition_by=("p",)),
    "vectors and feed": Kind(properties=VECTORS | FEED),
    "tracked": Kind(properties=TRACKED),
    "everything": Kind(
        properties=VECTORS | FEED | TRACKED | {"delta.columnMapping.mode": "name"}, partition_by=("p",)
    ),
    "by id": Kind(properties={"delta.columnMapping.mode": "id"}, partition_by=("p",)),
    "computed": Kind(is_computed=True),
    "computed vectors": Kind(is_computed=True, properties=VECTORS, partition_by=("p",)),
}

CONDITIONS = (
    None,
    "id % 4 = 1",
    "id < 9",
    "id = 17 AND p = 'a'",
    "p = 'b'",
    "p IS NULL OR p = 'a'",
    "v > 4.5 OR v IS NULL",
    "s.a = 3 OR s.b = '9'",
    "id > 1000",
    "NOT (p = 'a')",
    "id IN (1, 2, 3, 19, 22)",
)
ASSIGNMENTS: tuple[dict[str, str], ...] = (
    {"v": "v + 1"},
    {"p": "'moved'", "v": "NULL"},
    {"s.a": "id * 10", "v": "id"},
    {"p": "NULL"},
    {"id": "id + 100"},
    {"p": "concat(p, 'x')", "s.b": "p"},
)


def make_table(uri: Path, kind: Kind, rng: random.Random) -> None:
    """A table of two or three files a partition; 30 rows."""
    struct = pa.struct([("a", pa.int64()), ("b", pa.string())])
    columns = [
        define_column("id", pa.int64(), nullable=not kind.is_computed),
        define_column("p", pa.string()),
        define_column("v", pa.float64()),
        define_column("s", struct),
    ]
    if kind.is_computed:
        columns += [
            define_column("twice", pa.int64(), generated_always_as="id * 2"),
            define_column("number", pa.int64(), generated_always_as=IdentityGenerator()),
            define_column("kind", pa.string(), default="'taxi'"),
        ]
    DeltaTable.create(
        uri,
        StructType(tuple(columns)),
        partition_by=list(kind.partition_by),
        configuration=dict(kind.properties),
    )
    if kind.is_computed:
        DeltaTable(uri).alter.add_constraint({"sane": "id >= 0 AND (v IS NULL OR v < 1000)"})
    ids = list(range(30))
    rng.shuffle(ids)
    for start in (0, 10, 20):
        rows = [_row(key) for key in ids[start : start + 10]]
        schema = pa.schema([("id", pa.int64()), ("p", pa.string()), ("v", pa.float64()), ("s", struct)])
        write_deltalake(uri, pa.Table.from_pylist(rows, schema), mode="append")


def _row(key: int) -> dict[str, Any]:
    return {
        "id": key,
        "p": None if key % 7 == 0 else "ab"[key % 2],
        "v": None if key % 11 == 5 else key / 2,
        "s": None if key % 8 == 1 else {"a": key % 5, "b": str(key)},
    }


def check_statements(spark: SparkSession, name: str, seed: str, folder: Path, *, statements: int) -> int:
    """Run statements with both on copies of one table. Returns the number of commits."""
    rng, kind = random.Random(f"{seed}:{name}"), KINDS[name]
    ours, theirs = folder / "spark", folder / "core"
    make_table(ours, kind, rng)
    shutil.copytree(ours, theirs)
    first = DeltaTable(ours).version()
    for number in range(statements):
        where = rng.choice(CONDITIONS)
        if number < statements - 1 and where is None:
            where = "id % 3 = 0"
        assigned = None if rng.random() < 0.45 else rng.choice(ASSIGNMENTS)
        engine_io = rng.choice(("native", "arrow"))
        core = DeltaTable(theirs)
        if assigned is None:
            result = spark_jobs.delete(spark, str(ours), where, engine_io=engine_io)
            counts: Any = core.delete(where)
            changed = "Deleted"
        else:
            result = spark_jobs.update(spark, str(ours), assigned, where, engine_io=engine_io)
            counts = core.update(assigned, where)
            changed = "Updated"
        said = f"{name}, {seed}, {engine_io}: {changed} {assigned} {where}"
        metrics = result.output["metrics"]
        expected = counts.metrics[f"num_{changed.lower()}_rows"]
        assert metrics[f"num{changed}Rows"] == expected, said
        if kind.properties.get("delta.enableDeletionVectors"):
            assert metrics["numCopiedRows"] == 0, said
        else:
            assert metrics["numDeletionVectorsAdded"] == 0, said
        _compare(ours, theirs, kind, said)
    versions = DeltaTable(ours).version() - first
    assert versions == DeltaTable(theirs).version() - first
    return versions


def _compare(ours: Path, theirs: Path, kind: Kind, said: str) -> None:
    found, expected = DeltaTable(ours), DeltaTable(theirs)
    assert canonical_rows(found.to_pyarrow_table()) == canonical_rows(expected.to_pyarrow_table()), said
    assert canonical_rows(by_peer(ours)) == canonical_rows(expected.to_pyarrow_table()), said
    if "delta.enableRowTracking" in kind.properties:
        assert _with_ids(found) == _with_ids(expected), said
    if "delta.enableChangeDataFeed" in kind.properties:
        assert _changes(found) == _changes(expected), said
    names = [set(table.history(1)[0].commit_info.operation_metrics or {}) for table in (found, expected)]
    assert names[0] == names[1], said


def by_peer(uri: Path) -> pa.Table:
    """The rows as deltalake reads them. Its Arrow datasets refuse deletion vectors; its queries read them."""
    table = PeerTable(str(uri))
    columns = ", ".join(f'"{item.name}"' for item in table.schema().fields)
    query = QueryBuilder().register("t", table)
    found = pa.table(query.execute(f"SELECT {columns} FROM t").read_all())
    return found


def _with_ids(table: DeltaTable) -> list[str]:
    return canonical_rows(table.to_pyarrow_table(["id"], row_ids=True))


def _changes(table: DeltaTable) -> list[str]:
    changes = pa.table(table.load_cdf(starting_version=0).read_all())
    return canonical_rows(changes.drop_columns(["_commit_timestamp"]))
