"""No argument of any kind makes a public call raise anything but a typed error."""

from __future__ import annotations

from pathlib import Path

import pytest

from delta_core.errors import DeltaError
from tests.support.hostile_calls import HOSTILE, Call, calls, prepared
from tests.support.soak import rounds

CALLS = list(calls())
NAMES = list(HOSTILE)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepared(tmp_path_factory.mktemp("tables"))


def raw_errors(call: Call, place: Path, monkeypatch: pytest.MonkeyPatch, *, every: int) -> list[str]:
    """What is no typed error, or one that says nothing, of a call with one hostile argument at a time."""
    # A path that is relative leads here.
    (place / "here").mkdir(exist_ok=True)
    monkeypatch.chdir(place / "here")
    found = []
    for number, parameter in enumerate(call.parameters):
        for name in NAMES[(number + len(call.name)) % every :: every]:
            try:
                call(place, **{parameter: HOSTILE[name]})
            except DeltaError as error:
                if not error.problem or len(str(error)) > 100_000:
                    found.append(f"{parameter}={name}: {error!r} says nothing, or too much")
            except Exception as error:
                found.append(f"{parameter}={name}: {error!r}")
    return found


@pytest.mark.parametrize("call", CALLS, ids=[call.name for call in CALLS])
def test_an_argument_of_another_kind_is_a_typed_error(
    call: Call, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert raw_errors(call, place, monkeypatch, every=24) == []


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS, ids=[call.name for call in CALLS])
def test_more_arguments_of_more_kinds_are(call: Call, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert raw_errors(call, place, monkeypatch, every=rounds(usual=6, soak=1)) == []


def test_the_calls_are_found() -> None:
    names = {call.name for call in CALLS}
    assert len(names) > 60
    assert {"write_deltalake", "DeltaTable.vacuum", "TableOptimizer.z_order", "Scan.to_batches"} <= names
