"""Shipping the packages to Spark's Python workers: executors and Connect servers."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from delta_core.forks import ForkSafeLock
from delta_core.version import VERSION
from spark_jobs import worker_tasks
from spark_jobs.scoped_conf import session_identity

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGES = ("delta_core", "spark_jobs", "pyspark_deltaward")

_LOCK = ForkSafeLock()
_READY: set[str] = set()


def ensure_importable(spark: SparkSession) -> None:
    """Ensure that the session's Python workers can import deltaward's packages in the driver's version.

    The check runs once per session, as a Spark job with one task. When the workers cannot import the
    packages, the packages are shipped as a zip file, for this session only.
    """
    identity = session_identity(spark)
    with _LOCK.held():
        if identity in _READY:
            return
        if not _workers_have_packages(spark):
            spark.addArtifacts(str(package_archive()), pyfile=True)
        _READY.add(identity)


def package_archive(directory: Path | None = None) -> Path:
    """The path of a zip file with the packages' Python files; its name contains a hash of their content.

    Args:
        directory: the directory of the zip file; None for the system's temporary directory.
    """
    entries = sorted(_sources())
    digest = hashlib.sha256()
    for name, source in entries:
        digest.update(name.encode())
        digest.update(source.read_bytes())
    folder = directory or Path(tempfile.gettempdir())
    archive = folder / f"deltaward-{VERSION}-{digest.hexdigest()[:12]}.zip"
    if archive.exists():
        return archive
    with (
        tempfile.NamedTemporaryFile(dir=folder, prefix=archive.stem, suffix=".tmp", delete=False) as scratch,
        zipfile.ZipFile(scratch, "w", zipfile.ZIP_DEFLATED) as target,
    ):
        for name, source in entries:
            target.write(source, name)
    Path(scratch.name).replace(archive)
    return archive


def _sources() -> Iterator[tuple[str, Path]]:
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        for location in spec.submodule_search_locations or () if spec is not None else ():
            root = Path(location)
            for source in root.rglob("*.py"):
                yield f"{package}/{source.relative_to(root).as_posix()}", source


def _workers_have_packages(spark: SparkSession) -> bool:
    rows = spark.range(1).mapInArrow(_probe(), "version string").collect()
    return [row[0] for row in rows] == [VERSION]


def _probe() -> worker_tasks.BatchFunction:
    needed = worker_tasks.__name__

    # A nested function is pickled by value, so the workers do not need this module to run it.
    def probe(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        try:
            importlib.import_module(needed)
            version = importlib.import_module("delta_core.version").VERSION
        except ImportError:
            version = ""
        yield pa.RecordBatch.from_pydict({"version": [version]})

    return probe
