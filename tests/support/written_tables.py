"""Tables that we write with random steps, and what each of their versions must hold.

The steps are the state machine's operations, those that change a table and leave every version readable: an
operation that joins the machine joins here.
"""

from __future__ import annotations

import random
import shutil
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import UnsatisfiedAssumption

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import InvalidTableError
from delta_core.schema.types import StructType
from delta_core.table_features.feature import WriterKind
from tests.state_machine.features import Way
from tests.state_machine.iceberg import breaks_iceberg
from tests.state_machine.machine import _BASE, STEP_SECONDS, _same, _stored, machine_of
from tests.state_machine.model import Model, Row, State
from tests.state_machine.operations.definition import _CONSTRAINTS
from tests.state_machine.operations.registry import OPERATIONS, Draw, Operation
from tests.state_machine.reading import canonical_model
from tests.state_machine.values import PARTITION_KINDS, Column, arrow_table
from tests.support.rows import canonical_rows

T = TypeVar("T")

_NO_STEPS = frozenset({"failing", "reading"})
"""Modules of operations that change nothing."""

_LEFT_OUT = frozenset(
    {
        "add_feature",
        "checksum",
        "enable_feature",
        "ignore_existing",
        "plan_a_restore",
        "plan_a_vacuum",
        "time_passes",
        "vacuum_everything",
    }
)
"""Those that would give up versions, would change nothing, or turn on what the table's name does not say."""

_ONLY_WITH = {
    "add_constraint": "constraints",
    "cluster_by": "clustering",
    "assign_row_ids": "row-tracking",
    "set_domain": "domains",
}
"""Operations that turn a feature on: only for tables that are to have it."""

_WEIGHTS = {
    "append": 4,
    "delete": 5,
    "update": 5,
    "replace_where": 3,
    "compact": 2,
    "purge": 2,
    "z_order": 2,
    "cluster": 3,
}


def steps() -> tuple[Operation, ...]:
    """The operations that tables here are made with."""
    return tuple(
        one
        for one in OPERATIONS
        if one.name not in _LEFT_OUT and one.run.__module__.rsplit(".", 1)[-1] not in _NO_STEPS
    )


class WrittenTable(machine_of()):  # type: ignore[misc] - a class that is made of the operations
    """One table; its model knows the rows of every version."""

    def __init__(self) -> None:
        super().__init__()
        self.done: Counter[str] = Counter()

    def begin(self, ways: Iterable[Way], draw: Draw) -> None:
        """Create the table, with the columns and properties of these ways, and some rows."""
        self.ways = tuple(ways)
        names = {way.name for way in self.ways}
        columns = [*_BASE, *(column for way in self.ways for column in way.columns)]
        partition_by: tuple[str, ...] = ()
        if names & {"partitions", "materialized-partitions"}:
            columns.append(Column(name="p", kind=draw(st.sampled_from(PARTITION_KINDS))))
            partition_by = ("p",)
        properties = {"delta.checkpointInterval": draw(st.sampled_from(["4", "7", "100"]))}
        properties |= {key: value for way in self.ways for key, value in way.properties.items()}
        clustered_by = tuple(name for way in self.ways for name in way.cluster_by)
        self.table = DeltaTable.create(
            self.path,
            StructType(tuple(column.to_field() for column in columns)),
            partition_by=partition_by,
            configuration=properties,
            cluster_by=clustered_by or None,
            clock=self.clock,
        )
        state = State(
            columns=tuple(columns),
            partition_by=partition_by,
            clustered_by=clustered_by,
            properties=_stored(properties),
        )
        self.model = Model(state, self.clock.now_ms())
        self.check()
        self.add_rows(draw, least=6)
        if "constraints" in names:
            kept = self.state.matching(_CONSTRAINTS["key"])
            assert kept == self.state.rows
            self.clock.advance(STEP_SECONDS)
            self.table.alter.add_constraint({"key": _CONSTRAINTS["key"].text})
            self.settle(replace(self.state, constraints={"key": _CONSTRAINTS["key"]}))
        self.check()

    def add_rows(self, draw: Draw, *, least: int) -> None:
        """Append at least so many rows, in files of few."""
        self.clock.advance(STEP_SECONDS)
        rows: dict[int, Row] = {}
        columns: list[Column] = []
        while len(rows) < least:
            found, more = self.new_rows(draw)
            if columns and found != columns:
                continue  # all of them give the same columns
            columns = found
            rows |= {key: row for key, row in more.items() if not self.state.break_a_constraint({key: row})}
        data = arrow_table(columns, list(rows.values()))
        write_deltalake(self.path, data, mode="append", max_rows_per_file=3, clock=self.clock)
        self.settle(self.state.with_more(rows))

    def step(self, rng: random.Random, draw: Draw) -> None:
        """One operation that the table's state lets make sense."""
        names = {way.name for way in self.ways}
        possible = [
            one
            for one in steps()
            if (one.name not in _ONLY_WITH or _ONLY_WITH[one.name] in names) and one.possible(self)
        ]
        (chosen,) = rng.choices(possible, [_WEIGHTS.get(one.name, 1) for one in possible])
        self.perform(chosen, draw)
        self.done[chosen.name] += 1
        if len(self.state.rows) < 3 and not self.refuses_rows():
            self.add_rows(draw, least=4)
            self.check()

    def does(self, call: Callable[[], Any], state: State, *, writer_kind: WriterKind) -> bool:
        """As the machine; a table that only grows may refuse what happens to take no row away."""
        free = not self.refuses(writer_kind) and not breaks_iceberg(self.newest, self.state, state)
        if self.state.append_only and free:
            try:
                call()
            except InvalidTableError:
                self.settle(self.state)
                return False
            self.settle(state)
            return True
        return bool(super().does(call, state, writer_kind=writer_kind))

    def refuses_rows(self) -> bool:
        """Whether the table's rows come from elsewhere."""
        return bool(self.refuses(WriterKind.ARROW_ROWS))

    def check(self) -> None:
        """That we read the newest version as the model has it; the peers come at the end."""
        self._steps += 1
        table = self.fresh()
        assert table.version() == self.model.latest
        self.newest = table
        _same(canonical_rows(table.to_pyarrow_table()), canonical_model(self.state.visible()), "by us")
        self._check_definition(table)
        self._check_changes(table)
        self._check_row_ids(table)

    def copied(self, path: Path) -> DeltaTable:
        """The table at another place: a checkpoint of ours, and none of the commits before it."""
        shutil.copytree(self.path, path)
        table = DeltaTable(path, clock=self.clock)
        info = table.create_checkpoint()
        assert info.version == self.model.latest
        for commit in (path / "_delta_log").glob("*.json"):
            if commit.stem.isdigit() and int(commit.stem) < info.version:
                commit.unlink()
        return table

    def rows_for_a_peer(self, draw: Draw) -> tuple[pa.Table, dict[int, Row]]:
        """Rows that no constraint forbids, with every column that the table does not make by itself."""
        of = [replace(column, default=None) for column in self.state.columns]
        rows: dict[int, Row] = {}
        given: list[Column] = []
        while len(rows) < 2:
            given, more = self.new_rows(draw, columns=of)
            rows |= {key: row for key, row in more.items() if not self.state.break_a_constraint({key: row})}
        return arrow_table(given, list(rows.values())), rows


def drawn(name: str, run: Callable[[Draw], T]) -> T:
    """What `run` gives with values that only depend on the name.

    Hypothesis begins with the simplest values, then takes random ones, of which the first are used. Values
    that are too many, or that it throws away, make it begin again.

    Raises:
        Exception: whatever `run` raised.
    """
    outcome: list[Any] = []

    @seed(zlib.crc32(name.encode()))
    @settings(
        max_examples=2,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def example(data: st.DataObject) -> None:
        if data.draw(st.integers(0, 2**40)) == 0:
            return
        outcome.clear()
        try:
            outcome.append((run(data.draw), None))
        except UnsatisfiedAssumption:
            raise
        except Exception as error:
            outcome.append((None, error))

    example()
    assert outcome, f"{name}: nothing could be drawn"
    found, error = outcome[-1]
    if error is not None:
        raise error
    result: T = found
    return result
