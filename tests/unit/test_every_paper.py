"""Every figure and table of every paper is made, and every claim measured, on tiny runs."""

from __future__ import annotations

import io
from importlib import import_module

import pandas as pd
import pytest

from replifed.claims import scores
from replifed.claims.verdicts import described, measure
from replifed.parts import paper_names, part
from small_tables import columns
from tiny_papers import Tiny, section

# Why claims are not measured on runs as short and few as these, by paper.
UNANSWERED = {
    "fedac": "point|were not run|nothing to measure",
    "fedgradmp": "reached the threshold|only a bound is known",
    "fedht": "ran for 20 rounds alone|get there on every seed|theorem's conditions|nothing to measure",
    "fedplt": "joint test|epochs on the plateau",
    "qshed": "reach|not all runs have",
}
# Of five of each paper four are measured all the same.
MOST = 0.2
# What holds on runs of any size, by paper: claims by the ends of their ids.
HELD = {
    "fedmm": r"^fedmm\.(?:example\.|remark1\.|lemma\d|prop\d)",
    "fedplt": r"\.(?:table1\.fedplt\.stored|privacy\.bound|fedavg\.biased\.mean-common|exact\.full)$",
}


@pytest.fixture(scope="module", params=paper_names())
def tiny(request):
    return Tiny(request.param)


def kept(frame):
    """A table as its CSV has it, from which pictures are drawn and tables printed."""
    text = frame.to_csv(index=False, float_format="%.12g")
    again = pd.read_csv(io.StringIO(text), keep_default_na=False, na_values=["nan"])
    assert again.to_csv(index=False, float_format="%.12g") == text
    return again


def test_every_artefact_is_made(tiny):
    paper, artefacts = tiny.paper, section(tiny.paper)["artefacts"]
    figures, tables = (import_module(part(paper, kind)) for kind in ("figures", "tables"))
    assert {**figures.FIGURES, **tables.TABLES}.keys() == artefacts.keys()
    for name, artefact in artefacts.items():
        if artefact["kind"] == "figure":
            frame = figures.FIGURES[name].table(tiny.of(name))
            assert set(frame) == columns(paper, name), name  # another test draws from such a table
            kept(frame)
            continue
        shown = tables.TABLES[name].show(kept(tables.TABLES[name].table(tiny.of(name))))
        for table in shown.values() if isinstance(shown, dict) else [shown]:
            assert len(table), name
            assert not table.map(str).isin(["nan", "None"]).any(axis=None), name


def test_every_claim_is_measured(tiny):
    claims = import_module(part(tiny.paper, "claims")).CLAIMS
    frame = measure(claims, tiny, "tiny")
    assert frame["id"].tolist() == [claim.id for claim in claims]
    assert set(frame["artefact"]) - {""} <= set(section(tiny.paper)["artefacts"])
    unchecked = frame[frame["verdict"] == "unchecked"]
    known = unchecked["reason"].str.contains(UNANSWERED.get(tiny.paper, "nothing is left out"))
    assert unchecked[~known].empty, unchecked[~known]["reason"].value_counts()
    assert len(unchecked) <= MOST * len(claims), unchecked["reason"].value_counts()
    if tiny.paper in HELD:
        held = frame[frame["id"].str.contains(HELD[tiny.paper])]
        assert len(held) and (held["verdict"] == "holds").all()


@pytest.mark.parametrize("paper", ["fedmm", "qshed"])
def test_the_inferred_settings_answer_all_sentences(paper):
    """Planted: all claims hold."""
    rows = [
        {key: "" if value is None else str(value) for key, value in described(claim).items()}
        | {"verdict": "holds", "data": "original", "p_holm": "0"}
        for claim in import_module(part(paper, "claims")).CLAIMS
    ]
    assert [one["statement_id"] for one in scores.statements(rows) if one["inferred"] != "holds"] == []
