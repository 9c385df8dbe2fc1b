"""Names in SQL that nobody understands."""

from __future__ import annotations

import pytest

from delta_core.table_features.sql_names import replace_words, words


def paths(text: str, *, called: bool = False) -> list[str]:
    return ["|".join(word.path) for word in words(text) if word.is_called is called]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("CASE WHEN a > 1 THEN s.x END", ["CASE", "WHEN", "a", "THEN", "s|x", "END"]),
        ("f(a, `b c`.`d``e`)", ["a", "b c|d`e"]),
        ("a = 'b \\' c' or d", ["a", "or", "d"]),
        ('a = "b \\" c" or d', ["a", "or", "d"]),
        ("a -- b\n + c /* d */ + e", ["a", "c", "e"]),
        ("a . b", ["a|b"]),
        ("1e5 + 2L + a1", ["a1"]),
        ("x -> x + y", ["x", "x", "y"]),
        ("arr[0].z", ["arr", "z"]),
        ("`f`(a)", ["f", "a"]),
        ("größe > 1", ["größe"]),
        ("a = 'open", ["a"]),
        ("a /* open b", ["a"]),
    ],
)
def test_names(text, names):
    assert paths(text) == names


def test_calls():
    found = {word.path[0]: word for word in words("f(a) + g() + h ( ) + i")}
    assert [name for name, word in found.items() if word.is_called] == ["f", "g", "h"]
    assert [name for name, word in found.items() if word.has_arguments] == ["f"]
    text = "f(a) + g() + h ( ) + i"
    assert [text[word.start : word.end] for word in found.values()] == ["f", "a", "g()", "h ( )", "i"]


def test_replacing():
    text = "now() > a AND b = 'now()' AND `now`"
    assert replace_words(
        text, lambda word: "X" if word.path == ("now",) and not word.is_quoted else None
    ) == ("X > a AND b = 'now()' AND `now`")
    assert replace_words(text, lambda _: None) == text


@pytest.mark.parametrize(
    "text", ["/*" * 100_000, "'\"" * 100_000, "`" * 100_001, "a." * 100_000, " " * 200_000]
)
def test_hostile_texts_are_quick(text):
    assert len(list(words(text))) < 2
