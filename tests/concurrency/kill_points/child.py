"""One run of an operation, in a process that is made for it and may end at any step."""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from tests.concurrency.kill_points.every import EVERY
from tests.concurrency.kill_points.operation import Here
from tests.concurrency.kill_points.places import (
    BUCKET,
    Place,
    open_in_folder,
    step_through_place,
    table_uri,
)
from tests.concurrency.kill_points.power import Journal
from tests.concurrency.kill_points.steps import RETURNED, Moment, Steps
from tests.concurrency.kill_points.system_calls import step_through_system_calls
from tests.concurrency.kill_points.variants import VARIANTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to run.

    Attributes:
        operation: its name.
        folder: of the table, and of what the run tells.
        paths: the file of each label of the start table.
        times: how often to run it, one run after the other.
        kill_at: where to end; None to run to the end.
        journal: where to note what is flushed; None for not at all.
        variant: the library with a fault; None for the library as it is.
    """

    operation: str
    place: Place
    folder: Path
    paths: dict[str, str]
    times: int = 1
    kill_at: Moment | None = None
    journal: Path | None = None
    variant: str | None = None

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Request:
        """From JSON."""
        kill_at, journal = document["kill_at"], document["journal"]
        return cls(
            operation=document["operation"],
            place=Place(document["place"]),
            folder=Path(document["folder"]),
            paths=document["paths"],
            times=document["times"],
            kill_at=(kill_at[0], kill_at[1]) if kill_at else None,
            journal=Path(journal) if journal else None,
            variant=document["variant"],
        )


def run_in_child(request: Request, *, report: Path, errors: Path) -> NoReturn:
    """Run it and end the process: by SIGKILL at the step that is asked for, with 1 for an error, else 0."""
    gc.disable()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    sys.stdin.close()
    descriptor = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    try:
        steps = _run(request)
        report.write_text(json.dumps(steps.seen))
        status = 0
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stderr.flush()
    os._exit(status)


def _run(request: Request) -> Steps:
    warnings.simplefilter("error")
    tempfile.tempdir = str(request.folder / "spool")
    os.makedirs(tempfile.tempdir, exist_ok=True)
    steps = Steps(request.kill_at)
    open_in_folder(request.place, request.folder)
    if request.variant is not None:
        VARIANTS[request.variant].break_it()
    step_through_place(request.place, steps)
    if request.place is Place.LOCAL:
        root = request.folder / BUCKET
        synced = Journal(root, request.journal).synced if request.journal else None
        step_through_system_calls(root, steps, synced=synced or (lambda descriptor: None))
    operation = EVERY[request.operation]
    for _ in range(request.times):
        operation.run(Here(uri=table_uri(request.place, request.folder), paths=request.paths))
    steps(RETURNED)
    return steps
