"""Texts that try to leave a constant or a name and become SQL."""

from __future__ import annotations

_CLOSINGS = (
    "",
    "'",
    '"',
    "`",
    "')",
    "`)",
    "\\'",
    "\\",
    "''",
    "``",
    "';",
    "*/",
    "'--",
    "\\\\'",
    "\u02bc",
    "\uff07",
)
_MIDDLES = (
    " OR 1=1",
    " OR '1'='1",
    "; DROP TABLE t",
    " UNION SELECT * FROM secrets",
    ") OR (1=1",
    " AND java_method('java.lang.Runtime', 'exec', 'id')",
    " AND reflect('java.lang.System', 'exit', 0)",
    " IN (SELECT token FROM vault)",
    "${env:AWS_SECRET_ACCESS_KEY}",
    "{{ var.value.secret }}",
    " /* x */ ",
    "\n-- x\n",
    "\x00",
    "$(id)",
    "%27 OR %271",
    " SIMILAR TO '%'",
)
_ENDINGS = ("", "--", "/*")

CODE = (
    "1 = 1; DROP TABLE t",
    "name IN (SELECT token FROM vault)",
    "EXISTS (SELECT 1)",
    "(SELECT max(name) FROM t) = 'x'",
    "java_method('java.lang.Runtime', 'exec', 'id') = 'x'",
    "reflect('java.lang.System', 'exit', 0) = 'x'",
    "try_reflect('a', 'b') = 'x'",
    "input_file_name() = 'x'",
    "current_user() = 'x'",
    "secret('scope', 'key') = 'x'",
    "name = uuid()",
    "name = 'a' UNION SELECT 1",
    "name = 'a' -- x\n; SELECT 1",
    "name = {{ x }}",
    "${name} = 'a'",
    "rand() > 0.5",
    "transform(array(1), x -> x) IS NULL",
    "DROP TABLE t",
    "name = 'a",
    "name = 'a' OR",
    "`name = 'a'",
    "monotonically_increasing_id() > 1",
    "assert_true(false)",
    "raise_error('x')",
    "ai_query('m', name) = 'x'",
    "http_request('x') = 'x'",
    "read_files('/etc/passwd') = 'x'",
    "name = (VALUES (1))",
    "name COLLATE UTF8_BINARY = 'x' INTERSECT SELECT 1",
    "count(name) > 1",
)
"""Conditions that are none: queries, statements, and functions outside of the allow-list."""


def payloads() -> list[str]:
    """More than five hundred, each once."""
    found = [
        f"x{closing}{middle}{ending}" for closing in _CLOSINGS for middle in _MIDDLES for ending in _ENDINGS
    ]
    return list(dict.fromkeys([*found, *CODE]))
