"""Every regular expression of the library takes time in proportion to the text, whatever the text.

Texts of the log, of table properties and of servers' answers are others'. Each pattern is given texts that
make a pattern look at the same letters again and again, by the methods by which the code uses it, in a
process that is ended where it takes too long.
"""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from tests.support.repository import ROOT, python_files

CHARACTERS = 16_000
MAX_CPU_SECONDS = 0.2
"""A pattern that looks at half of all pairs of letters needs twice that and more, a linear one milliseconds.

Of the process alone, so that others on the machine do not count.
"""

METHODS = ("search", "fullmatch", "match", "findall", "finditer", "sub", "split")
UNITS = (
    *(
        "a",
        "1",
        " ",
        "`",
        "'",
        '"',
        "\\",
        "/",
        "%",
        "?",
        ".",
        ",",
        ":",
        "{",
        "(",
        "-",
        "=",
        "\n",
        "\u00e9",
        "$",
    ),
    *(
        "``",
        "``a",
        "\\'",
        "'\\'",
        '"\\"',
        "''",
        "a.",
        "a ",
        " ,",
        "1 ",
        "1.",
        "+1 ",
        "?a",
        "a:",
        '" ',
        "//",
        "a@",
    ),
    *(
        "0123abcd-",
        "01234567-0123-0123-0123-0123456789ab",
        "<Code>",
        "<Code>a",
        "status: ",
        "sig=",
        "yyyy",
        "1 day ",
    ),
    *("${a", "${", "x-amz-", "secret_", "delegation=", "_delta_log/", "file:", "%41", "decimal("),
)
ENDINGS = ("", "!")
BEGINNINGS = ("'", "`")


Found = tuple[str, str, "re.Pattern[str] | re.Pattern[bytes]", tuple[str, ...]]


@cache
def patterns() -> list[Found]:
    """Those of every module, found once."""
    return list(_patterns())


def _patterns() -> Iterator[Found]:
    """Module, name and pattern of every module-level pattern, with the methods that the module uses."""
    for path in python_files("delta_core", "spark_jobs"):
        text = (ROOT / path).read_text()
        if "re.compile(" not in text:
            continue
        names = {
            target.id
            for node in ast.parse(text).body
            if isinstance(node, ast.Assign | ast.AnnAssign) and "re.compile(" in ast.unparse(node)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        }
        if not names:
            continue
        module = ".".join(path.with_suffix("").parts)
        loaded = importlib.import_module(module)
        for name in sorted(names):
            value = getattr(loaded, name)
            used = tuple(method for method in METHODS if re.search(rf"\b{name}\.{method}\(", text))
            for pattern in _patterns_in(value):
                yield module, name, pattern, used or ("fullmatch",)


def _patterns_in(value: Any) -> Iterator[re.Pattern[str]]:
    """A pattern, or the patterns of a collection at any depth."""
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict):
        yield from _patterns_in((*value, *value.values()))
    elif isinstance(value, list | tuple | set | frozenset):
        for part in value:
            yield from _patterns_in(part)


@cache
def strings() -> list[str]:
    """What each pattern is given."""
    found = [unit * (CHARACTERS // len(unit)) + ending for unit in UNITS for ending in ENDINGS]
    found += [
        beginning + unit * (CHARACTERS // len(unit)) + "!" for unit in UNITS for beginning in BEGINNINGS
    ]
    return found


def slow_uses(module: str, name: str) -> list[str]:
    """What took too long; in a process of its own, since a pattern cannot be interrupted."""
    slow = []
    for found_module, found_name, pattern, used in patterns():
        if (found_module, found_name) != (module, name):
            continue
        for text in strings():
            subject = text.encode() if isinstance(pattern.pattern, bytes) else text
            for method in used:
                arguments = (subject[:0], subject) if method == "sub" else (subject,)
                began = time.process_time()
                result = getattr(pattern, method)(*arguments)
                if method == "finditer":
                    list(result)
                if time.process_time() - began > MAX_CPU_SECONDS:
                    slow.append(f"{method} of {text[:30]!r}...{text[-5:]!r}")
            if slow:
                return slow
    return slow


def _within(program: str, argument: str, seconds: float) -> list[list[str]]:
    """What a program in a process of its own printed, a JSON list a line, until it was ended."""
    try:
        answer = subprocess.run(
            [sys.executable, "-c", program, argument],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
    except subprocess.TimeoutExpired as late:
        return [json.loads(line) for line in (late.stdout or b"").splitlines()] + [["ended, was too slow"]]
    assert answer.returncode == 0, answer.stderr
    return [json.loads(line) for line in answer.stdout.splitlines()]


PATTERNS = """
import json, sys
from tests.security.test_patterns_are_linear import slow_uses
for module, name in json.loads(sys.argv[1]):
    print(json.dumps(["begun", module, name]), flush=True)
    for use in slow_uses(module, name):
        print(json.dumps(["slow", module, name, use]), flush=True)
"""


@pytest.mark.slow
def test_every_pattern_takes_time_in_proportion() -> None:
    names = sorted({(module, name) for module, name, _, _ in patterns()})
    assert len(names) > 20
    told = _within(PATTERNS, json.dumps(names), 280.0)
    assert [line for line in told if line[0] != "begun"] == [], f"the last was {told[-2:]}"
    assert len(told) == len(names)


CALLS = """
import json, sys
from delta_core.table_features.stats_leaves import parse_column_list
from delta_core.errors import DeltaError
from delta_core.expressions.parse import parse
from delta_core.schema.json import schema_from_json
from delta_core.storage.object_store_errors import redacted
from delta_core.storage.remote_uri import parse_remote_uri
from delta_core.storage.store_options import seconds_of
from delta_core.storage.uri import canonical_table_uri, resolve_data_path
from delta_core.table_features.table_properties import parse_bytes, parse_interval_ms
calls = {
    "parse_column_list": parse_column_list,
    "redacted": redacted,
    "seconds_of": lambda text: seconds_of(text, 1.0),
    "parse_remote_uri": lambda text: parse_remote_uri("s3://b/" + text),
    "canonical_table_uri": canonical_table_uri,
    "local_data_path": lambda text: resolve_data_path("/" + text, root_uri="file:///t"),
    "resolve_data_path": lambda text: resolve_data_path(text, root_uri="s3://b/t"),
    "parse_bytes": parse_bytes,
    "parse_interval_ms": parse_interval_ms,
    "schema_from_json": schema_from_json,
    "parse": lambda text: parse(text[:20_000]),
}
for name, call in calls.items():
    for unit in json.loads(sys.argv[1]):
        try:
            call(unit * (1_000_000 // len(unit)))
        except (DeltaError, ValueError, OSError):
            pass
    print(json.dumps(["done", name]), flush=True)
"""


@pytest.mark.soak
def test_a_megabyte_of_anything_is_read_or_refused_soon() -> None:
    units = ["a", " ", "`", "``a", "1", "/", "x-amz-", "a b,", "{", '"', "%2e", "a.", "[", "sig=", "/a"]
    told = _within(CALLS, json.dumps(units), 280.0)
    assert len(told) == 11, told
    assert all(line[0] == "done" for line in told), told


def test_the_limit_finds_a_pattern_that_is_not_linear() -> None:
    began = time.process_time()
    re.search("[a-z]+$", "a" * CHARACTERS + "!")
    assert time.process_time() - began > MAX_CPU_SECONDS
