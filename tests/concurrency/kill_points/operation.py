"""An operation that is killed: how it runs, what it makes of a table, and what shows that it is done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from delta_core.actions import SetTransaction
from delta_core.transaction.commit_properties import CommitProperties
from tests.concurrency.matrix.state import TableState

APPLICATION = "killed job"
KEY = SetTransaction(app_id=APPLICATION, version=7)
PROPERTIES = CommitProperties(txn=KEY)
"""The same for every run of an operation, as a scheduler's retry gives them."""


class Start(StrEnum):
    """The table that an operation starts from."""

    NOTHING = "nothing"
    TABLE = "a table"
    DUE = "a table that is due for a checkpoint"
    INTERRUPTED = "a table whose last writer died after it had the version"
    """Only where an entry decides before the commit file is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """Where an operation runs; `paths` finds the file of a label of the start table."""

    uri: str
    paths: dict[str, str]


Effect = Callable[[TableState | None], TableState | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation as a value.

    Attributes:
        run: does it, with `PROPERTIES`, as a caller that knows of no earlier run.
        effect: what it makes of the start's rows and definition.
        commits: the names of its commits, in order, when nothing disturbs it.
        keyed: how many commits hold its key once it is done.
        repeats: True where a run after a killed one may record a commit again that changes nothing.
        deletes: whether it takes objects away that were there before.
        undone: what of it is missing in the table's directory, beyond rows and commits; empty when nothing.
    """

    name: str
    run: Callable[[Here], object]
    effect: Effect
    start: Start = Start.TABLE
    commits: tuple[str, ...] = ()
    keyed: int = 1
    repeats: bool = False
    deletes: bool = False
    undone: Callable[[Path], str] = lambda root: ""
