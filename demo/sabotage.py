"""Five ways to spoil a run from outside, each of which the checks must find.

None is in the product's code: the harness leaves a month out, applies one twice, or hands Airflow another
policy file, another DAG folder or another interpreter for the drivers.
"""

from __future__ import annotations

import re
import shutil
import stat
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import yaml
from deltalake import DeltaTable, write_deltalake

from demo import raw_data
from demo.layout import REPOSITORY, Layout
from demo.processes import DemoError
from demo.profiles import Profile

SKIP_MONTH = "skip-month"
COMMIT_TWICE = "commit-twice"
COMPACT_NOOP = "compact-noop"
VERIFY_DROPPED = "verify-dropped"
EXIT_CODE_SWALLOWED = "exit-code-swallowed"

NAMES = (SKIP_MONTH, COMMIT_TWICE, COMPACT_NOOP, VERIFY_DROPPED, EXIT_CODE_SWALLOWED)

_DRIVER = """\
#!{python}
# Runs the driver and hides that it failed: its result says success, and so does its exit code.
import json, subprocess, sys
done = subprocess.run([{python!r}, *sys.argv[1:]])
if done.returncode and "--result" in sys.argv:
    path = sys.argv[sys.argv.index("--result") + 1]
    result = json.load(open(path))
    result.update(status="succeeded", error=None)
    json.dump(result, open(path, "w"))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sabotage:
    """What is spoiled; nothing when `name` is None.

    Attributes:
        dags, policies, driver_python: given to Airflow in place of the usual ones.
    """

    name: str | None = None
    dags: Path | None = None
    policies: Path | None = None
    driver_python: Path | None = None

    def months_to_load(self, months: Sequence[int]) -> Sequence[int]:
        """The months to load one by one: all of them, or without the last but one."""
        return [month for month in months if month != months[-2]] if self.name == SKIP_MONTH else months

    def after_loading(self, layout: Layout, profile: Profile) -> None:
        """Append the last month's flights once more, as a writer without an idempotency key would."""
        if self.name != COMMIT_TWICE:
            return
        table = DeltaTable(str(layout.table("flights")))
        rows = raw_data.read("flights", months=profile.months[-1:])
        schema = pa.schema(table.schema().to_arrow())
        ordered = pa.schema([schema.field(name) for name in rows.column_names])
        write_deltalake(table, rows.cast(ordered), mode="append")


def prepare(name: str | None, layout: Layout) -> Sabotage:
    """Make what the sabotage needs under `layout.sabotage`."""
    shutil.rmtree(layout.sabotage, ignore_errors=True)
    layout.sabotage.mkdir(parents=True)
    dags = REPOSITORY / "dags"
    if name == COMPACT_NOOP:
        policies = layout.sabotage / "tables.yaml"
        document = yaml.safe_load((dags / "config" / "tables.yaml").read_text())
        # Every file is larger than this target, so there is never anything to put together.
        document["defaults"]["compaction"] |= {"target_size_bytes": 1}
        policies.write_text(yaml.safe_dump(document))
        return Sabotage(name=name, policies=policies)
    if name == VERIFY_DROPPED:
        copy = layout.sabotage / "dags"
        shutil.copytree(dags, copy, ignore=shutil.ignore_patterns("__pycache__"))
        _drop_verify(copy / "table_maintenance.py")
        return Sabotage(name=name, dags=copy)
    if name == EXIT_CODE_SWALLOWED:
        driver = layout.sabotage / "bin" / "python3"
        driver.parent.mkdir()
        driver.write_text(_DRIVER.format(python=sys.executable))
        driver.chmod(driver.stat().st_mode | stat.S_IXUSR)
        return Sabotage(name=name, driver_python=driver)
    if name is not None and name not in NAMES:
        raise DemoError(f"There is no sabotage {name!r}; there are {', '.join(NAMES)}")
    return Sabotage(name=name)


def _drop_verify(dag_file: Path) -> None:
    """Remove the task `verify`: its definition, its place in the chain, and who would miss it."""
    text = dag_file.read_text()
    text, defined = re.subn(r"^( +)verify = .*?\n\1\)\n", "", text, flags=re.MULTILINE | re.DOTALL)
    text, chained = re.subn(r" >> verify\b", "", text)
    text, missed = re.subn(r"\"verify\"", '"plan"', text)
    if (defined, chained) != (1, 1) or not missed:
        raise DemoError(
            f"{dag_file.name} has changed; the sabotage does not know how to drop its verify task"
        )
    dag_file.write_text(text)
