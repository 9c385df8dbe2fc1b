"""The table of areas is whole: each area of `.ci/run` has faults, and every name in it means something."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from benchmarks.soak.seeded_faults import environment_of
from tests.faults.areas import AREAS, Catch
from tests.faults.table import FAULTS
from tests.support.repository import ROOT

CATCHES = [catch for catches in AREAS.values() for catch in catches]


def test_every_area_that_runs_tests_has_faults() -> None:
    commands = (ROOT / ".ci" / "run").read_text()
    areas = re.findall(r"^tests (\w+) ", commands, re.MULTILINE)
    assert areas
    assert set(AREAS) == {"test", "slow", *areas}
    assert all(AREAS.values())


def test_every_fault_is_in_some_area_and_no_two_are_alike() -> None:
    assert {catch.fault for catch in CATCHES} == set(FAULTS)
    assert len({(fault.target, fault.mutate) for fault in FAULTS.values()}) == len(FAULTS)


@pytest.mark.parametrize("catch", CATCHES, ids=lambda catch: f"{catch.fault}: {catch.tests}")
def test_what_must_catch_a_fault_is_there(catch: Catch) -> None:
    file, *names = catch.tests.split("::")
    body = ast.parse((ROOT / file).read_text()).body
    for name in names:
        (found,) = [node for node in body if getattr(node, "name", None) == name]
        assert isinstance(found, ast.ClassDef | ast.FunctionDef)
        body = found.body


def test_samples_must_catch_the_faults_though_a_soak_runs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DELTAWARD_SOAK", "1")
    monkeypatch.setenv("DELTAWARD_TEST_FAULT", "of a run around this one")
    environment = environment_of(None, Path("seen"))
    assert {"DELTAWARD_SOAK", "DELTAWARD_TEST_FAULT"}.isdisjoint(environment)
    assert environment_of("a fault", Path("seen"))["DELTAWARD_TEST_FAULT"] == "a fault"
