"""Which faults each area of `.ci/run` exists to catch, and the smallest part of it that must catch each.

An area's tests are samples, which get smaller and move. This table is what a sample must still do:
`make soak-seeded-faults` runs each part with and without its fault. A part is named by file and test, so that
it takes whatever cases the sample has then.

Other faults have names where the tests are that they belong to, and these tests try them in each run:

- `tests/simulation/test_mutants.py`, `test_rows_judge.py` and `test_drops_judge.py`: of the core, which the
  simulation's judges must find (areas `test` and `slow`);
- `tests/concurrency/test_conflict_matrix.py`: the library without one conflict rule (`test`);
- `tests/concurrency/kill_points/variants.py`: what a killed process or a loss of power shows (`slow`);
- `tests/concurrency/test_feature_drop_pairs.py`: a drop that goes by what it had seen (`slow`); where the
  conflict rules still hold, they notice most of it, so its races catch no such fault alone;
- `tests/unit/demo/test_checks.py`: what each check of the demonstration finds on a small world (`slow`); its
  sabotages are played by `make soak-sabotage`.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.faults.table import FAULTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Catch:
    """A fault, and what notices it in an area.

    Attributes:
        fault: its name.
        tests: a file, a class or a test.
    """

    fault: str
    tests: str


_KEY_BEFORE = "the idempotency key is not looked up before the work"
_KEY_AT_REBASE = "the idempotency key is not looked up at the rebase"
_REFUSAL = "an unclear answer is a refusal"
_OBJECTS = "put-if-absent replaces an object"
_DELETION_VECTOR = "the deletion vector is no part of a file's identity"

_KILL_POINTS = "tests/e2e/test_kill_points.py"
_CORE_KILL_POINTS = "tests/concurrency/test_core_kill_points.py"
_CLONES = "tests/interop/test_shallow_clones.py"
_FEATURED = "tests/simulation/test_featured_simulation.py"

_BESIDES: dict[str, list[Catch]] = {
    "extras": [
        Catch(
            fault=_DELETION_VECTOR, tests=f"{_CLONES}::test_rows_of_a_shallow_clone_are_changed_by_vectors"
        ),
        Catch(
            fault="no conflict rule concurrent_append",
            tests="tests/interop/test_conflict_matrix_spark.py::test_delta_spark_answers_alike",
        ),
        Catch(fault=_OBJECTS, tests="tests/concurrency/test_real_stores.py"),
        Catch(fault=_REFUSAL, tests="tests/concurrency/test_ambiguity_matrix.py"),
    ],
    "slow": [
        Catch(
            fault="commits are replayed from the newest",
            tests="tests/e2e/test_sabotage.py::test_an_honest_run_passes_every_check",
        ),
        Catch(
            fault=_KEY_BEFORE,
            tests=f"{_KILL_POINTS}::test_a_job_killed_at_any_event_and_run_again_applies_once",
        ),
        Catch(
            fault=_KEY_AT_REBASE,
            tests=f"{_KILL_POINTS}::test_a_stopped_driver_that_wakes_after_its_retry_changes_nothing",
        ),
        Catch(
            fault=_KEY_BEFORE,
            tests="tests/e2e/test_gate_kill.py::test_a_killed_load_run_again_puts_each_row_in_one_place",
        ),
        Catch(
            fault=_KEY_BEFORE,
            tests=f"{_CORE_KILL_POINTS}::test_a_killed_operation_is_whole_and_its_retry_applies_it_once",
        ),
        Catch(
            fault="in-commit timestamps do not follow the winning commit",
            tests=f"{_FEATURED}::test_times_go_up_and_row_ids_are_unique_whatever_happens",
        ),
        Catch(
            fault="the row-id high-water mark does not follow the winning commit",
            tests=f"{_FEATURED}::test_times_go_up_and_row_ids_are_unique_whatever_happens",
        ),
        Catch(
            fault="any winning commit is taken for the own one",
            tests="tests/simulation/test_simulation.py::test_real_core_keeps_its_promises",
        ),
    ],
}


def _of(area: str) -> list[Catch]:
    own = [Catch(fault=fault.name, tests=fault.killer) for fault in FAULTS.values() if fault.area == area]
    return own + _BESIDES.get(area, [])


AREAS: dict[str, list[Catch]] = {
    area: _of(area)
    for area in (
        "test",
        "extras",
        "slow",
    )
}
"""By area, in the order of `.ci/run`."""
