"""The three commands of the demonstration: run, up and down."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from demo import environment as environments
from demo import services
from demo.dag_runs import AirflowDagRunner, DagRunner
from demo.display import Display
from demo.inprocess import InProcessDagRunner
from demo.layout import OWN_MARK, REPOSITORY, Layout
from demo.object_store import start_object_store
from demo.processes import DemoError, free_port, running, stop_all
from demo.profiles import Profile
from demo.sabotage import Sabotage, prepare
from demo.scenario import DAG_IDS, Scenario

_READY_SECONDS = 240
_INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(
    layout: Layout,
    *,
    profile: Profile,
    display: Display,
    sabotages: Sequence[str] = (),
    connect_url: str | None = None,
    database: Path | None = None,
) -> int:
    """Run the whole scenario from an empty directory; returns the exit code of the summary.

    Args:
        connect_url: the Spark Connect server that runs the jobs; None starts one.
        database: a migrated Airflow database to copy.
    """
    _clear(layout, display)
    sabotage = prepare(sabotages or os.environ.get("DELTAWARD_DEMO_SABOTAGE", "").split(), layout)
    if sabotage.names:
        display.log(f"sabotaged: {', '.join(sabotage.names)}; the checks must fail")
    if database is not None:
        shutil.copy(database, layout.airflow_home / "airflow.db")
    with _nothing_left(layout, display):
        runner = _start(layout, profile=profile, display=display, sabotage=sabotage, connect_url=connect_url)
        scenario = Scenario(layout, profile=profile, runner=runner, display=display, sabotage=sabotage)
        scenario.play()
    display.heading("Summary")
    code = _summarise(layout)
    display.log(f"took {display.elapsed_seconds:.0f} s; tables, logs and report are in {layout.home}")
    return code


def up(layout: Layout, *, display: Display) -> int:
    """Start the services on the existing files and leave them running."""
    if running(layout):
        display.log(f"already running: {environments.read_login(layout).url}")
        _print_login(layout, display)
        return 0
    layout.make()
    try:
        _start_store(layout, display)
        _start_services(layout, display=display, sabotage=Sabotage(), connect_url=None, lasting=True)
    except BaseException:
        _stop(layout, display)
        raise
    _print_login(layout, display)
    return 0


def down(layout: Layout, *, display: Display) -> int:
    """Stop all processes; raises an error if one remains."""
    if not layout.home.is_dir() or not running(layout):
        display.log("nothing is running")
        return 0
    _stop(layout, display)
    display.log("stopped; no process is left")
    return 0


def _start(
    layout: Layout, *, profile: Profile, display: Display, sabotage: Sabotage, connect_url: str | None
) -> DagRunner:
    _start_store(layout, display)
    if profile.standalone:
        return _start_services(
            layout, display=display, sabotage=sabotage, connect_url=connect_url, lasting=False
        )
    with display.step("start Spark Connect, prepare Airflow's database"):
        url, ready = _connect_server(layout, connect_url)
        environment = _environment(layout, url, sabotage)
        if not (layout.airflow_home / "airflow.db").exists():
            services.migrate(layout, environment=environment)
        runner = InProcessDagRunner(layout, environment=environment)
        ready()
    if missing := set(DAG_IDS) - runner.dag_ids:
        raise DemoError(f"DAGs are missing: {', '.join(sorted(missing))}.")
    return runner


def _start_store(layout: Layout, display: Display) -> None:
    if layout.store == "s3":
        with display.step("start the S3 server"):
            server, port = start_object_store(layout)
            services.wait_for_port(server, port, seconds=_READY_SECONDS)


def _start_services(
    layout: Layout, *, display: Display, sabotage: Sabotage, connect_url: str | None, lasting: bool
) -> AirflowDagRunner:
    with display.step("start Airflow and Spark Connect"):
        url, ready = _connect_server(layout, connect_url)
        port = free_port()
        login = environments.write_login(layout, port=port)
        environment = _environment(layout, url, sabotage) | environments.service_settings(layout, port=port)
        if not lasting:
            # Otherwise a demonstration at midnight would collide with the scheduled maintenance.
            environment["DELTAWARD_MAINTENANCE_SCHEDULE"] = ""
        display.detail("preparing Airflow's database")
        services.migrate(layout, environment=environment)
        started = services.start_airflow(layout, environment=environment, triggerer=lasting)
        api = services.wait_for_airflow(
            started, login, dag_ids=DAG_IDS, seconds=_READY_SECONDS, report=display.detail
        )
        ready()
    return AirflowDagRunner(api, services=list(started.values()))


def _connect_server(layout: Layout, connect_url: str | None) -> tuple[str, Callable[[], None]]:
    """The URL of the Spark Connect server, and a function that waits until it answers."""
    if connect_url is not None:
        return connect_url, lambda: None
    environment = environments.base_environment(layout, connect_url=None)
    server, url = services.start_spark_connect(layout, environment=environment)

    def ready() -> None:
        services.wait_for_port(server, urlsplit(url).port or 0, seconds=_READY_SECONDS)

    return url, ready


def _environment(layout: Layout, connect_url: str, sabotage: Sabotage) -> dict[str, str]:
    return environments.base_environment(
        layout,
        connect_url=connect_url,
        dags=sabotage.dags,
        driver_python=sabotage.driver_python,
    )


def _summarise(layout: Layout) -> int:
    """Run the summary in a separate process, whose only input is the facts."""
    command = [sys.executable, "-m", "demo.summary", str(layout.facts), "--report", str(layout.report)]
    return subprocess.run(command, cwd=REPOSITORY, check=False).returncode


@contextmanager
def _nothing_left(layout: Layout, display: Display) -> Iterator[None]:
    """Stop all processes at the end of the block, even after an error."""
    try:
        yield
    finally:
        _stop(layout, display)


def _stop(layout: Layout, display: Display) -> None:
    previous = {number: signal.signal(number, signal.SIG_IGN) for number in _INTERRUPTS}
    try:
        with display.step("stop every process"):
            left = stop_all(layout)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    if left:
        raise DemoError("These processes could not be stopped:\n" + "\n".join(left))


def _clear(layout: Layout, display: Display) -> None:
    """Stop the processes and delete the files of an earlier demonstration."""
    if running(layout):
        display.log("an earlier demonstration is still running")
        _stop(layout, display)
    if layout.home.is_dir():
        entries = [entry for entry in layout.home.iterdir() if entry.name != OWN_MARK]
        if entries and not (layout.home / OWN_MARK).exists():
            raise DemoError(
                f"{layout.home} contains files that no demonstration has created. Use another --home."
            )
        for entry in entries:
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    layout.make()


def _print_login(layout: Layout, display: Display) -> None:
    login = environments.read_login(layout)
    display.console.print(
        f"\n  address   {login.url}\n  user      {login.user}\n  password  {login.password}\n"
    )
    if not any(layout.tables.iterdir()):
        display.console.print("Start with a run of flights_etl, months 2013-01 to 2013-09.")
    display.console.print("`make down` stops all services.")
