"""Ten ways to sabotage a run from outside. The checks must detect each of them. They can be combined.

None of them is in the product's code: the harness leaves out a month, applies a month twice, deletes
quarantined rows, or gives Airflow another DAG folder or another interpreter for the drivers.
"""

from __future__ import annotations

import re
import shutil
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml
from deltalake import DeltaTable, write_deltalake

from demo import raw_data
from demo.layout import REPOSITORY, Layout
from demo.processes import DemoError
from demo.profiles import Profile

SKIP_MONTH = "skip-month"
COMMIT_TWICE = "commit-twice"
GATE_OFF = "gate-off"
QUARANTINE_DROPPED = "quarantine-dropped"
CORRECTION_LOST = "correction-lost"
COMPACT_NOOP = "compact-noop"
ZORDER_NOOP = "zorder-noop"
VERIFY_DROPPED = "verify-dropped"
EXIT_CODE_SWALLOWED = "exit-code-swallowed"
APPROVAL_IGNORED = "approval-ignored"

_DRIVER = """\
#!{python}
# Runs the driver and hides its failure: both the result and the exit code report success.
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
    """The sabotages of a run; empty `names` leave the run intact.

    Attributes:
        dags, driver_python: the DAG folder and the interpreter that replace the usual ones in Airflow.
    """

    names: tuple[str, ...] = ()
    dags: Path | None = None
    driver_python: Path | None = None

    def months_to_load(self, months: Sequence[int]) -> Sequence[int]:
        """The months to load one by one: all of them, or all except the second to last."""
        return [month for month in months if month != months[-2]] if SKIP_MONTH in self.names else months

    def after_loading(self, layout: Layout, profile: Profile) -> None:
        """Append the last month's flights once more, as a writer without an idempotency key would."""
        if COMMIT_TWICE not in self.names:
            return
        table = DeltaTable(str(layout.table("flights")))
        rows = raw_data.read("flights", months=profile.months[-1:])
        schema = pa.schema(table.schema().to_arrow())
        ordered = pa.schema([schema.field(name) for name in rows.column_names])
        write_deltalake(table, rows.cast(ordered), mode="append")

    def after_gate(self, layout: Layout) -> None:
        """Delete some of the quarantined rows."""
        if QUARANTINE_DROPPED in self.names:
            DeltaTable(str(layout.table("flights") / "_deltaward" / "quarantine")).delete("carrier = 'ZZ'")


def prepare(names: Sequence[str], layout: Layout) -> Sabotage:
    """Create the files that the sabotages need, under `layout.sabotage`."""
    shutil.rmtree(layout.sabotage, ignore_errors=True)
    layout.sabotage.mkdir(parents=True)
    if unknown := set(names) - set(NAMES):
        raise DemoError(
            f"Unknown sabotage {', '.join(map(repr, sorted(unknown)))}. Use one of {', '.join(NAMES)}."
        )
    dags = None
    if edits := [_EDITS[name] for name in names if name in _EDITS]:
        dags = layout.sabotage / "dags"
        shutil.copytree(REPOSITORY / "dags", dags, ignore=shutil.ignore_patterns("__pycache__"))
        for edit in edits:
            edit(dags)
    driver = _forgiving_driver(layout) if EXIT_CODE_SWALLOWED in names else None
    return Sabotage(names=tuple(names), dags=dags, driver_python=driver)


def _forgiving_driver(layout: Layout) -> Path:
    driver = layout.sabotage / "bin" / "python3"
    driver.parent.mkdir()
    driver.write_text(_DRIVER.format(python=sys.executable))
    driver.chmod(driver.stat().st_mode | stat.S_IXUSR)
    return driver


def _gate_off(dags: Path) -> None:
    """Delete the suite of expectations. A feed without a suite has no gate."""
    (dags / "config" / "flights_suite.yaml").unlink()


def _correction_lost(dags: Path) -> None:
    """Merge without the clause that deletes."""

    def drop(document: dict[str, Any]) -> None:
        document["matched"] = [it for it in document["matched"] if it["action"] != "delete"]

    _edit_yaml(dags / "config" / "flights_corrections.yaml", drop)


def _compact_noop(dags: Path) -> None:
    """Set a target size that every file exceeds, so that there is nothing to compact."""
    _edit_yaml(
        dags / "config" / "tables.yaml", lambda it: it["defaults"]["compaction"].update(target_size_bytes=1)
    )


def _zorder_noop(dags: Path) -> None:
    """Disable clustering, so that the rows keep their order."""
    _edit_yaml(
        dags / "config" / "tables.yaml",
        lambda it: it["tables"]["flights"]["clustering"].update(enabled=False),
    )


def _verify_dropped(dags: Path) -> None:
    """Leave the task `verify` out."""
    dag_file = dags / "table_maintenance.py"
    text, dropped = re.subn(
        r"^( +)POLICIES,\n", r"\g<0>\1verify=False,\n", dag_file.read_text(), flags=re.MULTILINE
    )
    if dropped != 1:
        raise DemoError(f"The sabotage cannot drop the task verify, because {dag_file.name} has changed.")
    dag_file.write_text(text)


def _approval_ignored(dags: Path) -> None:
    """Waive every approval, and allow the waiver."""
    dag_file = dags / "table_rollback.py"
    text, waived = re.subn(r"\bwaive=\"[^\"]+\"", "waive=True", dag_file.read_text())
    if waived != 1:
        raise DemoError(f"The sabotage cannot waive the approval, because {dag_file.name} has changed.")
    dag_file.write_text(f'{text}\nos.environ["DELTAWARD_ALLOW_WAIVED_APPROVAL"] = "true"\n')


def _edit_yaml(path: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    document = yaml.safe_load(path.read_text())
    edit(document)
    path.write_text(yaml.safe_dump(document))


_EDITS: Mapping[str, Callable[[Path], None]] = {
    GATE_OFF: _gate_off,
    CORRECTION_LOST: _correction_lost,
    COMPACT_NOOP: _compact_noop,
    ZORDER_NOOP: _zorder_noop,
    VERIFY_DROPPED: _verify_dropped,
    APPROVAL_IGNORED: _approval_ignored,
}

NAMES = (SKIP_MONTH, COMMIT_TWICE, QUARANTINE_DROPPED, EXIT_CODE_SWALLOWED, *_EDITS)
