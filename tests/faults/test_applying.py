"""A named fault is in effect wherever its function is used, and one that changes nothing is an error."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.faults.apply import FaultGone, change, put_in, put_in_when_imported
from tests.faults.fault import Fault, returns
from tests.support.repository import ROOT

SOURCE = """
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

class Base:
    def name(self):
        return "base"

@dataclass(frozen=True)
class Thing(Base):
    size: int = 5

    @property
    def large(self):
        return self.size > 3

    @cached_property
    def double(self):
        return self.size * 2

    @classmethod
    def made(cls, size=1):
        return cls(size)

    @staticmethod
    def fixed(value=1, *, more=2):
        return value + more

    @contextmanager
    def opened(self):
        yield self.size + 1

    def name(self):
        return super().name() + " thing"

def plain(value):
    return value
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    (tmp_path / "faulty_here.py").write_text(SOURCE)
    (tmp_path / "uses_faulty.py").write_text("from faulty_here import plain\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("faulty_here")
    for name in ("faulty_here", "uses_faulty"):
        sys.modules.pop(name, None)


def fault(target: str, mutate: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Fault:
    return Fault(name="a fault", guarantee="none", target=target, mutate=mutate, killer="")


def more(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **given: original(*args, **given) + 100


def test_every_kind_of_function_is_replaced(module: ModuleType) -> None:
    thing, made = module.Thing(), module.Thing.made
    for name in ("large", "double", "fixed"):
        change(fault(f"faulty_here:Thing.{name}", more), module)
    change(fault("faulty_here:Thing.made", lambda original: lambda cls, size=7: original(cls, size)), module)
    change(fault("faulty_here:Thing.name", lambda original: lambda self: original(self) + "!"), module)
    assert (thing.large, thing.double, thing.fixed(), thing.fixed(2, more=3)) == (101, 110, 103, 105)
    assert made().size == 7
    assert thing.name() == "base thing!"


def test_what_opens_and_closes_is_replaced(module: ModuleType) -> None:
    def mutate(original: Callable[..., Any]) -> Callable[..., Any]:
        def opened(self: Any) -> Iterator[int]:
            yield next(original(self)) + 100

        return opened

    change(fault("faulty_here:Thing.opened", mutate), module)
    with module.Thing().opened() as size:
        assert size == 106


def test_modules_that_imported_the_function_by_name_have_the_fault(module: ModuleType) -> None:
    user = importlib.import_module("uses_faulty")
    put_in(fault("faulty_here:plain", more))
    assert user.plain(1) == 101


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("delta_core.no_such_module:f", "no_such_module"),
        ("delta_core.log.listing:no_such_function", "no such function"),
        ("delta_core.log.listing:LogListing.no_such_method", "no such function"),
    ],
)
def test_a_fault_without_its_function_is_an_error(target: str, reason: str) -> None:
    with pytest.raises(FaultGone, match=reason):
        put_in(fault(target, returns(None)))


def test_a_fault_that_leaves_the_function_as_it_is_is_an_error(module: ModuleType) -> None:
    with pytest.raises(FaultGone, match="nothing changes"):
        put_in(fault("faulty_here:plain", lambda original: original))
    assert module.plain(1) == 1


def test_a_fault_comes_in_with_the_import_of_its_module(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    seen: list[str] = []
    del sys.modules["faulty_here"]
    put_in_when_imported(fault("faulty_here:plain", more), lambda: seen.append("in"))
    assert "faulty_here" not in sys.modules
    assert not seen
    assert importlib.import_module("uses_faulty").plain(1) == 101
    assert seen == ["in"]


PROGRAM = """
import sys
early = sorted(name for name in sys.modules if name.partition(".")[0] == "delta_core")
from delta_core.transaction.commit_result import covering
from delta_core.transaction import transaction
print(early, covering([], None), transaction.covering is covering)
key = type("Key", (), {"app_id": "a", "version": 1})
print(covering([key], key))
"""


@pytest.mark.parametrize(("name", "answer"), [(None, "Key"), ("at the rebase", "None")])
def test_a_process_has_the_fault_that_its_environment_names(
    name: str | None, answer: str, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("DELTAWARD_TEST_FAULT")},
        "PYTHONPATH": os.pathsep.join([str(ROOT / "tests" / "faults" / "inject"), str(ROOT)]),
        "DELTAWARD_TEST_FAULT_SEEN": str(seen),
    }
    if name is not None:
        environment["DELTAWARD_TEST_FAULT"] = f"the idempotency key is not looked up {name}"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    first, second = done.stdout.splitlines()
    assert first == "[] None True"
    assert answer in second
    assert seen.exists() is (name is not None)
