"""Logs of what claims are compared with and of how they are measured: neither is edited in silence.

One log, a CSV, has published number, tolerance and a hash of each claim: of its expression, with every number
in it, such as a target, a window or a share, and of what decides how it is judged and counted. The other has
hashes of the rules, of the modules, functions and constants that measures use, without comments and
docstrings, and of each axis. Both only grow: the last line on a claim, or on a measure, must say what holds
now; a change, or that one is gone, needs a new line, with the reason. Lines without code say that it is gone,
or are remarks, on a setting say.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import os
import textwrap
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from replifed.claims import tables
from replifed.claims.claim import Claim
from replifed.claims.quantities import Quantity
from replifed.errors import ConfigError

COLUMNS = ("id", "published", "tolerance", "expression", "reason")
MEASURES = ("measure", "code", "reason")

Log = str | os.PathLike[str]
Lines = Mapping[str, Mapping[str, str]]  # current ones, by id
# (logged, current) by id; "" where there is no line, or no claim or measure.
Changed = dict[str, tuple[str, str]]
# Where measures live; what they call elsewhere is no measure.
_MEASURES = ("replifed.claims.", "replifed.papers.", "replifed.intervals")
# Types of the globals that count as a part of the measure that uses them.
_CONSTANTS = (int, float, str, tuple, frozenset, set, list, dict, np.ndarray)
# Rules by which all claims are measured and judged.
_RULES = (
    *("claim", "quantities", "samples", "rules", "verdicts", "multiplicity", "units"),
    *("scores", "axes", "evidence", "printed"),
)


def differences(claims: Iterable[Claim], log: Log) -> Changed:
    """Claims that differ from the log's last line on them, as "published +- tolerance, expression"."""
    return _differences(log, COLUMNS, {claim.id: _line(claim) for claim in claims})


def measures_changed(claims: Iterable[Claim], log: Log) -> Changed:
    """Measures whose code differs from the log's last line on them."""
    return _differences(log, MEASURES, _codes(claims))


def record(claims: Iterable[Claim], log: Log, reason: str) -> Changed:
    """Add a line for every claim that is new, has changed or is gone.

    `reason` says why something was changed; a claim's first line has the reason of its tolerance instead.
    Returns what differed, as `differences` does.
    """
    claims = list(claims)
    firsts = {claim.id: claim.tolerance_reason or "as first set" for claim in claims}
    return _record(log, COLUMNS, {claim.id: _line(claim) for claim in claims}, firsts, reason)


def record_measures(claims: Iterable[Claim], log: Log, reason: str) -> Changed:
    """Add a line for every measure that is new, has changed or is gone."""
    lines = _codes(claims)
    return _record(log, MEASURES, lines, dict.fromkeys(lines, "as first set"), reason)


def _record(
    log: Log, columns: Sequence[str], lines: Lines, firsts: Mapping[str, str], reason: str
) -> Changed:
    """Add a line for each difference, with the reason, or that of a first line."""
    changed, known = _differences(log, columns, lines), {row[columns[0]] for row in _read(log, columns)}
    if known.intersection(changed) and not reason.strip():
        raise ConfigError("a changed tolerance, published number or measure needs --reason TEXT")
    key, *others, _ = columns
    gone, rows = dict.fromkeys(others, ""), _read(log, columns)
    for name in changed:
        rows.append({key: name, **lines.get(name, gone), "reason": reason if name in known else firsts[name]})
    tables.write(log, columns, sorted(rows, key=itemgetter(key)))
    return changed


def _differences(log: Log, columns: Sequence[str], lines: Lines) -> Changed:
    logged = {row[columns[0]]: _content(row) for row in _read(log, columns)}
    current = {name: _content(row) for name, row in lines.items()}
    both = {name: (logged.get(name, ""), current.get(name, "")) for name in sorted(logged | current)}
    return {name: (was, now) for name, (was, now) in both.items() if was != now}


def _read(log: Log, columns: Sequence[str]) -> list[dict[str, str]]:
    return tables.read(log, columns, "is no log of tolerances") if Path(log).is_file() else []


def _codes(claims: Iterable[Claim]) -> Lines:
    claims = list(claims)
    return {name: {"code": code} for name, code in (of_measures(claims) | of_axes(claims)).items()}


def _line(claim: Claim) -> dict[str, str]:
    numbers = {"published": claim.published, "tolerance": claim.tolerance}
    texts = {name: "" if number is None else f"{number:.12g}" for name, number in numbers.items()}
    return {**texts, "expression": of_claim(claim)}


def _content(row: Mapping[str, str]) -> str:
    """Content of a line; "" of a remark, and of a line on something that is gone, which have no code."""
    if "code" in row:
        return row["code"]
    numbers = f"{row['published'] or 'no number'} +- {row['tolerance'] or 'no tolerance'}"
    return f"{numbers}, {row['expression']}" if row["expression"] else ""


def of_claim(claim: Claim) -> str:
    """Hash of a claim's expression, and of what decides how it is judged and counted.

    Its options are not part of it, so that a new axis changes no claim: the reference has them of each claim,
    and `of_axes` what an option is.
    """
    theirs = (claim.precision, claim.repetitions, claim.spread, claim.rival)
    sentence = (claim.statement_id, claim.main, claim.informs, claim.artefact)
    judged = (claim.kind, claim.unit, claim.evidence, claim.fewest, sentence, theirs)
    return _short(f"{_text(claim.expression)} {judged}")


def of_axes(claims: Iterable[Claim]) -> dict[str, str]:
    """Hashes of axes: of their options, with sources and kinds, and of the inferred one; by paper and name.

    Of a paper with fitted options, also of the sentences that they were fitted on.
    """
    hashes = {}
    for paper, axes in {claim.paper: claim.axes for claim in claims}.items():
        for name, axis in axes.axes.items():
            options = [(one.name, one.source, one.kind) for one in axis.options.values()]
            hashes[f"{paper}, axis {name}"] = _short(f"{options} {(axes.inferred or {}).get(name)}")
        if axes.fitted_on:
            hashes[f"{paper}, fitted on"] = _short(repr(sorted(axes.fitted_on)))
    return hashes


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
    """An expression, or an argument of one, as text; notes are words, and left out.

    Functions have their names without those of modules, from one of which to another a measure may move.
    """
    if isinstance(part, Quantity):
        if part.function.__name__ == "_noted":
            return _text(part.arguments[0])
        named = [f"{name}={_text(value)}" for name, value in part.named]
        return f"{_own_name(part.function)}({', '.join([*map(_text, part.arguments), *named])})"
    if isinstance(part, (tuple, list)):
        return f"[{', '.join(map(_text, part))}]"
    if isinstance(part, np.ndarray):
        return repr(part.tolist())
    if isinstance(part, (set, frozenset)):
        return repr(sorted(map(repr, part)))
    if isinstance(part, dict):
        return f"{{{', '.join(f'{key}: {_text(value)}' for key, value in part.items())}}}"
    return _own_name(part) if callable(part) else repr(part)


def _name(function: Any) -> str:
    return f"{getattr(function, '__module__', None) or ''}.{_own_name(function)}"


def _own_name(function: Any) -> str:
    return getattr(function, "__qualname__", getattr(function, "__name__", repr(function)))


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
