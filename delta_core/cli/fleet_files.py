"""The policy file and the ledger of a `deltaward fleet` command."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Final

import typer

from delta_core.cli.option_string import ENVIRONMENT_VARIABLE, options_from_file, options_from_text
from delta_core.errors import ConfigurationError
from delta_core.fleet.control import Control
from delta_core.fleet.ledger import Ledger
from delta_core.fleet.registry import registry
from delta_core.policies.load import Policies, load_policies

POLICIES_VARIABLE: Final = "DELTAWARD_POLICIES"
DEFAULT_POLICIES: Final = Path("deltaward-fleet.yaml")

PolicyFile = Annotated[
    Path | None,
    typer.Option(
        "--policies",
        metavar="FILE",
        help=f"The policy file. By default the variable {POLICIES_VARIABLE}, or else {DEFAULT_POLICIES} in "
        "this directory.",
    ),
]


def policy_path(given: Path | None) -> Path:
    """The path of the policy file of a command."""
    return given or Path(os.environ.get(POLICIES_VARIABLE) or DEFAULT_POLICIES)


def policies_of(given: Path | None) -> Policies:
    """The policy file of a command.

    Raises:
        ConfigurationError: the file does not exist or is not valid.
    """
    path = policy_path(given)
    if not path.exists():
        raise ConfigurationError(
            f"There is no policy file {str(path)!r}.",
            fix="Run `deltaward fleet discover PREFIX`, which writes one, or pass --policies FILE.",
        )
    return load_policies(path)


def ledger_of(policies: Policies, options: Path | None) -> Ledger:
    """The ledger of a policy file: below its control root, or else beside the file. No request."""
    root = policies.model.fleet.control_root
    if root is None:
        root = str(Path(policies.source).resolve().parent / ".deltaward-fleet")
    return Ledger(control_root=root, storage_options=store_options(options))


def control_of(given: Path | None, options: Path | None, *, discovering: bool = True) -> Control:
    """The registry of a command with its ledger.

    Raises:
        ConfigurationError: the policy file is not valid.
        StorageError: a store fails.
    """
    policies, found = policies_of(given), store_options(options)
    return Control(
        registry=registry(policies, storage_options=found, discovering=discovering),
        ledger=ledger_of(policies, options),
        storage_options=found,
    )


def store_options(file: Path | None) -> dict[str, str]:
    """The storage options for the remote stores of a command: those of a file, or else of the environment.

    Raises:
        ConfigurationError: the options cannot be read.
    """
    if file is not None:
        return options_from_file(file)
    return options_from_text(os.environ.get(ENVIRONMENT_VARIABLE, ""))
