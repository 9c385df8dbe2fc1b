from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from delta_core.fleet.control import Control
from delta_core.fleet.ledger import Ledger
from delta_core.fleet.registry import registry
from delta_core.policies.load import Policies, parse_policies
from demo.fleet_tables import KINDS, Made, make_fleet

POLICY = """
defaults:
  compaction: {{min_small_files: 4}}
  checkpoint: {{interval: 10}}
  vacuum: {{dry_run: false, min_bytes: 1}}
{more}
fleet:
  control_root: {root}/control
  prefixes: [{{uri: {root}/lake}}]
{fleet}
"""


@pytest.fixture(scope="session")
def sick_lake(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Made]]:
    """A lake with tables of every kind. Tests that change tables take `lake`."""
    root = tmp_path_factory.mktemp("fleet") / "lake"
    made = make_fleet(root, tables=12, files=12, seed=18)
    assert {item.kind for item in made} == set(KINDS)
    return root, made


@pytest.fixture
def lake(sick_lake: tuple[Path, list[Made]], tmp_path: Path) -> list[Made]:
    """A copy of the lake at `tmp_path/lake`."""
    import shutil

    shutil.copytree(sick_lake[0], tmp_path / "lake")
    return sick_lake[1]


Make = Callable[..., Control]


def policies_at(root: Path, more: str = "", fleet: str = "") -> Policies:
    return parse_policies(POLICY.format(root=root, more=more, fleet=fleet))


@pytest.fixture
def control(tmp_path: Path) -> Make:
    """Makes the control of `tmp_path/lake`; each has read nothing yet, as in a new process."""

    def make(more: str = "", fleet: str = "", **others: object) -> Control:
        policies = policies_at(tmp_path, more, fleet)
        ledger = Ledger(control_root=f"{tmp_path}/control", **others)  # type: ignore[arg-type]
        return Control(registry=registry(policies), ledger=ledger, **others)  # type: ignore[arg-type]

    return make
