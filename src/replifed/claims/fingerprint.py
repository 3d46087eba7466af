"""What a claim measures, in a few characters that change when the measure does.

Of a claim: its expression, with every number in it, such as a target, a window or a share. Of the functions
in it, and of the functions and constants that these use: their code without comments and words.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import textwrap
import types
from collections.abc import Iterable, Iterator
from typing import Any

from replifed.claims.quantities import Quantity
from replifed.claims.verdicts import Claim

# Where measures live; what they call elsewhere is no measure.
_MEASURES = ("replifed.claims.", "replifed.papers.", "replifed.intervals")


def of_claim(claim: Claim) -> str:
    """Of the claim's expression; empty if nothing is measured."""
    return "" if claim.expression is None else _short(_text(claim.expression))


def of_measures(claims: Iterable[Claim]) -> dict[str, str]:
    """Of every function and constant that the claims use, by "module.name"."""
    found: dict[str, str] = {}
    for claim in claims:
        for function in _functions(claim.expression):
            _add(function, found)
    return dict(sorted(found.items()))


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def _text(part: Any) -> str:
    """An expression, or an argument of one, as text; notes are words, and left out."""
    if isinstance(part, Quantity):
        if part.function.__name__ == "_noted":
            return _text(part.arguments[0])
        named = [f"{name}={_text(value)}" for name, value in part.named]
        return f"{_name(part.function)}({', '.join([*map(_text, part.arguments), *named])})"
    if isinstance(part, (tuple, list)):
        return f"[{', '.join(map(_text, part))}]"
    if isinstance(part, dict):
        return f"{{{', '.join(f'{key}: {_text(value)}' for key, value in part.items())}}}"
    return _name(part) if callable(part) else repr(part)


def _name(function: Any) -> str:
    module = getattr(function, "__module__", None) or ""
    return f"{module}.{getattr(function, '__qualname__', getattr(function, '__name__', repr(function)))}"


def _functions(part: Any) -> Iterator[Any]:
    if isinstance(part, Quantity):
        yield part.function
        for argument in (*part.arguments, *(value for _, value in part.named)):
            yield from _functions(argument)
    elif isinstance(part, types.FunctionType):
        yield part


def _add(function: Any, found: dict[str, str]) -> None:
    function = inspect.unwrap(function)
    name = _name(function)
    ours = isinstance(function, types.FunctionType) and name.startswith(_MEASURES)
    if not ours or name in found or "<lambda>" in name:
        return
    found[name] = _short(_code(function))
    for used in sorted(_names(function.__code__)):
        value = function.__globals__.get(used)
        if isinstance(value, (int, float, str, tuple, frozenset)) and not isinstance(value, bool):
            found[f"{function.__module__}.{used}"] = _short(repr(value))
        elif callable(value):
            _add(value, found)


def _names(code: types.CodeType) -> set[str]:
    inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return set(code.co_names).union(*map(_names, inner))


def _code(function: types.FunctionType) -> str:
    """Its code as Python reads it, without annotations, docstring and messages to people."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns, node.decorator_list = None, []
            if ast.get_docstring(node) is not None:
                node.body = node.body[1:] or [ast.Pass()]
        elif isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.JoinedStr):
            node.values = []
    return ast.unparse(tree)
