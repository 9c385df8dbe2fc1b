"""Operators on local tables, with options of another store in the connection and with another connection."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.emulators.places import Place
from tests.support.operator_cells import CELLS, WAYS, connections, new_table, opened


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("way", WAYS)
def test_local(cell: str, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(name="local", base=str(tmp_path), endpoint=None, endpoint_option="", options={})
    uri = new_table(place)
    for name, value in connections(place, way, work_dir=str(tmp_path / "work")).items():
        monkeypatch.setenv(name, value)
    CELLS[cell](place, uri)
    assert opened(place, uri).version() in (2, 3)
