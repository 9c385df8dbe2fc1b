"""UPDATE, DELETE and partial overwrites of ours beside delta-spark's: the same rows, and the same changes.

Each table is made by delta-spark and copied; it goes on with the one, we with the other. Then both of us
tell the changes of both.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, write_deltalake
from tests.support.delta_spark import by_delta_spark
from tests.support.soak import SEED, SOAKING

pytestmark = [pytest.mark.extra, pytest.mark.spark]

COLUMNS = "id BIGINT, p STRING, v DOUBLE, s STRUCT<a: BIGINT, b: STRING>"
ROWS = (
    "SELECT id, IF(id % 7 = 0, NULL, IF(id % 2 = 0, 'a', 'b')) AS p, CAST(id AS DOUBLE) / 2 AS v, "
    "IF(id % 8 = 1, NULL, named_struct('a', id, 'b', CAST(id AS STRING))) AS s FROM range(0, 40, 1, 2)"
)
NEW = pa.table(
    {
        "id": pa.array([21, 24], pa.int64()),
        "p": ["a", None],
        "v": [0.5, None],
        "s": [{"a": 1, "b": "new"}, None],
    }
)
NEW_ROWS = (
    "SELECT * FROM VALUES (21L, 'a', 0.5D, named_struct('a', 1L, 'b', 'new')), "
    "(24L, NULL, CAST(NULL AS DOUBLE), NULL) AS n(id, p, v, s)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One statement in both languages."""

    sql: str
    ours: Callable[[DeltaTable], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of table."""

    properties: Mapping[str, str] = field(default_factory=dict)
    is_partitioned: bool = False
    then: Mapping[str, str] = field(default_factory=dict)
    """Properties that the table gets once it has rows."""


KINDS = {
    "plain": Kind(),
    "partitioned": Kind(is_partitioned=True),
    "vectors": Kind(properties={"delta.enableDeletionVectors": "true"}, is_partitioned=True),
    "by name": Kind(properties={"delta.columnMapping.mode": "name"}, is_partitioned=True),
    "by id": Kind(properties={"delta.columnMapping.mode": "id"}),
    "by name since": Kind(is_partitioned=True, then={"delta.columnMapping.mode": "name"}),
}

STATEMENTS = (
    Statement(
        sql="UPDATE {t} SET v = v * 2, s.a = id WHERE id % 4 = 1",
        ours=lambda t: t.update({"v": "v * 2", "s.a": "id"}, "id % 4 = 1"),
    ),
    Statement(sql="DELETE FROM {t} WHERE id % 5 = 2", ours=lambda t: t.delete("id % 5 = 2")),
    Statement(
        sql="UPDATE {t} SET p = 'moved', v = 7 WHERE id < 6 OR p IS NULL",
        ours=lambda t: t.update({"p": "'moved'", "v": "7"}, "id < 6 OR p IS NULL"),
    ),
    Statement(
        sql=f"INSERT INTO {{t}} REPLACE WHERE id BETWEEN 20 AND 25 {NEW_ROWS}",
        ours=lambda t: write_deltalake(t, NEW, mode="overwrite", predicate="id BETWEEN 20 AND 25"),
    ),
    Statement(sql="DELETE FROM {t} WHERE p = 'b'", ours=lambda t: t.delete("p = 'b'")),
    Statement(sql="UPDATE {t} SET id = id", ours=lambda t: t.update({"id": "id"})),
)
DYNAMIC = Statement(
    sql=f"INSERT OVERWRITE {{t}} {NEW_ROWS}",
    ours=lambda t: write_deltalake(t, NEW, mode="overwrite", partition_overwrite_mode="dynamic"),
)


def dealt() -> dict[str, list[Statement]]:
    """A statement for each kind and a kind for each statement; every one for all kinds when soaking."""
    if SOAKING:
        return {
            name: [*STATEMENTS, *([DYNAMIC] if kind.is_partitioned else [])] for name, kind in KINDS.items()
        }
    rng = random.Random(SEED)
    places = rng.sample(range(len(STATEMENTS)), len(STATEMENTS))
    dynamic = rng.choice([name for name, kind in KINDS.items() if kind.is_partitioned])
    return {
        name: [STATEMENTS[place], *([DYNAMIC] if name == dynamic else [])]
        for name, place in zip(KINDS, places, strict=True)
    }


def run_spark(requests: list[dict[str, Any]], folder: Path) -> list[Path]:
    folder.mkdir(exist_ok=True)
    asked = folder / "asked.json"
    asked.write_text(json.dumps(requests))
    by_delta_spark("changes", str(asked), str(folder))
    return [folder / f"{index}.parquet" for index in range(len(requests))]


def strings(properties: Mapping[str, str]) -> str:
    return ", ".join(f"'{key}' = '{text}'" for key, text in properties.items())


def changes_of(table: pa.Table) -> Counter[str]:
    names = ["id", "p", "v", "s", "_change_type", "_commit_version"]
    return Counter(repr([row[name] for name in names]) for row in table.select(names).to_pylist())


def test_delta_spark_comes_to_the_same_rows_and_tells_the_same_changes(tmp_path: Path) -> None:
    made = []
    statements = dealt()
    for name, kind in KINDS.items():
        properties = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "false"}
        listed = strings({**properties, **kind.properties})
        by = "PARTITIONED BY (p)" if kind.is_partitioned else ""
        created = [
            f"CREATE TABLE {{t}} ({COLUMNS}) USING delta {by} TBLPROPERTIES ({listed})",
            f"INSERT INTO {{t}} {ROWS}",
            *([f"ALTER TABLE {{t}} SET TBLPROPERTIES ({strings(kind.then)})"] if kind.then else []),
        ]
        made.append(
            {
                "table": str(tmp_path / name / "theirs"),
                "settings": {"spark.sql.sources.partitionOverwriteMode": "dynamic"},
                "statements": [*created, *(one.sql for one in statements[name])],
                "copy_after": len(created),
                "copy_to": str(tmp_path / name / "ours"),
            }
        )
    run_spark(made, tmp_path / "making")
    asked = []
    for name in KINDS:
        table = DeltaTable(tmp_path / name / "ours")
        for statement in statements[name]:
            statement.ours(table)
        for who in ("ours", "theirs"):
            asked.append({"table": str(tmp_path / name / who), "changes_from": 0})
    told = iter(run_spark(asked, tmp_path / "telling"))
    for name in KINDS:
        ours, theirs = (DeltaTable(tmp_path / name / who) for who in ("ours", "theirs"))
        assert ours.version() == theirs.version()
        for version in range(ours.version() + 1):
            rows = [
                Counter(map(repr, DeltaTable(table.table_uri, version).to_pyarrow_table().to_pylist()))
                for table in (ours, theirs)
            ]
            assert rows[0] == rows[1], (name, version)
        expected = changes_of(theirs.load_cdf().read_all())
        assert changes_of(pq.read_table(next(told))) == expected, f"delta-spark of ours: {name}"
        assert changes_of(pq.read_table(next(told))) == expected, f"delta-spark of its own: {name}"
        assert changes_of(ours.load_cdf().read_all()) == expected, f"ours of ours: {name}"
