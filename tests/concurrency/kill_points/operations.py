"""Every operation that writes. What the conflict matrix has comes from there, so a new one comes by itself.

What looks for its work in the newest version cannot be taken over: a run that is repeated after the killed
one has other files to work on. Such operations are written out here under the matrix's names, and so are
those that no pair of the matrix can hold; `missing` tells what is in neither.
"""

from __future__ import annotations

from dataclasses import replace

from delta_core.jobs.kinds import BUILTIN_KINDS
from delta_core.snapshot.snapshot import Snapshot
from delta_core.storage.open import open_store
from tests.concurrency.kill_points.checkpoints import CHECKPOINTS
from tests.concurrency.kill_points.creation import CREATIONS
from tests.concurrency.kill_points.maintenance import JOBS, MAINTENANCE
from tests.concurrency.kill_points.operation import PROPERTIES, Here, Operation, Start
from tests.concurrency.kill_points.recovery import RECOVERIES
from tests.concurrency.matrix.layouts import LOSER_TARGET
from tests.concurrency.matrix.maintenance import LEASE_TAKEOVER, REPAIR
from tests.concurrency.matrix.operation import Case, Interruption
from tests.concurrency.matrix.operation import Operation as Paired
from tests.concurrency.matrix.operations import OPERATIONS as PAIRED
from tests.concurrency.matrix.state import TableState

_OWN = {operation.name for operation in MAINTENANCE}

ELSEWHERE = {
    "append with key 1": "every operation here has a key",
    "append with key 2": "every operation here has a key",
    REPAIR: "the table that it starts from cannot be read; test_fsck.py ends it at each of its requests",
    LEASE_TAKEOVER: "its key is its own; test_job_lease.py lets its holder die at each step",
}
"""Operations of the matrix that are not killed, with the reason."""

NAMES_ELSEWHERE = {
    "DROP COLUMNS": "one commit of one action, as ADD COLUMNS is",
    "RENAME COLUMN": "one commit of one action, as ADD COLUMNS is",
    "REPLACE TABLE": "one commit of actions without new files; tests/unit/dml/test_replace_table.py",
    "CREATE OR REPLACE TABLE": "as REPLACE TABLE",
    "REMOVE DOMAIN METADATA": "one commit of one action, as SET DOMAIN METADATA is; no table here has one",
}
"""Names of commits that no operation here, or in `featured`, makes, with the reason."""

READING_JOBS = {
    "describe": "writes nothing",
    "observe": "writes nothing",
    "plan": "writes nothing",
    "verify": "writes nothing",
}
"""Built-in kinds of jobs that are not killed, with the reason."""


JOBS_ELSEWHERE = {
    "auto_compact": "plans and applies as `compaction` does, under a lease",
    "clone": "plans and applies as `deep clone` and `shallow clone` of `featured` do",
    "convert": "plans and applies as `convert` of `featured` does",
    "properties": "sets as the operations of `featured_changes` do; one commit of one action each",
}
"""Built-in kinds of jobs whose work is killed under another name, with the reason."""


def _taken_over(paired: Paired) -> Operation:
    def run(here: Here) -> object:
        snapshot = Snapshot.load(open_store(here.uri))
        return paired.run(
            Case(
                snapshot=snapshot,
                target=LOSER_TARGET,
                paths=here.paths,
                interruption=Interruption(),
                properties=PROPERTIES,
            )
        )

    def effect(state: TableState | None) -> TableState:
        assert state is not None
        return paired.effect(state, LOSER_TARGET)

    return Operation(name=paired.name, run=run, effect=effect, commits=paired.commits)


_TAKEN_OVER = tuple(
    _taken_over(paired) for name, paired in PAIRED.items() if name not in _OWN and name not in ELSEWHERE
)

_DUE = tuple(
    replace(operation, name=f"{operation.name}, then a checkpoint", start=Start.DUE, deletes=True)
    for operation in (*_TAKEN_OVER, *MAINTENANCE)
    if operation.name in ("append", "compaction")
)

OPERATIONS: dict[str, Operation] = {
    operation.name: operation
    for operation in (*CREATIONS, *_TAKEN_OVER, *MAINTENANCE, *JOBS, *CHECKPOINTS, *_DUE, *RECOVERIES)
}


def missing() -> set[str]:
    """What writes and is not here: operations of the matrix, and kinds of jobs."""
    absent = {*READING_JOBS, *JOBS_ELSEWHERE, *ELSEWHERE}
    named = {operation.removeprefix("job: ").partition(",")[0] for operation in OPERATIONS}
    jobs = {kind.name for kind in BUILTIN_KINDS if kind.name not in absent}
    return (set(PAIRED) - set(OPERATIONS) - set(ELSEWHERE)) | (jobs - named)
