"""Reading in other ways than the checks after each step do."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from tests.state_machine.conditions import conditions
from tests.state_machine.model import KEY
from tests.state_machine.operations.registry import Draw, operation
from tests.state_machine.reading import canonical_model
from tests.support.rows import canonical_rows

if TYPE_CHECKING:
    from tests.state_machine.machine import TableMachine


@operation
def read_where(machine: TableMachine, draw: Draw) -> None:
    """The rows for which a predicate is true, at any promised version."""
    version = draw(st.sampled_from(machine.model.promised()))
    state = machine.model.at(version)
    condition = draw(conditions(state))
    matching = state.with_rows(state.matching(condition)).visible()
    found = machine.fresh(version).to_pyarrow_table(filters=condition.text)
    assert canonical_rows(found) == canonical_model(matching), condition.text


@operation
def read_columns(machine: TableMachine, draw: Draw) -> None:
    """Some columns, in an order of the reader's."""
    names = [column.name for column in machine.state.columns]
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    found = machine.fresh().to_pyarrow_table(chosen)
    assert found.column_names == chosen
    rows = [{name: row[name] for name in chosen} for row in machine.state.visible()]
    assert canonical_rows(found) == canonical_model(rows)


@operation
def read_in_shares(machine: TableMachine, draw: Draw) -> None:
    """Readers side by side get each row once."""
    count = draw(st.integers(1, 3))
    table = machine.fresh()
    keys = [
        key
        for index in range(count)
        for batch in table.to_batches([KEY], shard=(index, count))
        for key in batch.column(0).to_pylist()
    ]
    assert sorted(keys) == sorted(machine.state.rows)


@operation
def read_as_of_a_time(machine: TableMachine, draw: Draw) -> None:
    """The version that was current between two commits."""
    version = draw(st.sampled_from(machine.model.promised()))
    time_ms = machine.model.versions[version].time_ms
    if version < machine.model.latest:
        time_ms = draw(st.sampled_from([time_ms, machine.model.versions[version + 1].time_ms - 1]))
    table = machine.fresh()
    table.load_as_version(timestamp_ms=time_ms)
    assert table.version() == version
    assert canonical_rows(table.to_pyarrow_table()) == canonical_model(machine.model.at(version).visible())


@operation
def handle_goes_back(machine: TableMachine, draw: Draw) -> None:
    """The handle that writes come through shows an older version until then."""
    machine.table.load_as_version(draw(st.sampled_from(machine.model.promised())))


@operation
def handle_follows(machine: TableMachine, draw: Draw) -> None:
    """The handle reads the commits that are new to it."""
    machine.table.update_incremental()
    assert machine.table.version() == machine.model.latest


@operation
def read_history(machine: TableMachine, draw: Draw) -> None:
    """Every promised version has an entry, the newest first."""
    versions = [entry.version for entry in machine.fresh().history()]
    assert versions == sorted(versions, reverse=True)
    assert set(machine.model.promised()) <= set(versions)


@operation
def read_changes(machine: TableMachine, draw: Draw) -> None:
    """The change feed of several versions leads from the first to the last."""
    promised = machine.model.promised()
    last = machine.model.latest
    first = last
    while (
        first > promised.start + 1
        and machine.model.at(first - 1).records_changes
        and machine.model.at(first - 2).records_changes
        # A column may have come and gone in between, whose changes are asked for no more.
        and machine.model.at(first - 1).columns == machine.state.columns
        and machine.model.at(first - 2).columns == machine.state.columns
    ):
        first -= 1
    if not (machine.state.records_changes and first < last):
        return
    changes = machine.fresh().load_cdf(first).read_all()
    count: Counter[int] = Counter(machine.model.at(first - 1).rows.keys())
    keys, kinds = (changes.column(name).to_pylist() for name in (KEY, "_change_type"))
    for key, kind in zip(keys, kinds, strict=True):
        count[key] += 1 if kind in ("insert", "update_postimage") else -1
    assert set(count.values()) <= {0, 1}
    assert {key for key, found in count.items() if found} == set(machine.state.rows)
