"""Partition values as typed columns: of several columns at once, and wrong in some files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from delta_core.checkpoint.classic import write_checkpoint
from delta_core.errors import CorruptLogError
from delta_core.scan.scan import Scan
from delta_core.snapshot.snapshot import Snapshot
from tests.support.log_builder import LogBuilder, add, metadata, protocol, remove

SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": name, "type": kind, "nullable": True, "metadata": {}}
            for name, kind in (("p", "integer"), ("q", "integer"), ("id", "long"))
        ],
    }
)
PREDICATES = ["p = 1", "p = q", "p = 1 and q = 1", "p + q = 2", "coalesce(p, q) = 1 and p is not null"]


def part(path: str, p: str | None, q: str | None) -> object:
    return add(path, partition_values={"p": p, "q": q}, stats=None)


@pytest.fixture
def log(tmp_path: Path) -> LogBuilder:
    built = LogBuilder(tmp_path / "t")
    built.commit(
        protocol(),
        metadata(schema_string=SCHEMA, partition_columns=("p", "q")),
        part("a", "1", "1"),
        part("b", "2", "1"),
        part("c", None, "1"),
    )
    return built


def files_of(snapshot: Snapshot, predicate: str) -> list[str]:
    return sorted(Scan(snapshot, predicate=predicate).files(["path"]).column("path").to_pylist())


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        *((predicate, ["a"]) for predicate in PREDICATES),
        ("p > q", ["b"]),
        ("p <=> q or p = 2 and q = 1", ["a", "b"]),
        ("p is null and q = 1", ["c"]),
        ("p + q > 2 or id < 0", ["a", "b", "c"]),
    ],
)
def test_predicates_on_several_partition_columns(
    log: LogBuilder, predicate: str, expected: list[str]
) -> None:
    assert files_of(Snapshot.load(log.store), predicate) == expected


@pytest.mark.parametrize("predicate", PREDICATES)
def test_a_wrong_value_is_told_with_its_file_and_column(log: LogBuilder, predicate: str) -> None:
    log.commit(part("bad", "x", "1"))
    with pytest.raises(CorruptLogError) as caught:
        files_of(Snapshot.load(log.store), predicate)
    assert "'x' is not of type integer, for the column p of the data file bad" in caught.value.problem


@pytest.mark.parametrize("predicate", PREDICATES)
@pytest.mark.parametrize("checkpointed", [False, True])
def test_a_wrong_value_of_a_file_that_is_gone_bothers_no_reader(
    log: LogBuilder, predicate: str, checkpointed: bool
) -> None:
    log.commit(part("bad", "x", "1"))
    if checkpointed:
        write_checkpoint(Snapshot.load(log.store))
    reader = Snapshot.load(log.store)
    assert reader.files.num_files == 4
    log.commit(remove("bad", partition_values={"p": "x", "q": "1"}))
    # Whoever had the file among its own answers as whoever opens the table now.
    assert files_of(reader.refresh(), predicate) == files_of(Snapshot.load(log.store), predicate) == ["a"]
