"""What names of files, or of columns, say of runs: the method and the seed, by a pattern that fits all."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from replifed.errors import DataError
from replifed.logs.files import parse_name

# What stands before the number of a repetition; the first ones first.
_MARKS = (
    *("seed", "random_state", "replicate", "repetition", "repeat", "rep", "trial", "run", "fold"),
    *("exp", "ex", "s"),
)
_BETWEEN = "-_ .="  # words of a name
_CHANGING = re.compile(r"\d+|(?<![a-z])(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)(?![a-z])", re.I)
_WHOLE = r"\d{1,9}"
_AFTER_MARK = re.compile(rf"(?<![a-z])(?:{'|'.join(_MARKS)})[-_= ]?\d+", re.IGNORECASE)
# Digits behind this are of a number, such as 1e-4.
_EXPONENT = re.compile(r"\d[eE]-?$|\d\.$")


def guess(
    names: Sequence[str], *, method: bool, seed: bool, ask: str = "--files", end: str = ""
) -> tuple[str, str]:
    """Return a pattern of names, and in words what in it is a guess.

    Parameters
    ----------
    names : without the end that says the form of a file.
    method, seed : whether the names are to say it, since no column does.
    ask : the option that states the pattern.
    end : of patterns that an error proposes.

    Raises
    ------
    DataError
        Names differ in several parts, or by digits alone, so that it is not clear which are seeds.
    """
    rows = [name.split("/") for name in names]
    above = ""
    if len({len(row) for row in rows}) > 1:
        above, rows = "**/", [row[-1:] for row in rows]
    below = ["/".join(row) for row in rows]
    for pattern, said in _candidates(rows, method, seed):
        if _fits(pattern, below, method):
            if method and seed:
                _ask_about_digits(pattern, below, ask, end)
            return above + (pattern if seed else pattern.replace("{seed}", "*")), said
    raise DataError(
        f"names of runs differ in several parts ({', '.join(names[:3])}): say which part is the method and "
        f"which the seed, such as {ask} '{_example(rows)}{end}'; parts with other names in braces are columns"
    )


def _fits(pattern: str, names: Sequence[str], method: bool) -> bool:
    """Return True if a pattern fits all names, and tells them apart."""
    said = [parse_name(pattern, name) for name in names]
    seeds = [one["seed"] for one in said if one and "seed" in one]
    distinct = {tuple(one.items()) for one in said if one is not None}
    return None not in said and all(map(str.isdecimal, seeds)) and (not method or len(distinct) == len(names))


def _candidates(rows: list[list[str]], method: bool, seed: bool) -> Iterator[tuple[str, str]]:
    """Patterns that may fit, the likeliest first, each with what in it is a guess."""
    parts = list(zip(*rows, strict=True))
    for mark in _MARKS:
        for place, values in enumerate(parts):
            for piece in _marked(values, mark, method):
                if pattern := _joined(parts, {place: piece}, method):
                    yield pattern, ""
    if seed:
        guessed = "digits in names are taken as seeds; if they are not, say what they are with --files"
        for place, values in enumerate(parts):
            for piece in _digits(values, method):
                if pattern := _joined(parts, {place: piece}, method):
                    yield pattern, guessed
    if pattern := _joined(parts, {}, method):
        yield pattern, ""
    if method and len(set(parts[-1])) == len(rows):  # folders sort the files, whose names are the methods
        above = ["*" if len(set(values)) > 1 else _literal(values[0]) for values in parts[:-1]]
        yield "/".join([*above, "{method}"]), ""


def _joined(parts: Sequence[Sequence[str]], pieces: dict[int, str], method: bool) -> str:
    """Join a pattern of its parts, of which at most one is the method; "" if more of them vary."""
    varying = [place for place, values in enumerate(parts) if len(set(values)) > 1 and place not in pieces]
    needed = method and not any("{method}" in piece for piece in pieces.values())
    if needed and not varying:  # one method: its name is that of the last part that is free
        varying = [place for place in range(len(parts)) if place not in pieces][-1:]
    if len(varying) > (1 if needed else 0):
        if method:
            return ""
        pieces = pieces | dict.fromkeys(varying, "*")
    elif varying:
        pieces = pieces | {varying[0]: "{method}"}
    return "/".join(pieces.get(place, _literal(values[0])) for place, values in enumerate(parts))


def _marked(values: Sequence[str], mark: str, method: bool) -> Iterator[str]:
    """Yield a pattern of one part of names in which numbers follow a mark, such as seed."""
    begin = "" if mark == "seed" else "(?<![a-z])"
    compiled = re.compile(rf"(.*?)({begin}{mark}[-_= ]?)({_WHOLE})(?!\d|\.\d)(.*)", re.IGNORECASE)
    matches = [match for value in values if (match := compiled.fullmatch(value))]
    if len(matches) < len(values) or len({match[2] for match in matches}) > 1:
        return
    if mark != "seed" and len({match[3] for match in matches}) < 2:
        return
    before, after = [match[1] for match in matches], [match[4] for match in matches]
    stem = before[0].strip(_BETWEEN)
    if method and stem and len(set(before)) == len(set(after)) == 1:  # all are of one method
        before = after = [""]
        yield (
            _literal(matches[0][1]).replace(_literal(stem), "{method}", 1)
            + f"{_literal(matches[0][2])}{{seed}}"
            + (_literal(matches[0][4]))
        )
        return
    sides = [
        (one, other) for one in _side(before, method, last=True) for other in _side(after, method, last=False)
    ]
    for one, other in sorted(sides, key=lambda both: "*" in both[0]):
        if (one + other).count("{method}") < 2:
            yield f"{one}{_literal(matches[0][2])}{{seed}}{other}"


def _side(texts: list[str], method: bool, *, last: bool) -> list[str]:
    """Patterns of what stands before a seed (`last`) or behind it, the likeliest first."""
    if len(set(texts)) == 1:
        return [_literal(texts[0])]
    between = {
        text[len(text.rstrip(_BETWEEN)) :] if last else text[: -len(text.lstrip(_BETWEEN))] for text in texts
    }
    separator = _literal(between.pop()) if len(between) == 1 else ""
    named = f"{{method}}{separator}" if last else f"{separator}{{method}}"
    if not method:
        return ["*"]
    # What differs by digits or dates alone may be no method.
    return ["*", named] if len(set(map(_still, texts))) == 1 else [named]


def _digits(values: Sequence[str], method: bool) -> Iterator[str]:
    """Yield patterns of one part of names in which numbers are without a mark."""
    if len(set(values)) < 2:
        return
    if all(re.fullmatch(_WHOLE, value) for value in values):
        yield "{seed}"
    for separator in "_-":
        behind = re.compile(rf"(.+){separator}({_WHOLE})")
        before = re.compile(rf"({_WHOLE}){separator}(.+)")
        for compiled, seed, pattern in (
            (behind, 2, f"{{method}}{separator}{{seed}}"),
            (before, 1, f"{{seed}}{separator}{{method}}"),
        ):
            matches = [match for value in values if (match := compiled.fullmatch(value))]
            several = len({match[seed] for match in matches}) > 1
            exponents = any(_EXPONENT.search(match[1] + separator) for match in matches)
            if len(matches) == len(values) and several and not (seed == 2 and exponents):
                yield pattern if method else pattern.replace("{method}", "*")


def _ask_about_digits(pattern: str, names: Sequence[str], ask: str, end: str) -> None:
    """Refuse methods whose names differ by digits or dates alone, where these may be seeds."""
    methods = {said.get("method", "") for name in names if (said := parse_name(pattern, name))}
    single = "{seed}" not in pattern or len(methods) == len(names)
    alike = defaultdict(list)
    for name in sorted(methods):
        alike[_still(name) if single else _AFTER_MARK.sub("#", name)].append(name)
    found = next((same for same in alike.values() if len(same) > 1), None)
    if found is None:
        return
    one, other = found[:2]
    changing = zip(_CHANGING.finditer(one), _CHANGING.finditer(other), strict=False)
    place = [a for a, b in changing if a[0] != b[0]][-1]
    word = re.search(r"(?<=.)[-_ .]+[^-_ .]*$", one[: place.start()])
    cure = "rename them, such as fedavg_seed1"
    if word:
        seeds = f"{{method}}{_literal(word[0])}{{seed}}{_literal(one[place.end() :])}{end}"
        cure = f"{ask} '{seeds}'"
    raise DataError(
        f"{one} and {other} differ by digits or a date alone: say whether they are seeds of one method "
        f"({cure}), or each a method ({ask} '{{method}}{end}')"
    )


def _still(name: str) -> str:
    return _CHANGING.sub("#", name)


def _literal(text: str) -> str:
    """Text in a pattern; characters that mean something there stand for any one."""
    return re.sub(r"[*?\[\]{}]", "?", text)


def _example(rows: list[list[str]]) -> str:
    parts = list(zip(*rows, strict=True))
    free = iter(["{method}", "{seed}", "{data}"])
    return "/".join(next(free, "*") if len(set(values)) > 1 else _literal(values[0]) for values in parts)
