"""The checks of rollbacks: only after an approval, and also forward again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from demo.checks.corrections import corrected_year
from demo.checks.evidence import Check, Evidence, task_states
from demo.table_reader import provenance, same_rows

STOPPED = {
    "dry_run": "success",
    "approve": "success",
    "restore": "skipped",
    "verify": "skipped",
    "outcome": "failed",
}
"""The task states of a rejected rollback. The run fails, because the table was not restored."""
APPROVE, REJECT = "Approve", "Reject"
APPLIED = (("rolled_back", "first_months"), ("forward", "maintained"))
"""The points of the scenario after a rollback, each with the point that the rollback restored."""


def approvals(evidence: Evidence) -> Iterator[Check]:
    """Approval."""
    person = evidence.facts["person"]
    rejected = evidence.run("rejected")
    yield Check(
        name=f"the rejected rollback was rejected by {person}",
        held=_answers(rejected) == [(REJECT, person)],
        detail=f"answers {_answers(rejected)}",
    )
    states = {name: task_states(rejected, name) for name in STOPPED}
    yield Check(
        name="the rejected rollback planned, asked for approval, and did nothing else",
        held=states == {name: [state] for name, state in STOPPED.items()} and rejected["state"] == "failed",
        detail=f"run {rejected['state']}, tasks {states}",
    )
    unchanged = rejected["log_before"] == rejected["log_after"] and bool(rejected["log_before"])
    same = evidence.version("rejected", "flights") == evidence.version("maintained", "flights")
    yield Check(name="the rejected rollback changed nothing", held=unchanged and same)
    answers = [_answers(run) for run in evidence.runs("rollback")]
    yield Check(
        name=f"both applied rollbacks were approved by {person}",
        held=answers == [[(APPROVE, person)]] * len(APPLIED),
        detail=f"answers {answers}",
    )
    history = {entry["version"]: entry for entry in evidence.tables["flights"].history()}
    approvers = [
        provenance(history[evidence.version(point, "flights")]).get("approver") for point, _ in APPLIED
    ]
    yield Check(
        name=f"the restored versions record {person} as their approver",
        held=approvers == [person] * len(APPLIED),
        detail=f"approvers {approvers}",
    )


def rolled_back(evidence: Evidence) -> Iterator[Check]:
    """Rollback."""
    runs, table = evidence.runs("rollback"), evidence.tables["flights"]
    complete = [
        run["state"] == "success"
        and all(task_states(run, name) == ["success"] for name in ("dry_run", "restore", "verify"))
        for run in runs
    ]
    states = [[(task["task_id"], task["state"]) for task in run["tasks"]] for run in runs]
    reasons = [run.get("reason") for run in runs]
    held = complete == [True, True]
    yield Check(
        name="both rollback runs planned, restored and verified",
        held=held,
        detail="" if held else f"tasks {states}, reasons {reasons}",
    )
    for point, target in APPLIED:
        version, original = evidence.version(point, "flights"), evidence.version(target, "flights")
        same = version != original and table.paths(version) == table.paths(original)
        same = same and same_rows(table.rows(version), table.rows(original))
        yield Check(name=f"version {version} has the files and rows of version {original}", held=same)
    final = table.rows(table.latest_version)
    yield Check(
        name="flights: after rollback and roll-forward every value equals the corrected raw file's",
        held=same_rows(final, corrected_year(evidence)),
        detail=f"{final.num_rows:,} rows",
    )


def _answers(run: dict[str, Any]) -> list[tuple[str, str | None]]:
    return [(answer["chosen"], answer["by"]) for answer in run["answers"]]
