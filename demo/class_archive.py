"""A class data archive for Spark: a JVM that maps it starts in half the time.

`python -m demo.class_archive` creates a missing archive in less than a minute. It is stored in `.tools/`, for
one release of Spark and of Java. A JVM of a different release, or with different jars, starts without the
archive.
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
"""Options for a JVM that runs for minutes, for which the second compiler costs more than it saves."""

_FOLDER = REPOSITORY / ".tools" / "classes"
_MOST_SECONDS = 300


def submit_options() -> str:
    """`SPARK_SUBMIT_OPTS` of a short-lived Spark, with the archive if it exists."""
    archive = _archive()
    if archive is None or not archive.exists():
        return SHORT_LIVED
    # If the archive does not match, the JVM would print a message on standard output.
    return f"{SHORT_LIVED} -XX:SharedArchiveFile={archive} -Xlog:disable -Xlog:all=error:stderr"


def make() -> Path | None:
    """Create the archive if it is missing; None if it cannot be created, which only makes Spark slower."""
    archive = _archive()
    if archive is None or " " in str(archive):
        return None
    archive.parent.mkdir(parents=True, exist_ok=True)
    with open(archive.parent / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            print(
                "deltaward: creating an archive of Spark's classes. This takes about a minute, once.",
                file=sys.stderr,
            )
            _record(archive)
    return archive if archive.exists() else None


def _record(archive: Path) -> None:
    with tempfile.TemporaryDirectory(dir=archive.parent) as scratch:
        new_archive = Path(scratch) / archive.name
        environment = {
            **os.environ,
            "SPARK_SUBMIT_OPTS": f"{SHORT_LIVED} -XX:ArchiveClassesAtExit={new_archive} -Xlog:disable",
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
            return  # The archive may be incomplete.
        if code == 0 and new_archive.exists():
            new_archive.replace(archive)


def _archive() -> Path | None:
    try:
        spark = version("pyspark")
    except PackageNotFoundError:
        return None
    java = os.environ.get("JAVA_HOME", "")
    release = Path(java, "release")
    java_release = release.read_text() if release.is_file() else java
    digest = hashlib.sha256(f"{spark}\n{java_release}\n{SHORT_LIVED}".encode()).hexdigest()[:16]
    return _FOLDER / f"spark-{spark}-{digest}.jsa"


def main() -> None:
    """Create the archive. If that fails, print a message; nothing depends on the archive."""
    if make() is None:
        print(
            "deltaward: An archive of Spark's classes cannot be created here. Spark starts without it.",
            file=sys.stderr,
        )


if __name__ == "__main__":
    main()
