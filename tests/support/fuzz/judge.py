"""Whether what came of reading a damaged table is right."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from delta_core.errors import ExpressionError, ProtocolError
from tests.support.fuzz.reading import Reading
from tests.support.fuzz.slow_reader import Answer, read_slowly

RIGHT = "the undamaged table's answer"
REFUSED = "a typed error"
OTHER = "another table's answer, as the slow reader's"
UNVERIFIED = "another table's answer, the slow reader has none"
FAULT = "FAULT"

_NO_MEMORY = ("malloc of size", "realloc of size", "Cannot allocate memory", "std::bad_alloc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """An outcome, and what speaks for it."""

    outcome: str
    detail: str = ""


def judge(reading: Reading, root: Path, damaged: str, whole: Answer) -> Verdict:
    """Judge one reading.

    Args:
        reading: what came of it.
        root: the table, still damaged.
        damaged: the file that is, relative to the root.
        whole: the answers of the undamaged table.
    """
    complaint = _complaint(reading, root, damaged)
    if complaint:
        return Verdict(outcome=FAULT, detail=complaint)
    values = reading.values
    if all(values[way] == whole.get(way) for way in values):
        refused = any(way in whole for way in reading.errors) or "open" in reading.errors
        return Verdict(outcome=REFUSED if refused else RIGHT, detail=_first_error(reading) if refused else "")
    return _compare(reading, root, whole)


def lacked_memory(reading: Reading) -> bool:
    """Whether some way of reading asked for more memory than there was."""
    said = [str(warning.message) for warning in reading.warned]
    return any(map(_ran_out_of_memory, reading.errors.values())) or any(map(_tells_of_no_memory, said))


def _complaint(reading: Reading, root: Path, damaged: str) -> str:
    for way, error in reading.faults.items():
        return f"{way}: {type(error).__module__}.{type(error).__name__}: {str(error)[:600]}"
    for text in reading.wrong_warnings:
        return f"warning: {text[:600]}"
    for way, error in reading.errors.items():
        if _ran_out_of_memory(error):
            return f"{way}: too much memory: {str(error)[:600]}"
        # A predicate that does not fit the schema that the log now gives is the predicate's fault.
        if not isinstance(error, ProtocolError | ExpressionError) and not _names(error, root, damaged):
            return f"{way}: names neither file nor table: {type(error).__name__}: {str(error)[:600]}"
    for warning in reading.warned:
        if _tells_of_no_memory(str(warning.message)):
            return f"warning: too much memory: {str(warning.message)[:600]}"
    return ""


def _ran_out_of_memory(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, MemoryError) or _tells_of_no_memory(str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False


def _tells_of_no_memory(text: str) -> bool:
    return any(said in text for said in _NO_MEMORY)


def _names(error: BaseException, root: Path, damaged: str) -> bool:
    """Whether the text names the damaged file, the table, or the file that an action of the log names."""
    text = str(error)
    # Of a checkpoint in parts any part stands for all.
    name = re.sub(r"(\.checkpoint\.\d{10})\..*", ".checkpoint.", damaged.rpartition("/")[2])
    if "_sidecars/" in damaged and ".checkpoint." in text:
        return True  # what a sidecar has twice, the whole checkpoint has
    return any(
        part in text
        for part in (name, root.name, "data file ", "data files such as ", "deletion vector ", "change file ")
    )


def _first_error(reading: Reading) -> str:
    for way, error in reading.errors.items():
        return f"{way}: {type(error).__name__}: {str(error)[:300]}"
    return ""


def _compare(reading: Reading, root: Path, whole: Answer) -> Verdict:
    reasons, told = [], False
    for checkpoints in (True, False):
        try:
            slow = read_slowly(root, checkpoints=checkpoints)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            reasons.append(
                f"{'checkpoint' if checkpoints else 'log'}: {type(error).__name__}: {str(error)[:200]}"
            )
            continue
        unknown = slow.pop("unknown", [])
        differing = [way for way in slow if way in reading.values and reading.values[way] != slow[way]]
        if not differing:
            alike = all(way in slow or value == whole.get(way) for way, value in reading.values.items())
            left = [way for way in ("files", "rows", "vectors") if way in reading.values and way not in slow]
            if left and not alike:
                return Verdict(outcome=UNVERIFIED, detail="; ".join(unknown))
            return Verdict(outcome=OTHER, detail=_first_error(reading))
        told = True
        way = differing[0]
        reasons.append(f"{way}: {_shown(reading.values[way], slow[way])}")
    changed = [way for way, value in reading.values.items() if value != whole.get(way)]
    detail = f"changed {changed}; {' | '.join(reasons)}"
    return Verdict(outcome=FAULT if told else UNVERIFIED, detail=detail[:1500])


def _shown(here: Any, there: Any) -> str:
    here, there = (one.to_pylist() if isinstance(one, pa.Array) else one for one in (here, there))
    if isinstance(here, list) and isinstance(there, list):
        more = [one for one in here if one not in there][:2]
        less = [one for one in there if one not in here][:2]
        return f"more {str(more)[:300]}, less {str(less)[:300]} ({len(here)} against {len(there)})"
    return f"{str(here)[:300]} against {str(there)[:300]}"
