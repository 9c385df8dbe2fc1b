"""The golden tables: every answer is right, and what must be refused is."""

from __future__ import annotations

import importlib.util
import json
import warnings
from pathlib import Path
from types import ModuleType

from delta_core.errors import DeltaWarning
from tests.golden import reader


def _comparison(golden_dir: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("golden_compare", golden_dir / "compare.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_golden_case_agrees(golden_dir: Path, tmp_path: Path) -> None:
    compare = _comparison(golden_dir)
    cases = json.loads((golden_dir / "manifest.json").read_text(encoding="utf-8"))
    wrong: dict[str, str] = {}
    for case in cases:
        try:
            with warnings.catch_warnings():
                # Some tables have a damaged checkpoint on purpose; reading around it warns.
                warnings.simplefilter("ignore", DeltaWarning)
                compare.run_case(case, str(golden_dir), reader, reader.read, str(tmp_path), False)
        except Exception as error:
            wrong[case["name"]] = f"{type(error).__name__}: {error}"
    print(f"\n{len(cases) - len(wrong)} of {len(cases)} agree")
    assert wrong == {}
    assert len(cases) >= 390
