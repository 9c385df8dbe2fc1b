"""`make golden` names a folder that holds golden tables, and no other."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.repository import ROOT

# What a make that runs the tests tells the makes below it.
_OF_THE_RUN = ("DELTAWARD_GOLDEN", "MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What the target needs of a checkout, with no folder beside it."""
    made = tmp_path / "work" / "checkout"
    (made / "scripts").mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "golden.sh", made / "scripts")
    shutil.copy(ROOT / "Makefile", made)
    return made


def make_golden(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name not in _OF_THE_RUN}
    return subprocess.run(
        ["make", "golden", *arguments], cwd=checkout, env=kept, capture_output=True, text=True, check=False
    )


def folder_of(place: Path, manifest: str) -> Path:
    place.mkdir(parents=True)
    (place / "manifest.json").write_text(manifest)
    return place


def test_a_folder_is_named_once_whatever_its_name(checkout: Path, tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "two words", '[{"name": "a"}, {"name": "b"}]')
    answer = make_golden(checkout, f"GOLDEN={folder}")
    assert answer.stdout == "deltaward: 2 golden tables in .tools/golden\n"
    assert (checkout / ".tools" / "golden").resolve() == folder
    assert make_golden(checkout).stdout == answer.stdout


@pytest.mark.parametrize("manifest", ["{}", "[]", ""])
def test_a_folder_without_tables_is_refused_and_the_known_one_stays(
    checkout: Path, tmp_path: Path, manifest: str
) -> None:
    known = folder_of(tmp_path / "known", '[{"name": "a"}]')
    assert make_golden(checkout, f"GOLDEN={known}").returncode == 0
    other = folder_of(tmp_path / "other", manifest)
    answer = make_golden(checkout, f"GOLDEN={other}")
    assert answer.returncode != 0
    assert "has no manifest.json that names tables" in answer.stderr
    assert (checkout / ".tools" / "golden").resolve() == known


def test_the_folder_beside_the_checkout_is_found(checkout: Path) -> None:
    assert "make golden GOLDEN=FOLDER" in make_golden(checkout).stderr
    beside = folder_of(checkout.parent / "shared" / "golden", '[{"name": "a"}]')
    assert make_golden(checkout).returncode == 0
    assert (checkout / ".tools" / "golden").resolve() == beside
