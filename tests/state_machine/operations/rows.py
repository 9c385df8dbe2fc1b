"""Rows from Arrow: append, overwrite, replaceWhere, schema modes, group commits, idempotency keys."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from delta_core import AlreadyApplied, CommitProperties, GroupCommit, write_deltalake
from delta_core.table_features.feature import WriterKind
from tests.state_machine.conditions import conditions
from tests.state_machine.model import State
from tests.state_machine.operations.registry import Draw, operation
from tests.state_machine.values import KINDS, PLAIN_KINDS, WITH_A_FEATURE, Column, arrow_table

if TYPE_CHECKING:
    from tests.state_machine.machine import TableMachine

_ARROW = WriterKind.ARROW_ROWS


def _allowed(machine: TableMachine) -> Any:
    return lambda row: not machine.state.break_a_constraint({0: row})


@operation
def append(machine: TableMachine, draw: Draw) -> None:
    """Rows, perhaps none, perhaps in several files."""
    columns, rows = machine.new_rows(draw, most=6, fitting=_allowed(machine))
    target, most = machine.target(draw), draw(st.sampled_from([None, 1, 2]))
    machine.does(
        lambda: write_deltalake(
            target,
            arrow_table(columns, list(rows.values())),
            mode="append",
            max_rows_per_file=most,
            clock=machine.clock,
        ),
        machine.state.with_more(rows),
        writer_kind=_ARROW,
    )


@operation
def append_some_columns(machine: TableMachine, draw: Draw) -> None:
    """Rows without columns that the table can do without: those are null, or what the table makes of it."""
    kept = [
        column
        for column in machine.state.columns
        if column.name in ("id", *machine.state.partition_by) or not column.is_plain or draw(st.booleans())
    ]
    columns, rows = machine.new_rows(draw, columns=kept)
    whole = {key: {**{one.name: None for one in machine.state.columns}, **row} for key, row in rows.items()}
    for row in whole.values():
        for column in machine.state.columns:
            source = column.generated_from
            if source is not None:
                row[column.name] = None if row[source] is None else row[source] + 1
    fitting = {key: row for key, row in whole.items() if _allowed(machine)(row)}
    machine.does(
        lambda: write_deltalake(
            machine.path,
            arrow_table(columns, [rows[key] for key in fitting]),
            mode="append",
            clock=machine.clock,
        ),
        machine.state.with_more(fitting),
        writer_kind=_ARROW,
    )


@operation
def overwrite(machine: TableMachine, draw: Draw) -> None:
    """All rows go, others come."""
    columns, rows = machine.new_rows(draw, fitting=_allowed(machine))
    target = machine.target(draw)
    machine.does(
        lambda: write_deltalake(
            target, arrow_table(columns, list(rows.values())), mode="overwrite", clock=machine.clock
        ),
        machine.state.with_rows(rows),
        writer_kind=_ARROW,
    )


@operation
def replace_where(machine: TableMachine, draw: Draw) -> None:
    """The rows that match go, others that match come."""
    state = machine.state
    condition = draw(conditions(state))

    def fits(row: Any) -> bool:
        return condition.holds(row) is True and _allowed(machine)(row)

    columns, rows = machine.new_rows(draw, fitting=fits)
    target = machine.target(draw)
    machine.does(
        lambda: write_deltalake(
            target,
            arrow_table(columns, list(rows.values())),
            mode="overwrite",
            predicate=condition.text,
            clock=machine.clock,
        ),
        state.with_rows({**state.without(condition), **rows}),
        writer_kind=_ARROW,
    )


def _partition(state: State, row: Any) -> tuple[Any, ...]:
    """Its partition: null and the empty text are one."""
    return tuple(None if row.get(name) == "" else row.get(name) for name in state.partition_by)


@operation(when=lambda machine: bool(machine.state.partition_by))
def overwrite_partitions(machine: TableMachine, draw: Draw) -> None:
    """The rows of those partitions go in which others come."""
    state = machine.state
    columns, rows = machine.new_rows(draw, fitting=_allowed(machine))
    named = {_partition(state, row) for row in rows.values()}
    kept = {key: row for key, row in state.rows.items() if _partition(state, row) not in named}
    target = machine.target(draw)
    machine.does(
        lambda: write_deltalake(
            target,
            arrow_table(columns, list(rows.values())),
            mode="overwrite",
            partition_overwrite_mode="dynamic",
            clock=machine.clock,
        ),
        state.with_rows({**kept, **rows}),
        writer_kind=_ARROW,
    )


@operation(when=lambda machine: len(machine.state.columns) < 12)
def merge_schema(machine: TableMachine, draw: Draw) -> None:
    """Rows with a column that the table does not have."""
    state, kind = machine.state, draw(st.sampled_from(sorted(KINDS)))
    if kind in WITH_A_FEATURE and not any(one.kind == kind for one in state.columns):
        kind = "date"
    machine.names += 1
    added = Column(name=f"m{machine.names}", kind=kind)
    changed = replace(state, columns=(*state.columns, added))
    columns, rows = machine.new_rows(draw, columns=changed.columns, fitting=_allowed(machine))
    machine.does(
        lambda: write_deltalake(
            machine.target(draw),
            arrow_table(columns, list(rows.values())),
            mode="append",
            schema_mode="merge",
            clock=machine.clock,
        ),
        changed.with_more(rows),
        writer_kind=_ARROW,
    )


def _may_be_replaced(machine: TableMachine) -> bool:
    return not machine.state.constraints and all(column.is_plain for column in machine.state.columns)


@operation(when=_may_be_replaced)
def overwrite_schema(machine: TableMachine, draw: Draw) -> None:
    """Other rows with other columns, and perhaps other partitions."""
    state = machine.state
    names = {"id", "n", "t", "local", *state.partition_by, *state.clustered_by}
    kept = [one for one in state.columns if one.name in names]
    machine.names += 1
    kept.append(Column(name=f"o{machine.names}", kind=draw(st.sampled_from(PLAIN_KINDS))))
    partition_by = () if state.clustered_by else draw(st.sampled_from([(), state.partition_by, ("n",)]))
    changed = replace(state, columns=tuple(kept), partition_by=partition_by)
    columns, rows = machine.new_rows(draw, columns=kept)
    machine.does(
        lambda: write_deltalake(
            machine.path,
            arrow_table(columns, list(rows.values())),
            mode="overwrite",
            schema_mode="overwrite",
            partition_by=list(partition_by),
            clock=machine.clock,
        ),
        changed.with_rows(rows),
        writer_kind=_ARROW,
    )


@operation
def group_commit(machine: TableMachine, draw: Draw) -> None:
    """Several appends of one process, a commit each: how many else share one depends on threads."""
    batches = [
        machine.new_rows(draw, most=2, fitting=_allowed(machine)) for _ in range(draw(st.integers(1, 3)))
    ]

    def run() -> None:
        with GroupCommit(machine.path, max_appends=1, clock=machine.clock) as group:
            outcomes: list[Future[Any]] = [
                group.append(arrow_table(columns, list(rows.values()))) for columns, rows in batches
            ]
        for outcome in outcomes:
            outcome.result(timeout=0)

    if machine.refuses(_ARROW):
        machine.does(run, machine.state, writer_kind=_ARROW)
        return
    run()
    _settle_group(machine, [rows for _, rows in batches])


def _settle_group(machine: TableMachine, batches: list[dict[int, Any]]) -> None:
    """Each commit has some of the batches, whole and in their order."""
    state, left, began = machine.state, list(batches), machine.model.latest + 1
    for version in range(machine.model.latest + 1, machine.fresh().version() + 1):
        keys = set(machine.fresh(version).to_pyarrow_table(["id"]).column("id").to_pylist())
        while left and set(left[0]) <= keys:
            state = state.with_more(left.pop(0))
        state = machine.with_numbers(state, machine.fresh(version))
        machine.model.add(state, machine.clock.now_ms() + version - began)
    assert not any(left), "an append of the group is missing"


@operation
def append_with_key(machine: TableMachine, draw: Draw) -> None:
    """An append with an idempotency key, and the same again: the second changes nothing."""
    application = draw(st.sampled_from(["load a", "load b"]))
    version = machine.model.transactions.get(application, 0) + draw(st.integers(1, 2))
    columns, rows = machine.new_rows(draw, fitting=_allowed(machine))
    data, target = arrow_table(columns, list(rows.values())), machine.target(draw)

    def run(key: int) -> Any:
        return write_deltalake(
            target,
            data,
            mode="append",
            commit_properties=CommitProperties(txn=(application, key)),
            clock=machine.clock,
        )

    if machine.does(lambda: run(version), machine.state.with_more(rows), writer_kind=_ARROW):
        machine.model.transactions[application] = version
        repeated = run(version - draw(st.integers(0, 1)))
        assert isinstance(repeated, AlreadyApplied)
        machine.settle(machine.state)


@operation
def ignore_existing(machine: TableMachine, draw: Draw) -> None:
    """Mode `ignore` leaves a table alone that is there."""
    columns, rows = machine.new_rows(draw)
    data = arrow_table(columns, list(rows.values()))
    assert write_deltalake(machine.path, data, mode="ignore", clock=machine.clock) is None
    _nothing_happened(machine, machine.state)


def _nothing_happened(machine: TableMachine, state: State) -> None:
    assert machine.fresh().version() == machine.model.latest
    assert machine.state is state
