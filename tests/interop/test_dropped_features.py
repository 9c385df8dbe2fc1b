"""Tables of delta-spark's that we drop features of: it reads every version as before, and goes on."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_delta
import pytest

from delta_core import DeltaTable
from delta_core.table_features.internal_properties import CHECKPOINT_PROTECTION
from delta_core.table_features.upgrade import supported_features
from tests.support.delta_spark import by_delta_spark
from tests.support.delta_spark_dropped import DROPPED_BY_SPARK, STATEMENTS
from tests.support.preserved_tables import TABLES, build
from tests.support.soak import SEED, rounds


def by_spark(what: str, folder: Path, features: list[str]) -> dict[str, Any]:
    """Have delta-spark do it, and what it says then."""
    by_delta_spark("dropped", what, str(folder), *features)
    found: dict[str, Any] = json.loads((folder / f"{what}.json").read_text())
    return found


def ids(root: Path, version: int) -> list[int]:
    return sorted(DeltaTable(root, version=version).to_pyarrow_table()["id"].to_pylist())


# A minute for one feature; `tests/unit/maintenance` compares each drop with what delta-spark is known to do.
@pytest.mark.soak
@pytest.mark.extra
@pytest.mark.spark
def test_delta_spark_reads_every_version_and_goes_on(tmp_path: Path) -> None:
    # Each takes the best part of a minute, so the sample is one that both drop.
    rng = random.Random(SEED)
    both = rng.choice(DROPPED_BY_SPARK)
    others = rng.sample(
        [name for name in STATEMENTS if name != both], rounds(usual=0, soak=len(STATEMENTS) - 1)
    )
    features = [both, *others]
    made = by_spark("make", tmp_path, features)
    for name, said in made.items():
        for version, expected in said["ids"].items():
            assert ids(tmp_path / name, int(version)) == expected, (name, version)
    dropped = {name: DeltaTable(tmp_path / name).alter.drop_feature(name).version for name in features}
    for name in set(features) & set(DROPPED_BY_SPARK):
        ours, theirs = DeltaTable(tmp_path / name), DeltaTable(tmp_path / f"{name}-by-spark")
        assert supported_features(ours.protocol()) == supported_features(theirs.protocol()), name
        assert ours.protocol().min_reader_version == theirs.protocol().min_reader_version, name
        protection = {CHECKPOINT_PROTECTION: str(dropped[name])}
        protected = CHECKPOINT_PROTECTION in theirs.metadata().configuration
        for key, value in (protection if protected else {}).items():
            assert ours.metadata().configuration[key] == value
    said = by_spark("go_on", tmp_path, features)
    for name, found in said.items():
        before = made[name]["ids"]
        newest = before[str(max(map(int, before)))]
        for version, rows in found["ids"].items():
            assert rows == before.get(version, newest), (name, version)
        assert found["after"] == sorted([*(row for row in newest if row != 5), 1000]), name
        assert name not in found["tableFeatures"]
        latest = DeltaTable(tmp_path / name)
        assert ids(tmp_path / name, latest.version()) == found["after"], name


@pytest.mark.parametrize(
    ("table", "features"),
    [
        ("tracked", ("rowTracking", "deletionVectors", "changeDataFeed")),
        ("mapped by id", ("deletionVectors", "columnMapping")),
        ("materialised", ("materializePartitionColumns",)),
    ],
)
def test_duckdb_reads_the_same(tmp_path: Path, table: str, features: tuple[str, ...]) -> None:
    build(tmp_path, TABLES[table])
    opened = DeltaTable(tmp_path)
    if "the name" in opened.schema().names and "columnMapping" in features:
        opened.alter.rename_column("the name", "name")
    (extension,) = Path(duckdb_extension_delta.__file__).parent.rglob("delta.duckdb_extension")

    def found() -> list[Any]:
        with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as connection:
            connection.execute(f"LOAD '{extension}'")
            query = "SELECT * FROM delta_scan(?) ORDER BY id"
            return connection.execute(query, [str(tmp_path)]).fetchall()

    before = sorted(opened.to_pyarrow_table().to_pylist(), key=lambda row: row["id"])
    for name in features:
        opened.alter.drop_feature(name)
    assert found() == [tuple(row.values()) for row in before]
