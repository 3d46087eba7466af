"""Claims in a paper's own tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from replifed.claims.claim import Claim
from replifed.claims.files import number_text, remarks
from replifed.claims.rules import VERDICTS
from replifed.errors import ConfigError, unknown_name
from replifed.logs.frames import judge


def assert_claim(
    claim: Claim,
    frame: pd.DataFrame,
    better: Mapping[str, str],
    verdict: str = "holds",
    *,
    among: Sequence[Claim] = (),
    **settings: Any,
) -> None:
    """Fail unless a claim has a verdict on runs in a data frame.

    Parameters
    ----------
    claim, frame, better, **settings
        As of `logs.frames.judge`.
    verdict : str
        "holds", "fails", "inconclusive" or "unchecked".
    among : sequence of Claim
        Other claims of the paper, with whose tests its own is corrected.

    Raises
    ------
    ConfigError
        There is no such verdict, or what `judge` refuses.
    AssertionError
        It has another verdict; the message has the numbers and the reason.
    """
    __tracebackhide__ = True
    if verdict not in VERDICTS:
        raise ConfigError(unknown_name("verdict", verdict, VERDICTS))
    judged = judge(frame, [claim, *(one for one in among if one.id != claim.id)], better, **settings)
    row = judged.iloc[0]
    if row["verdict"] != verdict:
        texts = {name: "" if pd.isna(value) else str(value) for name, value in row.items()}
        measured = "; ".join(filter(None, (number_text(texts), remarks(texts))))
        raise AssertionError(f"{claim.id} {row['verdict']}, expected {verdict}: {measured}")
