"""Statements that lost to a rewrite of files, such as a compaction: they find their rows in the new files.

A rewrite changes no row. So a statement that evaluates each row separately has the same rows to change after
it, only in other files. It runs again on the version after the rewrite, as if it had started then. That is
valid at every isolation level. Commits that changed data remain conflicts.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import TypeVar

from delta_core.errors import ConcurrentDeleteDeleteError
from delta_core.run import Run
from delta_core.snapshot.snapshot import Snapshot

Result = TypeVar("Result")


class MovedRowsError(ConcurrentDeleteDeleteError):
    """The files of a statement were rewritten by a commit that changed no row."""

    @classmethod
    def of(cls, error: ConcurrentDeleteDeleteError) -> MovedRowsError:
        """The error with the same message."""
        return cls(error.problem, cause=error.cause, fix=error.fix)


def follow_moved_rows(snapshot: Snapshot, run: Run, statement: Callable[[Snapshot, Run], Result]) -> Result:
    """Run a statement; again on the newest version each time that its rows were moved.

    There is no pause between two attempts: the next rewrite would only come closer.

    Args:
        snapshot: the version for the first attempt.
        run: the surroundings. `max_attempts` of its commit properties is the limit for all attempts together;
            its deadline is that of each attempt's commit.
        statement: commits the changes of one version, with the given surroundings.

    Raises:
        MovedRowsError: the rows were moved in the last attempt.
        DeltaError: the errors of the statement.
    """
    for number in count(1):
        try:
            return statement(snapshot, run)
        except MovedRowsError:
            if number >= run.commit.max_attempts:
                raise
        snapshot = Snapshot.load(snapshot.store, clock=run.clock)
    raise AssertionError("unreachable: the attempts do not end")
