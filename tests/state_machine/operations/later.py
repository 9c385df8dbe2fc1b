"""Operations that the library is getting: each is there once the facade has its method."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from delta_core import DeltaTable
from delta_core.errors import (
    ConstraintViolationError,
    DeltaError,
    InvalidTableError,
    SchemaEvolutionError,
    UnsupportedTableFeatureError,
)
from delta_core.schema.types import LONG
from delta_core.table import TableAlterer, TableOptimizer
from delta_core.table_features.feature import WriterKind
from tests.state_machine.conditions import conditions
from tests.state_machine.model import KEY, State
from tests.state_machine.operations.registry import Draw, operation
from tests.state_machine.values import Column, arrow_table

if TYPE_CHECKING:
    from tests.state_machine.machine import TableMachine

_DELETE = getattr(WriterKind, "DELETE", WriterKind.ARROW_ROWS)
_UPDATE = getattr(WriterKind, "UPDATE", _DELETE)


@operation(of=(DeltaTable, "delete"))
def delete(machine: TableMachine, draw: Draw) -> None:
    """The rows that match go; those for which the predicate is null stay."""
    condition = draw(conditions(machine.state))
    table: Any = machine.table
    left = machine.state.without(condition)
    if machine.state.append_only and not machine.refuses(_DELETE):
        machine.fails(InvalidTableError, lambda: table.delete(condition.text))
        return
    machine.does(lambda: table.delete(condition.text), machine.state.with_rows(left), writer_kind=_DELETE)


@operation(of=(DeltaTable, "update"))
def update(machine: TableMachine, draw: Draw) -> None:
    """The rows that match get another number; what is generated from it follows."""
    state = machine.state
    condition, number = draw(conditions(state)), draw(st.integers(0, 30))
    rows = dict(state.rows)
    for key in state.matching(condition):
        rows[key] = {**rows[key], "n": number}
        for column in state.columns:
            if column.generated_from == "n":
                rows[key] = {**rows[key], column.name: number + 1}

    def run() -> None:
        machine.table.update({"n": str(number)}, condition.text)

    if state.append_only and not machine.refuses(_UPDATE):
        machine.fails(InvalidTableError, run)
    elif state.break_a_constraint({key: rows[key] for key in state.matching(condition)}):
        machine.fails((ConstraintViolationError, UnsupportedTableFeatureError), run)
    else:
        machine.does(run, state.with_rows(rows), writer_kind=_UPDATE)


@operation(of=(DeltaTable, "merge"))
def merge(machine: TableMachine, draw: Draw) -> None:
    """Some rows get another number, new rows come, and perhaps rows that the source does not have go."""
    state = machine.state
    number = draw(st.integers(0, 30))
    condition = draw(st.none() | conditions(state))
    columns, new = machine.new_rows(draw, fitting=lambda row: not state.break_a_constraint({0: row}))
    matched = draw(st.sets(st.sampled_from(sorted(state.rows)), max_size=3)) if state.rows else set()
    gone = set() if condition is None else set(state.matching(condition)) - matched
    rows = {key: row for key, row in state.rows.items() if key not in gone}
    for key in matched:
        rows[key] = {**rows[key], "n": number}
        for column in state.columns:
            if column.generated_from == "n":
                rows[key] = {**rows[key], column.name: number + 1}
    source = arrow_table(
        columns, [*new.values(), *({**dict.fromkeys([one.name for one in columns]), KEY: k} for k in matched)]
    )
    values = {one.name: f"source.`{one.name}`" for one in columns}

    def run() -> None:
        builder = machine.table.merge(source, f"target.{KEY} = source.{KEY}")
        builder = builder.when_matched_update({"n": str(number)}).when_not_matched_insert(values)
        if condition is not None:
            builder = builder.when_not_matched_by_source_delete(condition.text)
        builder.execute()

    if state.append_only and not machine.refuses(_UPDATE):
        machine.fails(InvalidTableError, run)
    elif state.break_a_constraint({key: rows[key] for key in matched}):
        machine.fails((ConstraintViolationError, UnsupportedTableFeatureError), run)
    else:
        machine.does(run, state.with_rows({**rows, **new}), writer_kind=_UPDATE)


def _loose(machine: TableMachine) -> list[Column]:
    """Columns that neither the machine's predicates nor the table's rules name."""
    state = machine.state
    kept = {KEY, "n", "t", *state.partition_by, *(one.generated_from for one in state.columns)}
    return [one for one in state.columns if one.name not in kept and one.is_plain]


def _is_mapped(machine: TableMachine) -> bool:
    mode = machine.newest.metadata().configuration.get("delta.columnMapping.mode", "none")
    return mode != "none" and bool(_loose(machine))


@operation(of=(TableAlterer, "rename_column"), when=_is_mapped)
def rename_column(machine: TableMachine, draw: Draw) -> None:
    """A column has another name; no file changes."""
    state, old = machine.state, draw(st.sampled_from(_loose(machine)))
    machine.names += 1
    new = replace(old, name=f"r {machine.names}")
    rows = {key: _renamed(row, old.name, new.name) for key, row in state.rows.items()}
    columns = tuple(new if one == old else one for one in state.columns)
    clustered_by = tuple(new.name if name == old.name else name for name in state.clustered_by)
    alter: Any = machine.table.alter
    machine.does(
        lambda: alter.rename_column(old.name, new.name),
        replace(state, columns=columns, rows=rows, clustered_by=clustered_by),
        writer_kind=WriterKind.COMMIT,
    )


def _renamed(row: Any, old: str, new: str) -> dict[str, Any]:
    return {new if name == old else name: value for name, value in row.items()}


@operation(of=(TableAlterer, "drop_columns"), when=_is_mapped)
def drop_column(machine: TableMachine, draw: Draw) -> None:
    """A column goes; one of the same name that is added later is null."""
    state, gone = machine.state, draw(st.sampled_from(_loose(machine)))
    rows = {
        key: {name: value for name, value in row.items() if name != gone.name}
        for key, row in state.rows.items()
    }
    columns = tuple(one for one in state.columns if one != gone)
    alter: Any = machine.table.alter
    if gone.name in state.clustered_by:
        machine.fails(
            (SchemaEvolutionError, UnsupportedTableFeatureError), lambda: alter.drop_columns(gone.name)
        )
        return
    machine.does(
        lambda: alter.drop_columns(gone.name),
        replace(state, columns=columns, rows=rows),
        writer_kind=WriterKind.COMMIT,
    )


def _narrow(state: State) -> list[Column]:
    return [one for one in state.columns if one.kind in ("byte", "short", "integer") and one.is_plain]


def _may_widen(machine: TableMachine) -> bool:
    on = machine.state.properties.get("delta.enableTypeWidening") == "true"
    return on and any(one.name in {two.name for two in _loose(machine)} for one in _narrow(machine.state))


@operation(of=(TableAlterer, "change_type"), when=_may_widen)
def widen_type(machine: TableMachine, draw: Draw) -> None:
    """An integer column takes longer ones; the values that are there stay."""
    state = machine.state
    loose = {one.name for one in _loose(machine)}
    old = draw(st.sampled_from([one for one in _narrow(state) if one.name in loose]))
    columns = tuple(replace(one, kind="long") if one == old else one for one in state.columns)
    alter: Any = machine.table.alter
    machine.does(
        lambda: alter.change_type(old.name, LONG),
        replace(state, columns=columns),
        writer_kind=WriterKind.COMMIT,
    )


@operation(of=(TableOptimizer, "purge"))
def purge(machine: TableMachine, draw: Draw) -> None:
    """Files with deleted rows are written without them."""
    optimize: Any = machine.table.optimize
    machine.does(lambda: optimize.purge(), machine.state, writer_kind=WriterKind.REWRITE)


@operation(of=(TableOptimizer, "enable_row_tracking"))
def assign_row_ids(machine: TableMachine, draw: Draw) -> None:
    """Row tracking for a table that has rows already."""
    state, optimize = machine.state, machine.table.optimize
    numbered = replace(state, properties={**state.properties, "delta.enableRowTracking": "true"})
    before: Any = optimize
    try:
        before.enable_row_tracking()
    except DeltaError:
        # What else the table has is not written together with row ids: then nothing has changed.
        machine.settle(state)
        return
    # The feature, and the numbers of the files, come in commits of their own.
    machine.settle(numbered, meanwhile=state)
