"""Delta-spark reads our checkpoints without the commits before them, trusts our checksums, and goes on."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.actions import Action
from delta_core.checkpoint.classic import write_checkpoint
from delta_core.checkpoint.log_compaction import compact_log
from delta_core.checkpoint.v2 import ManifestForm, write_v2_checkpoint
from delta_core.checkpoint.version_checksum import checksum_fields, write_version_checksum
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.open import open_store
from tests.support.delta_spark import by_delta_spark
from tests.support.log_builder import LogBuilder
from tests.support.soak import drawn

STRUCT = {"delta.checkpoint.writeStatsAsStruct": "true"}
STRUCT_ONLY = {**STRUCT, "delta.checkpoint.writeStatsAsJson": "false"}
TABLES = (*drawn(("struct", "struct_only", "v2_parquet", "v2_json", "compacted"), usual=1), "checksum")


@dataclass(frozen=True)
class Peers:
    """The tables' rows before delta-spark had them, and where its answers are."""

    tables: Path
    answers: Path
    before: dict[str, pa.Table]


def _write_table(uri: Path, configuration: dict[str, str]) -> None:
    for number in range(6):
        data = pa.table(
            {
                "id": pa.array([number, None], pa.int64()),
                "p": [f"p {number % 2}", None],
                "at": pa.array(
                    [dt.datetime(2024, 2, 29, number, tzinfo=dt.UTC)] * 2, pa.timestamp("us", "UTC")
                ),
                "m": pa.array([Decimal(number), None], pa.decimal128(12, 2)),
                "inner": [{"x": number / 7}, None],
            }
        )
        write_deltalake(uri, data, mode="append", partition_by=["p"], configuration=configuration)


def _with_v2(uri: Path) -> None:
    """The feature in the protocol, as another engine would put it there."""
    log = LogBuilder(uri)
    snapshot = Snapshot.load(log.store)
    features = frozenset({"v2Checkpoint"})
    actions: list[Action] = [
        replace(
            snapshot.protocol,
            min_reader_version=3,
            min_writer_version=7,
            reader_features=features,
            writer_features=features | {"appendOnly", "invariants"},
        ),
        replace(
            snapshot.metadata,
            configuration={
                **snapshot.metadata.configuration,
                "delta.checkpointPolicy": "v2",
                "delta.checkpointInterval": "2",
            },
        ),
    ]
    log.commit(*actions, version=snapshot.version + 1)


def _without_commits(uri: Path, last: int) -> None:
    # The checkpoint's own stays, as a clean-up leaves it: delta-spark asks for it.
    for version in range(last):
        (uri / "_delta_log" / f"{version:020d}.json").unlink()


@pytest.fixture(scope="module")
def peers(tmp_path_factory: pytest.TempPathFactory) -> Peers:
    """Each table, after delta-spark went on with it."""
    tables, answers = tmp_path_factory.mktemp("tables"), tmp_path_factory.mktemp("answers")
    before = {}
    for name in TABLES:
        uri = tables / name
        _write_table(uri, STRUCT_ONLY if name == "struct_only" else STRUCT if name == "struct" else {})
        if name.startswith("v2"):
            _with_v2(uri)
        snapshot = Snapshot.load(open_store(str(uri)))
        before[name] = _rows(DeltaTable(uri).to_pyarrow_table())
        if name.startswith("struct"):
            write_checkpoint(snapshot)
            _without_commits(uri, snapshot.version)
        elif name == "checksum":
            write_version_checksum(snapshot, txn_id="t")
        elif name == "compacted":
            compact_log(snapshot, first=0, last=4)
        else:
            form = ManifestForm.JSON if name.endswith("json") else ManifestForm.PARQUET
            write_v2_checkpoint(snapshot, form=form, sidecar_actions=5)
            _without_commits(uri, snapshot.version)
    by_delta_spark("continues", str(tables), str(answers))
    return Peers(tables, answers, before)


def _rows(table: pa.Table) -> list[Any]:
    return sorted((tuple(sorted(row.items(), key=str)) for row in table.to_pylist()), key=str)


@pytest.mark.extra
@pytest.mark.spark
@pytest.mark.parametrize("name", TABLES)
def test_it_reads_and_goes_on_and_so_do_we(peers: Peers, name: str) -> None:
    found = pq.read_table(peers.answers / f"{name}.before.parquet")
    ones = [row for row in peers.before[name] if dict(row)["id"] == 1]
    assert _rows(found) == ones
    assert len(ones) == 1
    after = DeltaTable(peers.tables / name)
    after_rows = _rows(after.to_pyarrow_table())
    assert after_rows == _rows(pq.read_table(peers.answers / f"{name}.after.parquet"))
    assert len(after_rows) == len(peers.before[name])
    assert after.snapshot.checksum_discrepancies == ()


@pytest.mark.extra
@pytest.mark.spark
def test_its_checksums_continue_ours(peers: Peers) -> None:
    uri = peers.tables / "checksum"
    for version in (6, 7):
        theirs = json.loads((uri / "_delta_log" / f"{version:020d}.crc").read_bytes())
        ours = checksum_fields(Snapshot.load(open_store(str(uri)), version=version))
        for key in ("numFiles", "tableSizeBytes", "numMetadata", "numProtocol", "metadata", "protocol"):
            assert theirs[key] == ours[key], key
        for key in ("fileSizeHistogram", "setTransactions", "domainMetadata"):
            assert theirs.get(key) in (None, ours[key]), key
        paths = sorted(file["path"] for file in theirs.get("allFiles", ours["allFiles"]))
        assert paths == sorted(file["path"] for file in ours["allFiles"])
