"""Maintenance: compaction, Z-order, clustering, restore, vacuum."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from delta_core.errors import (
    ConcurrentModificationError,
    ConfigurationError,
    InvalidTableError,
    UnsupportedTableFeatureError,
)
from delta_core.table_features.feature import WriterKind
from tests.state_machine.iceberg import breaks_iceberg
from tests.state_machine.model import State
from tests.state_machine.operations.registry import Draw, operation
from tests.state_machine.reading import data_files

if TYPE_CHECKING:
    from tests.state_machine.machine import TableMachine

_VACUUM_MS = 7 * 86_400_000 + 5 * 60_000
_BAD_ORDER = ("boolean", "binary", "struct", "list", "map", "variant")


@operation
def compact(machine: TableMachine, draw: Draw) -> None:
    """Small files become one; no row changes."""
    machine.does(machine.table.optimize.compact, machine.state, writer_kind=WriterKind.REWRITE)


def _orderable(state: State) -> list[str]:
    return [
        one.name for one in state.columns if one.kind not in _BAD_ORDER and one.name not in state.partition_by
    ]


def _has_statistics(machine: TableMachine) -> bool:
    return machine.state.properties.get("delta.dataSkippingNumIndexedCols", "32") == "32"


@operation(when=_has_statistics)
def z_order(machine: TableMachine, draw: Draw) -> None:
    """Rows that are near each other come into the same files."""
    names = draw(st.lists(st.sampled_from(_orderable(machine.state)), min_size=1, max_size=2, unique=True))

    def run() -> None:
        machine.table.optimize.z_order(names, full=True)

    if machine.state.clustered_by:
        machine.fails((ConfigurationError, UnsupportedTableFeatureError), run)
        return
    machine.does(run, machine.state, writer_kind=WriterKind.REWRITE)


@operation(when=lambda machine: bool(machine.state.clustered_by))
def cluster(machine: TableMachine, draw: Draw) -> None:
    """Rows come into the order of the table's own columns."""
    full = draw(st.booleans())
    machine.does(
        lambda: machine.table.optimize.cluster(full=full), machine.state, writer_kind=WriterKind.REWRITE
    )


@operation(when=lambda machine: not machine.state.partition_by)
def cluster_by(machine: TableMachine, draw: Draw) -> None:
    """The table is clustered by other columns, unless a file has no statistics of them."""
    state = machine.state
    names = draw(st.lists(st.sampled_from(_orderable(state)), max_size=2, unique=True))
    try:
        machine.does(
            lambda: machine.table.alter.cluster_by(names),
            replace(state, clustered_by=tuple(names)),
            writer_kind=WriterKind.COMMIT,
        )
    except ConfigurationError:
        assert names, "nothing to have statistics of"
        machine.settle(state)


def _restore(machine: TableMachine, version: int, **arguments: int) -> None:
    target = machine.model.at(version)
    if machine.refuses(WriterKind.RESTORE) or breaks_iceberg(machine.newest, machine.state, target):
        machine.does(lambda: machine.table.restore(**arguments), target, writer_kind=WriterKind.RESTORE)
        return
    before = machine.state
    try:
        machine.table.restore(**arguments)
    except InvalidTableError:
        # Files go that were written since, be it with the same rows.
        assert before.append_only
        machine.settle(before)
        return
    assert not before.append_only or before.rows.keys() <= target.rows.keys()
    machine.settle(target)


@operation
def restore_version(machine: TableMachine, draw: Draw) -> None:
    """The table becomes what it was at a version that is promised."""
    version = draw(st.sampled_from(machine.model.promised()))
    _restore(machine, version, target=version)


@operation
def restore_time(machine: TableMachine, draw: Draw) -> None:
    """The table becomes what it was at a time."""
    version = draw(st.sampled_from(machine.model.promised()))
    time_ms = machine.model.versions[version].time_ms
    found = machine.fresh()
    found.load_as_version(timestamp_ms=time_ms)
    assert found.version() == version
    _restore(machine, version, timestamp_ms=time_ms)


@operation
def plan_a_restore(machine: TableMachine, draw: Draw) -> None:
    """Only said, not done."""
    version = draw(st.sampled_from(machine.model.promised()))
    if not machine.refuses(WriterKind.RESTORE):
        plan = machine.table.restore(version, dry_run=True)
        assert plan.target_version == version
    assert machine.fresh().version() == machine.model.latest


@operation
def repair(machine: TableMachine, draw: Draw) -> None:
    """Every file that the table needs is there, whatever was vacuumed: nothing is taken out."""
    result = machine.table.repair(dry_run=False)
    assert (result.plan.missing, result.plan.unreadable, result.committed) == ((), (), None)
    assert machine.fresh().version() == machine.model.latest


@operation
def vacuum(machine: TableMachine, draw: Draw) -> None:
    """Files go that no version within the retention needs."""
    if machine.does(
        lambda: machine.table.vacuum(dry_run=False), machine.state, writer_kind=WriterKind.VACUUM
    ):
        machine.give_up(files_ms=_VACUUM_MS)


@operation
def vacuum_everything(machine: TableMachine, draw: Draw) -> None:
    """Only the newest version's files stay."""
    if machine.does(
        lambda: machine.table.vacuum(0, dry_run=False, enforce_retention=False, force=True),
        machine.state,
        writer_kind=WriterKind.VACUUM,
    ):
        machine.give_up(files_ms=0)


@operation
def plan_a_vacuum(machine: TableMachine, draw: Draw) -> None:
    """Nothing goes unless it is asked for."""
    before = data_files(machine.path)
    if not machine.refuses(WriterKind.VACUUM):
        assert set(machine.table.vacuum()) <= before
    assert data_files(machine.path) == before


@operation
def compact_against_append(machine: TableMachine, draw: Draw) -> None:
    """A plan is made, rows are appended, then the plan is carried out: both hold, or the plan is given up."""
    from delta_core import write_deltalake
    from delta_core.maintenance.apply_rewrite import apply_rewrite
    from tests.state_machine.values import arrow_table

    if machine.refuses(WriterKind.REWRITE) or machine.refuses(WriterKind.ARROW_ROWS):
        return
    other = machine.fresh()
    plan = other.optimize.plan()
    columns, rows = machine.new_rows(draw, fitting=lambda row: not machine.state.break_a_constraint({0: row}))
    write_deltalake(
        machine.path, arrow_table(columns, list(rows.values())), mode="append", clock=machine.clock
    )
    machine.settle(machine.state.with_more(rows))
    try:
        apply_rewrite(other.snapshot, plan)
    except ConcurrentModificationError:
        return
    finally:
        machine.settle(machine.state)
