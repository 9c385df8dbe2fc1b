"""Names that a package loads on first use."""

from __future__ import annotations

import subprocess
import sys

import pytest

_IMPORTS = ("from delta_core.jobs import run_job", "from delta_core.jobs.run_job import run_job as again")


@pytest.mark.parametrize("order", [_IMPORTS, _IMPORTS[::-1]], ids=["name first", "module first"])
def test_a_name_is_itself_though_its_module_is_called_the_same(order: tuple[str, str]) -> None:
    program = "; ".join([*order, _IMPORTS[0], "print(run_job is again, callable(run_job))"])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]
