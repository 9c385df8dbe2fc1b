"""The cells of the ambiguity matrix: which store, which fault of which request, which operation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import cycle, islice
from random import Random

from tests.support.emulators.places import PLACES
from tests.support.fault_plan import ALL_FAULTS, Fault, FaultKind


class Operation(StrEnum):
    """What a client does to a table."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    REPLACE_WHERE = "replaceWhere"
    RESTORE = "restore"
    OPTIMIZE = "optimize"
    ALTER = "alter"
    DELETE = "delete by vectors"
    UPDATE = "update by vectors"
    MERGE = "merge by vectors"
    CLONE = "clone"
    CONVERT = "convert"


BEGINNING = frozenset({Operation.CLONE, Operation.CONVERT})
"""What begins a table: there is none before."""

BY_DELETION_VECTORS = frozenset({Operation.DELETE, Operation.UPDATE, Operation.MERGE})
"""What names deleted rows by vectors; the tables of these cells ask for them."""


class Step(StrEnum):
    """Which request of a commit meets the fault."""

    DECIDES = "decides"
    """The one that gives the version to its writer."""
    COPIES = "copies"
    """S3 with DynamoDB alone: the commit file's PUT, after the entry decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One question of the matrix."""

    store: str
    fault: Fault
    operation: Operation
    step: Step = Step.DECIDES

    def __str__(self) -> str:
        copies = " of the copy" if self.step is Step.COPIES else ""
        return f"{self.store}: {self.fault.kind} {self.fault.point}{copies}, {self.operation}"

    @property
    def hangs(self) -> bool:
        """Whether the cell is one of waiting."""
        return self.fault.kind is FaultKind.HANG


def cells_of(store: str) -> tuple[Cell, ...]:
    """All cells of a kind of store."""
    steps = (Step.DECIDES, Step.COPIES) if store == "s3+dynamodb" else (Step.DECIDES,)
    return tuple(
        Cell(store=store, fault=fault, operation=operation, step=step)
        for step in steps
        for operation in Operation
        for fault in ALL_FAULTS
    )


def sample(cells: Sequence[Cell], count: int, *, seed: str) -> tuple[Cell, ...]:
    """About so many cells: every fault of every request, and every operation about as often as any other.

    The seed deals the operations to the faults.
    """
    by_fault: dict[tuple[Step, Fault], dict[Operation, Cell]] = {}
    for cell in cells:
        by_fault.setdefault((cell.step, cell.fault), {})[cell.operation] = cell
    operations = list(Operation)
    Random(seed).shuffle(operations)
    dealt, each = cycle(operations), max(1, count // len(by_fault))
    return tuple(group[operation] for group in by_fault.values() for operation in islice(dealt, each))


STORES = tuple(PLACES)
