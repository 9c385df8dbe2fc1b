"""Another body for a function of a loaded module: every name that stands for the function runs it at once.

The code object is exchanged, not the function, so what was imported by name, bound, decorated or put into a
slotted dataclass is mutated as well.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


class MutantGone(Exception):  # noqa: N818 - what happened to the mutant
    """The place that a mutant changes is not in the source any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A function by its module and qualified name, such as `Committer._owner`."""

    module: str
    function: str

    @classmethod
    def parse(cls, text: str) -> Target:
        """From `package.module:Class.method`."""
        module, _, function = text.partition(":")
        return cls(module=module, function=function)

    def __str__(self) -> str:
        return f"{self.module}:{self.function}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap:
    """A function's other body, compiled and ready.

    Attributes:
        defaults: what the function's own defaults become; None leaves them.
        keyword_defaults: likewise.
    """

    function: FunctionType
    code: CodeType
    defaults: tuple[Any, ...] | None = None
    keyword_defaults: dict[str, Any] | None = None

    def apply(self) -> None:
        """Put it in, for the rest of this process."""
        self.function.__code__ = self.code
        if self.defaults is not None:
            self.function.__defaults__ = self.defaults
        if self.keyword_defaults is not None:
            self.function.__kwdefaults__ = self.keyword_defaults


def source_of(module: ModuleType) -> str:
    """A module's text, as it was imported."""
    return inspect.getsource(module)


def swap(module: ModuleType, function: str, source: str) -> Swap:
    """The function as another text of its whole module has it.

    Raises:
        MutantGone: the module has no such function, or it is the same in both texts.
        SyntaxError, ValueError: the text is no Python.
    """
    found = resolve(module, function)
    tree = ast.parse(source)
    node = function_node(tree, function)
    if found is None or node is None:
        raise MutantGone(f"{module.__name__}:{function}: there is no such function")
    compiled = compile(tree, str(module.__file__), "exec", dont_inherit=True)
    codes = [code for code in _codes(compiled) if code.co_qualname == function]
    code = next((code for code in codes if code.co_firstlineno == _first_line(node)), None)
    if code is None or code.co_freevars != found.__code__.co_freevars:
        raise MutantGone(f"{module.__name__}:{function}: its surroundings differ")
    defaults, keyword_defaults = _defaults(module, node, found)
    if _same(code, found.__code__) and defaults is None and keyword_defaults is None:
        raise MutantGone(f"{module.__name__}:{function}: the mutant is the same")
    return Swap(function=found, code=code, defaults=defaults, keyword_defaults=keyword_defaults)


def function_node(tree: ast.Module, qualname: str) -> FunctionNode | None:
    """The definition of a module's function or of a class's method."""
    *classes, name = qualname.split(".")
    body: Sequence[ast.stmt] = tree.body
    for class_name in classes:
        owner = next((n for n in body if isinstance(n, ast.ClassDef) and n.name == class_name), None)
        if owner is None:
            return None
        body = owner.body
    return next((n for n in body if isinstance(n, FunctionNode) and n.name == name), None)


def resolve(module: ModuleType, qualname: str) -> FunctionType | None:
    """The function itself, below its decorators; None when a decorator hides it."""
    owner: Any = module
    for name in qualname.split("."):
        if not hasattr(owner, name) and name not in vars(owner):
            return None
        owner = inspect.getattr_static(owner, name)
    return _bare(owner)


def _bare(found: Any) -> FunctionType | None:
    while not isinstance(found, FunctionType):
        if isinstance(found, classmethod | staticmethod):
            found = found.__func__
        elif isinstance(found, property):
            found = found.fget
        elif isinstance(found, functools.cached_property):
            found = found.func
        elif hasattr(found, "__wrapped__"):
            found = found.__wrapped__
        else:
            return None
    wrapped: Callable[..., Any] = inspect.unwrap(found)
    return wrapped if isinstance(wrapped, FunctionType) else None


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _same(one: CodeType, other: CodeType) -> bool:
    """Whether two bodies do the same, wherever in a file they stand."""
    if (one.co_code, one.co_names, one.co_varnames) != (other.co_code, other.co_names, other.co_varnames):
        return False
    pairs = list(zip(one.co_consts, other.co_consts, strict=False))
    return len(one.co_consts) == len(other.co_consts) and all(
        _same(a, b) if isinstance(a, CodeType) and isinstance(b, CodeType) else (type(a), a) == (type(b), b)
        for a, b in pairs
    )


def _first_line(node: FunctionNode) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _defaults(
    module: ModuleType, node: FunctionNode, found: FunctionType
) -> tuple[tuple[Any, ...] | None, dict[str, Any] | None]:
    """The function's defaults with the literals that the node has otherwise; None where all are alike."""
    before = function_node(ast.parse(source_of(module)), found.__qualname__)
    if before is None or ast.dump(before.args) == ast.dump(node.args):
        return None, None
    old, new = _by_name(before), _by_name(node)
    changed = {
        name: ast.literal_eval(new[name]) for name in new if ast.dump(new[name]) != ast.dump(old[name])
    }
    if not changed:
        return None, None
    code = found.__code__
    own = found.__defaults__ or ()
    named = code.co_varnames[code.co_argcount - len(own) : code.co_argcount]
    defaults = tuple(changed.get(name, value) for name, value in zip(named, own, strict=True))
    keywords = {name: changed.get(name, value) for name, value in (found.__kwdefaults__ or {}).items()}
    return defaults or None, keywords or None


def _by_name(node: FunctionNode) -> dict[str, ast.expr]:
    positional = [*node.args.posonlyargs, *node.args.args]
    given = dict(
        zip(
            (argument.arg for argument in positional[len(positional) - len(node.args.defaults) :]),
            node.args.defaults,
            strict=True,
        )
    )
    for argument, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
        if default is not None:
            given[argument.arg] = default
    return given
