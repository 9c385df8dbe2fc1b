"""The distribution: entry points that resolve, pins that fit, targets that explain themselves."""

from __future__ import annotations

import importlib
import re
import subprocess
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from tests.support.repository import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
ENTRY_POINTS = [
    (group, name, target)
    for group, targets in PROJECT["entry-points"].items()
    for name, target in targets.items()
] + [("scripts", name, target) for name, target in PROJECT["scripts"].items()]


def _pins() -> list[Requirement]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith("#")]


@pytest.mark.airflow
@pytest.mark.spark
@pytest.mark.parametrize(("group", "name", "target"), ENTRY_POINTS)
def test_every_entry_point_resolves(group: str, name: str, target: str) -> None:
    module, _, attribute = target.partition(":")
    value = importlib.import_module(module)
    for part in attribute.split("."):
        value = getattr(value, part)
    assert callable(value), f"{group}: {name}"


def test_the_entry_points_are_those_that_others_look_for() -> None:
    groups = set(PROJECT["entry-points"])
    assert groups == {"apache_airflow_provider", "airflow.plugins", "deltaward.commands", "deltaward.jobs"}
    assert set(PROJECT["scripts"]) == {"deltaward"}
    assert {"spark", "airflow", "quality", "lineage", "dev", "all"} <= set(PROJECT["optional-dependencies"])


def test_every_constraint_is_one_exact_version() -> None:
    pins = _pins()
    assert len(pins) > 100
    for pin in pins:
        assert [specifier.operator for specifier in pin.specifier] == ["=="], pin
        assert pin.url is None, pin


def test_exact_versions_are_in_the_constraints_alone() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    wanted = [*build, *PROJECT["dependencies"]]
    for extra in PROJECT["optional-dependencies"].values():
        wanted += extra
    for requirement in map(Requirement, wanted):
        exact = [one for one in requirement.specifier if one.operator in ("==", "===")]
        assert not exact, requirement


def test_spark_and_its_client_write_one_folder_so_they_have_one_version() -> None:
    pins = {pin.name: str(pin.specifier) for pin in _pins() if pin.name in ("pyspark", "pyspark-client")}
    assert len(pins) == 2
    assert len(set(pins.values())) == 1, pins
    for extra in ("all", "dev"):
        wanted = [Requirement(text) for text in PROJECT["optional-dependencies"][extra]]
        ranges = {one.name: str(one.specifier) for one in wanted if one.name in pins}
        assert set(ranges) == set(pins), extra
        assert len(set(ranges.values())) == 1, ranges


def test_the_constraints_fit_what_the_project_asks_for() -> None:
    wanted = [Requirement(text) for text in PROJECT["dependencies"]]
    for extra in PROJECT["optional-dependencies"].values():
        wanted += [Requirement(text) for text in extra]
    pins = {pin.name.lower(): [p for p in _pins() if p.name.lower() == pin.name.lower()] for pin in _pins()}
    for requirement in wanted:
        if requirement.name == PROJECT["name"]:
            continue
        for pin in pins[requirement.name.lower()]:
            version = Version(next(iter(pin.specifier)).version)
            assert version in requirement.specifier, f"{pin} is outside {requirement}"


def test_the_version_is_spelled_the_same_everywhere() -> None:
    from delta_core.version import VERSION

    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert PROJECT["version"] == VERSION
    assert f"version number {VERSION}" in changelog or f"## [{VERSION}]" in changelog


def test_every_make_target_explains_itself() -> None:
    text = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z][a-z%-]*):", text, re.MULTILINE))
    explained = set(re.findall(r"^([a-z][a-z%-]*):.*## \S", text, re.MULTILINE))
    assert targets == explained
    assert {"demo", "up", "down", "test", "test-all", "lint", "bench", "help"} <= explained
    answer = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    for target in explained:
        assert re.search(rf"^  {re.escape(target)} ", answer.stdout, re.MULTILINE), target
