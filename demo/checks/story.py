"""All checks, in the order of the scenario."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from demo.checks.corrections import corrections
from demo.checks.evidence import Check, Evidence
from demo.checks.gate import gate
from demo.checks.loading import loads, origins
from demo.checks.maintenance import maintained, vacuum_planned
from demo.checks.refusals import refused
from demo.checks.rollback import approvals, rolled_back

_GROUPS: tuple[Callable[[Evidence], Iterator[Check]], ...] = (
    loads,
    origins,
    refused,
    gate,
    corrections,
    maintained,
    vacuum_planned,
    approvals,
    rolled_back,
)


def check_all(evidence: Evidence) -> Iterator[Check]:
    """Run all checks. A check that raises an error counts as not held."""
    for group in _GROUPS:
        try:
            yield from group(evidence)
        except Exception as error:
            name = (group.__doc__ or group.__name__).rstrip(".")
            yield Check(name=name, held=False, detail=f"{type(error).__name__}: {error}")
