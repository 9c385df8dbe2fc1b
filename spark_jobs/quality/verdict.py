"""From outcomes and a policy to what becomes of the batch. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import reduce
from typing import Final

import numpy as np

from spark_jobs.quality.outcome import ExpectationOutcome
from spark_jobs.quality.params import OnFailure, QualityParams
from spark_jobs.quality.staged import Positions


class GateOutcome(StrEnum):
    """What became of a batch.

    `passed`: every expectation holds. `warned`: published though some do not. `quarantined`: the good
    rows published, the bad ones put aside. `failed`: nothing published.
    """

    PASSED = "passed"
    WARNED = "warned"
    QUARANTINED = "quarantined"
    FAILED = "failed"


MAX_COLLECTED_ROWS: Final = 1_000_000
"""Bad rows are put aside only when no more than these, of either kind, pass through the driver."""

NO_ROWS: Positions = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The decision on a batch.

    Attributes:
        rows: rows of the batch, those rejected before staging included.
        bad_rows: rows that break at least one blocking expectation or were rejected; a lower bound when
            `exact` is false, since more rows broke expectations than were collected.
        bad_positions: the staged ones among them.
        why: for people, when the batch failed.
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
    """Decide.

    Args:
        params: policy and thresholds.
        outcomes: of every expectation.
        staged_rows: rows that were staged.
        rejected_rows: rows that broke the contract and were not staged; only a quarantine has any.
        replaces_rows: whether the commit takes rows away; then a batch without a good row fails.
    """
    blocking = [outcome for outcome in outcomes if outcome.blocks]
    located = [outcome.rows for outcome in blocking if outcome.rows is not None]
    positions: Positions = reduce(np.union1d, located, NO_ROWS).astype(np.int64)
    uncollected = [o.unexpected_count or 0 for o in blocking if o.rows is None and o.planned.row_level]
    bad_rows = max([len(positions), *uncollected]) + rejected_rows
    rows = staged_rows + rejected_rows

    def verdict(outcome: GateOutcome, why: str = "", *, taken: bool = False) -> Verdict:
        return Verdict(
            outcome=outcome,
            rows=rows,
            bad_rows=bad_rows,
            exact=not uncollected,
            bad_positions=positions if taken else NO_ROWS,
            why=why,
        )

    over = _over_threshold(params, bad_rows, rows)
    if over:
        return verdict(GateOutcome.FAILED, over)
    if not blocking and not rejected_rows:
        passed = all(outcome.success for outcome in outcomes)
        return verdict(GateOutcome.PASSED if passed else GateOutcome.WARNED)
    if params.on_failure is OnFailure.WARN:
        return verdict(GateOutcome.WARNED)
    if params.on_failure is OnFailure.FAIL:
        return verdict(GateOutcome.FAILED, "on_failure is 'fail'")
    if rejected_rows > MAX_COLLECTED_ROWS:
        return verdict(GateOutcome.FAILED, "more rows break the contract than can be put aside")
    whole = [outcome.name for outcome in blocking if outcome.rows is None]
    if whole:
        reason = "tells of too many rows to put aside" if uncollected else "is about the batch as a whole"
        return verdict(
            GateOutcome.FAILED, f"{whole[0]} {reason}, so there are no single rows to put into quarantine"
        )
    if replaces_rows and bad_rows == rows:
        return verdict(GateOutcome.FAILED, "no row is good, and the load replaces rows of the table")
    return verdict(GateOutcome.QUARANTINED, taken=True)


def _over_threshold(params: QualityParams, bad_rows: int, rows: int) -> str:
    if params.max_bad_rows is not None and bad_rows > params.max_bad_rows:
        return f"{bad_rows} bad rows are more than max_bad_rows={params.max_bad_rows}"
    if params.max_bad_fraction is not None and rows and bad_rows / rows > params.max_bad_fraction:
        most = f"max_bad_fraction={params.max_bad_fraction:g}"
        return f"{bad_rows} bad rows of {rows} are more than {most} of them"
    return ""
