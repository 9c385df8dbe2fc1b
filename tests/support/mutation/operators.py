"""mutmut's mutations of a module, each as the module's whole text; what only people read is left alone.

mutmut itself leaves every decorated function out, cannot tell a message from a key, and collects the tests
anew for each mutant. Here its operators make the mutants and nothing else, so that properties and context
managers are mutated, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.file_mutation import Mutation, MutationVisitor, OuterFunctionProvider
from mutmut.mutation.mutators import mutation_operators
from mutmut.mutation.pragma_handling import IgnoredCode

EXCLUDED = (
    "docstrings",
    "type annotations and casts",
    "what errors, warnings and log records say",
    "zip's `strict`, which is there for mistakes of ours",
    "constants of modules and classes",
)
"""What is not mutated, for the report."""

_SPEAKERS = re.compile(
    r"(\w*Error|\w*Warning|InvalidAction|MalformedColumn|warn|debug|info|warning|error|exception|cast|TypeVar"
    r"|require_writable|require_read_support|require_write_support|damaged_checkpoint|_damaged|_unknown|_unreadable|_lost|_given_up)"
)
"""Calls whose words are for people; other arguments than texts are mutated all the same."""

_ERRORS = re.compile(r"\w*Error|InvalidAction|MalformedColumn|damaged_checkpoint|_damaged|cast")
"""Those of which every argument is."""

_WORDS = frozenset(
    {"problem", "cause", "fix", "match", "reason", "extra", "stacklevel", "thread_name_prefix"}
)


@dataclass(frozen=True, kw_only=True)
class SourceMutant:
    """One mutant of one function.

    Attributes:
        function: the qualified name in the module.
        line: where, in the module's own text.
        number: among the mutations of the module.
    """

    path: str
    function: str
    line: int
    number: int
    module: cst.Module
    mutation: Mutation

    @cached_property
    def name(self) -> str:
        """Where it is, and what becomes of what; stable as long as the module's text is."""
        nodes = (self.mutation.original_node, self.mutation.mutated_node)
        before, after = (" ".join(self.module.code_for_node(node).split()) for node in nodes)
        if len(before) > 100:
            before, after = _around_the_difference(before, after)
        return f"{self.path}:{self.line} {self.function} #{self.number}: {before} -> {after}"

    @cached_property
    def source(self) -> str:
        """The module's whole text with the mutation."""
        tree = self.module.deep_replace(self.mutation.original_node, self.mutation.mutated_node)
        assert isinstance(tree, cst.Module)
        return tree.code


class _Visitor(MutationVisitor):
    """mutmut's, which leaves messages out and takes decorated functions."""

    METADATA_DEPENDENCIES = (PositionProvider, OuterFunctionProvider)

    def _skip_node_and_children(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.FunctionDef) and node.decorators:
            return any(_decorator(one) in ("overload", "abstractmethod") for one in node.decorators)
        return bool(super()._skip_node_and_children(node))

    def _create_mutations(self, node: cst.CSTNode) -> None:
        if isinstance(node, cst.Call) and (_SPEAKERS.fullmatch(_called(node)) or _called(node) == "zip"):
            return
        super()._create_mutations(node)


class _Messages(cst.CSTVisitor):
    """Every node within a text that one of the speakers is given."""

    def __init__(self) -> None:
        self.nodes: set[cst.CSTNode] = set()

    def visit_Call(self, node: cst.Call) -> None:  # noqa: N802 - libcst's name
        if _called(node) == "zip":
            for argument in node.args:
                if argument.keyword is not None:
                    self._take(argument)
        if not _SPEAKERS.fullmatch(_called(node)):
            return
        for argument in node.args:
            spoken = argument.keyword is not None and argument.keyword.value in _WORDS
            if (
                spoken
                or _ERRORS.fullmatch(_called(node))
                or isinstance(argument.value, cst.BaseString | cst.ConcatenatedString)
            ):
                self._take(argument)

    def _take(self, node: cst.CSTNode) -> None:
        self.nodes.add(node)
        for child in node.children:
            self._take(child)


def source_mutants(path: str, source: str) -> Iterator[SourceMutant]:
    """Every mutant of a module's functions and methods, in the order of the text."""
    wrapper = MetadataWrapper(cst.parse_module(source))
    visitor = _Visitor(mutation_operators, IgnoredCode(set(), set(), set()))
    module = wrapper.visit(visitor)
    messages = _Messages()
    module.visit(messages)
    positions = wrapper.resolve(PositionProvider)
    names = dict(_function_names(module.body))
    for number, mutation in enumerate(visitor.mutations):
        function = mutation.contained_by_top_level_function
        node = mutation.original_node
        if function is None or function not in names or node in messages.nodes:
            continue
        yield SourceMutant(
            path=path,
            function=names[function],
            line=positions[node].start.line,
            number=number,
            module=module,
            mutation=mutation,
        )


def _function_names(body: object, prefix: str = "") -> Iterator[tuple[cst.CSTNode, str]]:
    assert isinstance(body, list | tuple)
    for statement in body:
        if isinstance(statement, cst.FunctionDef):
            yield statement, prefix + statement.name.value
        elif isinstance(statement, cst.ClassDef) and not prefix:
            yield from _function_names(statement.body.body, f"{statement.name.value}.")


def _called(node: cst.Call) -> str:
    function = node.func
    if isinstance(function, cst.Attribute):
        return function.attr.value
    return function.value if isinstance(function, cst.Name) else ""


def _decorator(node: cst.Decorator) -> str:
    named = node.decorator
    if isinstance(named, cst.Attribute):
        return named.attr.value
    return named.value if isinstance(named, cst.Name) else ""


def _around_the_difference(before: str, after: str) -> tuple[str, str]:
    pairs = enumerate(zip(before, after, strict=False))
    start = next((place for place, (one, other) in pairs if one != other), 0)
    first = max(0, start - 30)
    return f"...{before[first : start + 50]}...", f"...{after[first : start + 50]}..."
