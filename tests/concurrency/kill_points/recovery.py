"""Finding a commit whose writer died between the entry that decided it and its file: by readers and writers.

To finish another's commit is itself a write that may be killed anywhere, and so on.
"""

from __future__ import annotations

from dataclasses import replace

from delta_core import DeltaTable, write_deltalake
from delta_core.actions import SetTransaction
from tests.concurrency.kill_points.operation import PROPERTIES, Effect, Here, Operation, Start
from tests.concurrency.matrix.layouts import rows
from tests.concurrency.matrix.state import Row, TableState

LEFT: Row = (41, "p0", "left behind")
"""The row of the commit whose writer died."""

_KEY_LEFT = SetTransaction(app_id="dead job", version=1)

_NEXT: Row = (42, "p0", "the next writer's")


def _plus(*new: Row) -> Effect:
    def effect(state: TableState | None) -> TableState:
        assert state is not None
        return replace(state, rows=tuple(sorted([*state.rows, *new])))

    return effect


def _leave(run: Here) -> object:
    """The append whose first run dies, with a key of its own."""
    data = rows(LEFT[0], partition=LEFT[1], value=LEFT[2])
    return write_deltalake(run.uri, data, mode="append", txn=_KEY_LEFT)


LEFT_BEHIND = Operation(
    name="the writer that dies", run=_leave, effect=_plus(LEFT), commits=("WRITE",), keyed=0
)
"""Makes the start of the others: it is killed once it has the version."""

RECOVERIES = (
    Operation(
        name="recovery by a reader",
        run=lambda run: DeltaTable(run.uri).to_pyarrow_table(),
        effect=_plus(),
        start=Start.INTERRUPTED,
        keyed=0,
    ),
    Operation(name="recovery by its own retry", run=_leave, effect=_plus(), start=Start.INTERRUPTED, keyed=0),
    Operation(
        name="recovery by a writer",
        run=lambda run: write_deltalake(
            run.uri,
            rows(_NEXT[0], partition=_NEXT[1], value=_NEXT[2]),
            mode="append",
            commit_properties=PROPERTIES,
        ),
        effect=_plus(_NEXT),
        start=Start.INTERRUPTED,
        commits=("WRITE",),
    ),
)
