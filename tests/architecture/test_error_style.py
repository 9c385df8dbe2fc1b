"""Messages of errors are sentences: they begin with a capital letter and end with a full stop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.support.repository import ROOT, python_files

SHIPPED = ("delta_core", "spark_jobs", "plugins")


def _parts(call: ast.Call) -> Iterator[ast.expr]:
    """Problem, cause and fix of a call that makes a typed error."""
    name = getattr(call.func, "id", getattr(call.func, "attr", ""))
    if name.endswith("Error") and any(keyword.arg in ("cause", "fix") for keyword in call.keywords):
        yield from call.args[:1]
        yield from (keyword.value for keyword in call.keywords if keyword.arg in ("problem", "cause", "fix"))


def _ends(part: ast.expr) -> tuple[str, str] | None:
    """The first and the last literal character; empty where a value stands there."""
    if isinstance(part, ast.Constant) and isinstance(part.value, str):
        return part.value[:1], part.value[-1:]
    if isinstance(part, ast.JoinedStr):
        first, last = part.values[0], part.values[-1]
        return (
            str(first.value)[:1] if isinstance(first, ast.Constant) else "",
            str(last.value)[-1:] if isinstance(last, ast.Constant) else "",
        )
    return None


def test_every_part_of_an_error_is_a_sentence() -> None:
    checked, wrong = 0, []
    for path in python_files(*SHIPPED):
        for node in ast.walk(ast.parse((ROOT / path).read_text())):
            if not isinstance(node, ast.Call):
                continue
            for part in _parts(node):
                ends = _ends(part)
                if ends is None:
                    continue
                checked += 1
                # Names of options, columns and functions keep their case; a value brings its own end.
                is_name = isinstance(part, ast.JoinedStr) or ast.unparse(part)[1:].partition(" ")[0].count(
                    "_"
                )
                if (ends[0].islower() and not is_name) or ends[1] not in (".", "!", "?", ""):
                    wrong.append(f"{path}:{part.lineno}: {ast.unparse(part)[:100]}")
    assert checked > 1_000
    assert not wrong, "\n".join(wrong)
