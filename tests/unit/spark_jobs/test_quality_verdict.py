"""From outcomes and a policy to what becomes of the batch."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

from delta_core.jobs.params.quality import ExpectationSpec, OnFailure, QualityParams, Severity
from spark_jobs.quality.outcome import ExpectationOutcome
from spark_jobs.quality.suite import PlannedExpectation
from spark_jobs.quality.verdict import MAX_COLLECTED_ROWS, GateOutcome, Verdict, decide


def outcome(
    *,
    success: bool = False,
    rows: list[int] | None = None,
    count: int | None = None,
    warning: bool = False,
    row_level: bool = True,
) -> ExpectationOutcome:
    severity = Severity.WARNING if warning else Severity.CRITICAL
    spec = ExpectationSpec(type="expect_x", kwargs={"column": "c"}, severity=severity)
    return ExpectationOutcome(
        planned=PlannedExpectation(spec=spec, row_level=row_level),
        success=success,
        unexpected_count=len(rows) if rows is not None else count,
        rows=None if rows is None else np.array(rows, dtype=np.int64),
    )


def verdict(
    *outcomes: ExpectationOutcome, policy: str = "fail", staged: int = 10, rejected: int = 0, **rest: Any
) -> Verdict:
    replaces = rest.pop("replaces", False)
    params = QualityParams(suite="s", expectations=(), on_failure=OnFailure(policy), **rest)
    return decide(params, outcomes, staged_rows=staged, rejected_rows=rejected, replaces_rows=replaces)


def test_what_holds_passes_under_every_policy() -> None:
    for policy in OnFailure:
        assert verdict(outcome(success=True), policy=policy).outcome is GateOutcome.PASSED


def test_a_warning_never_blocks() -> None:
    for policy in OnFailure:
        found = verdict(outcome(rows=[1, 2], warning=True), policy=policy, max_bad_rows=0)
        assert found.outcome is GateOutcome.WARNED
        assert found.bad_rows == 0
        assert len(found.bad_positions) == 0


def test_each_policy_does_what_it_is_called() -> None:
    bad = (outcome(rows=[1, 4]), outcome(rows=[4, 7]))
    assert verdict(*bad).outcome is GateOutcome.FAILED
    assert verdict(*bad, policy="warn").outcome is GateOutcome.WARNED
    found = verdict(*bad, policy="quarantine")
    assert found.outcome is GateOutcome.QUARANTINED
    assert found.bad_positions.tolist() == [1, 4, 7]
    assert found.bad_rows == 3


@pytest.mark.parametrize("policy", ["quarantine", "warn"])
@pytest.mark.parametrize("limit", [{"max_bad_rows": 1}, {"max_bad_fraction": 0.19}])
def test_thresholds_win(policy: str, limit: dict[str, Any]) -> None:
    found = verdict(outcome(rows=[0, 5]), policy=policy, **limit)
    assert found.outcome is GateOutcome.FAILED
    assert next(iter(limit)) in found.why
    at_the_limit = {"max_bad_rows": 2} if "max_bad_rows" in limit else {"max_bad_fraction": 0.2}
    assert verdict(outcome(rows=[0, 5]), policy=policy, **at_the_limit).outcome is not GateOutcome.FAILED


def test_rejected_rows_are_bad_rows() -> None:
    found = verdict(outcome(rows=[0]), policy="quarantine", staged=8, rejected=2)
    assert (found.rows, found.bad_rows) == (10, 3)
    assert verdict(policy="quarantine", rejected=1).outcome is GateOutcome.QUARANTINED
    assert verdict(policy="quarantine", rejected=1, max_bad_rows=0).outcome is GateOutcome.FAILED
    assert "than the quarantine accepts" in verdict(policy="quarantine", rejected=MAX_COLLECTED_ROWS + 1).why


def test_a_failure_without_rows_fails_a_quarantine() -> None:
    whole = verdict(outcome(rows=[1]), outcome(row_level=False), policy="quarantine")
    assert whole.outcome is GateOutcome.FAILED
    assert "the whole batch" in whole.why
    many = verdict(outcome(count=9), policy="quarantine")
    assert "too many bad rows" in many.why
    assert (many.bad_rows, many.exact) == (9, False)
    assert verdict(outcome(row_level=False), policy="warn").outcome is GateOutcome.WARNED


def test_a_load_that_replaces_needs_a_good_row() -> None:
    everything = outcome(rows=[0, 1])
    assert verdict(everything, policy="quarantine", staged=2).outcome is GateOutcome.QUARANTINED
    assert verdict(everything, policy="quarantine", staged=2, replaces=True).outcome is GateOutcome.FAILED


def test_no_rows_divide_nothing() -> None:
    assert verdict(outcome(success=True), staged=0, max_bad_fraction=0.0).outcome is GateOutcome.PASSED


def test_every_row_is_in_one_place_whatever_the_batch(rng: random.Random) -> None:
    for policy, limit in itertools.product(OnFailure, (None, 0, 3, 100)):
        for _ in range(25):
            staged = rng.randint(0, 12)
            outcomes = [
                outcome(
                    rows=sorted(rng.sample(range(staged), rng.randint(0, staged))),
                    warning=rng.random() < 0.3,
                    success=rng.random() < 0.3,
                )
                for _ in range(rng.randint(0, 3))
            ]
            found = verdict(*outcomes, policy=policy, staged=staged, max_bad_rows=limit)
            taken = set(found.bad_positions.tolist())
            blocked = {row for o in outcomes if o.blocks and o.rows is not None for row in o.rows.tolist()}
            assert found.bad_rows == len(blocked)
            if found.outcome is GateOutcome.QUARANTINED:
                assert taken == blocked
                assert limit is None or len(taken) <= limit
            else:
                assert not taken
            if found.outcome is GateOutcome.PASSED:
                assert all(o.success for o in outcomes)
