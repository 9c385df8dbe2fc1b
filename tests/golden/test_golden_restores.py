"""Tables of delta-spark's, restored and cloned: the rows stay those that they were."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable as PeerTable
from deltalake import QueryBuilder

from delta_core import DeltaTable, clone_table
from delta_core.errors import DeltaWarning, VersionNotFoundError
from tests.support.soak import drawn

pytestmark = pytest.mark.slow

TABLES = (
    "basic-dv-no-checkpoint",
    "basic-dv-with-checkpoint",
    "basic-with-inserts-overwrite-restore",
    "cdf-column-mapping-id-mode",
    "cdf-table-update-ops",
    "dbr_8_1_generated_columns",
    "dv-partitioned-with-checkpoint",
    "dv-with-columnmapping",
    "log-replay-dv-key-cases",
    "partition_cm-name",
    "spark-shredded-variant-preview-delta-b",
    "spark-variant-checkpoint",
    "table-with-columnmapping-mode-id",
    "table-with-columnmapping-mode-name",
    "table-with-dv-small",
    "time-travel-partition-changes-b",
    "time-travel-schema-changes-b",
    "type-widening",
    "type-widening-nested",
    "v2-checkpoints-json-with-sidecars",
)

_BY_PEER = (
    "basic-dv-with-checkpoint",
    "cdf-column-mapping-id-mode",
    "dv-partitioned-with-checkpoint",
    "table-with-columnmapping-mode-name",
    "table-with-dv-small",
)
"""Those that deltalake reads, too."""


@pytest.fixture(autouse=True)
def damage_is_on_purpose() -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeltaWarning)
        yield


def rows(path: Path, version: int | None = None, roots: Sequence[Path] = ()) -> list[str]:
    table = DeltaTable(path, version=version, allowed_roots=roots).to_pyarrow_table()
    return sorted(str(sorted(row.items())) for row in table.to_pylist())


def by_deltalake(path: Path) -> list[str]:
    found = pa.table(QueryBuilder().register("t", PeerTable(str(path))).execute("SELECT * FROM t").read_all())
    return sorted(str(sorted(row.items())) for row in found.to_pylist())


def own_copy(golden_dir: Path, name: str, tmp_path: Path) -> Path:
    shutil.copytree(golden_dir / name / "table", tmp_path / "t")
    return tmp_path / "t"


def versions(path: Path) -> list[int]:
    found = []
    for version in range(DeltaTable(path).version() + 1):
        try:
            DeltaTable(path, version=version)
        except VersionNotFoundError:
            continue
        found.append(version)
    return found


@pytest.mark.parametrize("name", drawn(TABLES, usual=10))
def test_every_version_can_be_restored(golden_dir: Path, tmp_path: Path, name: str) -> None:
    path = own_copy(golden_dir, name, tmp_path)
    last = DeltaTable(path).version()
    present = DeltaTable(path).protocol()
    # The newest comes last, so that the table is left and come back to.
    *older, newest = versions(path)
    for version in (*drawn(older, usual=4), newest):
        DeltaTable(path).restore(version)
        assert rows(path) == rows(path, version=version)
        assert DeltaTable(path).schema() == DeltaTable(path, version=version).schema()
        assert DeltaTable(path).protocol() == present
    if name in _BY_PEER:
        assert by_deltalake(path) == by_deltalake_at(path, last)


def by_deltalake_at(path: Path, version: int) -> list[str]:
    query = QueryBuilder().register("t", PeerTable(str(path), version=version))
    found = pa.table(query.execute("SELECT * FROM t").read_all())
    return sorted(str(sorted(row.items())) for row in found.to_pylist())


@pytest.mark.parametrize("name", drawn(TABLES, usual=10))
def test_it_can_be_cloned(golden_dir: Path, tmp_path: Path, name: str) -> None:
    path = own_copy(golden_dir, name, tmp_path)
    expected = rows(path)
    peers = by_deltalake(path) if name in _BY_PEER else None
    clone_table(path, tmp_path / "shallow", shallow=True)
    assert rows(tmp_path / "shallow", roots=[path]) == expected
    clone_table(path, tmp_path / "deep")
    path.rename(tmp_path / "away")
    assert rows(tmp_path / "deep") == expected
    if peers is not None:
        assert by_deltalake(tmp_path / "deep") == peers
