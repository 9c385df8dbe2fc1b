"""Checkpoints that can be opened and must not be believed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core.actions import SetTransaction
from delta_core.checkpoint.classic import write_checkpoint
from delta_core.errors import CorruptLogError, DeltaWarning
from delta_core.log.checkpoint_part import CheckpointPart
from delta_core.snapshot.snapshot import Snapshot
from tests.support.log_builder import LogBuilder, add, remove
from tests.unit.parquet.test_footer import column, parsed, with_footer

NAME = "00000000000000000003.checkpoint.parquet"


@pytest.fixture
def log(tmp_path: Path) -> LogBuilder:
    made = LogBuilder(tmp_path).create().appends(2)
    made.commit(add("file-3"), SetTransaction(app_id="app", version=1))
    write_checkpoint(Snapshot.load(made.store))
    return made


def rewrite(log: LogBuilder, change: Callable[[pa.Table], pa.Table]) -> None:
    path = log.log / NAME
    pq.write_table(change(pq.read_table(path)), path, store_schema=False)


def with_child(table: pa.Table, kind: str, name: str, values: pa.Array) -> pa.Table:
    index = table.schema.get_field_index(kind)
    struct = table.column(index).combine_chunks()
    names = [struct.type.field(at).name for at in range(struct.type.num_fields)]
    children = [values if one == name else struct.field(at) for at, one in enumerate(names)]
    made = pa.StructArray.from_arrays(children, names, mask=pa.compute.is_null(struct))
    return table.set_column(index, kind, made)


def refused(log: LogBuilder, read: Callable[[Snapshot], Any]) -> str:
    """The error where there is no way around the checkpoint; with the commits the answer is the right one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeltaWarning)
        assert Snapshot.load(log.store).files.num_files == 3
        log.remove_commits([0, 1, 2])
        with pytest.raises(CorruptLogError) as error:
            read(Snapshot.load(log.store))
    assert NAME in str(error.value)
    return error.value.cause


def test_a_file_twice(log: LogBuilder) -> None:
    rewrite(log, lambda table: pa.concat_tables([table, table.slice(table.num_rows - 1)]))
    assert "twice" in refused(log, lambda snapshot: snapshot.files)


@pytest.mark.parametrize("values", [[True] * 6, [[1]] * 6, [{"x": "1"}] * 6, ["x"] * 6])
def test_partition_values_that_are_no_map(log: LogBuilder, values: list[Any]) -> None:
    rewrite(log, lambda table: with_child(table, "add", "partitionValues", pa.array(values)))
    refused(log, lambda snapshot: snapshot.files)


@pytest.mark.parametrize("leaf", ["path", "size"])
def test_a_file_of_which_a_part_is_missing(log: LogBuilder, leaf: str) -> None:
    def change(table: pa.Table) -> pa.Table:
        values = (
            table.column("add").combine_chunks().field(table.schema.field("add").type.get_field_index(leaf))
        )
        return with_child(table, "add", leaf, pa.array([*values.to_pylist()[:-1], None], values.type))

    rewrite(log, change)
    refused(log, lambda snapshot: snapshot.files)


def test_metadata_without_its_key(log: LogBuilder) -> None:
    rewrite(log, lambda table: with_child(table, "metaData", "id", pa.nulls(table.num_rows, pa.string())))
    assert "metaData" in refused(log, lambda snapshot: snapshot)


def test_transactions_without_their_application(log: LogBuilder) -> None:
    """Passed over, they would be applied twice."""
    rewrite(log, lambda table: with_child(table, "txn", "appId", pa.nulls(table.num_rows, pa.string())))
    assert "'txn' actions" in refused(log, lambda snapshot: snapshot.transactions)


@pytest.mark.parametrize("kind", ["txn", "domainMetadata", "add"])
def test_actions_in_a_column_that_has_no_fields(log: LogBuilder, kind: str) -> None:
    """Passed over they would be lost: transactions applied twice, files not read."""

    def change(table: pa.Table) -> pa.Table:
        index = table.schema.get_field_index(kind)
        return table.set_column(index, kind, pa.array([1.5] * table.num_rows))

    rewrite(log, change)
    read = {
        "txn": lambda snapshot: snapshot.transactions,
        "domainMetadata": lambda snapshot: snapshot.domain_metadata,
        "add": lambda snapshot: snapshot.files,
    }[kind]
    assert f"{kind!r} actions without" in refused(log, read)


@pytest.mark.parametrize("values", [["delta.x"], [["a", "b"]], "x"])
def test_table_properties_that_are_no_map(log: LogBuilder, values: Any) -> None:
    def change(table: pa.Table) -> pa.Table:
        return with_child(table, "metaData", "configuration", pa.array([values] * table.num_rows))

    rewrite(log, change)
    assert "configuration is" in refused(log, lambda snapshot: snapshot)


@pytest.mark.parametrize("name", ["size", "modificationTime"])
def test_a_time_in_place_of_a_number(log: LogBuilder, name: str) -> None:
    def change(table: pa.Table) -> pa.Table:
        times = pa.array(range(table.num_rows), pa.timestamp("us"))
        return with_child(table, "add", name, times)

    rewrite(log, change)
    cause = refused(log, lambda snapshot: snapshot.files.to_table())
    assert cause.endswith("expected int64, found timestamp[us].")


def test_a_file_that_is_removed_and_live_at_once(log: LogBuilder) -> None:
    """Its readers go on reading it, so it is no tombstone: VACUUM must not count it as one."""
    log.commit(remove("file-1", deletion_timestamp_ms=log.clock.now_ms()))
    write_checkpoint(Snapshot.load(log.store, clock=log.clock))
    path = log.log / NAME.replace("3", "4")

    def strings(table: pa.Table, kind: str) -> list[str | None]:
        return [None if row is None else row["path"] for row in table.column(kind).to_pylist()]

    table = pq.read_table(path)
    live = next(text for text in strings(table, "add") if text is not None)
    paths = [None if text is None else live for text in strings(table, "remove")]
    pq.write_table(with_child(table, "remove", "path", pa.array(paths)), path, store_schema=False)
    log.remove_commits(range(5))
    snapshot = Snapshot.load(log.store, clock=log.clock)
    assert live in snapshot.files.to_table(["path"]).column("path").to_pylist()
    assert paths.count(live) == 1
    assert snapshot.tombstones(since_ms=0).num_rows == 0
    gone = pa.array([None if text is None else "gone" for text in paths])
    beside = with_child(table, "remove", "path", gone).filter(pa.compute.is_valid(gone))
    table = with_child(table, "remove", "path", pa.array(paths))
    pq.write_table(pa.concat_tables([table, beside]), path, store_schema=False)
    snapshot = Snapshot.load(log.store, clock=log.clock)
    assert snapshot.tombstones(since_ms=0).column("path").to_pylist() == ["gone"]


def test_tombstones_without_their_path(log: LogBuilder) -> None:
    log.commit(remove("file-1"))
    write_checkpoint(Snapshot.load(log.store, clock=log.clock))
    (log.log / NAME).unlink()
    (log.log / NAME.replace("3", "4")).rename(log.log / NAME)
    rewrite(log, lambda table: with_child(table, "remove", "path", pa.nulls(table.num_rows, pa.string())))
    log.remove_commits([0, 1, 2, 4])
    with pytest.raises(CorruptLogError, match="'remove' actions"):
        Snapshot.load(log.store).tombstones(since_ms=0)


def test_a_column_that_ends_early(log: LogBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    read = CheckpointPart.read

    def shorter(part: CheckpointPart, group: int, kind: str, columns: Sequence[str]) -> list[pa.StructArray]:
        runs = read(part, group, kind, columns)
        return runs if "path" in columns else [rows.slice(1) for rows in runs]

    monkeypatch.setattr(CheckpointPart, "read", shorter)
    files = Snapshot.load(log.store).files
    with pytest.raises(CorruptLogError, match=r"The column add\.stats does not have \d+ rows"):
        files.to_table(["stats"])


def test_rules_of_a_damaged_checkpoint_and_files_of_the_log_do_not_mix(log: LogBuilder) -> None:
    def change(table: pa.Table) -> pa.Table:
        doubled = pa.concat_tables([table, table.slice(table.num_rows - 1)])
        ids = pa.array([None if one is None else "another" for one in doubled["metaData"].to_pylist()])
        return with_child(doubled, "metaData", "id", ids)

    rewrite(log, change)
    snapshot = Snapshot.load(log.store)
    assert snapshot.metadata.id == "another"
    with pytest.raises(CorruptLogError, match="twice"), pytest.warns(DeltaWarning, match="twice"):
        snapshot.files  # noqa: B018 - the property is what raises


def test_text_that_is_none(log: LogBuilder) -> None:
    def change(table: pa.Table) -> pa.Table:
        values = pa.array([b"\xff\xfe"] * table.num_rows, pa.binary())
        return with_child(table, "metaData", "id", pa.Array.from_buffers(
            pa.string(), len(values), values.buffers()
        ))  # fmt: skip

    rewrite(log, change)
    assert "metaData" in refused(log, lambda snapshot: snapshot)


def test_a_histogram_that_ends_the_process(log: LogBuilder) -> None:
    path = log.log / NAME
    data = path.read_bytes()
    fields = parsed(data)
    for index in range(len(fields[4][0][1])):
        column(fields, index)[16] = {3: [1] * 9}
    path.write_bytes(with_footer(data, fields).read())
    assert "histogram" in refused(log, lambda snapshot: snapshot)


def test_fifteen_million_rows_in_a_small_file(log: LogBuilder) -> None:
    path = log.log / NAME
    add = pa.struct([("path", pa.string()), ("size", pa.int64())])
    pq.write_table(pa.table({"add": pa.nulls(15_000_000, add)}), path, compression="zstd")
    assert path.stat().st_size < 600_000
    assert "15000000 rows" in refused(log, lambda snapshot: snapshot)
