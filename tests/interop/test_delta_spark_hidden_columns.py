"""What delta-spark keeps in columns that no schema names: ids of rows, and parts of variants."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from delta_core import DeltaTable
from tests.support.delta_spark import by_delta_spark
from tests.support.delta_spark_writer import ANSWERED, SHREDDING, STRINGS, TRACKED
from tests.support.rows import canonical_rows
from tests.support.soak import SEED, rounds
from tests.support.variant_values import as_json, same_numbers

_RANDOM = random.Random(SEED)
TRACKED_HERE = _RANDOM.sample(sorted(TRACKED), rounds(usual=1, soak=len(TRACKED)))
SHREDDED_HERE = _RANDOM.sample(sorted(SHREDDING), rounds(usual=1, soak=len(SHREDDING)))
"""What the run's seed draws; `make soak-interop` takes all of them."""

pytestmark = [pytest.mark.extra, pytest.mark.spark]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables and their answers; the session is a process of its own, with the jars from its start."""
    out = tmp_path_factory.mktemp("hidden")
    by_delta_spark("writer", str(out), *TRACKED_HERE, *SHREDDED_HERE)
    return out


@pytest.mark.parametrize("name", TRACKED_HERE)
def test_rows_have_the_ids_that_delta_spark_gives_them(written: Path, name: str) -> None:
    for version in ANSWERED:
        expected = pq.read_table(written / f"{name}.{version}.parquet")
        table = DeltaTable(written / name, version=version)
        found = table.to_pyarrow_table(row_ids=True)
        assert canonical_rows(found) == canonical_rows(expected), version
        assert len(set(found["_row_id"].to_pylist())) == found.num_rows > 30
        assert table.to_pyarrow_table().column_names == ["id", "p", "s"]


@pytest.mark.parametrize("name", SHREDDED_HERE)
def test_shredded_variants_are_what_delta_spark_reads(written: Path, name: str) -> None:
    table = DeltaTable(written / name)
    assert {"variantShredding-preview", "variantShredding"} & (table.protocol().reader_features or set())
    expected = {row[0]: row[1:] for row in json.loads((written / f"{name}.json").read_text())}
    rows = table.to_pyarrow_table().to_pylist()
    assert len(rows) == len(expected) == len(STRINGS) + 3
    for row in rows:
        found = [as_json(row["v"]), as_json(row["s"]["v"])]
        assert found == [same_numbers(text) for text in expected[row["id"]]], row["id"]
    in_parts = [pq.read_schema(path).field("v").type for path in (written / name).glob("*.parquet")]
    assert any(kind.get_field_index("typed_value") >= 0 for kind in in_parts if pa.types.is_struct(kind))
