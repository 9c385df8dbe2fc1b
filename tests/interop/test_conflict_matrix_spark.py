"""Cells of the conflict matrix, run by delta-spark too: the same conflict or none, of the same kind.

Each transaction reads what its footprint says and commits the very actions that the operation commits here.
Where this project is meant to differ, the rule says why, and what delta-spark does there is checked as well.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from delta_core.snapshot.snapshot import Snapshot
from delta_core.transaction.isolation import IsolationLevel
from tests.concurrency.matrix.cells import Cell, cells_of, every_pair, faults_of, run_cell
from tests.concurrency.matrix.footprint import Box, Footprint, MetadataChange
from tests.concurrency.matrix.layouts import Layout, Target, targets, template
from tests.concurrency.matrix.operation import Case, Interruption, Operation
from tests.concurrency.matrix.specification import Verdict
from tests.support.delta_spark import by_delta_spark
from tests.support.soak import rounds

PAIRS_OF_CLASSES = rounds(usual=2, soak=10_000)
CELLS = rounds(usual=4, soak=60)
OF_EACH_KIND = 1
DIFFERENCES_DRAWN = rounds(usual=2, soak=10)

KINDS = {
    "metadata_changed": "MetadataChangedException",
    "concurrent_append": "ConcurrentAppendException",
    "delete_read": "ConcurrentDeleteReadException",
    "delete_delete": "ConcurrentDeleteDeleteException",
    "same_application": "ConcurrentTransactionException",
}
"""What delta-spark raises where one of our rules fires."""

DIFFERENCES = {
    "inert metadata": "a blind append passes a change that says nothing about data files; there it fails",
    "rearranged files": "files that hold the same rows count neither as added nor as removed; there they do",
    "statistics": "an added file is ruled out by its statistics too, there by its partition alone",
    "rewritten files": "who only rearranges files reads none of their rows; there the kind is another",
    "applied twice": "a version that the table has by then is success; there it is a conflict",
}

NOT_THERE = {
    "vacuum": "two commits of no action",
    "repair": "there is no such statement there",
    "add a column of a new feature": "the feature has to be enabled there in a commit before",
    "add a feature": "its commit would be of another protocol there, with features of its own",
    "set the first domain": "users have no domains of their own there",
}
"""Operations whose commits are not to be made by delta-spark as they are."""


def _class(operation: Operation, target: Target) -> str:
    footprint = operation.footprint(target)
    if footprint.metadata is not MetadataChange.NONE:
        return f"{footprint.metadata} metadata"
    if not footprint.data_change:
        return "rearrangement"
    if footprint.is_blind_append:
        return "blind append"
    return "whole table" if footprint.reads_all else "row change"


def _as_there(cell: Cell) -> tuple[str | None, str | None]:
    """What delta-spark answers, and the difference that it comes from when our answer is another."""
    at_loser, at_winner = targets(cell.layout)
    loser, winner = cell.loser.footprint(at_loser), cell.winner.footprint(at_winner)
    ours = cell.specified
    theirs = _their_rules(loser, winner, cell)
    wanted = KINDS[ours.rule] if ours.rule else None
    if theirs == wanted and not ours.already_applied:
        return theirs, None
    return theirs, _reason(loser, winner, ours)


def _their_rules(loser: Footprint, winner: Footprint, cell: Cell) -> str | None:
    """`ConflictChecker.checkConflicts` of delta-spark 4.4, over footprints."""
    if winner.metadata is not MetadataChange.NONE:
        return KINDS["metadata_changed"]
    if loser.key and winner.key and loser.key[0] == winner.key[0]:
        return KINDS["same_application"]
    weak = cell.level is IsolationLevel.WRITE_SERIALIZABLE and loser.metadata is MetadataChange.NONE
    checked = loser.data_change and not (weak and winner.is_blind_append)
    partitions = {box.partition for box in winner.adds}
    reads = {box.partition for box in loser.reads}
    if checked and partitions and (loser.reads_all or partitions & reads):
        return KINDS["concurrent_append"]
    read_files = loser.read_files if loser.data_change else loser.removes
    if read_files & winner.removes or (loser.reads_all and winner.removes):
        return KINDS["delete_read"]
    return KINDS["delete_delete"] if loser.removes & winner.removes else None


def _reason(loser: Footprint, winner: Footprint, ours: Verdict) -> str:
    if ours.already_applied:
        return "applied twice"
    if winner.metadata is not MetadataChange.NONE:
        return "inert metadata"
    if not loser.data_change:
        return "rewritten files"
    return "statistics" if winner.data_change else "rearranged files"


def _request(operation: Operation, target: Target, level: IsolationLevel) -> dict[str, Any]:
    footprint = operation.footprint(target)
    # An OPTIMIZE reads the files that it puts together, whatever their partition has besides.
    together = frozenset() if footprint.data_change else footprint.removes
    return {
        "reads_all": footprint.reads_all,
        "reads": [_conjuncts(box) for box in footprint.reads],
        "files": [_add_line(label, level) for label in sorted(together)],
        "app_id": footprint.key[0] if footprint.key else None,
        "actions": _actions(operation, target, level),
    }


def _add_line(label: str, level: IsolationLevel) -> str:
    path = template(level).paths[label]
    return next(
        line
        for _, text in _log(level)
        for line in text.splitlines()
        if json.loads(line).get("add", {}).get("path") == path
    )


def _conjuncts(box: Box) -> list[str]:
    strings = [f"p = '{box.partition}'"]
    if box != Box(partition=box.partition):
        strings += [f"id >= {box.low}", f"id <= {box.high}"]
    return strings


def _actions(operation: Operation, target: Target, level: IsolationLevel) -> list[str]:
    """What the operation commits when it is alone, but for the provenance."""
    start = template(level)
    store = start.store.fork()
    snapshot = Snapshot.load(store)
    operation.run(Case(snapshot=snapshot, target=target, paths=start.paths, interruption=Interruption()))
    lines = store.read(f"_delta_log/{start.version + 1:020}.json").decode().splitlines()
    return [line for line in lines if "commitInfo" not in json.loads(line)]


def drawn_cells(seed: str) -> list[Cell]:
    """Cells where both answer alike, of pairs of classes and of each answer, then differences."""
    rng = random.Random(seed)
    groups: dict[tuple[str, str], list[Cell]] = {}
    different: dict[str, list[Cell]] = {}
    for pair in every_pair():
        if {pair[0].name, pair[1].name} & set(NOT_THERE):
            continue
        for cell in cells_of(*pair):
            at_loser, at_winner = targets(cell.layout)
            loser = cell.loser.footprint(at_loser)
            if loser.serializable and cell.level is not IsolationLevel.SERIALIZABLE:
                continue  # the level of a single transaction is not to be chosen there
            reason = _as_there(cell)[1]
            if reason is None:
                classes = _class(cell.loser, at_loser), _class(cell.winner, at_winner)
                groups.setdefault(classes, []).append(cell)
            else:
                different.setdefault(reason, []).append(cell)
    pairs_drawn = rng.sample(list(groups), min(len(groups), PAIRS_OF_CLASSES))
    drawn = [rng.choice(groups[classes]) for classes in pairs_drawn]
    alike = [cell for group in groups.values() for cell in group]
    for answer in (None, *KINDS.values()):
        rest = [cell for cell in alike if _as_there(cell)[0] == answer and cell not in drawn]
        drawn += rng.sample(rest, min(len(rest), OF_EACH_KIND))
    for layout in set(Layout) - {cell.layout for cell in drawn}:
        drawn.append(rng.choice([cell for cell in alike if cell.layout == layout]))
    rest = [cell for cell in alike if cell not in drawn]
    drawn += rng.sample(rest, max(0, CELLS - len(drawn)))
    assert set(different) == set(DIFFERENCES)
    reasons = rng.sample(list(DIFFERENCES), min(len(DIFFERENCES), DIFFERENCES_DRAWN))
    return [*drawn, *(rng.choice(different[reason]) for reason in reasons)]


def test_what_is_drawn(seed: str) -> None:
    cells = drawn_cells(seed)
    alike = [cell for cell in cells if _as_there(cell)[1] is None]
    assert len(alike) >= CELLS
    assert len(cells) == len(alike) + min(len(DIFFERENCES), DIFFERENCES_DRAWN)
    assert {cell.layout for cell in alike} == set(Layout)
    # Whatever is removed was read there, so two removals of one file are a removal of what was read.
    rules = ("metadata_changed", "concurrent_append", "delete_read", "same_application")
    assert {_as_there(cell)[0] for cell in alike} >= {None, *(KINDS[rule] for rule in rules)}


@pytest.mark.extra
@pytest.mark.spark
def test_delta_spark_answers_alike(seed: str, tmp_path: Path) -> None:
    cells = drawn_cells(seed)
    requests, out = tmp_path / "requests.json", tmp_path / "answers.json"
    requests.write_text(json.dumps([_pair_request(cell) for cell in cells]))
    by_delta_spark("conflicts", str(requests), str(tmp_path / "tables"), str(out))
    answers = json.loads(out.read_text())
    wrong = [
        f"{cell}: {found}, expected {_as_there(cell)}"
        for cell, found in zip(cells, answers, strict=True)
        if found != _as_there(cell)[0]
    ]
    assert not wrong, "\n".join(wrong)
    faults = [f"{cell}: {fault}" for cell in cells for fault in faults_of(cell, run_cell(cell))]
    assert not faults, "\n".join(faults)


def _pair_request(cell: Cell) -> dict[str, Any]:
    at_loser, at_winner = targets(cell.layout)
    winner = _request(cell.winner, at_winner, cell.level)
    if cell.winner.footprint(at_winner).removes:
        # Of a winner it only matters whether it is a blind append, which it is not.
        winner |= {"reads": [], "files": []}
    return {
        "log": dict(_log(cell.level)),
        "loser": _request(cell.loser, at_loser, cell.level),
        "winner": winner,
    }


def _log(level: IsolationLevel) -> Iterator[tuple[str, str]]:
    start = template(level)
    for version in range(start.version + 1):
        name = f"{version:020}.json"
        yield name, start.store.read(f"_delta_log/{name}").decode()
