"""A commit's bytes, of which it is certain that readers take them."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from delta_core.actions import Action
from delta_core.actions.json_codec import MAX_LINE_BYTES, action_to_json, commit_order
from delta_core.actions.validation import CHECKS, InvalidAction
from delta_core.errors import CommitError


def encode_checked(actions: Sequence[Action]) -> bytes:
    """As `encode_commit`, of actions that readers, ours among them, will take.

    A commit that is there and cannot be read takes the whole table away, so this is asked before.

    Raises:
        CommitError: a field is of another type than the log has for it, or a line is longer than any reader
            takes.
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
            cause=f"{error}. No reader would take the table any more.",
            fix="Pass a value of that type.",
        ) from None
    if len(line) > MAX_LINE_BYTES:
        raise CommitError(
            f"The action {kind!r} cannot be committed.",
            cause=f"It has {len(line)} bytes, and readers take {MAX_LINE_BYTES}.",
            fix="Keep long texts elsewhere and commit their names.",
        )
    return line
