"""Statements that lost to a rewrite of files, such as a compaction: they find their rows in the new files.

A rewrite changes no row. So a statement that evaluates each row separately has the same rows to change after
it, only in other files. It runs again on the version after the rewrite, as if it had started then. That is
valid at every isolation level. Commits that changed data remain conflicts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from delta_core.dml.attempts import Attempts
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

    Args:
        snapshot: the version for the first attempt.
        run: the surroundings. The limits of its commit properties apply to all attempts together.
        statement: commits the changes of one version, with the given surroundings.

    Raises:
        MovedRowsError: the rows were moved in the last attempt that the limits allow.
        DeltaError: the errors of the statement.
    """
    attempts = Attempts(run=run)
    for number in attempts:
        try:
            # Finding the rows of the first attempt may take any time.
            return statement(snapshot, attempts.next_run() if number else run)
        except MovedRowsError:
            if attempts.is_last:
                raise
        snapshot = Snapshot.load(snapshot.store, clock=run.clock)
    raise AssertionError("unreachable: the attempts do not end")
