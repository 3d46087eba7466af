"""Lists of the rules of verdicts and of statuses, for docs/verdicts.md."""

from __future__ import annotations

from replifed.claims import rules
from replifed.report.sentences import row


def of_claims() -> str:
    """Markdown, a line a rule below what it is on: the verdict that it gives, and its reason."""
    parts = []
    for on, several in rules.listed().items():
        lines = "".join(f"- *{one.verdict}*: {one.in_general}\n" for one in several)
        parts.append(f"**{on}**\n\n{lines}")
    return "\n".join(parts)


def of_statements() -> str:
    """Markdown, a line a rule: the status that it gives, and its reason."""
    lines = [row(f"**{one.verdict}**", one.in_general) for one in rules.of_statement(rules.Found())]
    return "".join([row("status", "when"), row("---", "---"), *lines])
