"""Every paper at a tiny size: its runs are made when a figure, a table or a claim asks for them."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache, reduce
from importlib import import_module
from pathlib import Path

from replifed.data.catalogue import get
from replifed.data.surrogates import generate
from replifed.data.table import Table
from replifed.papers.inputs import Inputs
from replifed.partition.build import build
from replifed.parts import part, typed
from replifed.progress import silent
from replifed.settings.needs import artefact_keys
from replifed.settings.reading import deep_merge, read_file

CONFIG = Path(__file__).parents[2] / "config"
SIZES = {"rows": 400, "features": 60, "row_nonzeros": 12, "positives": 180, "clusters": 6, "attributes": 8}
SIZES |= {"class_sizes": [60] * 10, "frames": 14, "nonzeros": 4000}


@cache
def section(paper):
    """Settings of a paper: those of a small run, cut down by tiny_papers.yaml."""
    files = CONFIG / f"papers/{paper}.yaml", CONFIG / "small.yaml", Path(__file__).with_suffix(".yaml")
    return reduce(deep_merge, (read_file(file).get(paper, {}) for file in files))


@cache
def table(dataset):
    """A few samples in the form of a data set's."""
    known = get(dataset)
    sizes = {} if known.surrogate["generator"] == "potentials" else SIZES
    cut = {key: sizes.get(key, value) for key, value in known.surrogate.items()}
    X, y = generate(replace(known, surrogate=cut))
    return Table(X, y, {"id": dataset, "kind": "synthetic", "stamp": ""})


class Tiny(Inputs):
    """What a paper's artefacts and claims read, made on demand instead of from files."""

    def __init__(self, paper):
        every = section(paper)["artefacts"].values()
        files = dict.fromkeys(key for one in every for key in artefact_keys(one))
        super().__init__(files, section(paper), paper)
        self.paper, self.made = paper, {}

    def of(self, name):
        """The same runs, as those of one artefact."""
        artefact = self._settings["artefacts"][name]
        seen = type(self)(self.paper)
        seen.made, seen._files = self.made, dict.fromkeys(artefact_keys(artefact))
        seen._settings = {**self._settings, "artefact": artefact}
        return seen

    def data_kind(self, experiment):
        return "synthetic", ""

    def tuned(self, experiment, method):
        return self._make("tune", experiment, method)

    def _run(self, experiment, method):
        return self._make("run", experiment, method)

    def _data(self, experiment):
        return table(self._settings["experiments"][experiment]["dataset"])

    def _split(self, experiment):
        given = self._settings["experiments"][experiment]
        names = [*given["replicates"], *given.get("tuning", {}).get("replicates", ())]
        data = self.data(experiment)
        return build(data.X, data.y, given["partition"], names, self.seed)

    def _partition(self, experiment):
        return self._split(experiment)[0]

    def partition_table(self, experiment):
        return self._split(experiment)[1]

    def _make(self, step, experiment, method):
        experiment = self._settings.get("like", {}).get(experiment, experiment)
        key = step, experiment, method
        if key not in self.made:
            self.made[key] = self._compute(*key)
        return self.made[key]

    def _compute(self, step, experiment, method):
        given = self._settings["experiments"][experiment]
        settings = typed(self.paper, {"seed": self.seed, **given})
        data = self.data(experiment) if "dataset" in given else None
        split = self.partition(experiment) if "partition" in given else None
        choice, more = (), {}
        if step == "run":
            choice = (self.tuned(experiment, method) if "tuning" in given else None,)
        elif (leader := getattr(settings.tuning, "leader", method)) != method:
            more["leader"] = {**self.tuned(experiment, leader), "meta": {}}
        of = import_module(part(self.paper, "experiments"))
        found = getattr(of, step)(method, settings, *choice, data, split, silent, **more)
        return found if step == "run" else json.loads(json.dumps(found, allow_nan=False))
