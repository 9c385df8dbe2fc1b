"""The modules and settings beside the DAG files, for tests that need no Airflow."""

from __future__ import annotations

import importlib.util
from types import ModuleType
from typing import Any

import yaml

from tests.support.repository import ROOT

DAGS = ROOT / "dags"


def dag_module(name: str) -> ModuleType:
    """A module beside the DAG files, loaded without making their folder importable."""
    spec = importlib.util.spec_from_file_location(name, DAGS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def dag_config(name: str) -> Any:
    """A file of `dags/config`."""
    return yaml.safe_load((DAGS / "config" / f"{name}.yaml").read_text())
