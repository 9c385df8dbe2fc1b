"""An archive of the classes that every Spark loads: a JVM that maps it starts in half the time.

`python -m demo.class_archive` makes it where it is missing, in less than a minute. It is kept in `.tools/`,
for one release of Spark and of Java; another JVM, or one with other jars, goes without.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from demo.layout import REPOSITORY

SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For a JVM whose life is minutes: what the second compiler would bring it would not repay."""

_FOLDER = REPOSITORY / ".tools" / "classes"
_MOST_SECONDS = 300


def submit_options() -> str:
    """`SPARK_SUBMIT_OPTS` of a short-lived Spark, with the archive where there is one."""
    archive = _archive()
    if archive is None or not archive.exists():
        return SHORT_LIVED
    # The JVM says on its standard output that an archive does not suit it.
    return f"{SHORT_LIVED} -XX:SharedArchiveFile={archive} -Xlog:disable -Xlog:all=error:stderr"


def make() -> Path | None:
    """Make the archive unless it is there; None where it cannot be made, which costs no more than time."""
    archive = _archive()
    if archive is None or " " in str(archive):
        return None
    archive.parent.mkdir(parents=True, exist_ok=True)
    with open(archive.parent / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            print("deltaward: making an archive of Spark's classes, about a minute, once", file=sys.stderr)
            _record(archive)
    return archive if archive.exists() else None


def _record(archive: Path) -> None:
    with tempfile.TemporaryDirectory(dir=archive.parent) as scratch:
        made = Path(scratch) / archive.name
        environment = {
            **os.environ,
            "SPARK_SUBMIT_OPTS": f"{SHORT_LIVED} -XX:ArchiveClassesAtExit={made} -Xlog:disable",
        }
        try:
            code = subprocess.run(
                [sys.executable, "-m", "demo.class_training", scratch],
                cwd=REPOSITORY,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=_MOST_SECONDS,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            return  # what there is of it may be cut off
        if code == 0 and made.exists():
            made.replace(archive)


def _archive() -> Path | None:
    try:
        spark = version("pyspark")
    except PackageNotFoundError:
        return None
    java = os.environ.get("JAVA_HOME", "")
    release = Path(java, "release")
    named = release.read_text() if release.is_file() else java
    told = hashlib.sha256(f"{spark}\n{named}\n{SHORT_LIVED}".encode()).hexdigest()[:16]
    return _FOLDER / f"spark-{spark}-{told}.jsa"


def main() -> None:
    """Make the archive, and say so where it cannot be made: nothing depends on it."""
    if make() is None:
        print(
            "deltaward: no archive of Spark's classes can be made here; Spark starts without", file=sys.stderr
        )


if __name__ == "__main__":
    main()
