"""Faults that only an area of whole programs can notice, and one of a feature's drop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from tests.faults.fault import Fault, returns


def _packages_but_one(original: Callable[..., Any]) -> Callable[..., Any]:
    def recurse_included_files(self: Any) -> Iterator[Any]:
        for file in original(self):
            if not file.distribution_path.startswith("spark_jobs/"):
                yield file

    return recurse_included_files


def _every_check_holds(original: Callable[..., Any]) -> Callable[..., Any]:
    def check_all(evidence: Any) -> Iterator[Any]:
        for check in original(evidence):
            yield replace(check, held=True)

    return check_all


def _any_version_will_do(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, *given, **options: original(self, *given, **options | {"only_next": False})


def _a_secret_for_all(original: Callable[..., Any]) -> Callable[..., Any]:
    def environment(self: Any, service: str) -> dict[str, str]:
        secret = next(text for text in self.secrets().values() if len(text) < 200)
        return {**original(self, service), "PASSED_ON": secret}

    return environment


FAULTS = [
    Fault(
        name="the wheel lacks a package",
        guarantee="what is built and installed is all that the programs import",
        target="hatchling.builders.plugin.interface:BuilderInterface.recurse_included_files",
        mutate=_packages_but_one,
        killer="tests/e2e/test_wheel.py::test_the_wheel_holds_our_packages_and_nothing_else",
        area="slow",
    ),
    Fault(
        name="the demonstration ends no process",
        guarantee="a program that ended has left no process behind",
        target="demo.processes:_signal_all",
        mutate=returns(None),
        killer="tests/e2e/test_demo_processes.py"
        "::test_up_leaves_a_login_that_is_needed_and_down_stops_everything",
        area="slow",
    ),
    Fault(
        name="every check of the demonstration holds",
        guarantee="a run that was spoiled fails the checks that look for it",
        target="demo.checks.story:check_all",
        mutate=_every_check_holds,
        killer="tests/unit/demo/test_checks.py::test_a_check_that_cannot_be_made_did_not_hold",
        area="slow",
    ),
    Fault(
        name="every service gets a secret in its environment",
        guarantee="no secret is in an argument or a variable of a service",
        target="tests.support.services:Deployment.environment",
        mutate=_a_secret_for_all,
        killer="tests/e2e/test_services.py::test_no_secret_is_in_an_argument_or_a_variable",
        area="slow",
    ),
    Fault(
        name="a feature's drop does not look at who committed meanwhile",
        guarantee="no version after the drop of a table feature needs it",
        target="delta_core.maintenance.feature_drop.drop:Drop.commit",
        mutate=_any_version_will_do,
        killer="tests/unit/maintenance/test_feature_drop_refusals.py::test_who_commits_meanwhile_is_looked_at",
    ),
]
