"""The examples of docs/merge.md run as they stand."""

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
def test_the_examples_run(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "merge.md").read_text(), re.DOTALL)
    found = []
    for example in examples:
        script = tmp_path / "example.py"
        script.write_text(example)
        found.append(runpy.run_path(str(script)))
    spark_rows = [names["changed"].first()["num_updated_rows"] for names in found if "changed" in names]
    versions = [names["result"].version for names in found if "result" in names]
    assert (spark_rows, versions) == ([1], [1])
