"""Skipping equals brute force: no predicate loses a row to statistics or partition values.

`tests/support/skipping_check.py` draws the pairs; `make soak-skipping` draws ten times as many.
"""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from delta_core.expressions.typing import resolve_predicate
from delta_core.scan.scan import Scan
from delta_core.schema.arrow import to_arrow
from delta_core.schema.column_mapping import MODE_KEY, UNMAPPED
from delta_core.schema.json import schema_to_json
from delta_core.snapshot.snapshot import Snapshot
from tests.support.log_builder import LogBuilder, add, metadata, protocol
from tests.support.reference_predicates import reference
from tests.support.skipping_check import Counts, SkippedTooMuchError, check_pairs, check_table
from tests.support.skipping_predicates import random_predicate
from tests.support.skipping_tables import Table, random_table
from tests.support.soak import SEED, rounds

PARTS = 5
PAIRS = rounds(usual=1_200, soak=50_000)
TABLES_WITH_FILES = rounds(usual=20, soak=400)


@pytest.mark.parametrize("part", range(PARTS))
def test_no_pair_loses_a_row(part):
    counts = check_pairs(f"{SEED}:{part}", PAIRS // PARTS)
    assert counts.pairs == PAIRS // PARTS
    # The property says nothing where nothing is skipped.
    assert counts.pairs_that_skipped > counts.pairs / 2
    assert counts.files_skipped > counts.files_without_match / 2
    assert counts.pairs_with_matches > counts.pairs / 4
    for trait in ("nested", "generated", "widened", "mapped", "deleted", "partitioned"):
        assert counts.pairs_that_skipped_by_trait[trait] > 0, trait


def test_a_bound_that_lies_inside_is_found(monkeypatch):
    # The check itself: with maxima that are a character too short it must fail.
    monkeypatch.setattr(
        "delta_core.scan.statistics.outer_strings", lambda values: pc.utf8_slice_codeunits(values, 0, -1)
    )
    with pytest.raises(SkippedTooMuchError):
        check_pairs("wrong", 1_000)


def test_a_table_is_drawn_again_by_its_seed():
    first, second = Counts(), Counts()
    check_table(f"{SEED}:again", first)
    check_table(f"{SEED}:again", second)
    assert first == second


@pytest.mark.parametrize("number", range(TABLES_WITH_FILES))
def test_a_scan_of_files_gives_the_matching_rows(tmp_path, number):
    rng = random.Random(f"{SEED}:files:{number}")
    table = random_table(rng)
    write(tmp_path, table)
    snapshot = Snapshot.load(LogBuilder(tmp_path).store)
    everything = rows_by_file(table)
    for _ in range(5):
        predicate = random_predicate(rng, table)
        try:
            wanted = [row for row in everything if reference(predicate, row) is True]
        except (ArithmeticError, ValueError):
            continue
        found = Scan(snapshot, predicate=resolve_predicate(predicate, table.schema)).to_table()
        assert in_any_order(found) == in_any_order(pa.Table.from_pylist(wanted, to_arrow(table.schema)))


def rows_by_file(table: Table) -> list[dict[str, object]]:
    return [row for file in table.files for row in file.rows]


def write(path, table: Table) -> None:
    """The table on disk, nothing deleted, with the statistics that it was drawn with."""
    mapped = table.mapping is not UNMAPPED
    actions = []
    for at, file in enumerate(table.files):
        rows = pa.Table.from_pylist(file.rows, to_arrow(table.schema)).drop_columns(table.partition_columns)
        fields = [field for field in table.schema if field.name not in table.partition_columns]
        arrays = [physical(rows.column(field.name).combine_chunks(), field, table) for field in fields]
        names = [table.mapping.physical_name(field) for field in fields]
        pq.write_table(pa.table(arrays, names=names), path / f"file-{at}")
        size = (path / f"file-{at}").stat().st_size
        actions.append(
            add(f"file-{at}", stats=file.stats, partition_values=file.partition_values, size_bytes=size)
        )
    LogBuilder(path).commit(
        protocol(
            min_reader_version=3,
            min_writer_version=7,
            reader_features=frozenset({"columnMapping", "timestampNtz", "typeWidening"}),
            writer_features=frozenset({"columnMapping", "timestampNtz", "typeWidening", "generatedColumns"}),
        ),
        metadata(
            schema_string=schema_to_json(table.schema),
            partition_columns=tuple(table.partition_columns),
            configuration={MODE_KEY: "name"} if mapped else {},
        ),
        *actions,
    )


def physical(array: pa.Array, field, table: Table) -> pa.Array:
    """A column with the names that its fields have in files."""
    if not pa.types.is_struct(array.type):
        return array
    children = [physical(array.field(at), inner, table) for at, inner in enumerate(field.data_type.fields)]
    names = [table.mapping.physical_name(inner) for inner in field.data_type.fields]
    return pa.StructArray.from_arrays(children, names=names, mask=array.is_null())


def in_any_order(rows: pa.Table) -> list[str]:
    return sorted(repr(row) for row in rows.to_pylist())
