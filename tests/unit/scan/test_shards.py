"""Readers that share a version: together they see each row once, wherever they opened it from."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import ConfigurationError


@pytest.fixture
def uri(tmp_path: Path) -> str:
    for part in range(7):
        rows = pa.table({"p": [part % 3] * (part + 1), "n": range(10 * part, 11 * part + 1)})
        write_deltalake(str(tmp_path), rows, mode="append", partition_by=["p"])
    return str(tmp_path)


def numbers(uri: str, shard: tuple[int, int], filters: str | None = None) -> list[int]:
    batches = DeltaTable(uri).to_batches(columns=["n"], filters=filters, shard=shard)
    return [n for batch in batches for n in batch["n"].to_pylist()]


@pytest.mark.parametrize("count", [1, 2, 3, 20])
@pytest.mark.parametrize("filters", [None, "p <> 1", "n > 12 AND p < 2"])
def test_every_row_is_in_one_shard(uri: str, count: int, filters: str | None) -> None:
    found = sorted(n for index in range(count) for n in numbers(uri, (index, count), filters))
    assert found == sorted(DeltaTable(uri).to_pyarrow_table(filters=filters)["n"].to_pylist())


def test_files_are_dealt_out_evenly(uri: str) -> None:
    paths = DeltaTable(uri).file_uris()
    per_shard = [len(list(DeltaTable(uri).to_batches(shard=(index, 3)))) for index in range(3)]
    assert len(paths) == 7
    assert sorted(per_shard) == [2, 2, 3]


def test_a_reader_without_statistics_has_the_same_shards(uri: str) -> None:
    """One reader opens the commits, another a checkpoint in which there is nothing to prune by."""
    before = [numbers(uri, (index, 2), "n > 12") for index in range(2)]
    table = DeltaTable(uri)
    table.alter.set_properties({"delta.checkpoint.writeStatsAsJson": "false"})
    table.create_checkpoint()
    folder = Path(uri) / "_delta_log"
    for commit in folder.glob("*.json"):
        commit.unlink()
    assert json.loads((folder / "_last_checkpoint").read_text())["version"] == 7
    assert [sorted(numbers(uri, (index, 2), "n > 12")) for index in range(2)] == [sorted(x) for x in before]


@pytest.mark.parametrize("shard", [(2, 2), (-1, 2), (0, 0)])
def test_a_shard_that_does_not_exist_is_refused(uri: str, shard: tuple[int, int]) -> None:
    with pytest.raises(ConfigurationError, match=r"shard .* is not valid"):
        DeltaTable(uri).to_batches(shard=shard)
