"""Every pair of operations in every layout at both levels: what the written rules say, happens.

The cells are generated: an operation added to `matrix.operations` meets all the others, and a name that the
package commits but no operation has fails a test here.
"""

from __future__ import annotations

from unittest.mock import patch

import pytest

from delta_core.transaction import conflict_checker
from tests.concurrency.matrix.cells import cells_of, every_pair, faults_of, run_cell
from tests.concurrency.matrix.committed import committed_names
from tests.concurrency.matrix.layouts import Layout
from tests.concurrency.matrix.operation import Operation
from tests.concurrency.matrix.operations import LEVELS, OPERATIONS
from tests.concurrency.matrix.specification import ERRORS, Verdict
from tests.support.soak import drawn

PAIRS = 110

ELSEWHERE = {
    "CREATE TABLE": "races of creators start without a table: the simulation, and test_processes",
    "REPLACE TABLE": "it overwrites all rows as an overwrite does; test_replace_table.py races",
    "CREATE OR REPLACE TABLE": "as REPLACE TABLE",
    "CLONE": "it replaces a clone as a whole: test_clone.py races with an append and with another clone",
    "CONVERT": "it begins a table: test_convert.py lets another writer begin it first",
    "CLUSTER BY": "the matrix's table has partitions, which exclude it; test_clustered_tables.py races",
    "DROP COLUMNS": "it needs a column mapping, which the matrix's table has not; else it is as ADD COLUMNS",
    "RENAME COLUMN": "it needs a column mapping, which the matrix's table has not; else it is as ADD COLUMNS",
    "REORG": "it needs deletion vectors; it commits as a compaction does; test_preserving.py races",
    "ROW TRACKING BACKFILL": "rows of the matrix's table have no ids; test_backfill.py races",
    "REMOVE DOMAIN METADATA": "the matrix's table has no domain; test_definition_features.py races on one",
    **dict.fromkeys(
        (
            "DROP FEATURE",
            "Deletion Vector Tombstones",
            "ROW TRACKING UNBACKFILL",
            "CHANGE COLUMNS",
            "REMOVE COLUMN MAPPING",
            "Empty Commit",
        ),
        "steps of a feature's drop, which goes on from any winner; test_feature_drop_*.py race at each",
    ),
}
"""Names that the package commits and that make no row of the matrix, with the reason."""


def _pair_name(pair: tuple[Operation, Operation]) -> str:
    return f"{pair[0].name} after {pair[1].name}"


def _sampled() -> list[tuple[Operation, Operation]]:
    """Some pairs, with every operation on each side; all of them under `make soak-conflict-matrix`."""
    pairs = drawn(every_pair(), usual=PAIRS)
    for side in (0, 1):
        there = {pair[side].name for pair in pairs}
        for name in OPERATIONS:
            if name not in there:
                pairs += drawn((pair for pair in every_pair() if pair[side].name == name), usual=1)
    return pairs


@pytest.mark.parametrize("pair", _sampled(), ids=_pair_name)
def test_pair(pair: tuple[Operation, Operation]) -> None:
    faults = [f"{cell}: {fault}" for cell in cells_of(*pair) for fault in faults_of(cell, run_cell(cell))]
    assert not faults, "\n".join(faults)


def test_the_matrix_is_complete() -> None:
    cells = [cell for pair in every_pair() for cell in cells_of(*pair)]
    assert len(cells) == len({str(cell) for cell in cells})
    placed = sum(operation.placed for operation in OPERATIONS.values())
    layouts = placed * len(Layout) + (len(OPERATIONS) - placed)
    assert len(cells) == len(OPERATIONS) * layouts * len(LEVELS)


def test_every_rule_decides_some_cell() -> None:
    verdicts = {cell.specified for pair in every_pair() for cell in cells_of(*pair)}
    assert {verdict.rule for verdict in verdicts} == {None, *ERRORS}
    assert Verdict(already_applied=True) in verdicts


@pytest.mark.parametrize("rule", ERRORS)
def test_a_missing_rule_is_noticed(rule: str) -> None:
    """The matrix would not be green if the library forgot a rule."""
    left = tuple(one for one in conflict_checker.CONFLICT_RULES if one.name != rule)
    assert len(left) == len(conflict_checker.CONFLICT_RULES) - 1
    decided = [cell for pair in every_pair() for cell in cells_of(*pair) if cell.specified.rule == rule]
    with patch.object(conflict_checker, "CONFLICT_RULES", left):
        assert all(faults_of(cell, run_cell(cell)) for cell in decided[:3])


def test_write_serializable_only_lets_more_pass() -> None:
    """A weaker level takes no permission away, and what it adds is the reordering of blind appends."""
    added = 0
    for pair in every_pair():
        verdicts: dict[Layout, list[Verdict]] = {}
        for cell in cells_of(*pair):
            verdicts.setdefault(cell.layout, []).append(cell.specified)
        for strict, weak in verdicts.values():
            if strict != weak:
                assert strict.rule == "concurrent_append"
                assert weak.rule is None
                added += 1
    assert added > 0


def test_every_committed_name_is_in_the_matrix() -> None:
    named = {name for operation in OPERATIONS.values() for name in operation.commits}
    committed = committed_names()
    assert committed - named - set(ELSEWHERE) == set(), "an operation is missing in matrix/operations.py"
    assert set(ELSEWHERE) <= committed
    assert {"WRITE", "OPTIMIZE", "RESTORE", "VACUUM END", "MERGE", "ADD COLUMNS"} <= committed
