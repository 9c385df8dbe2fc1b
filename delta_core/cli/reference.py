"""The command line's reference page, made from the commands themselves."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from delta_core.cli.command_group import BUILT_IN
from delta_core.cli.option_string import ENVIRONMENT_VARIABLE

_STORAGE_OPTIONS = f"""\
## Storage options

Every command that opens a table takes its storage options from the file of `--options`, or else from the
variable `{ENVIRONMENT_VARIABLE}`; [stores.md](stores.md) lists them. Without either, and for credentials
that are not among them, the store finds what its own tools find. The file holds one JSON object of texts.
The variable holds

- `NAME=VALUE` pairs with blanks between them; a value that has blanks is quoted, as in a shell,
- or a JSON object, as in the file,
- or the path of such a file, which ends in `.json`.

```sh
export {ENVIRONMENT_VARIABLE}="AWS_REGION=eu-central-1 AWS_ENDPOINT_URL=https://storage.example.com:9000"
deltaward describe s3://bucket/path/of/table
deltaward describe s3://bucket/path/of/table --options options.json
```

Options are not arguments, which other users of a machine can see. A local table takes none: the variable
says nothing of it, and a file is refused.
"""

_EXIT_CODES = """\
Exit codes: 0 done; 1 failed; 2 the input is not valid; 3 whether a commit landed could not be told: look
into the log before running it again; 4 a store could not be checked. Results go to standard output,
everything else to standard error.

With `--json`, a command that runs a job prints its JobResult as
[job-result.schema.json](job-result.schema.json) describes it, while `history` prints a list of commits and
`audit` an object with `commits` and `anomalies`. `history` tells when a version counts as committed: by the
protocol that is its log file's time of modification where the table has no in-commit timestamps. `audit`
tells what the writer's clock said; for a table that was copied the two differ.
"""


def reference_page() -> str:
    """The page as Markdown: the built-in commands, their arguments and options."""
    lines = ["# The command line", "", "`deltaward COMMAND [OPTIONS]`", "", _EXIT_CODES, _STORAGE_OPTIONS]
    for name, known in BUILT_IN.items():
        command = known.load(name)
        lines += [f"## deltaward {name}", "", _help(command), ""]
        lines += [_usage(name, command), ""]
        rows = list(_options(command))
        if rows:
            lines += ["| | |", "|---|---|", *rows, ""]
    lines += [
        "## Commands of other packages",
        "",
        "A distribution adds commands by the entry-point group `deltaward.commands`, as `deltaward spark`;",
        "they are imported only when used.",
        "",
    ]
    return "\n".join(lines)


def _help(command: Any) -> str:
    """The help text; what is not to be wrapped, after a backspace, is JSON here."""
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
