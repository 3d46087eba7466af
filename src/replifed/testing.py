"""Verdicts on runs in a data frame, for a notebook (`replifed.judge`) or a paper's own tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from replifed.claims.claim import Claim
from replifed.claims.files import number_text, remarks
from replifed.claims.rules import VERDICTS
from replifed.claims.verdicts import measure
from replifed.errors import ConfigError, meant, unknown_name
from replifed.logs.histories import CombinedLogs, combine_logs, settings_of
from replifed.logs.rules import guarded


class _Inputs:
    """Runs of one experiment as `claims.verdicts` reads them."""

    def __init__(self, experiment: str, runs: CombinedLogs, data: str) -> None:
        self._experiment, self._runs, self._data = experiment, runs, data

    def has(self, key: str) -> bool:
        return key in {f"run:{self._experiment}/{method}" for method in self._runs.labels}

    def lost(self, claim: Claim) -> list[str]:
        return [key for key in claim.needs if not self.has(key)]

    def data_kind(self, experiment: str) -> tuple[str, str]:
        return self._data, ""

    def run(self, experiment: str, method: str) -> pd.DataFrame:
        return self._runs.history(method)


def judge(
    frame: pd.DataFrame, claims: Sequence[Claim], better: Mapping[str, str], **settings: Any
) -> pd.DataFrame:
    """Hold claims against runs in a data frame.

    Parameters
    ----------
    frame : DataFrame
        A line a run and round, with the columns method, seed, round and the metrics; others by `columns`.
    claims : sequence of Claim
        On runs of one experiment, such as from `logs.runs.Runs`.
    better : mapping
        The better side of each metric: "lower" or "higher".
    **settings
        Further settings of logs (`logs.settings.Experiment`), such as columns, where, until or best_over.

    Returns
    -------
    DataFrame
        One line per claim, with the columns of claims.csv; `attrs["remarks"]` says what was left out or lost.

    Raises
    ------
    DataError
        The runs are no experiment (`logs.histories.combine_logs`).
    ConfigError
        A setting is wrong, or the claims are on several experiments; or this is no data frame, or no claim.
    """
    if not isinstance(frame, pd.DataFrame):
        raise ConfigError(f"runs are to be a data frame, not of {type(frame).__name__}; pandas reads files")
    if "evidence" in settings:
        raise ConfigError("evidence: claims in Python state it by Statements(NAME, runs=...)")
    claims = [claims] if isinstance(claims, Claim) else list(claims)
    for claim in claims:
        if not isinstance(claim, Claim):
            raise ConfigError(f"{str(claim)[:40]!r} is no claim; make it with `Statements`")
    names = dict.fromkeys(name for claim in claims for name in claim.experiments)
    if len(names) > 1:
        raise ConfigError(f"claims on several experiments ({', '.join(names)}): judge each on its own frame")
    name, chosen = next(iter(names), "runs"), settings_of(better, **settings)
    runs = combine_logs([frame], chosen)
    inputs = _Inputs(name, runs, chosen.data)
    known = {name: {"logs": "", "metrics": better, **settings}}
    judged = measure(guarded(claims, known), inputs, "paper")
    hints = [[meant(key.rpartition("/")[2], runs.labels) for key in inputs.lost(claim)] for claim in claims]
    judged["reason"] += ["".join(one) for one in hints]
    judged.attrs["remarks"] = runs.remarks
    return judged


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
        As of `judge`.
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
