"""An experiment with a pilot: its claims say how many seeds are run, and nothing else does."""

import json

import pandas as pd

from copies import copy_repository
from replifed.claims.seeds import number_for
from test_toy_paper import PAPER, SETTINGS

REPLICATES = "replicates: [1, 2, 3]"
CLAIMS = """
from replifed.claims.curves import curves, first
from replifed.claims.quantities import run
from replifed.claims.statements import Statements

CLAIM = Statements("toy", artefact="fig1")
BOWL = curves(run("bowl", "fedavg"))
CLAIMS = [CLAIM.value("start", "It starts at 2.5.", 2.5, first(BOWL), within=0.25, because="a tenth")]
"""


def test_claims_get_the_seeds_that_a_pilot_says_they_need(tmp_path):
    copy = copy_repository(tmp_path, stubs={}, papers=("toy",))
    assert REPLICATES in SETTINGS
    grown = f"replicates: {[*range(1, 41)]}, pilot: {[*range(101, 106)]}"
    (copy.folder / "config/papers/toy.yaml").write_text(SETTINGS.replace(REPLICATES, grown))
    folder = copy.folder / "src/replifed/papers/toy"
    folder.mkdir()
    (folder / "__init__.py").write_text(PAPER)
    (folder / "claims.py").write_text(CLAIMS)

    def results():
        folder = copy.folder / "results/toy"
        histories = [pd.read_parquet(folder / name / "fedavg.parquet") for name in ("bowl_pilot", "bowl")]
        return json.loads((folder / "bowl/seeds.json").read_text()), *histories

    done = copy.snakemake("all", "--cores", "1")
    assert done.status == 0, done.text
    found, pilot, reported = results()
    assert sorted(set(pilot["replicate"])) == [*range(101, 106)]
    starts = pilot[pilot["round"] == 0]["objective"]
    wanted = number_for(starts.std(), 0.25, 5)
    assert found["asked"]["toy.start"] == found["seeds"] == wanted
    assert 5 < wanted < 40
    assert sorted(set(reported["replicate"])) == [*range(1, wanted + 1)]
    claims = pd.read_csv(copy.folder / "results/claims.csv").set_index("id")
    assert (claims["seeds"] == wanted).all()
    assert copy.snakemake("verify", "--cores", "1").status == 0
    assert not copy.planned()

    # A tolerance that changes the number runs anew what is reported, but not the pilot.
    (folder / "claims.py").write_text(CLAIMS.replace("within=0.25", "within=0.01"))
    done = copy.snakemake("results/claims.csv", "--cores", "1")
    assert done.status == 0, done.text
    assert done.jobs >= {"toy: count the seeds of bowl", "toy: run fedavg on bowl", "toy: measure the claims"}
    assert not any("bowl_pilot" in job for job in done.jobs), done.jobs
    found, _, reported = results()
    assert (found["seeds"], reported["replicate"].nunique()) == (40, 40)
    note = pd.read_csv(copy.folder / "results/claims.csv").set_index("id").loc["toy.start", "note"]
    assert "would need" in note
