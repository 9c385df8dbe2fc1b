"""One mutant of the corpus for every seed and number."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from pathlib import Path

from tests.support.fuzz.byte_mutators import mutate_bytes
from tests.support.fuzz.json_mutators import mutate_json
from tests.support.fuzz.parquet_mutators import mutate_parquet
from tests.support.fuzz.vector_mutators import mutate_deletion_vector_file, mutate_inline_deletion_vector

KINDS = {
    "commit": (re.compile(r"_delta_log/\d{20}\.json"), 9),
    "checkpoint": (re.compile(r"_delta_log/\d{20}\.checkpoint.*\.parquet"), 9),
    "sidecar": (re.compile(r"_delta_log/_sidecars/.*"), 4),
    "manifest": (re.compile(r"_delta_log/\d{20}\.checkpoint\..*\.json"), 3),
    "vector": (re.compile(r"deletion_vector_.*\.bin"), 5),
    "hint": (re.compile(r"_delta_log/_last_checkpoint"), 3),
    "checksum": (re.compile(r"_delta_log/\d{20}\.crc"), 2),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A table of which one file is damaged.

    Attributes:
        table: the table's name.
        path: the file, relative to the table's root.
        kind: what the file is.
        mutator: what was done to it.
        data: its new content.
    """

    table: str
    path: str
    kind: str
    mutator: str
    data: bytes


class Corpus:
    """The tables of a folder that `make_corpus` filled, with the content of their files."""

    def __init__(self, root: Path) -> None:
        self.root = root
        files = {
            str(path.relative_to(root)): path.read_bytes()
            for path in sorted(root.rglob("*"))
            if path.is_file()
        }
        self.content = {name: data for name, data in files.items() if _kind(name) is not None}
        self._by_kind = {kind: [name for name in self.content if _kind(name) == kind] for kind in KINDS}

    def mutant(self, seed: str, number: int) -> Mutant:
        """The mutant of a number; equal for equal arguments."""
        rng = random.Random(f"{seed}:{number}")
        kind = rng.choices(list(KINDS), [weight for _, weight in KINDS.values()])[0]
        name = rng.choice(self._by_kind[kind])
        mutator, data = self._mutated(kind, name, rng)
        if rng.random() < 0.1:
            again, data = mutate_bytes(data, rng, self._others(kind))
            mutator = f"{mutator} + {again}"
        table, _, path = name.partition("/")
        return Mutant(table=table, path=path, kind=kind, mutator=mutator, data=data)

    def _mutated(self, kind: str, name: str, rng: random.Random) -> tuple[str, bytes]:
        data = self.content[name]
        if rng.random() < 0.3:
            return mutate_bytes(data, rng, self._others(kind))
        if kind in ("checkpoint", "sidecar"):
            return mutate_parquet(data, rng)
        if kind == "vector":
            return mutate_deletion_vector_file(data, rng)
        if kind == "commit" and rng.random() < 0.3 and (inline := mutate_inline_deletion_vector(data, rng)):
            return inline
        return mutate_json(data, rng)

    def _others(self, kind: str) -> list[bytes]:
        return [self.content[name] for name in self._by_kind[kind]]


def _kind(name: str) -> str | None:
    path = name.partition("/")[2]
    return next((kind for kind, (pattern, _) in KINDS.items() if pattern.fullmatch(path)), None)
