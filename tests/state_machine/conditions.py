"""Random predicates: as text for the library, as a function of a row for the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tests.state_machine.model import KEY, Condition, Row, State

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda left, right: left < right,
    ">=": lambda left, right: left >= right,
    "=": lambda left, right: left == right,
    "<>": lambda left, right: left != right,
}


def compare(name: str, operator: str, literal: int | str) -> Condition:
    """A column against a constant; null where the column is."""
    quoted = "'" + literal.replace("'", "\\'") + "'" if isinstance(literal, str) else str(literal)

    def holds(row: Row) -> bool | None:
        value = row.get(name)
        return None if value is None else _OPERATORS[operator](value, literal)

    return Condition(text=f"`{name}` {operator} {quoted}", holds=holds)


def is_null(name: str, *, negated: bool = False) -> Condition:
    """Whether a column is null; never null itself."""
    return Condition(
        text=f"`{name}` IS {'NOT ' if negated else ''}NULL",
        holds=lambda row: (row.get(name) is None) is not negated,
    )


def either(left: Condition, right: Condition) -> Condition:
    """True where one is; null where none is and one of them is null."""

    def holds(row: Row) -> bool | None:
        found = (left.holds(row), right.holds(row))
        return True if True in found else None if None in found else False

    return Condition(text=f"({left.text}) OR ({right.text})", holds=holds)


def keys_from(low: int, high: int) -> Condition:
    """The rows of a range of keys, both ends included."""
    return Condition(text=f"{KEY} BETWEEN {low} AND {high}", holds=lambda row: low <= row[KEY] <= high)


def conditions(state: State, *, only: tuple[str, ...] | None = None) -> st.SearchStrategy[Condition]:
    """Predicates over the key, the integers and the texts of a table; `only` these columns."""
    chosen = [one for one in state.columns if only is None or one.name in only]
    integers = [one.name for one in chosen if one.kind in ("integer", "short", "byte")]
    strings = [one.name for one in chosen if one.kind == "string"]
    keys = sorted(state.rows) or [0]
    simple: list[st.SearchStrategy[Condition]] = []
    if only is None or KEY in only:
        bounds = st.tuples(st.sampled_from(keys), st.integers(0, 8))
        simple.append(bounds.map(lambda found: keys_from(found[0], found[0] + found[1])))
        simple.append(
            st.builds(compare, st.just(KEY), st.sampled_from(["<", ">=", "="]), st.sampled_from(keys))
        )
    if integers:
        names, operators = st.sampled_from(integers), st.sampled_from(sorted(_OPERATORS))
        simple.append(st.builds(compare, names, operators, st.integers(-9, 99)))
        simple.append(st.builds(is_null, names, negated=st.booleans()))
    if strings:
        simple.append(
            st.builds(
                compare, st.sampled_from(strings), st.sampled_from(["=", "<>"]), st.sampled_from(["a", "a/b"])
            )
        )
        simple.append(st.builds(is_null, st.sampled_from(strings), negated=st.booleans()))
    if not simple:
        return st.nothing()
    one = st.one_of(simple)
    return st.one_of(one, one, st.builds(either, one, one))
