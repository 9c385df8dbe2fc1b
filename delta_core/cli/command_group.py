"""The commands of `deltaward`: each is imported when it runs, and its errors come without tracebacks."""

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
    """A command of this package, known before its module is imported.

    Attributes:
        module: the module below `delta_core.cli` that has its function.
        summary: the first line of the function's docstring.
    """

    module: str
    summary: str

    def load(self, name: str) -> Any:
        """The command; imports its module."""
        function = getattr(import_module(f"delta_core.cli.{self.module}"), name.replace("-", "_"))
        application = typer.Typer(add_completion=False, rich_markup_mode=None)
        application.command(name)(function)
        return _command_of(application, name)


BUILT_IN: Final[Mapping[str, BuiltIn]] = {
    "describe": BuiltIn(
        module="job_commands", summary="Show a table's identity, schema, properties, protocol, size."
    ),
    "history": BuiltIn(module="log_commands", summary="List the commits, newest first: when, what, by whom."),
    "plan": BuiltIn(
        module="job_commands", summary="Show a table's health, which maintenance is due, and why."
    ),
    "optimize": BuiltIn(
        module="job_commands",
        summary="Put small files together, or rows in the order of some columns; no row changes.",
    ),
    "vacuum": BuiltIn(
        module="job_commands",
        summary="Delete files that no retained version needs. A dry run unless --apply is given.",
    ),
    "checkpoint": BuiltIn(
        module="job_commands", summary="Write a checkpoint, so that opening the table reads less."
    ),
    "restore": BuiltIn(
        module="job_commands", summary="Make a table again what it was. A dry run unless --apply is given."
    ),
    "repair": BuiltIn(
        module="job_commands",
        summary="Take files out of a table that the store no longer has. A dry run unless --apply is given.",
    ),
    "convert": BuiltIn(
        module="convert_command",
        summary="Make a directory of Parquet files a table where it lies. A dry run unless --apply is given.",
    ),
    "audit": BuiltIn(
        module="log_commands",
        summary="List who did what, from which run, and flag what is odd. "
        "The exit code is 1 when something is.",
    ),
    "contract": BuiltIn(
        module="log_commands",
        summary="Compare a table with its contract. The exit code is 1 when a difference is not allowed.",
    ),
    "run": BuiltIn(module="job_commands", summary="Run one job from its specification, without Spark."),
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
        """The command of that name; an extension that does not load becomes one that says why."""
        if cmd_name in BUILT_IN:
            return BUILT_IN[cmd_name].load(cmd_name)
        point = _extensions().get(cmd_name)
        if point is None:
            return None
        try:
            application = point.load()
        except Exception as error:  # a half-installed package must not take the other commands away
            application = _unavailable(cmd_name, f"{type(error).__name__}: {error}")
        return _command_of(application, cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The list of commands, from what is known without importing them."""
        extensions = {
            name: f"More commands; `deltaward {name} --help` lists them."
            for name in self.list_commands(ctx)
            if name not in BUILT_IN
        }
        with formatter.section("Commands"):
            formatter.write_dl(
                [*((name, known.summary) for name, known in BUILT_IN.items()), *extensions.items()]
            )

    def invoke(self, ctx: Any) -> Any:
        """Run the command; a DeltaError becomes its text and exit code."""
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
    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


def _unavailable(name: str, reason: str) -> typer.Typer:
    """A command that says why it is not there."""
    application = typer.Typer()

    @application.command(
        name,
        help=f"(not available: {reason})",
        context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    )
    def explain() -> None:
        raise ConfigurationError(
            f"the command {name!r} is not available",
            cause=reason,
            fix="install the package with the extra that the command needs, such as deltaward[spark]",
        )

    return application
