"""`python -m demo run | up | down`: the commands behind `make demo`, `make up` and `make down`."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from types import FrameType

from demo.commands import down, run, up
from demo.display import Display
from demo.layout import DEFAULT_HOME, STORES, Layout
from demo.processes import DemoError
from demo.profiles import PROFILES
from demo.sabotage import NAMES

EXIT_INTERRUPTED = 130


def main(argv: list[str] | None = None) -> int:
    """Run one command. The exit code is 0 only if the command succeeded."""
    arguments = _parser().parse_args(argv)
    layout = Layout(home=arguments.home.resolve(), store=arguments.store)
    display = Display()
    # SIGINT, too, because a background process of a script inherits an ignored SIGINT.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        if arguments.command == "run":
            profile = PROFILES[arguments.profile]
            return run(
                layout,
                profile=profile,
                display=display,
                sabotages=arguments.sabotage,
                connect_url=arguments.connect_url,
                database=arguments.database,
            )
        if arguments.command == "up":
            return up(layout, display=display)
        return down(layout, display=display)
    except DemoError as error:
        display.console.print(f"[red]{type(error).__name__}[/red]: ", end="")
        display.console.print(str(error), markup=False)
        return 1
    except KeyboardInterrupt:
        display.console.print("Interrupted. All started processes have been stopped.")
        return EXIT_INTERRUPTED


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument("--home", type=Path, default=DEFAULT_HOME, help="the directory for all files")
    parser.add_argument(
        "--store",
        choices=STORES,
        default="local",
        help="where the tables are: in a directory, or in a bucket of an S3 server that is started, too",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="the whole story, then the summary and its checks")
    running.add_argument(
        "--profile",
        choices=PROFILES,
        default="full",
        help="full: twelve months; brief: two, of flights; fast: three, without Airflow's services; "
        "least: two, without them",
    )
    running.add_argument(
        "--sabotage",
        choices=NAMES,
        action="append",
        default=[],
        help="sabotage the run; the checks must detect it. May be given more than once",
    )
    running.add_argument("--database", type=Path, help="a migrated Airflow database to copy, an SQLite file")
    running.add_argument("--connect-url", help="use this Spark Connect server instead of starting one")
    commands.add_parser("up", help="start Airflow with the project's DAGs and leave it running")
    commands.add_parser("down", help="stop all processes and check that none remains")
    return parser


if __name__ == "__main__":
    sys.exit(main())
