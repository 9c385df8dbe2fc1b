"""The command line's reference page, generated from the commands."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from delta_core.cli.command_group import BUILT_IN
from delta_core.cli.option_string import ENVIRONMENT_VARIABLE

_STORAGE_OPTIONS = f"""\
## Storage options

Every command that opens a table takes its storage options from the file of `--options`, or else from the
variable `{ENVIRONMENT_VARIABLE}`; [stores.md](stores.md) lists the options. Without options, and for
credentials that the options do not contain, the store uses the provider's default credential chain. The
file holds one JSON object with string values. The variable holds

- `NAME=VALUE` pairs separated by blanks; a value that contains blanks is quoted, as in a shell,
- or a JSON object, as in the file,
- or the path of such a file, which ends in `.json`.

```sh
export {ENVIRONMENT_VARIABLE}="AWS_REGION=eu-central-1 AWS_ENDPOINT_URL=https://storage.example.com:9000"
deltaward describe s3://bucket/path/of/table
deltaward describe s3://bucket/path/of/table --options options.json
```

Options are not arguments, because other users of a machine can see arguments. A local table takes no
options: the variable is ignored, and a file is refused.
"""

_EXIT_CODES = """\
Exit codes: 0 done; 1 failed; 2 the input is not valid; 3 it is unknown whether a commit landed: read the
log before running the command again; 4 a store could not be checked; 10 some tables of a fleet are sick or
failed. Results go to standard output,
everything else to standard error.

With `--json`, a command that runs a job prints its JobResult as
[job-result.schema.json](job-result.schema.json) describes it, while `history` prints a list of commits and
`audit` prints an object with `commits` and `anomalies`. `history` shows the time that
the protocol defines for a version: the in-commit timestamp, or the modification time of the log file when the
table has no in-commit timestamps. `audit` shows the time of the writer's clock. The two differ for a table
that was copied.
"""


def reference_page() -> str:
    """The page as Markdown: the built-in commands, their arguments and options."""
    lines = ["# The command line", "", "`deltaward COMMAND [OPTIONS]`", "", _EXIT_CODES, _STORAGE_OPTIONS]
    for name, built_in in BUILT_IN.items():
        command = built_in.load(name)
        if not hasattr(command, "commands"):
            lines += _section(name, command)
            continue
        lines += [f"## deltaward {name}", "", _help(command), ""]
        for inner, inner_command in command.commands.items():
            lines += _section(f"{name} {inner}", inner_command, level="###")
    lines += [
        "## Commands of other packages",
        "",
        "A distribution adds commands through the entry-point group `deltaward.commands`, as",
        "`deltaward spark` does. They are imported only when used.",
        "",
    ]
    return "\n".join(lines)


def _section(name: str, command: Any, *, level: str = "##") -> list[str]:
    lines = [f"{level} deltaward {name}", "", _help(command), "", _usage(name, command), ""]
    rows = list(_options(command))
    return [*lines, "| | |", "|---|---|", *rows, ""] if rows else lines


def _help(command: Any) -> str:
    """The help text. The part after a backspace is not wrapped; here it is JSON."""
    text, _, example = inspect.cleandoc(command.help or "").partition("\b\n")
    return f"{text}```json\n{example}\n```" if example else text


def _usage(name: str, command: Any) -> str:
    arguments = [(p.metavar or p.name.upper()) for p in command.params if p.param_type_name == "argument"]
    words = " ".join(arguments)
    return f"`deltaward {name} {words} [OPTIONS]`"


def _options(command: Any) -> Iterator[str]:
    for parameter in command.params:
        if parameter.param_type_name != "option":
            continue
        names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
        default = _default(parameter)
        yield f"| {names} | {(parameter.help or '').replace('|', '/')}{default} |"


def _default(parameter: Any) -> str:
    if not parameter.is_flag or not parameter.secondary_opts:
        return ""
    chosen = parameter.opts if parameter.default else parameter.secondary_opts
    return f" By default `{chosen[0]}`."
