"""The golden tables: every answer is right or refused by name."""

from __future__ import annotations

import importlib.util
import json
import warnings
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from delta_core.errors import DeltaError, DeltaWarning, UnsupportedTableFeatureError
from tests.golden import reader

# Cases that agree; it only ever grows. The others need features that are refused by name.
AGREEING = 305


def _comparison(golden_dir: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("golden_compare", golden_dir / "compare.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.timeout(600)
def test_golden_tables_agree_or_are_refused_by_name(golden_dir: Path, tmp_path: Path) -> None:
    compare = _comparison(golden_dir)
    cases = json.loads((golden_dir / "manifest.json").read_text(encoding="utf-8"))
    refused: Counter[str] = Counter()
    wrong: dict[str, str] = {}
    for case in cases:
        try:
            with warnings.catch_warnings():
                # Some tables have a damaged checkpoint on purpose; reading around it warns.
                warnings.simplefilter("ignore", DeltaWarning)
                compare.run_case(case, str(golden_dir), reader, reader.read, str(tmp_path), False)
        except UnsupportedTableFeatureError as error:
            refused[error.problem.rpartition("unsupported table feature ")[2]] += 1
        except DeltaError as error:
            wrong[case["name"]] = f"{error.code}: {error}"
        except Exception as error:
            wrong[case["name"]] = f"{type(error).__name__}: {error}"
    agreeing = len(cases) - len(wrong) - sum(refused.values())
    print(f"\n{agreeing} of {len(cases)} agree; refused: {dict(refused)}")
    assert wrong == {}
    assert agreeing >= AGREEING
    assert all(refused), "a refusal names no feature"
