"""The example of docs/from-delta-spark.md runs as it stands."""

from __future__ import annotations

import os
import re
import runpy
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.repository import ROOT
from tests.support.spark import REMOTE_VARIABLE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.slow
@pytest.mark.skipif(bool(os.environ.get(REMOTE_VARIABLE)), reason="the example starts a classic session")
def test_the_example_runs(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    page = (ROOT / "docs" / "from-delta-spark.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    script = tmp_path / "example.py"
    script.write_text(example)
    found = runpy.run_path(str(script))
    assert found["orders"].toDF().count() == 2
