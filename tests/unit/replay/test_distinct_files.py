"""Files that are twice in a checkpoint: found whatever their names, and never where there are none."""

from __future__ import annotations

import random
import uuid
from collections import Counter

import pyarrow as pa
import pytest

from delta_core.actions.arrow_schema import LIVE_FILE_SCHEMA
from delta_core.replay.distinct_files import distinct_files
from delta_core.replay.file_chunk import MemoryChunk


def chunk(paths: list[str], dvs: list[int | None] | None = None) -> MemoryChunk:
    rows = [
        {
            "path": path,
            "size_bytes": 1,
            "modification_time_ms": 1,
            "deletion_vector": None
            if dv is None
            else {
                "storage_type": "u",
                "path_or_inline_dv": "x",
                "offset": dv,
                "size_in_bytes": 1,
                "cardinality": 1,
            },
        }
        for path, dv in zip(paths, dvs or [None] * len(paths), strict=True)
    ]
    return MemoryChunk(pa.RecordBatch.from_pylist(rows, schema=LIVE_FILE_SCHEMA))


def doubled_file(chunks: list[MemoryChunk]) -> str | None:
    return distinct_files(chunks)[1]


NAMES = {
    "uuids": lambda number: (
        f"p={number % 3}/part-{number:05}-{uuid.UUID(int=number * 7919)}-c000.snappy.parquet"
    ),
    "numbers": lambda number: f"p={number % 3}/part-{number}.parquet",
    "equal ends": lambda number: f"{number}/{'x' * 100}",
    "short": lambda number: f"{number}",
}


@pytest.mark.parametrize("kind", NAMES)
def test_it_is_found_in_another_chunk_and_in_the_same(kind: str) -> None:
    paths = [NAMES[kind](number) for number in range(3000)]
    first, second = paths[:1700], paths[1700:]
    assert doubled_file([chunk(first), chunk([]), chunk(second)]) is None
    assert doubled_file([chunk(first), chunk([*second, paths[5]])]) == paths[5]
    assert doubled_file([chunk([*first, paths[9]])]) == paths[9]


@pytest.mark.parametrize("kind", NAMES)
def test_the_numbers_tell_what_is_not_there(kind: str) -> None:
    paths = [NAMES[kind](number) for number in range(3000)]
    numbers, _ = distinct_files([chunk(paths[:1000]), chunk(paths[1000:2000])])
    assert numbers is not None
    for path in (paths[0], paths[999], paths[1000], paths[1999]):
        assert numbers.may_contain_any(pa.array(["other", path]))
    found = [numbers.may_contain_any(pa.array([path])) for path in paths[2000:]]
    assert sum(found) < 10  # may be wrong this way, and costs a look


def test_a_path_is_found_beside_paths_of_any_length() -> None:
    long = "x" * 90
    assert doubled_file([chunk(["a/short"]), chunk([long, "a/short"])]) == "a/short"
    numbers, _ = distinct_files([chunk(["a/short", long])])
    assert numbers is not None
    assert numbers.may_contain_any(pa.array(["a/short"]))


def test_another_deletion_vector_makes_another_logical_file() -> None:
    assert doubled_file([chunk(["a", "a", "a"], [None, 1, 2])]) is None
    assert doubled_file([chunk(["a", "a", "a"], [None, 1, 1])]) == "a"


def test_nothing_has_nothing_twice() -> None:
    assert doubled_file([]) is None
    assert doubled_file([chunk([])]) is None


def test_random_texts_of_every_length(rng: random.Random) -> None:
    for _ in range(300):
        lengths = rng.choices((1, 2, 7, 8, 9, 16, 47, 48, 49, 90), k=rng.randint(1, 12))
        paths = ["".join(rng.choices("ab", k=length)) for length in lengths]
        batch = chunk(["zz", *paths]).batch.slice(1)
        found = doubled_file([MemoryChunk(batch)])
        several = {path for path, count in Counter(paths).items() if count > 1}
        assert (found in several) if several else found is None
