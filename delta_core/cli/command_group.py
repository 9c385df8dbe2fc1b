"""The commands of `deltaward`. Each is imported when it runs; its errors are printed without tracebacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

import typer
from typer.core import TyperGroup

from delta_core.cli.console import exit_code_of, print_error
from delta_core.errors import ConfigurationError, DeltaError

ENTRY_POINT_GROUP: Final = "deltaward.commands"
"""Other distributions add commands here: each entry point is a `typer.Typer`."""

_INTERRUPTED = 130


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltIn:
    """A command of this package, listed without importing its module.

    Attributes:
        module: the module below `delta_core.cli` that has its function, or its group of commands.
        summary: the first line of the function's docstring.
    """

    module: str
    summary: str

    def load(self, name: str) -> Any:
        """Import the module and return the command."""
        function = getattr(import_module(f"delta_core.cli.{self.module}"), name.replace("-", "_"))
        if isinstance(function, typer.Typer):
            return _command_of(function, name)
        application = typer.Typer(add_completion=False, rich_markup_mode=None)
        application.command(name)(function)
        return _command_of(application, name)


BUILT_IN: Final[Mapping[str, BuiltIn]] = {
    "describe": BuiltIn(
        module="job_commands",
        summary="Show a table's identity, schema, properties, protocol, size, and its pins.",
    ),
    "history": BuiltIn(module="log_commands", summary="List the commits, newest first: when, what, by whom."),
    "plan": BuiltIn(
        module="job_commands", summary="Show a table's health, which maintenance is due, and why."
    ),
    "optimize": BuiltIn(
        module="job_commands",
        summary="Compact small files, or sort rows by columns. No row changes.",
    ),
    "auto-compact": BuiltIn(
        module="auto_compact_command",
        summary="Compact partitions in which commits have left many small files.",
    ),
    "vacuum": BuiltIn(
        module="job_commands",
        summary="Delete files that no retained version needs. A dry run unless --apply is given.",
    ),
    "checkpoint": BuiltIn(
        module="job_commands", summary="Write a checkpoint, so that opening the table reads less."
    ),
    "restore": BuiltIn(
        module="job_commands",
        summary="Restore a table to an earlier version. A dry run unless --apply is given.",
    ),
    "repair": BuiltIn(
        module="job_commands",
        summary="Remove files from a table that are missing in the store. A dry run unless --apply is given.",
    ),
    "convert": BuiltIn(
        module="convert_command",
        summary="Convert a directory of Parquet files to a table in place. A dry run unless --apply is "
        "given.",
    ),
    "audit": BuiltIn(
        module="log_commands",
        summary="List the commits with their Airflow runs and flag anomalies. "
        "The exit code is 1 when there is one.",
    ),
    "contract": BuiltIn(
        module="log_commands",
        summary="Compare a table with its contract. The exit code is 1 when a difference is not allowed.",
    ),
    "run": BuiltIn(module="job_commands", summary="Run one job from its specification, without Spark."),
    "fleet": BuiltIn(
        module="fleet_commands",
        summary="Find tables, observe them, rank what is due, and maintain them under a budget.",
    ),
    "store-conformance": BuiltIn(
        module="conformance_command",
        summary="Check that a store is safe for concurrent writers. The exit code is 1 when it is not.",
    ),
}
"""In the order of the help."""


class CommandGroup(TyperGroup):
    """Built-in commands first, then those of entry points; `--help` imports none of them."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Built-in names, then those of extensions."""
        return [*BUILT_IN, *sorted(_extensions().keys() - BUILT_IN.keys())]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name. An extension that fails to load becomes a command that reports why."""
        if cmd_name in BUILT_IN:
            return BUILT_IN[cmd_name].load(cmd_name)
        entry_point = _extensions().get(cmd_name)
        if entry_point is None:
            return None
        try:
            application = entry_point.load()
        except Exception as error:  # a broken extension must not disable the other commands
            application = _unavailable(cmd_name, f"{type(error).__name__}: {error}")
        return _command_of(application, cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The list of commands, written without importing them."""
        extensions = {
            name: f"More commands; `deltaward {name} --help` lists them."
            for name in self.list_commands(ctx)
            if name not in BUILT_IN
        }
        with formatter.section("Commands"):
            formatter.write_dl(
                [*((name, built_in.summary) for name, built_in in BUILT_IN.items()), *extensions.items()]
            )

    def invoke(self, ctx: Any) -> Any:
        """Run the command; a DeltaError is printed and becomes its exit code."""
        try:
            return super().invoke(ctx)
        except DeltaError as error:
            print_error(str(error))
            raise typer.Exit(exit_code_of(error)) from error
        except KeyboardInterrupt:
            raise typer.Exit(_INTERRUPTED) from None


def _command_of(application: typer.Typer, name: str) -> Any:
    command = typer.main.get_command(application)
    command.name = name
    return command


def _extensions() -> dict[str, EntryPoint]:
    return {entry_point.name: entry_point for entry_point in entry_points(group=ENTRY_POINT_GROUP)}


def _unavailable(name: str, reason: str) -> typer.Typer:
    """A command that reports why it is not available."""
    application = typer.Typer()

    @application.command(
        name,
        help=f"(not available: {reason})",
        context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    )
    def explain() -> None:
        raise ConfigurationError(
            f"The command {name!r} is not available.",
            cause=f"{reason}.",
            fix="Install the package with the extra that the command needs, such as deltaward[spark].",
        )

    return application
