"""Writes of Arrow data: appends, overwrites, replaceWhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from delta_core.actions import SetTransaction
from delta_core.data.row_files import write_data_files
from delta_core.dml.commit_files import commit_new_files
from delta_core.dml.write import write_deltalake
from delta_core.run import Run
from delta_core.table_features.feature import WriterKind
from tests.concurrency.matrix.footprint import Box, Footprint, MetadataChange
from tests.concurrency.matrix.layouts import ALL_FILES, PARTITION_FILES, Handle, Target, rows
from tests.concurrency.matrix.operation import Case, Operation
from tests.concurrency.matrix.state import Row, TableState

APPLICATION = "nightly load"
EXTRA = "more"
_OVERWRITTEN = ("p3", 200)


def new_row(target: Target) -> Row:
    """The row that the target's owner brings."""
    return target.new, target.partition, target.value


def new_box(target: Target) -> Box:
    """The bounds of a file with that row alone."""
    return Box(partition=target.partition, low=target.new, high=target.new)


def in_range(target: Target, row: Row) -> bool:
    """Whether the target's predicate is true for a row."""
    return row[1] == target.partition and target.low <= row[0] <= target.high


def _data(target: Target) -> pa.Table:
    return rows(target.new, partition=target.partition, value=target.value)


def _with_extra(data: pa.Table) -> pa.Table:
    return data.append_column(EXTRA, pa.array([1] * data.num_rows, pa.int64()))


def _write(case: Case, data: pa.Table, **options: Any) -> object:
    return write_deltalake(
        Handle(case.snapshot),
        data,
        observer=case.interruption,
        commit_properties=case.properties,
        **options,
    )


def _append(case: Case) -> object:
    return _write(case, _data(case.target), mode="append")


def _keyed(version: int) -> Operation:
    def effect(state: TableState, target: Target) -> TableState:
        if state.has_key(APPLICATION, version):
            return state
        return state.plus(new_row(target)).with_key(APPLICATION, version)

    return Operation(
        name=f"append with key {version}",
        commits=("WRITE",),
        run=lambda case: _write(
            case, _data(case.target), mode="append", txn=SetTransaction(app_id=APPLICATION, version=version)
        ),
        footprint=lambda target: Footprint(adds=(new_box(target),), key=(APPLICATION, version)),
        effect=effect,
    )


def _append_after_reading(case: Case) -> object:
    snapshot = case.snapshot
    adds = write_data_files(
        snapshot.store,
        _data(case.target),
        schema=snapshot.schema,
        partition_columns=snapshot.partition_columns,
    )
    return commit_new_files(
        snapshot,
        snapshot.store,
        writer_kind=WriterKind.ARROW_ROWS,
        mode="append",
        adds=adds,
        schema=snapshot.schema,
        reads_table=True,
        run=Run(commit=case.properties, observer=case.interruption),
    )


def _overwritten(target: Target) -> Row:
    partition, row = _OVERWRITTEN
    return row, partition, target.value


def _overwrite(case: Case, **options: Any) -> object:
    partition, row = _OVERWRITTEN
    data = rows(row, partition=partition, value=case.target.value)
    return _write(case, _with_extra(data) if options else data, mode="overwrite", **options)


_OVERWRITE = Footprint(
    reads_all=True,
    removes=ALL_FILES,
    adds=(Box(partition=_OVERWRITTEN[0], low=_OVERWRITTEN[1], high=_OVERWRITTEN[1]),),
)


def _partition(target: Target) -> Box:
    return Box(partition=target.partition)


def _range(target: Target) -> Box:
    return Box(partition=target.partition, low=target.low, high=target.high)


def _kept(target: Target) -> Box:
    return Box(partition=target.partition, low=target.kept, high=target.kept)


WRITES = (
    Operation(
        name="append",
        commits=("WRITE",),
        run=_append,
        footprint=lambda target: Footprint(adds=(new_box(target),)),
        effect=lambda state, target: state.plus(new_row(target)),
    ),
    _keyed(1),
    _keyed(2),
    Operation(
        name="append with a new column",
        commits=("WRITE",),
        run=lambda case: _write(case, _with_extra(_data(case.target)), mode="append", schema_mode="merge"),
        footprint=lambda target: Footprint(adds=(new_box(target),), metadata=MetadataChange.DEMANDING),
        effect=lambda state, target: state.plus(new_row(target)).with_column(EXTRA),
    ),
    Operation(
        name="append after reading",
        commits=("WRITE",),
        run=_append_after_reading,
        footprint=lambda target: Footprint(reads_all=True, adds=(new_box(target),), serializable=True),
        effect=lambda state, target: state.plus(new_row(target)),
    ),
    Operation(
        name="overwrite",
        commits=("WRITE",),
        placed=False,
        run=_overwrite,
        footprint=lambda target: _OVERWRITE,
        effect=lambda state, target: state.without(lambda row: True, _overwritten(target)),
    ),
    Operation(
        name="overwrite schema",
        commits=("WRITE",),
        placed=False,
        run=lambda case: _overwrite(case, schema_mode="overwrite"),
        footprint=lambda target: Footprint(
            reads_all=True,
            removes=ALL_FILES,
            adds=_OVERWRITE.adds,
            metadata=MetadataChange.DEMANDING,
        ),
        effect=lambda state, target: _redefined(state.without(lambda row: True, _overwritten(target))),
    ),
    Operation(
        name="replace partition",
        commits=("WRITE",),
        run=lambda case: _write(
            case, _data(case.target), mode="overwrite", predicate=f"p = '{case.target.partition}'"
        ),
        footprint=lambda target: Footprint(
            reads=(_partition(target),),
            read_files=PARTITION_FILES[target.partition],
            removes=PARTITION_FILES[target.partition],
            adds=(new_box(target),),
        ),
        effect=lambda state, target: state.without(lambda row: row[1] == target.partition, new_row(target)),
    ),
    Operation(
        name="replace rows",
        commits=("WRITE",),
        run=lambda case: _write(case, _data(case.target), mode="overwrite", predicate=case.target.predicate),
        footprint=lambda target: Footprint(
            reads=(_range(target),),
            read_files=frozenset({target.file}),
            removes=frozenset({target.file}),
            adds=(new_box(target), _kept(target)),
        ),
        effect=lambda state, target: state.without(lambda row: in_range(target, row), new_row(target)),
    ),
)


def _redefined(state: TableState) -> TableState:
    return replace(state, columns=("id", "p", "v", EXTRA), not_null=frozenset())
