"""Peers *maintain* a table that we wrote: compaction, purge, MERGE, ALTER, RESTORE, VACUUM; then we go on.

After each step we read the table as the model has it, with the row ids that its rows had. A step that a peer
says that it does not do is recorded in its words, and must have committed nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa

from delta_core import DeltaTable, write_deltalake
from tests.state_machine.features import Way
from tests.state_machine.model import KEY, Condition, State
from tests.state_machine.operations.registry import Draw
from tests.state_machine.values import Column
from tests.support.written_peers import FaultError, RefusalError, reads_on, row_ids_of, unless_refused
from tests.support.written_tables import WrittenTable, drawn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DONE, NO_SENSE = "done", "makes no sense here"
STRING = "by a peer"
NEW_COLUMN = Column(name="of_a_peer", kind="integer")
CONSTRAINT = Condition(text=f"{KEY} IS NOT NULL", holds=lambda row: row[KEY] is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a peer does, and the state that it must leave.

    Attributes:
        expected: the state after it; None where the table's state lets it make no sense.
        restores: whether it takes the table back to the version before.
    """

    name: str
    run: Callable[[Path, State], object]
    expected: Callable[[State], State | None] = lambda state: state
    restores: bool = False


def steps_of_delta_spark(spark: SparkSession) -> tuple[Step, ...]:
    """In the order in which they are done to one table."""

    def sql(*statements: Callable[[str, State], str]) -> Callable[[Path, State], None]:
        def run(path: Path, state: State) -> None:
            for statement in statements:
                spark.sql(statement(f"delta.`{path}`", state)).collect()

        return run

    return (
        Step(name="optimize", run=sql(lambda table, _: f"OPTIMIZE {table}")),
        Step(name="purge", run=sql(lambda table, _: f"REORG TABLE {table} APPLY (PURGE)")),
        Step(
            name="update",
            run=sql(
                lambda table, state: (
                    f"UPDATE {table} SET {_string(state)} = '{STRING}' WHERE {KEY} = {_last(state)}"
                )
            ),
            expected=_updated,
        ),
        Step(
            name="merge",
            run=sql(
                lambda table, state: (
                    f"MERGE INTO {table} t "
                    f"USING (SELECT explode(array({_first(state)}L, {_last(state)}L)) k) s ON t.{KEY} = s.k "
                    f"WHEN MATCHED AND s.k = {_first(state)} THEN DELETE "
                    f"WHEN MATCHED THEN UPDATE SET {_string(state)} = '{STRING} again'"
                )
            ),
            expected=_merged,
        ),
        Step(
            name="add a column",
            run=sql(lambda table, _: f"ALTER TABLE {table} ADD COLUMNS ({NEW_COLUMN.name} INT)"),
            expected=_widened,
        ),
        Step(
            name="set a property",
            run=sql(lambda table, _: f"ALTER TABLE {table} SET TBLPROPERTIES ('of.a.peer' = 'yes')"),
        ),
        Step(
            name="comment on a column",
            run=sql(lambda table, _: f"ALTER TABLE {table} CHANGE COLUMN {KEY} COMMENT 'the key'"),
        ),
        Step(
            name="restore",
            run=lambda path, state: spark.sql(
                f"RESTORE TABLE delta.`{path}` TO VERSION AS OF {DeltaTable(path).version() - 1}"
            ).collect(),
            restores=True,
        ),
        Step(
            name="add a constraint",
            run=sql(
                lambda table, _: f"ALTER TABLE {table} ADD CONSTRAINT of_a_peer CHECK ({CONSTRAINT.text})"
            ),
            expected=_constrained,
        ),
        Step(
            name="delete by vectors",
            run=sql(
                lambda table, _: (
                    f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
                ),
                lambda table, state: f"DELETE FROM {table} WHERE {KEY} = {_first(state)}",
            ),
            expected=_deleted,
        ),
        Step(
            name="number the rows",
            run=sql(
                lambda table, _: f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
            ),
        ),
        Step(name="vacuum", run=sql(lambda table, _: f"VACUUM {table} RETAIN 0 HOURS")),
    )


def steps_of_deltalake() -> tuple[Step, ...]:
    """In the order in which they are done to one table."""

    def on(call: Callable[[deltalake.DeltaTable, State], object]) -> Callable[[Path, State], object]:
        return lambda path, state: call(deltalake.DeltaTable(str(path)), state)

    def merge(table: deltalake.DeltaTable, state: State) -> None:
        source = pa.table({"k": pa.array([_first(state), _last(state)], pa.int64())})
        (
            table.merge(source, f"t.{KEY} = s.k", source_alias="s", target_alias="t")
            .when_matched_delete(f"s.k = {_first(state)}")
            .when_matched_update({_string(state) or "": f"'{STRING} again'"})
            .execute()
        )

    return (
        Step(name="compact", run=on(lambda table, _: table.optimize.compact())),
        Step(
            name="update",
            run=on(
                lambda table, state: table.update(
                    {_string(state) or "": f"'{STRING}'"}, predicate=f"{KEY} = {_last(state)}"
                )
            ),
            expected=_updated,
        ),
        Step(name="merge", run=on(merge), expected=_merged),
        Step(name="z-order", run=on(lambda table, _: table.optimize.z_order([KEY]))),
        Step(
            name="add a column",
            run=on(
                lambda table, _: table.alter.add_columns(
                    deltalake.Field(NEW_COLUMN.name, deltalake.schema.PrimitiveType("integer"))
                )
            ),
            expected=_widened,
        ),
        Step(
            name="set a property",
            run=on(lambda table, _: table.alter.set_table_properties({"delta.checkpointInterval": "5"})),
        ),
        Step(name="checkpoint", run=on(lambda table, _: table.create_checkpoint())),
        Step(name="restore", run=on(lambda table, _: table.restore(table.version() - 1)), restores=True),
        Step(
            name="add a constraint",
            run=on(lambda table, _: table.alter.add_constraint({"of_a_peer": CONSTRAINT.text})),
            expected=_constrained,
        ),
        Step(
            name="vacuum",
            run=on(
                lambda table, _: table.vacuum(
                    retention_hours=0, dry_run=False, enforce_retention_duration=False
                )
            ),
        ),
    )


def _first(state: State) -> int:
    return min(state.rows)


def _last(state: State) -> int:
    return max(state.rows)


def _string(state: State) -> str | None:
    """A column that any text fits in, that nothing is made of."""
    used = set(state.partition_by) | {column.generated_from for column in state.columns}
    return next(
        (
            c.name
            for c in state.columns
            if c.kind == "string" and c.generated_from is None and c.name not in used
        ),
        None,
    )


def _set(state: State, key: int, text: str) -> State | None:
    name = _string(state)
    if name is None or state.append_only:
        return None
    row = {**state.rows[key], name: text}
    return None if state.break_a_constraint({key: row}) else state.with_more({key: row})


def _updated(state: State) -> State | None:
    return _set(state, _last(state), STRING) if state.rows else None


def _merged(state: State) -> State | None:
    if len(state.rows) < 2:
        return None
    after = _set(state, _last(state), f"{STRING} again")
    first = _first(state)
    return None if after is None else after.with_rows({k: r for k, r in after.rows.items() if k != first})


def _deleted(state: State) -> State | None:
    """Tables for Iceberg have no vectors."""
    for_iceberg = any(name.startswith("delta.enableIcebergCompat") for name in state.properties)
    if state.append_only or for_iceberg or not state.rows:
        return None
    return state.with_rows({key: row for key, row in state.rows.items() if key != _first(state)})


def _constrained(state: State) -> State | None:
    return replace(state, constraints={**state.constraints, "of_a_peer": CONSTRAINT})


def _widened(state: State) -> State | None:
    return replace(state, columns=(*state.columns, NEW_COLUMN))


def maintained(
    steps: tuple[Step, ...], peer: str, table: WrittenTable, draw: Draw, path: Path
) -> dict[str, str]:
    """Each step in its turn, then rows of ours: what was done, and what was refused in the peer's words.

    Raises:
        AssertionError: we read other rows than the model has, or a step was refused and committed.
    """
    copy = table.copied(path)
    row_ids = row_ids_of(copy)
    state = table.state
    # Of versions that the peer made itself: by its clock ours are years old, and it may clean them away.
    states: dict[int, State] = {}
    outcome: dict[str, str] = {}
    for step in steps:
        before = DeltaTable(path, clock=table.clock).version()
        after = states.get(before - 1) if step.restores else step.expected(state)
        if after is None:
            outcome[step.name] = NO_SENSE
            continue
        try:
            unless_refused(lambda run=step.run, now=state: run(path, now))
        except RefusalError as refusal:
            version = DeltaTable(path, clock=table.clock).version()
            if isinstance(refusal, FaultError) and version != before:
                # It has committed what nobody can read: the way back is ours.
                DeltaTable(path, clock=table.clock).restore(before)
                what = f"taken back to before {step.name} by {peer}"
                state = reads_on(table, path, state, what, row_ids)
                states[version + 1] = state
            else:
                assert version == before, f"{step.name} by {peer}: it refused, and committed"
            outcome[step.name] = str(refusal)
            continue
        state = reads_on(table, path, after, f"after {step.name} by {peer}", row_ids)
        states[DeltaTable(path, clock=table.clock).version()] = state
        outcome[step.name] = DONE
    _we_go_on(table, path, state, draw, row_ids)
    return outcome


def check_maintained(
    peers: Mapping[str, tuple[Step, ...]], name: str, ways: Iterable[Way], scratch: Path, *, operations: int
) -> dict[str, Any]:
    """Make a table of ours, and have each peer maintain a copy of it.

    Raises:
        AssertionError: as `maintained`.
    """
    rng = random.Random(name)

    def run(draw: Draw) -> dict[str, Any]:
        table = WrittenTable()
        try:
            table.begin(ways, draw)
            for _ in range(operations):
                table.step(rng, draw)
            return {
                "features": sorted(way.name for way in table.ways),
                "peers": {
                    peer: maintained(steps, peer, table, draw, scratch / peer)
                    for peer, steps in peers.items()
                },
            }
        finally:
            table.teardown()

    return drawn(name, run)


def _we_go_on(table: WrittenTable, path: Path, state: State, draw: Draw, row_ids: dict[int, int]) -> None:
    rows, added = table.rows_for_a_peer(draw)
    write_deltalake(path, rows, mode="append", clock=table.clock)
    state = reads_on(table, path, state.with_more(added), "after rows of ours", row_ids)
    ours = DeltaTable(path, clock=table.clock)
    ours.optimize.compact()
    reads_on(table, path, state, "after compaction of ours", row_ids)
    ours.create_checkpoint()
    reads_on(table, path, state, "after a checkpoint of ours", row_ids)
