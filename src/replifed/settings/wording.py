"""How faults of a configuration are said."""

from __future__ import annotations

import json
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any


def dotted(path: Iterable[Any]) -> str:
    """The place of a value: keys joined by dots, numbers of a list in brackets."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text or "the configuration"


def shown(value: Any) -> str:
    """A value as JSON, cut if it is long."""
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}..."


def unknown_key(key: Any, value: Any, known: Iterable[str]) -> str:
    """What is wrong with a key, which keys there are, and which may have been meant."""
    near = get_close_matches(str(key), known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    if "." in str(key):
        outer, _, inner = str(key).rpartition(".")
        hint = f"; nested keys are written --config '{outer.replace('.', '={')}={{{inner}: ...}}'"
    return f"unknown key with value {shown(value)}{hint} (known: {', '.join(sorted(known))})"


def not_allowed(value: Any, expected: str, known: Iterable[Any] = ()) -> str:
    """What is wrong with a value, what is expected, and the likely slip if one comes to mind."""
    text = f"{shown(value)} is not allowed; expected {expected}"
    if not isinstance(value, str):
        return text
    if names := [name for name in known if isinstance(name, str)]:
        near = get_close_matches(value, names, n=1)
        return f"{text}; did you mean {near[0]!r}?" if near else text
    return (
        f"{text}; YAML reads this as text: drop the quotes, and write 1e-3 as 1.0e-3"
        if _number(value)
        else text
    )


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
