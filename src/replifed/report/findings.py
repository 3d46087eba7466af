"""What a section of the report begins with: the finding of a paper, its main claims, and its score."""

from __future__ import annotations

import re
from html import escape
from typing import Any

from replifed.claims import scores
from replifed.claims.files import unit_text
from replifed.claims.units import UNITS
from replifed.claims.why import also_in_words, others_in_words
from replifed.report.by_settings import picture
from replifed.report.sentences import MOST, measured


def summary(statements: list[dict[str, str]]) -> dict[str, Any]:
    """Main claims and other statements by status, each with those on substitute data, and values met."""
    main = [*filter(scores.is_main, statements)]
    others = [one for one in statements if not scores.is_main(one)]
    return {
        "main": _counts(main),
        "others": _counts(others),
        "printed": scores.printed_in_words(main) if main else "",
        "in_words": scores.in_words(main, zeros=False),
        "met": scores.values_met(statements).in_words,
    }


def _counts(statements: list[dict[str, str]]) -> dict[str, tuple[int, int]]:
    """Number of statements by status, and of these by substitute data; none without statements."""
    of_all = scores.by_status(statements)
    of_substitutes = scores.by_status(one for one in statements if one["data"] == "substitute")
    return {status: (of_all[status], of_substitutes[status]) for status in scores.STATUSES if of_all[status]}


def main_claims(statements: list[dict[str, str]], claims: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Main claims of a paper, with what was measured, and their pictures by settings."""
    by_id = {claim["id"]: claim for claim in claims}
    of: dict[str, list[dict[str, Any]]] = {}
    for claim in claims:
        of.setdefault(claim["statement_id"], []).append(claim)
    return [
        one
        | {
            "why": one["reason"] + (also_in_words(one).replace("`", "") or others_in_words(one)),
            "measured": measured(one, by_id) + _quantity(one, by_id),
            "first": one["claims"].split()[0],
            "picture": picture(of[one["statement_id"]]),
            "hangs": _hangs_on_settings(of[one["statement_id"]]),
        }
        for one in filter(scores.is_main, statements)
    ]


def _quantity(statement: dict[str, str], by_id: dict[str, dict[str, Any]]) -> str:
    """Quantity that a statement's numbers are of, in brackets."""
    rows = [by_id[name] for name in statement["claims"].split()]
    units = {row["unit"] for row in rows if unit_text(row) not in ("", "factor") and row["measured"]}
    shown = statement["status"] != "untestable" and len(rows) <= MOST
    return f" ({UNITS[units.pop()].quantity})" if shown and len(units) == 1 else ""


def _hangs_on_settings(group: list[dict[str, Any]]) -> bool:
    """True if a statement does not come out alike in all settings that were run."""
    found = scores.by_settings([claim for claim in group if not claim["informs"]])
    return len({one.verdict for one in found} - {scores.NOT_RUN}) > 1


def blocks(markdown: str) -> list[tuple[str, list[str]]]:
    """Paragraphs ("p") and lists ("ul") of a short text in Markdown, their words as HTML."""
    found = []
    for block in markdown.split("\n\n"):
        items = re.split(r"^[-*] ", block, flags=re.MULTILINE)
        listed = block.startswith(("- ", "* "))
        texts = [" ".join(item.split()) for item in (items[1:] if listed else [block])]
        found.append(("ul" if listed else "p", [_inline(text) for text in texts if text]))
    return [block for block in found if block[1]]


def _inline(text: str) -> str:
    """HTML of a line of Markdown with code and emphasis."""
    parts = escape(text).split("`")
    for place, words in enumerate(parts):
        if place % 2:
            parts[place] = f"<code>{words}</code>"
        else:
            strong = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", words)
            parts[place] = re.sub(r"\*(.+?)\*", r"<em>\1</em>", strong)
    return "".join(parts)
