"""Writes that must fail, and leave nothing behind; and writers whose handle is behind the table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
from hypothesis import strategies as st

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import (
    ConcurrentModificationError,
    ConfigurationError,
    ConstraintViolationError,
    DeltaError,
    SchemaError,
    TableExistsError,
    UnsupportedTableFeatureError,
    VersionNotFoundError,
)
from delta_core.table_features.feature import WriterKind
from tests.state_machine.conditions import keys_from
from tests.state_machine.model import KEY
from tests.state_machine.operations.registry import Draw, operation
from tests.state_machine.values import arrow_table

if TYPE_CHECKING:
    from tests.state_machine.machine import TableMachine

_ARROW = WriterKind.ARROW_ROWS


@operation(when=lambda machine: bool(machine.state.constraints))
def break_a_constraint(machine: TableMachine, draw: Draw) -> None:
    """One row of several breaks a constraint: none is written."""
    columns, rows = machine.new_rows(draw, most=6)
    if machine.refuses(_ARROW) or not machine.state.break_a_constraint(rows):
        return
    data, target = arrow_table(columns, list(rows.values())), machine.target(draw)
    mode = draw(st.sampled_from(["append", "overwrite"]))
    machine.fails(
        ConstraintViolationError, lambda: write_deltalake(target, data, mode=mode, clock=machine.clock)
    )


@operation
def wrong_columns(machine: TableMachine, draw: Draw) -> None:
    """A column that the table does not have, or one of another type."""
    if machine.refuses(_ARROW):
        return
    data = draw(
        st.sampled_from(
            [
                pa.table({KEY: pa.array([1], pa.int64()), "nobody's": [1]}),
                pa.table({KEY: ["a text"]}),
                pa.table({KEY: pa.array([1.5])}),
            ]
        )
    )
    mode = draw(st.sampled_from(["append", "overwrite"]))
    target = machine.target(draw)
    machine.fails(SchemaError, lambda: write_deltalake(target, data, mode=mode, clock=machine.clock))


@operation
def outside_the_predicate(machine: TableMachine, draw: Draw) -> None:
    """A replaceWhere with a row that does not match."""
    columns, rows = machine.new_rows(draw, fitting=lambda row: not machine.state.break_a_constraint({0: row}))
    if machine.refuses(_ARROW) or not rows:
        return
    condition = keys_from(-9, -1)
    machine.fails(
        ConstraintViolationError,
        lambda: write_deltalake(
            machine.path,
            arrow_table(columns, list(rows.values())),
            mode="overwrite",
            predicate=condition.text,
            clock=machine.clock,
        ),
    )


@operation(when=lambda machine: any(not column.nullable for column in machine.state.columns))
def null_where_none_may_be(machine: TableMachine, draw: Draw) -> None:
    """A null in a column that allows none."""
    columns, rows = machine.new_rows(draw)
    strict = {column.name for column in columns if not column.nullable}
    if machine.refuses(_ARROW) or not rows or not strict:
        return
    broken = [{**row, **dict.fromkeys(strict)} for row in rows.values()]
    machine.fails(
        (SchemaError, ConstraintViolationError),
        lambda: write_deltalake(
            machine.path, arrow_table(columns, broken), mode="append", clock=machine.clock
        ),
    )


@operation
def create_again(machine: TableMachine, draw: Draw) -> None:
    """A table is not created over another."""
    data = pa.table({KEY: pa.array([1], pa.int64())})
    machine.fails(TableExistsError, lambda: write_deltalake(machine.path, data, clock=machine.clock))
    machine.fails(TableExistsError, lambda: DeltaTable.create(machine.path, data.schema, clock=machine.clock))


@operation
def nonsense(machine: TableMachine, draw: Draw) -> None:
    """What no table has: properties, versions, features, columns."""
    alter, table = machine.fresh().alter, machine.fresh()
    call = draw(
        st.sampled_from(
            [
                lambda: alter.set_properties({"delta.noSuchProperty": "1"}),
                lambda: alter.set_properties({"delta.checkpointInterval": "often"}),
                lambda: alter.add_feature("noSuchFeature"),
                lambda: alter.drop_constraint("nobody's"),
                lambda: alter.add_columns(machine.state.columns[0].to_field()),
                lambda: alter.set_domain_metadata("delta.mine", "{}"),
                lambda: table.restore(machine.model.latest + 7),
            ]
        )
    )
    machine.fails(
        (ConfigurationError, SchemaError, UnsupportedTableFeatureError, VersionNotFoundError, DeltaError),
        call,
    )


@operation
def behind_the_table(machine: TableMachine, draw: Draw) -> None:
    """A handle was opened, somebody else committed, and then it appends: after that commit, or not at all."""
    if machine.refuses(_ARROW) or machine.refuses(WriterKind.COMMIT):
        return
    state = machine.state
    handle = machine.fresh()
    change = draw(st.sampled_from(["rows", "overwrite", "column", "property"]))
    columns, rows = machine.new_rows(draw, fitting=lambda row: not state.break_a_constraint({0: row}))
    data = arrow_table(columns, list(rows.values()))
    if change == "rows":
        between = state.with_more(rows)
        write_deltalake(machine.path, data, mode="append", clock=machine.clock)
    elif change == "overwrite" and not state.append_only:
        between = state.with_rows(rows)
        write_deltalake(machine.path, data, mode="overwrite", clock=machine.clock)
    else:
        between = replace(state, properties={**state.properties, "owner": "another"})
        machine.fresh().alter.set_properties({"owner": "another"})
    machine.settle(between)
    more_columns, more = machine.new_rows(draw, fitting=lambda row: not state.break_a_constraint({0: row}))
    added = arrow_table(more_columns, list(more.values()))
    try:
        write_deltalake(handle, added, mode="append", clock=machine.clock)
    except ConcurrentModificationError:
        machine.settle(machine.state)
    else:
        machine.settle(machine.state.with_more(more))


@operation
def overwrite_from_behind(machine: TableMachine, draw: Draw) -> None:
    """Two writers replace the same rows, and the second knows nothing of the first: one of the two counts."""
    state = machine.state
    if machine.refuses(_ARROW) or state.append_only:
        return
    handle = machine.fresh()
    columns, rows = machine.new_rows(draw, fitting=lambda row: not state.break_a_constraint({0: row}))
    write_deltalake(
        machine.path, arrow_table(columns, list(rows.values())), mode="append", clock=machine.clock
    )
    machine.settle(machine.state.with_more(rows))
    others, replacing = machine.new_rows(draw, fitting=lambda row: not state.break_a_constraint({0: row}))
    try:
        write_deltalake(
            handle, arrow_table(others, list(replacing.values())), mode="overwrite", clock=machine.clock
        )
    except ConcurrentModificationError:
        machine.settle(machine.state)
        return
    # What was appended meanwhile is either gone with the rest, or was committed after it in effect.
    left = set(machine.fresh().to_pyarrow_table([KEY]).column(KEY).to_pylist())
    kept = rows if set(rows) <= left else {}
    machine.settle(machine.state.with_rows({**kept, **replacing}))
