"""Rows of a checkpoint wherever they are in their file, and however Arrow cuts them into batches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core.actions import DomainMetadata, SetTransaction
from delta_core.checkpoint.classic import write_checkpoint
from delta_core.errors import CorruptLogError
from delta_core.log import checkpoint_part
from delta_core.log.checkpoint_part import BATCH_ROWS, CheckpointPart
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.local import LocalLogStore
from tests.support.log_builder import LogBuilder, add, metadata, protocol

NAME = f"{3:020d}.checkpoint.parquet"


@pytest.fixture
def log(tmp_path: Path) -> LogBuilder:
    made = LogBuilder(tmp_path).create(SetTransaction(app_id="a", version=5)).appends(2)
    made.commit(
        add("file-3"), SetTransaction(app_id="b", version=6), DomainMetadata(domain="d", configuration="c")
    )
    write_checkpoint(Snapshot.load(made.store))
    return made


def test_actions_far_down_in_a_row_group_are_found(log: LogBuilder) -> None:
    """Footers count them; reading stops when so many have been seen, and not before."""
    table = pq.read_table(log.log / NAME)
    nothing = pa.table([pa.nulls(BATCH_ROWS + 5, item.type) for item in table.schema], schema=table.schema)
    spread = pa.concat_tables([table.slice(0, 3), nothing, table.slice(3)])
    pq.write_table(spread, log.log / NAME, row_group_size=len(spread), store_schema=False)
    log.remove_commits([0, 1, 2])
    snapshot = Snapshot.load(log.store)
    assert {name: item.version for name, item in snapshot.transactions.items()} == {"a": 5, "b": 6}
    assert set(snapshot.domain_metadata) == {"d"}
    assert sorted(snapshot.files.to_table(["path"])["path"].to_pylist()) == ["file-1", "file-2", "file-3"]
    assert snapshot.files.total_bytes == 30


@pytest.mark.parametrize("cuts", [(1, 4), (3, 2), (4,), (2, 2, 2)])
def test_batches_that_arrow_ends_early_are_read_again(
    log: LogBuilder, monkeypatch: pytest.MonkeyPatch, cuts: tuple[int, ...]
) -> None:
    """Columns read one by one must come in the same runs."""
    log.appends(5)
    info = log.store.head(f"_delta_log/{NAME}")
    part = CheckpointPart(log.store, info)
    (group,) = part.row_groups_with("add")
    whole = pa.concat_arrays(list(part.stream(group, "add", ["path", "size"])))

    def stream(
        self: CheckpointPart, row_group: int, kind: str, columns: Any, **options: Any
    ) -> Iterator[Any]:
        start = 0
        for length in cuts:
            yield whole.slice(start, length)
            start += length

    monkeypatch.setattr(checkpoint_part, "BATCH_ROWS", 2)
    monkeypatch.setattr(CheckpointPart, "stream", stream)
    found = part.read(group, "add", ["path", "size"])
    lengths = [len(rows) for rows in found]
    assert lengths == [2] * (len(whole) // 2) + [1] * (len(whole) % 2)
    assert pa.concat_arrays(found).equals(whole)


def test_columns_that_are_optional(log: LogBuilder) -> None:
    whole = Snapshot.load(log.store).files.to_table().sort_by("path")
    table = pq.read_table(log.log / NAME)
    index = table.schema.get_field_index("add")
    adds = table.column(index).combine_chunks()
    kept = ["path", "partitionValues", "size", "modificationTime", "dataChange"]
    lean = pa.StructArray.from_arrays(
        [adds.field(name) for name in kept], kept, mask=pa.compute.is_null(adds)
    )
    pq.write_table(table.set_column(index, "add", lean), log.log / NAME, store_schema=False)
    log.remove_commits([0, 1, 2])
    found = Snapshot.load(log.store).files.to_table().sort_by("path")
    assert found.schema == whole.schema
    for name in whole.column_names:
        lost = name not in ("path", "partition_values", "size_bytes", "modification_time_ms")
        expected = [None] * 3 if lost else whole.column(name).to_pylist()
        assert found.column(name).to_pylist() == expected


@pytest.mark.filterwarnings("ignore::delta_core.errors.DeltaWarning")
def test_a_byte_that_changed_on_the_disk_is_noticed(log: LogBuilder) -> None:
    """Our checkpoints carry a checksum of each page, so not even a plausible value passes."""
    path = log.log / NAME
    whole, footer = path.read_bytes(), pq.read_metadata(path)
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    columns = [group.column(at) for group in groups for at in range(group.num_columns)]
    size = next(
        column
        for column in columns
        if column.path_in_schema == "add.size" and column.statistics.null_count < column.num_values
    )
    end = (size.dictionary_page_offset or size.data_page_offset) + size.total_compressed_size
    log.remove_commits([0, 1, 2])
    for place in range(end - 4, end):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(CorruptLogError):
            _ = Snapshot.load(log.store).files.total_bytes


class Remote(LocalLogStore):
    """A request for each read."""

    @property
    def remote(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("kind", "most_bytes", "checked"),
    [(LocalLogStore, 1 << 30, True), (LocalLogStore, 1, True), (Remote, 1 << 30, True), (Remote, 1, False)],
)
@pytest.mark.parametrize("hold", [True, False])
def test_pages_are_looked_at_before_they_are_decoded(
    log: LogBuilder,
    monkeypatch: pytest.MonkeyPatch,
    kind: type[LocalLogStore],
    most_bytes: int,
    checked: bool,
    hold: bool,
) -> None:
    """Once for each leaf that is read; not where each look would be a request."""
    seen: list[Any] = []
    monkeypatch.setattr(checkpoint_part, "_WHOLE_BYTES", most_bytes)
    monkeypatch.setattr(checkpoint_part, "check_pages", lambda source, column: seen.append(column))
    store = kind(log.root)
    part = CheckpointPart(store, store.head(f"_delta_log/{NAME}"), hold=hold)
    group = part.row_groups_with("add")[-1]
    columns = dict(zip(part.leaves, part._footer.groups[group], strict=True))
    for names in (["path", "partitionValues"], ["path", "size"]):
        part.read(group, "add", names)
    leaves = ["path", "partitionValues.key_value.key", "partitionValues.key_value.value", "size"]
    wanted = [columns[f"add.{leaf}"] for leaf in leaves] if checked else []
    assert sorted(map(repr, seen)) == sorted(map(repr, wanted))


def test_options_of_the_format_survive(tmp_path: Path) -> None:
    log = LogBuilder(tmp_path)
    options = {"format_options": {"a": "b"}, "configuration": {"k": "v"}, "description": "d", "name": "n"}
    log.commit(protocol(), metadata(**options))
    before = Snapshot.load(log.store)
    write_checkpoint(before)
    log.appends(1)
    log.remove_commits([0])
    after = Snapshot.load(log.store)
    assert (after.metadata, after.protocol) == (before.metadata, before.protocol)
