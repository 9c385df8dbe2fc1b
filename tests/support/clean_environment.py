"""Environments with the built wheel and nothing of the checkout, and ones with the tests' requirements."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

from tests.support.repository import ROOT

UV = str(Path(sys.executable).with_name("uv"))
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")


class CommandError(Exception):
    """A program ended with another code than 0; the text has the end of what it printed."""


def run(
    command: Sequence[str], *, cwd: Path, environment: dict[str, str] | None = None, seconds: float = 900
) -> str:
    """What the program printed.

    Raises:
        CommandError: it failed.
    """
    # To a file: a Spark that outlives its starter would keep a pipe open.
    with tempfile.TemporaryFile("w+") as printed:
        code = subprocess.run(
            command,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            check=False,
            env=environment,
            timeout=seconds,
        ).returncode
        printed.seek(0)
        text = printed.read()
    if code:
        raise CommandError(f"{' '.join(command)[:300]} ended with {code}\n{text[-3000:]}")
    return text


def build_wheel(folder: Path) -> Path:
    """The wheel of this checkout, in the folder."""
    run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)], cwd=ROOT)
    (wheel,) = folder.glob("deltaward-*.whl")
    return wheel


def make_environment(
    folder: Path, requirements: Sequence[str], *, free: Collection[str] = (), overrides: Sequence[str] = ()
) -> Path:
    """A virtual environment in `folder/venv`; returns its Python.

    Args:
        requirements: what is installed, with the versions of constraints.txt.
        free: packages that are not held to constraints.txt.
        overrides: requirements that win over every other one of the same package.
    """
    run([UV, "venv", "--quiet", "--python", sys.executable, "venv"], cwd=folder)
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    kept = [line for line in lines if re.split(r"[= #]", line)[0] not in free]
    (folder / "constraints.txt").write_text("\n".join(kept) + "\n")
    (folder / "overrides.txt").write_text("\n".join(overrides) + "\n")
    python = folder / "venv" / "bin" / "python"
    command = [UV, "pip", "install", "--quiet", "--python", str(python), *requirements]
    command += ["--constraint", str(folder / "constraints.txt"), "--override", str(folder / "overrides.txt")]
    trust = {"SSL_CERT_FILE": str(_CERTIFICATES)} if _CERTIFICATES.is_file() else {}
    environment = {**trust, **os.environ}
    try:  # as scripts/venv.sh does: what uv has kept is not built again
        run([*command, "--offline"], cwd=folder, environment=environment)
    except CommandError:
        run(command, cwd=folder, environment=environment)
    return python


def version_of(python: Path, distribution: str) -> str:
    """The version that is installed in an environment."""
    program = f"from importlib.metadata import version; print(version({distribution!r}))"
    return run([str(python), "-c", program], cwd=python.parent).strip()


def users_shell(folder: Path) -> dict[str, str]:
    """What a user's shell has, with the environment first on its path; nothing of this checkout."""
    kept = {name: os.environ[name] for name in ("JAVA_HOME",) if name in os.environ}
    return {
        "PATH": os.pathsep.join([str(folder / "venv" / "bin"), "/usr/bin", "/bin"]),
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "SPARK_LOCAL_IP": "127.0.0.1",
        # Each JVM runs one small job: compiling for speed later costs more than it brings.
        "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        **kept,
    }
