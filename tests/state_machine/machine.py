"""The machine: a table, the model of it, and what is compared after each step."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from delta_core import DeltaTable
from delta_core.clock import ManualClock
from delta_core.errors import IcebergCompatibilityError, InvalidTableError, UnsupportedTableFeatureError
from delta_core.schema.types import StructType
from delta_core.table_features.feature import WriterKind
from tests.state_machine.features import Way, go_together, open_ways
from tests.state_machine.iceberg import NOT_ICEBERG, breaks_iceberg
from tests.state_machine.model import DAY_MS, KEY, Model, Row, State
from tests.state_machine.operations.registry import OPERATIONS, Draw, Operation
from tests.state_machine.reading import (
    Mirror,
    canonical_model,
    data_files,
    deltalake_rows,
    newest_version,
    ours,
)
from tests.state_machine.store_time import stamped
from tests.state_machine.values import KINDS, PARTITION_KINDS, PLAIN_KINDS, Column
from tests.support.rows import canonical_rows

BEGAN_MS = 1_700_000_000_000
STEP_SECONDS = 10.0
VACUUM_MS = 7 * DAY_MS
TALLY: Counter[str] = Counter()
"""What happened in this process: operations done and refused, tables by feature, what the peer could read."""

_BASE = (
    Column(name=KEY, kind="long"),
    Column(name="n", kind="integer"),
    Column(name="t", kind="string"),
)


class TableMachine(RuleBasedStateMachine):
    """One table; the operations become rules in `machine_of`."""

    def __init__(self) -> None:
        super().__init__()
        self._stack = ExitStack()
        scratch = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="deltaward-machine-")))
        self.clock = ManualClock(BEGAN_MS)
        self._stack.enter_context(stamped(scratch, self.clock))
        self.path = scratch / "table"
        self._mirror = Mirror(self.path, scratch / "commits", self.clock)
        self._next_key = 0
        self._row_ids: dict[int, dict[int, int]] = {}
        self._id_owners: dict[int, int] = {}
        self._steps = 0
        self.table: DeltaTable
        self.newest: DeltaTable
        self.model: Model
        self.ways: tuple[Way, ...] = ()
        self.names = 0

    @initialize(data=st.data())
    def create(self, data: st.DataObject) -> None:
        """A table with some features, some columns, and perhaps partitions."""
        draw = data.draw
        names = draw(
            st.sets(st.sampled_from([way.name for way in open_ways()]), max_size=4).filter(
                lambda found: go_together(frozenset(found))
            )
        )
        self.ways = tuple(way for way in open_ways() if way.name in names)
        columns = [*_BASE]
        columns += [column for way in self.ways for column in way.columns]
        excluded = {kind for way in self.ways for kind in NOT_ICEBERG.get(way.feature, ())}
        plain = [kind for kind in PLAIN_KINDS if kind not in excluded]
        kinds = draw(st.lists(st.sampled_from(plain), max_size=2))
        columns += [Column(name=f"x{at}", kind=kind) for at, kind in enumerate(kinds)]
        partition_by: tuple[str, ...] = ()
        clustered_by = tuple(name for way in self.ways for name in way.cluster_by)
        if not clustered_by and draw(st.booleans()):
            columns.append(Column(name="p", kind=draw(st.sampled_from(PARTITION_KINDS))))
            partition_by = ("p",)
        given = {key: value for way in self.ways for key, value in way.properties.items()}
        given["delta.checkpointInterval"] = draw(st.sampled_from(["2", "5", "100"]))
        state = State(
            columns=tuple(columns),
            partition_by=partition_by,
            clustered_by=clustered_by,
            properties=_stored(given),
        )
        self.table = DeltaTable.create(
            self.path,
            StructType(tuple(column.to_field() for column in columns)),
            partition_by=partition_by,
            configuration=given,
            cluster_by=clustered_by or None,
            clock=self.clock,
        )
        self.model = Model(state, self.clock.now_ms())
        TALLY.update(f"table with {way.name}" for way in self.ways)
        TALLY["tables"] += 1
        self.check()

    def teardown(self) -> None:
        self._stack.close()

    # ------------------------------------------------------------ for the operations

    @property
    def state(self) -> State:
        """What the newest version should be."""
        return self.model.state

    def fresh(self, version: int | None = None) -> DeltaTable:
        """A handle of its own."""
        return DeltaTable(self.path, version, clock=self.clock)

    def target(self, draw: Draw) -> DeltaTable | Path:
        """Where to write: the handle that has been open all along, or the path.

        The handle follows first, since an append through one that is behind goes by the schema it knows.
        """
        self.table.update_incremental()
        return self.table if draw(st.booleans()) else self.path

    def new_rows(
        self,
        draw: Draw,
        *,
        columns: Sequence[Column] | None = None,
        most: int = 4,
        fitting: Callable[[Row], bool] | None = None,
    ) -> tuple[list[Column], dict[int, Row]]:
        """The columns that are given, and rows with keys that are new; `fitting` leaves others away."""
        state = self.state
        of = list(state.columns if columns is None else columns)
        given = [one for one in of if one.is_given and (one.default is None or draw(st.booleans()))]
        rows: dict[int, Row] = {}
        for _ in range(draw(st.integers(0, most))):
            row: dict[str, Any] = {}
            for column in given:
                if column.name == KEY:
                    row[KEY] = self._next_key
                    self._next_key += 1
                else:
                    row[column.name] = draw(column.draws(partition=column.name in state.partition_by))
            for column in of:
                if column.name not in row:
                    row[column.name] = column.default[1] if column.default is not None else None
                if column.generated_from is not None and row.get(column.generated_from) is not None:
                    row[column.name] = row[column.generated_from] + 1
            if fitting is None or fitting(row):
                rows[row[KEY]] = row
        return given, rows

    def refuses(self, writer_kind: WriterKind) -> bool:
        """Whether the table has a feature that this surface does not write."""
        try:
            self.newest.snapshot.require_writable(writer_kind=writer_kind)
        except UnsupportedTableFeatureError:
            return True
        return False

    def does(self, call: Callable[[], Any], state: State, *, writer_kind: WriterKind) -> bool:
        """Run what leaves the table in this state, unless the surface refuses it, or the table's promises."""
        removes_rows = not self.state.rows.keys() <= state.rows.keys()
        if self.refuses(writer_kind):
            self.fails(UnsupportedTableFeatureError, call)
            TALLY[f"refused: {writer_kind.name}"] += 1
            return False
        if breaks_iceberg(self.newest, self.state, state):
            self.fails((IcebergCompatibilityError, InvalidTableError), call)
            return False
        if self.state.append_only and removes_rows:
            self.fails(InvalidTableError, call)
            return False
        call()
        self.settle(state)
        return True

    def settle(self, state: State, *, meanwhile: State | None = None) -> None:
        """Whatever was committed since, the table has this state now; `meanwhile` is that of earlier ones."""
        new = range(self.model.latest + 1, newest_version(self.path) + 1)
        if new:
            self.newest = self.fresh()
            state = self.with_numbers(state, self.newest)
        for version in new:
            last = version == new.stop - 1
            self.model.add(
                state if last or meanwhile is None else meanwhile, self.clock.now_ms() + version - new.start
            )
        if not new:
            assert state.rows == self.state.rows, "the rows should have changed, and there is no commit"

    def fails(self, errors: type[Exception] | tuple[type[Exception], ...], call: Callable[[], Any]) -> None:
        """Run what must fail, and leave no commit and no file behind."""
        files = data_files(self.path)
        with pytest.raises(errors):
            call()
        assert newest_version(self.path) == self.model.latest, "what failed left a commit"
        assert data_files(self.path) == files, "what failed left files"

    def with_numbers(self, state: State, table: DeltaTable) -> State:
        """The state with the numbers that the table gave its new rows."""
        columns = [column.name for column in state.columns if column.identity]
        if not columns:
            return state
        missing = [key for key, row in state.rows.items() for name in columns if row.get(name) is None]
        if not missing:
            return state
        found = {row[KEY]: row for row in table.to_pyarrow_table([KEY, *columns]).to_pylist()}
        rows = dict(state.rows)
        for name in columns:
            before = {row[name] for key, row in rows.items() if key not in missing}
            given = [found[key][name] for key in missing]
            assert None not in given, f"{name} has rows without a number"
            assert len({*given, *before}) == len(given) + len(before), f"{name} gave a number twice"
            for key in missing:
                rows[key] = {**rows[key], name: found[key][name]}
        return state.with_rows(rows)

    # ------------------------------------------------------------ after each step

    def perform(self, operation: Operation, draw: Draw) -> None:
        """One step."""
        self.clock.advance(STEP_SECONDS)
        operation.run(self, draw)
        self.clock.advance(STEP_SECONDS)
        TALLY[f"did: {operation.name}"] += 1
        self.check()

    def check(self) -> None:
        """Compare everything that the module's first line names."""
        self._steps += 1
        model, expected = self.model, canonical_model(self.state.visible())
        table = self.fresh()
        assert table.version() == model.latest
        self.newest = table
        _same(canonical_rows(table.to_pyarrow_table()), expected, "the table as it is")
        self._check_definition(table)
        _same(self._mirror.from_commits(), expected, "from its commits alone")
        if not self.refuses(WriterKind.CHECKPOINT):
            _same(self._mirror.from_checkpoint(), expected, "from a checkpoint alone")
        theirs = deltalake_rows(self.path)
        TALLY["deltalake " + ("did not read it" if theirs is None else "read it")] += 1
        if theirs is not None:
            _same(theirs, expected, "by deltalake")
        if self.table.version() in model.promised():
            held = canonical_model(model.at(self.table.version()).visible())
            _same(canonical_rows(self.table.to_pyarrow_table()), held, "by the handle")
        older = random.Random(self._steps).choice(model.promised())
        _same(
            ours(self.path, self.clock, older), canonical_model(model.at(older).visible()), f"version {older}"
        )
        self._check_changes(table)
        self._check_row_ids(table)

    def _check_definition(self, table: DeltaTable) -> None:
        state, snapshot = self.state, table.snapshot
        # As text: where columns are mapped, those within a struct have ids and physical names besides.
        fields = [(found.name, str(found.data_type), found.nullable) for found in table.schema()]
        assert fields == [(one.name, str(KINDS[one.kind].delta), one.nullable) for one in state.columns]
        assert tuple(snapshot.partition_columns) == state.partition_by
        assert tuple(table.detail()["clustering_columns"]) == state.clustered_by
        configuration = table.metadata().configuration
        assert state.properties.items() <= configuration.items()
        constraints = {key for key in configuration if key.startswith("delta.constraints.")}
        assert constraints == {f"delta.constraints.{name}" for name in state.constraints}
        assert (table.metadata().name, table.metadata().description) == (state.name, state.description)
        domains = {
            name: found.configuration
            for name, found in table.domain_metadata().items()
            if not name.startswith("delta.")
        }
        assert domains == state.domains
        known = {name: found.version for name, found in table.transactions().items()}
        assert self.model.transactions.items() <= known.items()
        assert snapshot.checksum_discrepancies == ()

    def _check_changes(self, table: DeltaTable) -> None:
        """The newest version's change feed leads from the version before to it."""
        if self.model.latest == 0 or self.model.latest - 1 not in self.model.promised():
            return
        before, after = self.model.at(self.model.latest - 1), self.state
        if before.columns != after.columns or not (before.records_changes and after.records_changes):
            return
        names = [column.name for column in after.columns]
        changes = table.load_cdf(self.model.latest, self.model.latest).read_all()
        kinds = changes.column("_change_type").to_pylist()
        gone = _chosen(changes, names, [kind in ("delete", "update_preimage") for kind in kinds])
        came = _chosen(changes, names, [kind in ("insert", "update_postimage") for kind in kinds])
        rows = Counter(canonical_model(before.visible()))
        rows.subtract(gone)
        rows.update(came)
        assert min(rows.values(), default=0) >= 0, "the change feed deletes rows that there were not"
        _same(sorted(rows.elements()), canonical_model(after.visible()), "by the change feed")
        TALLY["change feeds"] += 1

    def _check_row_ids(self, table: DeltaTable) -> None:
        """A row keeps its id for as long as row tracking stays on, and no two rows ever have the same."""
        if not self.state.tracks_rows:
            return
        found = table.to_pyarrow_table([KEY], row_ids=True)
        ids = dict(zip(found.column(KEY).to_pylist(), found.column("_row_id").to_pylist(), strict=True))
        assert None not in ids.values()
        for key, row_id in ids.items():
            assert self._id_owners.setdefault(row_id, key) == key, f"row {key} has the id of another"
        assert len(set(ids.values())) == len(ids), "two rows have the same id"
        before = self._known_row_ids(table)
        for key in ids.keys() & before.keys():
            assert ids[key] == before[key], f"row {key} has another id now"
        self._row_ids[table.version()] = ids
        versions = found.column("_row_commit_version").to_pylist()
        assert all(0 <= version <= table.version() for version in versions)

    def _known_row_ids(self, table: DeltaTable) -> dict[int, int]:
        """The ids that rows must still have: those of the last version seen, or of the one that came back.

        None where row tracking was off in between: rows that are copied then get new ids.
        """
        newest = table.history(1)[0].commit_info
        if newest.operation == "RESTORE":
            text = str(newest.operation_parameters.get("version"))
            return self._row_ids.get(int(text), {}) if text.isdigit() else {}
        seen = max((version for version in self._row_ids if version <= table.version()), default=None)
        if seen is None:
            return {}
        passed = range(seen, table.version() + 1)
        return self._row_ids[seen] if all(self.model.at(one).tracks_rows for one in passed) else {}

    # ------------------------------------------------------------ time

    def pass_days(self, days: float) -> None:
        """Let time pass for the table and for us."""
        self.clock.advance(days * 86_400)

    def give_up(self, *, log_ms: int | None = None, files_ms: int | None = None) -> None:
        """What a clean-up of the log, or a vacuum, may take away: versions that nobody saw since then."""
        for kept_ms in (log_ms, files_ms):
            if kept_ms is not None:
                self.model.promise_from(self.model.first_within(self.clock.now_ms() - kept_ms))


def _stored(given: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in given.items() if not key.startswith("delta.feature.")}


def _chosen(table: pa.Table, names: Sequence[str], mask: Sequence[bool]) -> list[str]:
    return canonical_rows(table.filter(pa.array(mask, pa.bool_())).select(names))


def _same(found: list[str], expected: list[str], what: str) -> None:
    if found == expected:
        return
    mine, others = Counter(found), Counter(expected)
    surplus, lacking = list((mine - others).elements()), list((others - mine).elements())
    raise AssertionError(
        f"{what}: {len(surplus)} rows too many, {len(lacking)} too few; "
        f"such as {surplus[:1]} and {lacking[:1]}"
    )


def _rule_of(operation: Operation) -> Callable[..., None]:
    def run(self: TableMachine, data: st.DataObject) -> None:
        self.perform(operation, data.draw)

    def possible(self: TableMachine) -> bool:
        return operation.possible(self)

    run.__name__ = operation.name
    run.__doc__ = operation.run.__doc__
    return precondition(possible)(rule(data=st.data())(run))


def machine_of(operations: Sequence[Operation] = OPERATIONS) -> type[TableMachine]:
    """The machine whose rules are these operations."""
    return type("TableStateMachine", (TableMachine,), {one.name: _rule_of(one) for one in operations})
