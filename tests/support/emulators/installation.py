"""Which of the servers that `scripts/emulators.sh` installs are there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.repository import ROOT

HOME = ROOT / ".tools" / "emulators"

NAMES = ("versitygw", "fake-gcs-server", "azurite", "dynalite", "s3rver", "minidfs")

_FILES = {
    "versitygw": "bin/versitygw",
    "fake-gcs-server": "bin/fake-gcs-server",
    "azurite": "node_modules/azurite/dist/src/blob/main.js",
    "dynalite": "node_modules/dynalite/cli.js",
    "s3rver": "node_modules/s3rver/bin/s3rver.js",
    "minidfs": "lib",
}


def installed(name: str) -> str | None:
    """None when the server can be started; else the sentence that says what is missing."""
    if not ((HOME / name / "version").is_file() and program(name).exists()):
        return f"{name} is not installed: run scripts/emulators.sh {name}"
    if name in ("azurite", "dynalite", "s3rver") and shutil.which("node") is None:
        return f"{name} runs on Node.js, and there is no node on the PATH"
    if name == "minidfs" and not Path(java()).is_file():
        return f"{name} runs on Java: set JAVA_HOME or put java on the PATH"
    return None


def require(name: str) -> None:
    """Skip the test without the server, and say why; fail it under CI, which installs every server."""
    reason = installed(name)
    if reason is not None and os.environ.get("CI") == "true":
        pytest.fail(reason)
    if reason is not None:
        pytest.skip(reason)


def program(name: str) -> Path:
    """The file that is the server, or the folder of its jars."""
    return HOME / name / _FILES[name]


def node_command(name: str) -> list[str]:
    """The words that start a server written for Node.js, without a wrapper whose end it would outlive."""
    return [shutil.which("node") or "node", str(program(name))]


def java() -> str:
    """The Java that JAVA_HOME or the PATH names; empty without one."""
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/java" if home else shutil.which("java") or ""
