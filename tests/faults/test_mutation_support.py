"""What makes and runs mutants: that a mutant is what it says, and that messages are none."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.mutation.code_swap import resolve, swap
from tests.support.mutation.operators import source_mutants

SOURCE = '''
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

LIMIT = 3

@dataclass(frozen=True)
class Thing:
    size: int = 5

    @property
    def large(self) -> bool:
        return self.size > LIMIT

    @cached_property
    def double(self) -> int:
        return self.size * 2

    @classmethod
    def made(cls, size: int = 1):
        return cls(size)

    @contextmanager
    def opened(self):
        yield self.size + 1

def refuse(name: str) -> None:
    """A text for people."""
    if name == "bad":
        raise ValueError(f"{name} is " "bad", name)
    pairs = zip(name, name, strict=True)
'''


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    (tmp_path / "mutated_here.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("mutated_here")
    del sys.modules["mutated_here"]


def test_every_kind_of_function_is_swapped(module: ModuleType) -> None:
    thing, made = module.Thing(), module.Thing.made
    edits = {
        "Thing.large": ("> LIMIT", "< LIMIT"),
        "Thing.double": ("* 2", "* 7"),
        "Thing.made": ("size: int = 1", "size: int = 4"),
        "Thing.opened": ("size + 1", "size - 1"),
    }
    for function, (old, new) in edits.items():
        assert resolve(module, function) is not None
        swap(module, function, SOURCE.replace(old, new)).apply()
    assert (thing.large, thing.double, made().size) == (False, 35, 4)
    with thing.opened() as size:
        assert size == 4


def test_mutants_say_where_they_are_and_leave_messages_alone(module: ModuleType) -> None:
    mutants = list(source_mutants("mutated_here.py", SOURCE))
    assert {mutant.function for mutant in mutants} == {
        "Thing.large",
        "Thing.double",
        "Thing.made",
        "Thing.opened",
        "refuse",
    }
    assert len({mutant.name for mutant in mutants}) == len(mutants)
    shown = [mutant.name for mutant in mutants if mutant.function == "refuse"]
    assert not [name for name in shown if "is " in name or "strict" in name.partition(" -> ")[2]]
    assert any(name.endswith('== "bad" -> != "bad"') for name in shown)
    for mutant in mutants:
        assert mutant.source != SOURCE
        assert swap(module, mutant.function, mutant.source).function is resolve(module, mutant.function)
