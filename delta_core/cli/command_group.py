"""The command group: other packages' commands, loaded when used, and errors without tracebacks."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

import typer
from typer.core import TyperGroup

from delta_core.cli.console import exit_code_of, print_error
from delta_core.errors import ConfigurationError, DeltaError

ENTRY_POINT_GROUP: Final = "deltaward.commands"
"""Other distributions add commands here: each entry point is a `typer.Typer`."""

_INTERRUPTED = 130


class CommandGroup(TyperGroup):
    """Built-in commands first; then those of entry points, each imported only when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Built-in names, then those of extensions; none of these is imported."""
        return [*super().list_commands(ctx), *sorted(set(_extensions()) - set(super().list_commands(ctx)))]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name; an extension that does not load becomes one that says why."""
        command = super().get_command(ctx, cmd_name)
        point = _extensions().get(cmd_name)
        if command is not None or point is None:
            return command
        try:
            application = point.load()
        except Exception as error:  # a half-installed package must not take the other commands away
            application = _unavailable(cmd_name, f"{type(error).__name__}: {error}")
        loaded = typer.main.get_command(application)
        loaded.name = cmd_name
        return loaded

    def invoke(self, ctx: Any) -> Any:
        """Run the command; a DeltaError becomes its text and exit code."""
        try:
            return super().invoke(ctx)
        except DeltaError as error:
            print_error(str(error))
            raise typer.Exit(exit_code_of(error)) from error
        except KeyboardInterrupt:
            raise typer.Exit(_INTERRUPTED) from None


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
