"""What a seeded mutant is: one guarantee taken out of the library, and the test that must notice."""

from __future__ import annotations

from dataclasses import dataclass

from tests.support.mutation.code_swap import Swap, Target, edited


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A mistake that somebody could make.

    Attributes:
        name: what is taken out.
        target: the function, as `package.module:Class.method`.
        edits: texts of the function's source and what stands there instead; each is there exactly once.
        killer: a file, a class or a test that passes without the mutant and fails with it.
    """

    name: str
    target: str
    edits: tuple[tuple[str, str], ...]
    killer: str

    def swap(self) -> Swap:
        """The mutated function, compiled. Raises MutantGone when the source has changed under it."""
        return edited(Target.parse(self.target), self.edits)
