"""Tables that delta-spark made and we rewrite: it reads the same rows, ids and changes, and goes on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import duckdb_extension_delta
import pytest

from delta_core import DeltaTable
from delta_core.maintenance.apply_rewrite import apply_rewrite
from delta_core.maintenance.clustering.plan import plan_z_order
from delta_core.maintenance.compaction import plan_compaction
from delta_core.maintenance.purge import plan_purge
from delta_core.run import Run
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from tests.support.delta_spark import by_delta_spark
from tests.support.delta_spark_rewritten import STATEMENTS
from tests.support.preserved_tables import TABLES, AcrossProcesses, build
from tests.support.soak import drawn

REWRITINGS = ("compaction", "Z-order", "purge")


def rewrite(root: Path, how: str) -> None:
    """Rewrite as a task on a worker would."""
    snapshot = Snapshot.load(LocalLogStore(root))
    executor = AcrossProcesses(1)
    if how == "compaction":
        apply_rewrite(snapshot, plan_compaction(snapshot), run=Run(executor=executor))
    elif how == "purge":
        apply_rewrite(snapshot, plan_purge(snapshot), run=Run(executor=executor))
    else:
        apply_rewrite(
            snapshot, plan_z_order(snapshot, ["id"]), run=Run(executor=executor), memory_limit_bytes=1 << 20
        )


def by_spark(what: str, folder: Path, tables: Sequence[str]) -> dict[str, Any]:
    """Have delta-spark do it, and what it says then."""
    by_delta_spark("rewritten", what, str(folder), *tables)
    found: dict[str, Any] = json.loads((folder / f"{what}.json").read_text())
    return found


def rows_of(root: Path) -> list[str]:
    table = DeltaTable(root)
    tracked = table.snapshot.metadata.configuration.get("delta.enableRowTracking") == "true"
    rows = table.to_pyarrow_table(row_ids=tracked).to_pylist()
    return sorted(
        str({name.removeprefix("_row_").removeprefix("_"): row[name] for name in row}) for row in rows
    )


@pytest.mark.extra
@pytest.mark.spark
def test_delta_spark_reads_the_same_and_goes_on(tmp_path: Path) -> None:
    tables = drawn(STATEMENTS, usual=1)
    made = by_spark("make", tmp_path, tables)
    before = {name: rows_of(tmp_path / name) for name in tables}
    rewritten = set()
    for name in tables:
        version = DeltaTable(tmp_path / name).version()
        for how in ("purge", "compaction") if name == "clustered" else REWRITINGS:
            rewrite(tmp_path / name, how)
            assert rows_of(tmp_path / name) == before[name], (name, how)
        if DeltaTable(tmp_path / name).version() > version:
            rewritten.add(name)
    assert rewritten == set(tables)
    assert by_spark("tell", tmp_path, tables) == made
    after = by_spark("go_on", tmp_path, tables)
    for name in tables:
        assert after[name]["rows"] != made[name]["rows"]
        kept = [row for row in before[name] if row in set(rows_of(tmp_path / name))]
        assert len(kept) >= len(before[name]) - 2, (name, "rows that were not touched keep their ids")


@pytest.mark.parametrize("how", REWRITINGS)
@pytest.mark.parametrize("name", ["tracked", "mapped by name", "mapped by id", "materialised"])
def test_duckdb_reads_the_same(tmp_path: Path, name: str, how: str) -> None:
    build(tmp_path, TABLES[name])
    (extension,) = Path(duckdb_extension_delta.__file__).parent.rglob("delta.duckdb_extension")

    def found(root: Path) -> list[Any]:
        with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as connection:
            connection.execute(f"LOAD '{extension}'")
            return connection.execute("SELECT * FROM delta_scan(?) ORDER BY id", [str(root)]).fetchall()

    copy = tmp_path.parent / f"{tmp_path.name}-before"
    shutil.copytree(tmp_path, copy)
    rewrite(tmp_path, how)
    assert found(tmp_path) == found(copy)
    assert len(found(copy)) == DeltaTable(tmp_path).to_pyarrow_table().num_rows
