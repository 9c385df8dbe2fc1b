"""The expected effect of the late corrections, calculated from the delivered file with pyarrow only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from demo import raw_data
from demo.checks.evidence import KEYS, Check, Evidence, task_states
from demo.table_reader import same_rows

KEY = KEYS["flights"]
DELETE = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected:
    """A table after the corrections, with the number of rows that each kind of correction affected."""

    rows: pa.Table
    updated: int
    deleted: int
    inserted: int


def corrected(rows: pa.Table, delivered: pa.Table) -> Corrected:
    """Apply the delivered corrections to the rows. Per key, the row with the highest sequence applies."""
    newest: dict[tuple[object, ...], dict[str, object]] = {}
    for row in sorted(delivered.to_pylist(), key=lambda row: row["sequence"]):
        newest[tuple(row[name] for name in KEY)] = row
    final = pa.Table.from_pylist(list(newest.values()), schema=delivered.schema)
    # A delivered file does not specify which columns are nullable.
    rows = rows.cast(pa.schema([field.with_nullable(True) for field in rows.schema]))
    kept = final.filter(pc.not_equal(final["correction"], DELETE))
    keys, kept_keys = (part.select(KEY).cast(_key_schema(rows)) for part in (final, kept))
    untouched = rows.join(keys, KEY, join_type="left anti").select(rows.column_names)
    updated = rows.join(kept_keys, KEY, join_type="left semi").num_rows
    return Corrected(
        rows=pa.concat_tables([untouched, kept.select(rows.column_names).cast(rows.schema)]),
        updated=updated,
        deleted=rows.num_rows - untouched.num_rows - updated,
        inserted=kept.num_rows - updated,
    )


def corrected_year(evidence: Evidence) -> pa.Table:
    """The published months with the corrections applied: the expected rows of flights at the end."""
    return corrected(evidence.raw["flights"], _delivered(evidence)).rows


def corrections(evidence: Evidence) -> Iterator[Check]:
    """Late corrections."""
    run, table = evidence.run("corrections"), evidence.tables["flights"]
    states = {name: task_states(run, name) for name in ("merge", "verify")}
    yield Check(
        name="corrections: the run merged and verified",
        held=run["state"] == "success" and set(map(tuple, states.values())) == {("success",)},
        detail=f"tasks {states}",
    )
    delivered = _delivered(evidence)
    before, version = evidence.version("gated", "flights"), evidence.version("corrected", "flights")
    expected, rows = corrected(table.rows(before), delivered), table.rows(version)
    yield Check(
        name="corrections: the rows are those of an independent model of the delivered file",
        held=same_rows(rows, expected.rows),
        detail=f"{delivered.num_rows:,} corrections, {rows.num_rows:,} rows",
    )
    yield Check(
        name="corrections: afterwards every value is that of the published months",
        held=same_rows(rows, corrected_year(evidence)),
        detail="quarantined rows are back, flights listed twice are removed",
    )
    counted = merge_counts(evidence)
    modelled = {"updated": expected.updated, "deleted": expected.deleted, "inserted": expected.inserted}
    yield Check(
        name="corrections: the metrics in the history are those of the model",
        held=counted == modelled and all(modelled.values()),
        detail=", ".join(f"{count:,} {kind}" for kind, count in modelled.items()),
    )
    months = set(pc.unique(delivered["month"]).to_pylist())
    touched = {
        int(action[kind]["partitionValues"]["month"])
        for action in table.commit(version)
        for kind in ("add", "remove")
        if kind in action
    }
    yield Check(
        name="corrections: only files of the corrected months were rewritten",
        held=version == before + 1 and bool(touched) and touched <= months,
        detail=f"months {sorted(touched)}",
    )


def merge_counts(evidence: Evidence) -> dict[str, int]:
    """The numbers of updated, deleted and inserted rows of the merge, from the history."""
    version = evidence.version("corrected", "flights")
    (entry,) = [entry for entry in evidence.tables["flights"].history() if entry["version"] == version]
    metrics = entry.get("operationMetrics", {})
    kinds = ("updated", "deleted", "inserted")
    return {kind: int(metrics.get(f"numTargetRows{kind.title()}", -1)) for kind in kinds}


def _delivered(evidence: Evidence) -> pa.Table:
    return raw_data.read_delivered(Path(evidence.facts["deliveries"]["corrections"]))


def _key_schema(rows: pa.Table) -> pa.Schema:
    return pa.schema([rows.schema.field(name) for name in KEY])
