"""What is installed, built and kept: exact versions, nothing of the tests in the wheel, no binaries."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pyarrow as pa
import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from delta_core import DeltaTable, write_deltalake
from delta_core.errors import DeltaError
from tests.support.repository import ROOT, python_files, tracked_files

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_what_is_shipped_imports_no_test_and_starts_no_emulator() -> None:
    assert PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == [
        "delta_core",
        "spark_jobs",
        "pyspark_deltaward",
        "plugins/delta_airflow",
    ]
    wanted = re.compile(r"^\s*(?:from|import) (tests|demo|benchmarks|moto|hypothesis)\b", re.MULTILINE)
    named = re.compile(r"versitygw|azurite|s3rver|fake-gcs|dynalite|minidfs", re.IGNORECASE)
    for path in python_files("delta_core", "spark_jobs", "pyspark_deltaward", "plugins"):
        # The beginning of a variable by which Azure's clients find an emulator that somebody has started.
        text = (ROOT / path).read_text().replace('"AZURITE_"', "")
        assert not wanted.search(text), path
        assert not named.search(text), path


def test_only_the_contract_suite_needs_pytest() -> None:
    needing = [
        str(path)
        for path in python_files("delta_core", "spark_jobs", "pyspark_deltaward", "plugins")
        if re.search(r"^\s*(?:from|import) pytest\b", (ROOT / path).read_text(), re.MULTILINE)
    ]
    assert needing == ["delta_core/conformance/log_store_contract.py"]


def test_the_parquet_reader_is_one_without_the_known_holes() -> None:
    """Older ones ask an address that a file names for its keys, or allocate what a footer claims."""
    (wanted,) = [
        Requirement(text) for text in PROJECT["project"]["dependencies"] if text.startswith("pyarrow")
    ]
    assert Version("26.0.0") not in wanted.specifier
    assert Version("26.0.1") in wanted.specifier
    assert Version(pa.__version__) in wanted.specifier


def test_nothing_is_installed_from_elsewhere() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert not [line for line in pins if "@" in line or "://" in line or "git+" in line]
    for name, extra in PROJECT["project"]["optional-dependencies"].items():
        assert not [text for text in extra if "@" in text or "://" in text], name


def test_no_binary_that_runs_is_kept_in_the_repository() -> None:
    runs = {".jar", ".so", ".dll", ".dylib", ".exe", ".whl", ".pyc", ".pkl", ".pickle", ".class"}
    assert [str(path) for path in tracked_files() if path.suffix in runs] == []


def test_a_file_that_is_encrypted_is_refused_and_asks_nobody_for_a_key(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"id": [1]}))
    (file,) = tmp_path.glob("*.parquet")
    data = bytearray(file.read_bytes())
    # The last four bytes say whether the footer is encrypted.
    assert data[-4:] == b"PAR1"
    data[-4:] = b"PARE"
    file.write_bytes(bytes(data))
    with pytest.raises(DeltaError):
        DeltaTable(tmp_path).to_pyarrow_table()
