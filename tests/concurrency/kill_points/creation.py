"""What begins a table, and appends that share a commit."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from delta_core import DeltaTable, write_deltalake
from delta_core.actions import SetTransaction
from delta_core.dml.group_commit import GroupCommit
from tests.concurrency.kill_points.operation import APPLICATION, KEY, PROPERTIES, Here, Operation, Start
from tests.concurrency.matrix.layouts import rows
from tests.concurrency.matrix.state import Row, TableState

_NEW: tuple[Row, ...] = ((1, "p0", "new"), (2, "p1", "new"))
_DATA = pa.concat_tables([rows(id_, partition=p, value=v) for id_, p, v in _NEW])
_GROUPED: tuple[Row, ...] = ((31, "p0", "grouped"), (32, "p1", "grouped"), (33, "p0", "grouped"))


def _begun(*new: Row) -> TableState:
    return TableState(
        rows=new,
        columns=("id", "p", "v"),
        not_null=frozenset(),
        properties=(),
        description=None,
        keys=(),
    )


def _with_group(state: TableState | None) -> TableState:
    assert state is not None
    return replace(state, rows=tuple(sorted([*state.rows, *_GROUPED])))


def _append_in_a_group(run: Here) -> object:
    """Three appends that wait for one commit."""
    with GroupCommit(run.uri) as group:
        # Its thread cannot take the first before the last is there.
        with group._changed:
            outcomes = [
                group.append(
                    rows(id_, partition=p, value=v),
                    txn=SetTransaction(app_id=f"{APPLICATION} {id_}", version=KEY.version),
                )
                for id_, p, v in _GROUPED
            ]
        return [outcome.result() for outcome in outcomes]


CREATIONS = (
    Operation(
        name="create",
        run=lambda run: DeltaTable.create(
            run.uri, _DATA.schema, partition_by=["p"], commit_properties=PROPERTIES
        ),
        effect=lambda state: _begun(),
        start=Start.NOTHING,
        commits=("CREATE TABLE",),
    ),
    Operation(
        name="first append",
        run=lambda run: write_deltalake(
            run.uri, _DATA, mode="append", partition_by=["p"], commit_properties=PROPERTIES
        ),
        effect=lambda state: _begun(*_NEW),
        start=Start.NOTHING,
        commits=("WRITE",),
    ),
    Operation(
        name="first write",
        run=lambda run: write_deltalake(run.uri, _DATA, partition_by=["p"], txn=KEY),
        effect=lambda state: _begun(*_NEW),
        start=Start.NOTHING,
        commits=("WRITE",),
    ),
    Operation(name="grouped appends", run=_append_in_a_group, effect=_with_group, commits=("WRITE",)),
)
