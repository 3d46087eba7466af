"""Hashes of what claims measure, which change when a measure does.

Of a claim: its expression, with every number in it, such as a target, a window or a share, and what decides
how it is judged and counted. Of the rules, and of the modules, functions and constants that measures use:
their code without comments and docstrings.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import textwrap
import types
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

import numpy as np

from replifed.claims.axes import INFERRED, PRINTED
from replifed.claims.claim import Claim
from replifed.claims.evidence import FORMULA
from replifed.claims.quantities import Quantity

# Where measures live; what they call elsewhere is no measure.
_MEASURES = ("replifed.claims.", "replifed.papers.", "replifed.intervals")
# Types of the globals that count as a part of the measure that uses them.
_CONSTANTS = (int, float, str, tuple, frozenset, set, list, dict, np.ndarray)
# Rules by which all claims are measured and judged.
_RULES = (
    *("claim", "quantities", "samples", "rules", "verdicts", "copies", "multiplicity", "units", "seeds"),
    *("scores", "axes", "evidence", "printed"),
)


def of_claim(claim: Claim) -> str:
    """Hash of a claim's expression, and of what decides how it is judged and counted."""
    theirs = (claim.precision, claim.repetitions, claim.spread, claim.rival)
    axes, options = claim.axes, claim.options
    # Older lines of the log call the printed settings P, and the inferred ones E.
    names = axes.names(options).replace(PRINTED, "P").replace(INFERRED, "E")
    settings = (claim.settings, names, axes.source(options), axes.kind(options))
    fitted = claim.statement_id.removeprefix(f"{claim.paper}.") in axes.fitted_on
    sentence = (claim.statement_id, claim.main, claim.informs, fitted)
    judged = (claim.kind, claim.unit, settings, sentence, claim.family, theirs)
    algebra = f" {FORMULA}" * (claim.evidence == FORMULA)
    fewer = "" if claim.fewest == Claim.fewest else f" {claim.fewest}"
    return _short(f"{_text(claim.expression)} {judged}{algebra}{fewer}")


def of_measures(claims: Iterable[Claim]) -> dict[str, str]:
    """Hashes of the rules, and of the code that claims use, by module or "module.name"."""
    hashes = {name: _of_module(name) for name in (f"replifed.claims.{rule}" for rule in _RULES)}
    visited: set[str] = set()
    for claim in claims:
        for function in _functions(claim.expression):
            _add(function, hashes, visited)
    return dict(sorted(hashes.items()))


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
    if isinstance(part, np.ndarray):
        return repr(part.tolist())
    if isinstance(part, (set, frozenset)):
        return repr(sorted(map(repr, part)))
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


def _add(function: Any, hashes: dict[str, str], visited: set[str]) -> None:
    """Add the hash of a function, and of what it uses."""
    function = inspect.unwrap(function)
    name = _name(function)
    ours = isinstance(function, types.FunctionType) and name.startswith(_MEASURES)
    if not ours or name in visited or "<lambda>" in name:
        return
    visited.add(name)
    whole = _is_of_measures(function.__module__)
    if whole:
        hashes[function.__module__] = _of_module(function.__module__)
    else:
        hashes[name] = _short(_code(textwrap.dedent(inspect.getsource(function))))
    for used in sorted(_names(function.__code__)):
        value = function.__globals__.get(used)
        if callable(value):
            _add(value, hashes, visited)
        elif isinstance(value, _CONSTANTS) and not whole:
            hashes[f"{function.__module__}.{used}"] = _short(_text(value))


def _is_of_measures(module: str) -> bool:
    """True of a module that holds measures alone, so that all of it counts: defaults and classes, too."""
    return module.startswith(("replifed.claims.", "replifed.intervals")) or module.endswith(
        (".measures", ".theory")
    )


def _of_module(name: str) -> str:
    return _short(_code(inspect.getsource(import_module(name))))


def _names(code: types.CodeType) -> set[str]:
    inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return set(code.co_names).union(*map(_names, inner))


def _code(source: str) -> str:
    """Code as Python reads it, without annotations and docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)) and ast.get_docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.JoinedStr):  # Python 3.12 ends a format in an empty text
            node.values = [part for part in node.values if getattr(part, "value", None) != ""]
    return _of_tree(tree)


def _of_tree(node: Any) -> str:
    """A syntax tree as text. Fields that are empty go: later versions of Python have more of them."""
    if isinstance(node, list):
        return f"[{', '.join(map(_of_tree, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    filled = (f"{name}={_of_tree(value)}" for name, value in ast.iter_fields(node) if value not in (None, []))
    return f"{type(node).__name__}({', '.join(filled)})"
