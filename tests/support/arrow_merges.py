"""Random merges carried out by `delta_core` in Arrow, against the model and against the deltalake package."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import MergeDuplicateMatchError
from delta_core.merge import MergeResult, TableMerger
from tests.support.merge_model import SCHEMA, Case, Clause, DuplicateMatchError, Row, random_case
from tests.support.rows import canonical_rows

FEATURES: tuple[dict[str, str], ...] = (
    {},
    {"delta.enableDeletionVectors": "true"},
    {"delta.enableChangeDataFeed": "true"},
    {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"},
    {"delta.enableRowTracking": "true", "delta.enableDeletionVectors": "true"},
    {"delta.columnMapping.mode": "name", "delta.enableRowTracking": "true"},
)
"""Table properties under which a merge must have the same result."""


def make_arrow_table(case: Case, uri: Path, configuration: dict[str, str]) -> DeltaTable:
    """The case's target, each list of rows as a commit of its own."""
    made = DeltaTable.create(uri, SCHEMA, partition_by=case.partition_by, configuration=configuration)
    for rows in case.target:
        if rows:
            write_deltalake(made, pa.Table.from_pylist(rows, SCHEMA), mode="append")
    return made


def with_clauses(case: Case, builder: Any) -> Any:
    """The builder of either library with the case's clauses."""

    def arguments(clause: Clause) -> dict[str, Any]:
        return {"predicate": clause.condition.text if clause.condition else None}

    def values(clause: Clause) -> dict[str, str]:
        return {name: value.text for name, value in (clause.values or {}).items()}

    for clause in case.matched:
        match clause.action:
            case "update":
                builder = builder.when_matched_update(values(clause), **arguments(clause))
            case "update_all":
                builder = builder.when_matched_update_all(**arguments(clause))
            case _:
                builder = builder.when_matched_delete(**arguments(clause))
    for clause in case.not_matched:
        if clause.action == "insert":
            builder = builder.when_not_matched_insert(values(clause), **arguments(clause))
        else:
            builder = builder.when_not_matched_insert_all(**arguments(clause))
    for clause in case.not_matched_by_source:
        if clause.action == "update":
            builder = builder.when_not_matched_by_source_update(values(clause), **arguments(clause))
        else:
            builder = builder.when_not_matched_by_source_delete(**arguments(clause))
    return builder


def merged_in_arrow(case: Case, table: DeltaTable, source: Any = None) -> MergeResult:
    """Carry the case out. `source` replaces the case's source as one table."""
    data = pa.Table.from_pylist(case.source, SCHEMA) if source is None else source
    builder = table.merge(data, case.on.text, source_alias="s", target_alias="t")
    assert isinstance(builder, TableMerger)
    result = with_clauses(case, builder).execute()
    assert isinstance(result, MergeResult)
    return result


def check_arrow_against_model(seed: str, folder: Path) -> str:
    """One random case on a table with random features; what came of it."""
    rng = random.Random(seed)
    case = random_case(rng)
    configuration = rng.choice(FEATURES)
    table = make_arrow_table(case, folder / "table", configuration)
    before, version = canonical_rows(table.to_pyarrow_table()), table.version()
    where = f"{seed} {configuration}: {case.sql('t', 's')}"
    source: Any = pa.Table.from_pylist(case.source, SCHEMA)
    if rng.random() < 0.3:
        source = pa.RecordBatchReader.from_batches(SCHEMA, source.to_batches(max_chunksize=2))
    try:
        expected, counts = case.expected()
    except DuplicateMatchError:
        try:
            merged_in_arrow(case, table, source)
        except MergeDuplicateMatchError:
            assert canonical_rows(table.to_pyarrow_table()) == before, where
            assert DeltaTable(folder / "table").version() == version, where
            return "refused"
        raise AssertionError(f"the duplicate match passed: {where}") from None
    result = merged_in_arrow(case, table, source)
    assert canonical_rows(table.to_pyarrow_table()) == rows_as_text(expected), where
    found = {name: result.metrics[f"num_target_rows_{name}"] for name in ("inserted", "updated", "deleted")}
    assert found == counts, where
    if result.version is not None and "delta.enableChangeDataFeed" in configuration:
        changes = table.load_cdf(starting_version=result.version).read_all()
        check_changes(changes, before, rows_as_text(expected), where)
    return "merged" if result.version is not None else "changed nothing"


def check_changes(changes: pa.Table, before: list[str], after: list[str], where: str) -> None:
    """The change feed leads from the rows before to the rows after."""
    kinds = changes.column("_change_type").to_pylist()
    rows = changes.select(SCHEMA.names)
    left = list(before)
    for kind in ("delete", "update_preimage"):
        for row in canonical_rows(rows.filter(pa.array([item == kind for item in kinds]))):
            assert row in left, where
            left.remove(row)
    for kind in ("insert", "update_postimage"):
        left += canonical_rows(rows.filter(pa.array([item == kind for item in kinds])))
    assert sorted(left) == sorted(after), where


def rows_as_text(rows: list[Row]) -> list[str]:
    """Rows in the comparable form of `canonical_rows`."""
    return canonical_rows(pa.Table.from_pylist(rows, SCHEMA))


def deltalake_rows(case: Case, uri: Path) -> list[str] | None:
    """The rows after the case by the deltalake package; None when it refuses the case."""
    for rows in case.target:
        deltalake.write_deltalake(
            str(uri),
            pa.Table.from_pylist(rows, SCHEMA),
            mode="append",
            partition_by=case.partition_by or None,
        )
    table = deltalake.DeltaTable(str(uri))
    builder = table.merge(
        pa.Table.from_pylist(case.source, SCHEMA), case.on.text, source_alias="s", target_alias="t"
    )
    try:
        with_clauses(case, builder).execute()
    except Exception:
        return None
    return canonical_rows(table.to_pyarrow_table())
