"""The public names with their parameters, compared with those of an earlier commit.

    python scripts/public_names.py --against REVISION [--tests PATH ...]

Prints each name that is gone, and each parameter that is gone, became required, moved, or has another
default. `--tests` then runs tests of the earlier commit with today's packages: a name that changed its
meaning fails one of them. Exits with 1 when there is any. Without arguments, prints the names as JSON.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = (
    "delta_core",
    "delta_core.conformance",
    "delta_core.deltalake",
    "delta_core.errors",
    "delta_core.jobs",
    "delta_core.leases",
    "delta_core.scan",
    "delta_core.schema",
    "delta_core.snapshot",
    "delta_core.storage",
    "delta_core.transaction",
    "delta_core.variants",
    "spark_jobs",
    "delta_airflow",
)
KNOWN = {
    "delta_core.DeltaTable.follow": "the step of the facade is `advance_to`; the name is that of streams",
    "spark_jobs.DeltaTable.": "it has delta-spark's own signatures; calls by position stay valid",
}
"""The beginnings of lines about changes that were decided, with the reason."""

Parameters = list[list[str]]


def main() -> int:
    """Print the names, or what changed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", help="a revision of git")
    parser.add_argument("--tests", nargs="*", default=[], help="paths of tests in that revision")
    options = parser.parse_args()
    if options.against is None:
        json.dump(public_names(), sys.stdout)
        return 0
    with tempfile.TemporaryDirectory(prefix="deltaward-names-") as folder:
        archive = subprocess.run(
            ["git", "archive", options.against], cwd=ROOT, capture_output=True, check=True
        ).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
        before, after = names_in(Path(folder)), names_in(ROOT)
        found, known = [], []
        for line in differences(before, after):
            reason = next((why for name, why in KNOWN.items() if line.startswith(name)), None)
            (found if reason is None else known).append(line if reason is None else f"{line} ({reason})")
        print("\n".join([*known, *found]))
        print(f"{len(found)} changes without a reason, {len(known)} with one")
        print(f"{len(before)} names in {options.against}, {len(after)} today")
        failed = bool(options.tests) and not tests_pass(Path(folder), options.tests)
    return 1 if found or failed else 0


def names_in(folder: Path) -> dict[str, Parameters | None]:
    """The public names of a checkout, by a process that imports its packages."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).resolve())],
        env=environment(folder),
        cwd=folder,
        capture_output=True,
        check=True,
    )
    names: dict[str, Parameters | None] = json.loads(done.stdout.splitlines()[-1])
    return names


def environment(folder: Path) -> dict[str, str]:
    """The environment of a process that imports the packages of a checkout."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(folder / "plugins")])}


def tests_pass(folder: Path, paths: list[str]) -> bool:
    """Whether tests of the earlier commit pass with today's packages."""
    for package in ("delta_core", "spark_jobs", "plugins", "pyspark_deltaward"):
        if (folder / package).exists():
            (folder / package).rename(folder / f"{package}.before")
        if (ROOT / package).exists():
            (folder / package).symlink_to(ROOT / package)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *paths]
    return subprocess.run(command, cwd=folder, env=environment(folder), check=False).returncode == 0


def public_names() -> dict[str, Parameters | None]:
    """Each public name, and each public member of a class, with its parameters where it is called."""
    names: dict[str, Parameters | None] = {}
    for package in PACKAGES:
        try:
            module = importlib.import_module(package)
        except ImportError:
            continue
        for name in sorted(name for name in exported(module) if not name.startswith("_")):
            value = getattr(module, name)
            names[f"{package}.{name}"] = parameters_of(value)
            if inspect.isclass(value):
                names |= members_of(value, f"{package}.{name}")
    return names


def exported(module: Any) -> set[str]:
    """The names that a package exports."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return set(listed)
    found = set(vars(module))
    return {name for name in found if not inspect.ismodule(getattr(module, name))}


def members_of(value: type, prefix: str) -> dict[str, Parameters | None]:
    """The public methods, properties and constants of a class of this project, also inherited ones."""
    found: dict[str, Parameters | None] = {}
    for name in dir(value):
        if name.startswith("_"):
            continue
        owner = next((cls for cls in value.__mro__ if name in vars(cls)), object)
        if owner.__module__.split(".")[0] in ("delta_core", "spark_jobs", "delta_airflow"):
            found[f"{prefix}.{name}"] = parameters_of(inspect.getattr_static(value, name))
    return found


def parameters_of(value: object) -> Parameters | None:
    """The parameters as name, kind and default; None for what is not called."""
    if isinstance(value, classmethod | staticmethod):
        value = value.__func__
    if not callable(value):
        return None
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return None
    return [
        [one.name, one.kind.name, "" if one.default is inspect.Parameter.empty else _shown(one.default)]
        for one in signature.parameters.values()
    ]


def _shown(default: object) -> str:
    """A default as text. Of an object of this project only its class: it may have more attributes today."""
    text = repr(default)
    is_plain = default is None or isinstance(default, bool | int | float | str | bytes | tuple)
    return text if is_plain and len(text) <= 200 else type(default).__name__


def differences(before: dict[str, Parameters | None], after: dict[str, Parameters | None]) -> list[str]:
    """What a caller of the earlier names would notice."""
    found = []
    for name, old in before.items():
        if name not in after:
            found.append(f"{name} is gone")
            continue
        new = after[name]
        if old is None:
            continue
        if new is None:
            found.append(f"{name} cannot be called any more")
            continue
        found += [f"{name}: {problem}" for problem in _changed(old, new)]
    return found


def _changed(old: Parameters, new: Parameters) -> list[str]:
    by_name = {name: (place, kind, default) for place, (name, kind, default) in enumerate(new)}
    takes_any = any(kind == "VAR_KEYWORD" for _, kind, _ in new)
    found = []
    for place, (name, kind, default) in enumerate(old):
        if kind.startswith("VAR_"):
            continue
        if name not in by_name:
            if not takes_any:
                found.append(f"the parameter {name} is gone")
            continue
        new_place, new_kind, new_default = by_name[name]
        if kind == "POSITIONAL_OR_KEYWORD" and (new_kind == "KEYWORD_ONLY" or new_place != place):
            found.append(f"the parameter {name} moved")
        if default and not new_default:
            found.append(f"the parameter {name} is required")
        elif default and default != new_default:
            found.append(f"the default of {name} was {default} and is {new_default}")
    known = {name for name, _, _ in old}
    for name, kind, default in new:
        if name not in known and not default and not kind.startswith("VAR_"):
            found.append(f"the new parameter {name} is required")
    return found


if __name__ == "__main__":
    sys.exit(main())
