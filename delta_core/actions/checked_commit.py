"""Encoding of a commit with checks, so that every reader can parse the result."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from delta_core.actions import Action
from delta_core.actions.json_codec import MAX_LINE_BYTES, action_to_json, commit_order
from delta_core.actions.validation import CHECKS, InvalidAction
from delta_core.errors import CommitError


def encode_checked(actions: Sequence[Action]) -> bytes:
    """Encode like `encode_commit`, after a check that readers, including this library, accept the actions.

    A commit that cannot be parsed makes the whole table unreadable, so the check comes before the write.

    Raises:
        CommitError: a field does not have the type that the protocol defines for it, or a line is longer
            than `MAX_LINE_BYTES`.
    """
    return b"".join(map(_line, commit_order(actions)))


def _line(action: Action) -> bytes:
    content = action_to_json(action)
    (kind,) = content
    try:
        CHECKS[kind](content[kind])
        line = orjson.dumps(content, option=orjson.OPT_APPEND_NEWLINE)
    except (InvalidAction, TypeError) as error:
        raise CommitError(
            f"The action {kind!r} cannot be committed.",
            cause=f"The field {error}. With this action in the log, no reader could read the table.",
            fix="Pass a value of the expected type.",
        ) from None
    if len(line) > MAX_LINE_BYTES:
        raise CommitError(
            f"The action {kind!r} cannot be committed.",
            cause=f"Its JSON has {len(line)} bytes, and readers accept at most {MAX_LINE_BYTES}.",
            fix="Store long strings elsewhere and commit a reference to them.",
        )
    return line
