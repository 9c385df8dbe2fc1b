"""The decision on a batch, from its outcomes and the policy. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import reduce
from typing import Final

import numpy as np

from delta_core.jobs.params.quality import OnFailure, QualityParams
from spark_jobs.quality.outcome import ExpectationOutcome
from spark_jobs.writer.staged_files import Positions


class GateOutcome(StrEnum):
    """The result of the gate.

    `passed`: every expectation is met. `warned`: published although some expectations are not met.
    `quarantined`: the good rows are published, and the bad rows are in the quarantine. `failed`: nothing is
    published.
    """

    PASSED = "passed"
    WARNED = "warned"
    QUARANTINED = "quarantined"
    FAILED = "failed"


MAX_COLLECTED_ROWS: Final = 1_000_000
"""The maximum number of bad rows, of each kind, that the driver collects for the quarantine."""

NO_ROWS: Positions = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The decision on a batch.

    Attributes:
        rows: the number of rows of the batch, including rejected rows.
        bad_rows: the number of rows that do not meet a critical expectation or were rejected. It is a lower
            bound when `exact` is false, because more rows failed than are collected.
        bad_positions: the positions of the staged bad rows.
        why: the reason for display, when the batch failed.
    """

    outcome: GateOutcome
    rows: int
    bad_rows: int
    exact: bool = True
    bad_positions: Positions = field(default_factory=lambda: NO_ROWS, repr=False, compare=False)
    why: str = ""


def decide(
    params: QualityParams,
    outcomes: Sequence[ExpectationOutcome],
    *,
    staged_rows: int,
    rejected_rows: int = 0,
    replaces_rows: bool = False,
) -> Verdict:
    """Decide whether the batch is published.

    Args:
        params: policy and thresholds.
        outcomes: the outcomes of all expectations.
        staged_rows: the number of staged rows.
        rejected_rows: the number of rows that violate the contract and were not staged; 0 without a
            quarantine.
        replaces_rows: whether the commit removes rows. Then a batch without good rows fails.
    """
    blocking = [outcome for outcome in outcomes if outcome.blocks]
    located = [outcome.rows for outcome in blocking if outcome.rows is not None]
    positions: Positions = reduce(np.union1d, located, NO_ROWS).astype(np.int64)
    uncollected = [o.unexpected_count or 0 for o in blocking if o.rows is None and o.planned.row_level]
    bad_rows = max([len(positions), *uncollected]) + rejected_rows
    rows = staged_rows + rejected_rows

    def verdict(outcome: GateOutcome, why: str = "", *, with_positions: bool = False) -> Verdict:
        return Verdict(
            outcome=outcome,
            rows=rows,
            bad_rows=bad_rows,
            exact=not uncollected,
            bad_positions=positions if with_positions else NO_ROWS,
            why=why,
        )

    reason_over = _over_threshold(params, bad_rows, rows)
    if reason_over:
        return verdict(GateOutcome.FAILED, reason_over)
    if not blocking and not rejected_rows:
        passed = all(outcome.success for outcome in outcomes)
        return verdict(GateOutcome.PASSED if passed else GateOutcome.WARNED)
    if params.on_failure is OnFailure.WARN:
        return verdict(GateOutcome.WARNED)
    if params.on_failure is OnFailure.FAIL:
        return verdict(GateOutcome.FAILED, "on_failure is 'fail'")
    if rejected_rows > MAX_COLLECTED_ROWS:
        return verdict(
            GateOutcome.FAILED,
            f"{rejected_rows} rows violate the contract, more than the quarantine accepts "
            f"({MAX_COLLECTED_ROWS})",
        )
    not_locatable = [outcome.name for outcome in blocking if outcome.rows is None]
    if not_locatable:
        reason = "has too many bad rows for the quarantine" if uncollected else "is about the whole batch"
        return verdict(
            GateOutcome.FAILED, f"{not_locatable[0]} {reason}, so no single rows can go to the quarantine"
        )
    if replaces_rows and bad_rows == rows:
        return verdict(GateOutcome.FAILED, "no row is good, and the load would replace rows of the table")
    return verdict(GateOutcome.QUARANTINED, with_positions=True)


def _over_threshold(params: QualityParams, bad_rows: int, rows: int) -> str:
    if params.max_bad_rows is not None and bad_rows > params.max_bad_rows:
        return f"{bad_rows} bad rows are more than max_bad_rows={params.max_bad_rows}"
    if params.max_bad_fraction is not None and rows and bad_rows / rows > params.max_bad_fraction:
        maximum = f"max_bad_fraction={params.max_bad_fraction:g}"
        return f"{bad_rows} of {rows} rows are bad, which is more than {maximum}"
    return ""
