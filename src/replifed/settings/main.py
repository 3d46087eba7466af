"""Settings of the whole configuration: the keys of config/config.yaml, with those of a comparison."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from replifed.network.participation import Average
from replifed.settings.fields import (
    Clients,
    Count,
    Counts,
    Loss,
    Maybe,
    Name,
    Positive,
    Settings,
    Several,
    Text,
)


class Paths(Settings):
    """Folders, relative to the working folder."""

    data: Text = Field("data", description="raw and parsed data sets, shared by all scales")
    results: Text = Field("results", description="histories, tuned steps, claims, report")
    figures: Text = Field("figures", description="figures and tables")
    logs: Text = Field("logs", description="logs of jobs, in a folder for each scale")


class Data(Settings):
    """Where data sets come from."""

    policy: Literal["auto", "real", "surrogate"] = Field(
        "auto",
        description="auto generates a surrogate when a data set is available nowhere, real fails instead, "
        "surrogate never touches the network",
    )
    mirror: Text | None = Field(None, description="folder with copies of the files, asked before any network")
    substitutes: bool = Field(False, description="whether policy real accepts other real data in their place")


# What keys mean that several sections have.
_BY_NAME = "how samples are split: kmeans, given (as the data say), iid, dirichlet:ALPHA or shards:K"
_SIZES = "of clients with iid, dirichlet or shards: equal, the default, or lognormal:SIGMA"
COHORT = "clients that take part in a round, such as 10 or 10%; by default all"
AVAILABILITY = "who can take part: uniform, by-size, markov:ON,OFF or cyclic:GROUPS; uniform by default"
EVERYONE = "run methods without a form for cohorts with all clients; by default they are listed, not run"
AVERAGE = "own, or another scheme of methods that average with p_i: scaled, completed or transformed"
TEST = "samples kept for accuracy: a share of each client's, such as 20%; official; or official,20%"
NEW_CLIENTS = "clients that never take part, such as 2 or 10%, whose kept samples are tested, too"


class CustomDataset(Settings):
    """A custom data set; it joins the comparison."""

    path: Text = Field(description="a file, or FILE.py:FUNCTION, which returns features, labels, clients")
    form: Maybe[Literal["libsvm", "csv", "parquet", "npz", "python", "generated"]] = Field(
        None, description="by default what the path's ending says"
    )
    label: Maybe[Text] = Field(None, description="column of the labels (csv, parquet); by default the last")
    client: Maybe[Text] = Field(None, description="column of the clients (csv, parquet)")
    drop: Maybe[Several[Text]] = Field(None, description="columns that are no features (csv, parquet)")
    categories: Maybe[Several[Text]] = Field(
        None, description="columns of words, each of which becomes a feature of zeros and ones (csv, parquet)"
    )
    standardise: Maybe[bool] = Field(
        None, description="whether features get the mean 0 and the deviation 1; those mostly zero are divided"
    )
    loss: Loss = Field("logistic", description="of the models: for two kinds of labels, targets, or classes")
    partition: Maybe[Text] = Field(None, description=f"{_BY_NAME}; kmeans if the data name no clients")
    clients: Maybe[Count] = Field(None, description="number of clients, 10 by default, with given all")
    sizes: Maybe[Text] = Field(None, description=_SIZES)
    weights: Literal["equal", "samples"] = Field(
        "equal", description="p_i in F = sum_i p_i f_i: 1/N, or the client's share of the samples"
    )
    samples: Maybe[Count] = Field(None, description="maximum number of a client's samples; by default all")
    test: Maybe[Text] = Field(None, description="file of its own test set, which is read in the same way")
    rows: Maybe[Count] = Field(None, description="samples that it must have")
    features: Maybe[Count] = Field(None, description="features that it must have")
    limit_gb: Maybe[Positive] = Field(
        None, description="what its file may unpack to, and reading it need, in GiB; 2 by default"
    )


class Vary(Settings):
    """Options of the settings under which a comparison is repeated."""

    local_steps: Maybe[Counts] = Field(
        None, description="by default the problem's, halved (rounded up), and doubled"
    )
    partition: Maybe[Several[Text]] = Field(
        None, description="by default the stated one and iid, or iid and dirichlet:0.3; none of given clients"
    )
    ridge: Maybe[Several[Positive]] = Field(None, description="by default the problem's, and a tenth of it")
    target: Several[Positive] = Field(
        default_factory=lambda: [1e-2, 1e-3, 1e-4], description="relative gaps at which a run has to stay"
    )
    width: Counts = Field(
        default_factory=lambda: [16, 32, 64],
        description="bits of a float in the ledger, if a method quantises",
    )


class Compare(Settings):
    """Problems and methods of `snakemake compare`."""

    data: Maybe[Several[Name]] = Field(None, description="problems of `cross`; by default all logistic ones")
    against: Maybe[Several[Name]] = Field(None, description="built-in methods; by default all that there are")
    partition: Maybe[Text] = Field(None, description=f"{_BY_NAME}; by default each problem's own")
    clients: Maybe[Count] = Field(None, description="number of clients; by default each problem's own")
    sizes: Maybe[Text] = Field(None, description=_SIZES)
    cohort: Maybe[Clients] = Field(None, description=COHORT)
    availability: Maybe[Text] = Field(None, description=AVAILABILITY)
    average: Maybe[Average] = Field(None, description=AVERAGE)
    everyone: Maybe[bool] = Field(None, description=EVERYONE)
    test: Maybe[Text] = Field(None, description=TEST)
    new_clients: Maybe[Clients] = Field(None, description=NEW_CLIENTS)
    tune_on: Maybe[Literal["objective", "accuracy"]] = Field(None, description="what searches look at")
    time: Maybe[Text] = Field(None, description="of rounds: a preset, such as phone, or uplink=1Mbps,...")
    studies: Maybe[Count] = Field(None, description="searches of each method, on other seeds; 1 by default")
    untuned: Maybe[bool] = Field(None, description="run methods at their own theory's parameters, too")
    vary: Maybe[Vary] = Field(
        None, description="repeat it under other settings, of at most three competitors"
    )
    reused: Maybe[Several[Text]] = Field(None, description="EXPERIMENT/METHOD, taken from runs made before")


class Main(Settings):
    """Keys of config/config.yaml, but for the list of papers."""

    scale: Literal["paper", "small", "tiny"] = Field("paper", description="size of the run, on each artefact")
    paths: Paths = Field(default_factory=Paths, description="folders, relative to the working folder")
    data: Data = Field(default_factory=Data, description="where data sets come from")
    methods: dict[Name, Text] = Field(default_factory=dict, description="your own, NAME: FILE.py:CLASS")
    paper_folders: list[Text] = Field(
        default_factory=list, description="folders of papers of your own, see `replifed new paper`"
    )
    datasets: dict[Name, CustomDataset] = Field(
        default_factory=dict, description="data sets of your own, which join the comparison"
    )
    comparison: Compare = Field(default_factory=Compare, description="what `snakemake compare` takes")
