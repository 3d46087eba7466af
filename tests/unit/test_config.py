"""Every fault of a configuration is one line: key, value, what is allowed, nearest name, file to edit."""

from __future__ import annotations

import copy
import json
import re
from collections import ChainMap
from pathlib import Path

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from replifed import cli, parts
from replifed.errors import ConfigError
from replifed.settings import checks as config
from replifed.settings import needs, reading
from replifed.store import documents
from replifed.workflow.jobs import Table

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def whole():
    return config.load(root=ROOT)


@pytest.fixture
def sixth(tmp_path, monkeypatch):
    """A paper that has no classes for its settings."""
    (tmp_path / "sixth").mkdir()
    (tmp_path / "sixth/__init__.py").touch()
    monkeypatch.setattr(parts, "PAPERS", tmp_path)


def faults(base, change):
    """Return the lines that `change`, a function on a copy of `base`, provokes."""
    changed = copy.deepcopy(base)
    change(changed)
    # A fault in papers' sections is one without the other papers, too, and is sooner told.
    edited = {key for key in changed if changed[key] != base.get(key)}
    if edited <= set(base["papers"]):
        changed["papers"] = sorted(edited)
    with pytest.raises(ConfigError) as caught:
        config.validate(changed)
    return str(caught.value).splitlines()


def at(*path):
    """Return a function that sets the value at a path of keys."""

    def setter(value):
        def change(tree):
            for key in path[:-1]:
                tree = tree[key]
            tree[path[-1]] = value

        return change

    return setter


simulation = ("fedht", "experiments", "simulation1")
mnist = ("fedht", "experiments", "mnist")
plt = ("fedplt", "experiments")
artefacts = ("fedht", "artefacts")

# what is changed, to what, and what the one line must say
FAULTS = {
    "unknown top key": (at("scal"), "small", ["scal: ", '"small"', "did you mean 'scale'?"]),
    "unknown top key, nothing near": (
        at("foo"),
        1,
        ["foo: unknown key with value 1", "known: comparison, cross, data"],
    ),
    "dotted key": (at("fedht.seed"), 3, ["--config 'fedht={seed: ...}'"]),
    "a method that no figure shows": (
        at("cross", "experiments", "w8a", "methods"),
        [*config.load(root=ROOT)["cross"]["experiments"]["w8a"]["methods"], "sa_ssmm"],
        ["cross.experiments.w8a.methods: ", "sa_ssmm is run, but no figure", "runs.w8a", "cross.artefacts"],
    ),
    "a method that is only summed up": (
        at("cross", "artefacts", "fig4", "runs", "planted"),
        ["fedht", "fediterht", "distributed_iht"],
        ["cross.experiments.planted.methods: ", "fedgradmp is run, but no figure"],
    ),
    "scale": (
        at("scale"),
        "smal",
        ["scale: ", '"smal"', "one of paper, small, tiny", "did you mean 'small'?"],
    ),
    "unknown paper": (at("papers"), ["fedth"], ["papers[0]: ", '"fedth"', "did you mean 'fedht'?"]),
    "mirror": (at("data", "mirror"), 5, ["data.mirror: 5", "a text or null"]),
    "empty path": (at("paths", "data"), "", ["paths.data: ", '""', "a text"]),
    "seed": (at("fedht", "seed"), -1, ["fedht.seed: -1", "an integer of at least 0"]),
    "boolean for a number": (at(*simulation, "rounds"), True, ["simulation1.rounds: true", "an integer"]),
    "records of no round": (
        at(*simulation, "record_every"),
        0,
        ["record_every: 0 ", "an integer of at least 1"],
    ),
    "long grid": (at(*plt, "comparison", "rho_grid"), [0.1, 1, 5, 5], ["rho_grid: [", "at most 3 long"]),
    "cohort above the agents": (at(*plt, "comparison", "cohort"), 11, ["cohort: 11 ", "at most 10"]),
    "one of several cohorts": (at(*plt, "participation", "active"), [5, 11], ["active: 11 ", "at most 10"]),
    "tail above the rounds": (at(*plt, "noise", "tail"), 151, ["noise.tail: 151 ", "at most 150"]),
    "search of unlike lengths": (
        at("fedmm", "experiments", "transport_2", "searched", "fedmm_ot", "uvp"),
        [1.0],
        ["searched.fedmm_ot.uvp: [1.0] ", "expected one for each step"],
    ),
    "misspelt setting": (
        at(*simulation, "bach"),
        50,
        ["fedht.experiments.simulation1.bach: ", "value 50", "did you mean 'batch'?"],
    ),
    "type": (at(*simulation, "batch"), "fifty", ['simulation1.batch: "fifty"', "an integer of at least 1"]),
    "number as text": (at(*simulation, "tuning", "steps"), ["1e-3"], ["steps[0]: ", "1.0e-3"]),
    "step of zero": (at(*simulation, "tuning", "steps"), [1, 0], ["steps[1]: 0", "above 0"]),
    "level": (at(*simulation, "levels"), [[0.1]], ["simulation1.levels[0]: [0.1]", "at least 2 long"]),
    "repeated local steps": (
        at(*simulation, "local_steps"),
        [3, 3],
        ["local_steps: [3, 3]", "without repeats"],
    ),
    "no repetition": (at(*simulation, "replicates"), [], ["simulation1.replicates: []", "at least 1 long"]),
    "kind of problem": (
        at(*simulation, "problem"),
        "simulations",
        ["simulation1.problem: ", "did you mean 'simulation'?"],
    ),
    "setting of another problem": (
        at(*mnist, "features"),
        5,
        ["mnist.features: unknown key", "batch, classes, dataset"],
    ),
    "name or number": (
        at("qshed", "experiments", "fmnist", "renewals"),
        "fibonaci",
        ["fmnist.renewals: ", "one of fibonacci, ", " or an integer of at least 1", "mean 'fibonacci'?"],
    ),
    "exclusive limits": (
        at("qshed", "experiments", "fmnist", "line_search", "c"),
        1,
        ["line_search.c: 1 ", "a number above 0 and below 1"],
    ),
    "two sources of steps": (
        at("fedmm", "experiments", "movielens", "betas"),
        [1],
        ["fedmm.experiments.movielens: ", "one of the keys betas, tuning"],
    ),
    "clusters": (
        at(*mnist, "partition", "clusters"),
        "label",
        ["partition.clusters: ", "did you mean 'labels'?"],
    ),
    "method": (
        at("fedht", "experiments", "planted", "methods"),
        ["fedht", "fediterht", "fedth"],
        ["planted.methods: unknown method 'fedth'; did you mean 'fedht'?"],
    ),
    "data set": (at(*mnist, "dataset"), "mnits", ["mnist.dataset: ", "'mnits'", "did you mean 'mnist'?"]),
    "sparsity of a data set": (at(*mnist, "sparsity"), 7841, ["mnist.sparsity: 7841", "at most 7840"]),
    "planted": (at(*simulation, "planted"), 1001, ["simulation1.planted: 1001", "at most 1000"]),
    "batch above samples": (at(*simulation, "batch"), 101, ["simulation1.batch: 101", "at most 100"]),
    "shards": (
        at(*mnist, "partition", "shards_per_client"),
        3,
        ["shards_per_client: 3", "divisor of the 200"],
    ),
    "tuned on what is reported": (
        at(*simulation, "tuning", "replicates"),
        [101, 2],
        ["simulation1.tuning.replicates: [101, 2]", "2 would be both"],
    ),
    "tuned on a full-batch repetition": (
        at(*simulation, "full_batch_replicates"),
        [101],
        ["simulation1.tuning.replicates: [101, 102, 103, 104, 105]", "101 would be both"],
    ),
    "fraction": (at(*simulation, "tuning", "common_fraction"), 0, ["tuning.common_fraction: 0", "above 0"]),
    "kind of artefact": (at(*artefacts, "fig1", "kind"), "figur", ["fig1.kind: ", "did you mean 'figure'?"]),
    "artefact of nothing": (
        at(*artefacts, "new"),
        {"kind": "table"},
        ["artefacts.new: ", "runs, tuned, partitions"],
    ),
    "name of an artefact": (
        at(*artefacts, "fig 1"),
        {"kind": "table", "partitions": ["mnist"]},
        ["artefacts.fig 1: ", "small letters"],
    ),
    "experiment of an artefact": (
        at(*artefacts, "fig1", "runs"),
        {"simulaton1": ["fedht"]},
        ["artefacts.fig1.runs: ", "'simulaton1'", "did you mean 'simulation1'?"],
    ),
    "method of an artefact": (
        at(*artefacts, "rates", "runs"),
        {"planted": ["fedavg"]},
        ["artefacts.rates.runs.planted: ", "'fedavg'", "known: fedht, fediterht"],
    ),
    "tuned where nothing is tuned": (
        at(*artefacts, "tuning", "tuned"),
        {"planted": ["fedht"]},
        ["artefacts.tuning.tuned: ", '"planted"', "simulation1"],
    ),
    "partition of a simulation": (
        at(*artefacts, "table2", "partitions"),
        ["simulation1"],
        ["artefacts.table2.partitions: ", '"simulation1"', "mnist"],
    ),
    "method of a split": (
        at(*simulation, "split"),
        {"fediterth": 2},
        ["simulation1.split: unknown method 'fediterth'", "did you mean 'fediterht'?"],
    ),
    "split of runs in another order": (
        at("fedplt", "experiments", "penalty", "split"),
        {"fedplt": 2},
        ["fedplt.experiments.penalty.split: "],
    ),
    "split in none": (at(*simulation, "split"), {"fedht": 0}, ["simulation1.split.fedht: 0", "at least 1"]),
    "only": (at("fedht", "only"), ["fig11"], ["fedht.only: ", "'fig11'", "did you mean 'fig1'?"]),
    "only of what went": (at("fedmm", "only"), ["steps"], ["fedmm.only: fedmm/steps is no longer made: "]),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_one_line_that_names_key_value_and_way_out(whole, name):
    setter, value, words = FAULTS[name]
    lines = faults(whole, setter(value))
    assert len(lines) == 1, lines
    for word in words:
        assert word in lines[0]


SPLIT = {"clusters": "iid", "clients": 3}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"split": {"fedavg": 2}}, "first: its key split is not allowed; expected a paper with classes"),
        ({"partition": SPLIT}, "first: its key partition needs dataset, too"),
        ({"partition": SPLIT, "dataset": "a9a"}, "first: its key partition needs replicates, too"),
        (
            {"partition": SPLIT, "dataset": "a9a", "replicates": [1], "tuning": {"steps": [1]}},
            "first: its key partition needs tuning.replicates, too",
        ),
        ({"tuning": {"replicates": 101}}, "first: its key tuning.replicates is 101; expected a list"),
        ({"methods": [["fedavg"], "fedlin"]}, "first.methods[0]: "),
    ],
)
def test_what_no_job_could_use_of_a_paper_without_classes_is_refused(sixth, change, said):
    experiment = {"methods": ["fedavg"], "clients": [10, 100], "active": 5, **change}
    artefacts = {"fig1": {"kind": "figure", "runs": {"first": ["fedavg"]}}}
    section = {"seed": 1, "experiments": {"first": experiment}, "artefacts": artefacts}
    with pytest.raises(ConfigError) as caught:
        config.validate({"papers": ["sixth"], "sixth": section})
    assert f"sixth.experiments.{said}" in str(caught.value)
    assert "\n\n" not in str(caught.value)


@pytest.mark.parametrize("key", ["problem", "loss", "rounds", "methods", "replicates"])
def test_a_missing_key_is_named_with_what_is_expected(whole, key):
    lines = faults(whole, lambda tree: tree["fedht"]["experiments"]["planted"].pop(key))
    assert lines[0].startswith(f"fedht.experiments.planted.{key}: missing; expected ")


def test_a_misspelt_method_is_one_fault_however_many_artefacts_show_it(whole):
    (line,) = faults(whole, at("fedht", "experiments", "mnist", "methods")(["fedht", "fediterth"]))
    assert line.startswith(
        "fedht.experiments.mnist.methods: unknown method 'fediterth'; did you mean 'fediterht'?"
    )


def test_all_faults_are_reported_together(whole):
    def change(tree):
        tree["scale"] = "huge"
        tree["fedht"]["experiments"]["simulation1"]["rounds"] = 0
        tree["fedht"]["experiments"]["mnist"]["sparsity"] = 10**6
        tree["fedht"]["only"] = ["fig0"]

    lines = faults(whole, change)
    assert [line.split(":")[0] for line in lines] == [
        "fedht.experiments.simulation1.rounds",
        "scale",
        "fedht.experiments.mnist.sparsity",
        "fedht.only",
    ]


def test_a_fault_names_the_last_file_that_sets_its_key(tmp_path):
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text(
        "scale: huge\nfedht: {experiments: {mnist: {sparsity: 0, local_steps: [0], roundz: 1}}}\n"
    )
    second.write_text("fedht: {experiments: {mnist: {sparsity: -1}, rcv1: {dataset: rcv2}}, only: [fig0]}\n")
    with pytest.raises(ConfigError) as caught:
        config.load([first, second], root=ROOT)
    lines = str(caught.value).splitlines()
    assert {line.partition(":")[0]: line.rpartition("; edit ")[2] for line in lines} == {
        "scale": str(first),
        "fedht.experiments.mnist.local_steps[0]": str(first),
        "fedht.experiments.mnist.roundz": str(first),
        "fedht.experiments.mnist.sparsity": str(second),
        "fedht.experiments.rcv1.dataset": str(second),
        "fedht.only": str(second),
    }


def test_a_fault_names_the_main_file_a_papers_file_or_the_command_line(whole):
    main = ROOT / reading.MAIN_FILE
    papers = {paper: ROOT / reading.PAPER_FOLDER / f"{paper}.yaml" for paper in whole["papers"]}
    changed = copy.deepcopy(whole)
    changed["data"]["policy"] = "reel"
    changed["fedmm"]["seed"] = -1
    del changed["fedplt"]["experiments"]["noise"]["rho"]
    del changed["qshed"]
    with pytest.raises(ConfigError) as caught:
        config.validate(changed, [main, *papers.values(), {"fedmm": {"seed": -1}}])
    lines = str(caught.value).splitlines()
    assert {line.partition(":")[0]: line.rpartition("; ")[2] for line in lines} == {
        "data.policy": f"edit {main}",
        "fedmm.seed": "correct what follows --config",
        "fedplt.experiments.noise.rho": f"edit {papers['fedplt']}",
        "qshed": f"edit {papers['qshed']}",
    }


@pytest.mark.parametrize("broken", [None, 5, [], "text"])
@pytest.mark.parametrize(
    "path", [("papers",), ("paths",), ("fedht",), ("fedht", "experiments"), simulation, (*artefacts, "fig1")]
)
def test_a_wrong_kind_of_value_anywhere_is_a_fault_and_no_crash(whole, path, broken):
    assert faults(whole, at(*path)(broken))


def test_defaults_are_filled_in():
    whole = config.load(root=ROOT)
    bare = {paper: whole[paper] for paper in whole["papers"]}
    del bare["fedht"]["experiments"]["mnist"]["record_every"]
    filled = config.validate(bare)
    assert filled["scale"] == "paper"
    assert filled["papers"] == sorted(whole["papers"])
    assert filled["paths"] == {"data": "data", "results": "results", "figures": "figures", "logs": "logs"}
    assert filled["data"] == {"policy": "auto", "mirror": None, "substitutes": False}
    assert filled["fedht"]["experiments"]["mnist"]["record_every"] == 1


def test_whole_floats_become_integers(whole):
    changed = copy.deepcopy(whole)
    changed["fedht"]["experiments"]["mnist"]["rounds"] = 20.0
    rounds = config.validate(changed)["fedht"]["experiments"]["mnist"]["rounds"]
    assert rounds == 20
    assert isinstance(rounds, int)


def test_validation_leaves_its_argument_alone(whole):
    before = copy.deepcopy(whole)
    config.validate(whole)
    assert whole == before


@pytest.mark.parametrize("scale", ["small", "tiny"])
def test_the_other_scales_are_valid_and_write_elsewhere(whole, scale):
    cut = config.load([ROOT / f"config/{scale}.yaml"], root=ROOT)
    assert cut["scale"] == scale
    elsewhere = {"results": f"results/{scale}", "figures": f"figures/{scale}"}
    assert cut["paths"] == {"data": "data", **elsewhere, "logs": "logs"}


def test_the_small_scale_cuts_no_method_panel_data_set_or_artefact(whole):
    small = config.load([ROOT / "config/small.yaml"], root=ROOT)["fedht"]

    def drawn(section):
        return {name: {**one, "settings": None} for name, one in needs.artefacts(section).items()}

    assert drawn(small) == drawn(whole["fedht"])
    may_change = {
        "local_steps",
        "rounds",
        "baseline_rounds",
        "full_batch_rounds",
        "full_batch_replicates",
        "record_every",
        "replicates",
        "tuning",
    }
    for name, experiment in whole["fedht"]["experiments"].items():
        other = small["experiments"][name]
        own = may_change | ({"clients"} if name == "simulation2" else set())
        assert {k: v for k, v in experiment.items() if k not in own} == {
            k: v for k, v in other.items() if k not in own
        }
        assert set(other["local_steps"]) <= set(experiment["local_steps"])
        assert set(other["replicates"]) <= set(experiment["replicates"])


def test_overrides_merge_mappings_and_replace_lists(tmp_path):
    override = tmp_path / "mine.yaml"
    override.write_text("fedht: {experiments: {mnist: {local_steps: [7]}}}\n")
    loaded = config.load([override], root=ROOT)["fedht"]["experiments"]["mnist"]
    assert loaded["local_steps"] == [7]
    assert loaded["dataset"] == "mnist"


def test_the_command_line_is_laid_over_all_files(tmp_path):
    (tmp_path / "mine.yaml").write_text("fedht: {experiments: {mnist: {local_steps: [7]}}}\n")
    given = {"paths": {"figures": "f2"}, "fedht": {"experiments": {"mnist": {"local_steps": [9]}}}}
    loaded = config.load([tmp_path / "mine.yaml"], ROOT, given)
    assert loaded["paths"]["figures"] == "f2"
    assert loaded["fedht"]["experiments"]["mnist"]["local_steps"] == [9]
    with pytest.raises(ConfigError, match=r"correct what follows --config$"):
        config.load([], ROOT, {"fedht": {"seed": "x"}})


def test_for_files_that_a_folder_lacks_the_project_has_its_own(tmp_path):
    (tmp_path / "config/papers").mkdir(parents=True)
    qshed = (ROOT / "config/papers/qshed.yaml").read_text()
    (tmp_path / "config/papers/qshed.yaml").write_text(re.sub("(?m)^  seed: .*", "  seed: 42", qshed))
    (tmp_path / "config/config.yaml").write_text("paths: {data: d2}\nfedht: {seed: 7}\n")
    loaded, whole = config.load(root=tmp_path), config.load(root=ROOT)
    assert loaded["paths"] == whole["paths"] | {"data": "d2"}
    assert (loaded["fedht"]["seed"], loaded["qshed"]["seed"]) == (7, 42)
    assert {name: loaded[name] for name in ("fedmm", "cross")} == {
        name: whole[name] for name in ("fedmm", "cross")
    }
    # As a module it has another workflow's config.yaml around it.
    (tmp_path / "config/config.yaml").write_text("samples: samples.tsv\n")
    loaded = config.load(root=tmp_path, given={"papers": ["qshed"]}, as_module=True)
    assert (loaded["papers"], loaded["qshed"]["seed"]) == (["qshed"], 42)


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"samples": 3}, "samples: unknown key with value 3.*; correct the `config` of the module"),
        ([1, 2], r"the `config` of the module: \[1, 2\] is not allowed; expected a mapping"),
    ],
)
def test_errors_in_what_a_module_is_given_say_so(given, line):
    with pytest.raises(ConfigError, match=f"^{line}$"):
        config.load(root=ROOT, given=given, as_module=True)


OWN = st.dictionaries(st.sampled_from("xyz"), st.integers(0, 9), max_size=2)


@pytest.mark.parametrize("read", [documents.load, yaml.safe_load])  # Snakemake reads settings with the other
@given(mappings=st.lists(st.tuples(st.lists(st.integers(0, 9), max_size=3), OWN), max_size=6))
def test_a_mapping_merges_what_others_have_merged_and_overridden(read, mappings):
    """A key of its own counts, then that of the first mapping of a list that has it, as YAML's merge says."""
    lines, wanted = [], []
    for number, (earlier, own) in enumerate(mappings):
        merged = [one for one in earlier if one < number]
        entries = ["<<: [" + ", ".join(f"*m{one}" for one in merged) + "]"] if merged else []
        entries += [f"{key}: {value}" for key, value in own.items()]
        lines.append(f"- &m{number} {{{', '.join(entries)}}}\n")
        wanted.append({**ChainMap(own, *(wanted[one] for one in merged))})
    assert read("".join(lines)) == (wanted or None)
    assert read("a: &a {x: 1}\nb: &b {<<: *a, x: 2}\nc: {<<: *b, y: 3}\n")["c"] == {"x": 2, "y": 3}


def test_a_key_that_was_merged_already_stands_there_once():
    text = "base: &base {x: 1}\np: {q: {a: &a {<<: *base, x: 2}}}\nb: {<<: *a, y: 3}\n"
    assert documents.load(text)["b"] == {"x": 2, "y": 3}
    assert documents.load("1: a\n'1': b") == {1: "a", "1": "b"}
    with pytest.raises(yaml.YAMLError, match="a timestamp; put it in quotes"):
        documents.load("{2020-01-01: 1}")
    for text in ("{<<: 1}", "{<<: [{x: 1}, [2]]}"):
        with pytest.raises(yaml.YAMLError, match="<< merges a mapping, or a list of mappings"):
            documents.load(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", ", line 2, column 1: not valid YAML"),
        ("a: 1\nb: {c: 2, c: 3}\n", ", line 2: the key 'c' stands twice; remove one"),
        ("- 1\n", "expected a mapping"),
        (None, "does not exist"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path, text, message):
    file = tmp_path / "mine.yaml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(ConfigError, match=rf"mine\.yaml.*{message}"):
        config.load([file], root=ROOT)


def test_a_misspelt_experiment_is_named_with_the_file_that_has_it(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("fedht: {experiments: {mnit: {rounds: 20}}}")
    with pytest.raises(ConfigError) as caught:
        config.load([file], root=ROOT)
    assert str(caught.value).startswith("fedht.experiments: unknown experiment 'mnit'; did you mean 'mnist'?")
    assert str(caught.value).endswith(f"; edit {file}")


def test_an_experiment_of_an_override_with_a_misspelt_problem_is_told_so(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("fedht: {experiments: {mine: {problem: simulatoin}}}")
    with pytest.raises(ConfigError, match=r"^fedht\.experiments\.mine\.problem: .*did you mean 'simulation'"):
        config.load([file], root=ROOT)


def test_data_of_ones_own_that_are_not_there_are_named(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("datasets: {mine: {path: absent.csv, label: outcome}}")
    with pytest.raises(ConfigError, match=r"datasets\.mine\.path: absent\.csv does not exist; give the file"):
        config.load([file], root=ROOT)


def test_an_unknown_paper_is_named_before_its_file_is_looked_for(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("papers: [fedth]\n")
    with pytest.raises(ConfigError, match=r"^papers: unknown paper 'fedth'; did you mean 'fedht'\?"):
        config.load([file], root=ROOT)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("0.5", 0.5),
        ("true", True),
        ("null", None),
        ("fedht", "fedht"),
        ("2020-01-01", "2020-01-01"),
        ("[", "["),
    ],
)
def test_texts_of_the_command_line_become_numbers(text, value):
    assert reading.retyped({"a": [{"b": text}]}) == {"a": [{"b": value}]}


# --- Classes ---


def test_a_paper_without_classes_may_have_any_key_in_its_experiments(sixth):
    experiment = {"methods": ["fedavg"], "step": {"any": [1, "x"]}, "rounds": 5.0}
    artefacts = {"fig1": {"kind": "figure", "runs": {"first": ["fedavg"]}, "settings": {"any": 1}}}
    section = {"seed": 1, "experiments": {"first": experiment}, "artefacts": artefacts}
    filled = config.validate({"papers": ["sixth"], "sixth": section})["sixth"]
    assert filled["experiments"]["first"] == {**experiment, "rounds": 5}
    assert filled["artefacts"] == artefacts
    assert filled["together"] is False
    broken = {**section, "seed": -1, "experiments": {"first": {**experiment, "methods": ["fedavgg"]}}}
    with pytest.raises(ConfigError) as caught:
        config.validate({"papers": ["sixth"], "sixth": {**broken, "artefacts": {}}})
    assert [line.partition(":")[0] for line in str(caught.value).splitlines()] == [
        "sixth.artefacts",
        "sixth.seed",
        "sixth.experiments.first.methods",
    ]


def test_editors_get_a_schema_that_the_files_fit(tmp_path):
    out = tmp_path / "schema.json"
    assert cli.main(["schema", "--out", str(out)]) == 0
    schema = jsonschema.Draft202012Validator(json.loads(out.read_text()))
    files = [ROOT / reading.MAIN_FILE, *(ROOT / reading.PAPER_FOLDER).glob("*.yaml")]
    for file in files:
        first, text = file.read_text().splitlines()[0], yaml.safe_load(file.read_text())
        assert first.startswith("# yaml-language-server: $schema=")
        assert (file.parent / first.partition("=")[2]).resolve() == ROOT / "config/config.schema.json"
        schema.validate(text)
        text["sed"] = 1
        assert not schema.is_valid(text)
    described = json.loads(out.read_text())["$defs"]["DataSet"]["properties"]["batch"]
    assert described == {"description": "samples of a mini-batch", "minimum": 1, "type": "integer"}
    stored = ROOT / "config/config.schema.json"
    assert stored.read_text() == out.read_text(), "settings have changed: run `replifed schema`"


# --- Settings of single jobs ---


def test_each_step_gets_only_what_it_uses(whole):
    section = whole["fedht"]
    partition = needs.settings_for("partition", section, "mnist")
    assert set(partition) == {"seed", "dataset", "partition", "replicates", "tuning"}
    assert partition["tuning"] == {"replicates": [101, 102, 103, 104, 105]}

    tune = needs.settings_for("tune", section, "mnist")
    assert not set(tune) & {"replicates", "full_batch_replicates", "rounds", "record_every", "methods"}
    assert set(tune["tuning"]) == {"replicates", "rounds", "steps", "refine", "tail", "common_fraction"}

    run = needs.settings_for("run", section, "mnist")
    assert not set(run) & {"methods", "tuning"}
    assert {"seed", "replicates", "rounds", "local_steps", "loss"} <= set(run)

    with pytest.raises(ConfigError, match="planted has no section `tuning`"):
        needs.settings_for("tune", section, "planted")


# a changed setting, and the steps of the same experiment that must notice
CHANGES = {
    "rounds": (at(*mnist, "rounds"), 7, {"run", "artefact", "claims"}),
    "replicates": (at(*mnist, "replicates"), [1, 2], {"partition", "run", "artefact", "claims"}),
    "methods": (at(*mnist, "methods"), ["fedht", "fediterht"], set()),
    "batch": (at(*mnist, "batch"), 7, {"tune", "run", "artefact", "claims"}),
    "steps": (at(*mnist, "tuning", "steps"), [1], {"tune", "claims"}),
    "seed": (at("fedht", "seed"), 1, {"partition", "tune", "run", "artefact", "claims"}),
    "another experiment": (at(*simulation, "batch"), 7, {"claims"}),
    "another artefact": (at(*artefacts, "fig4", "settings", "rows"), 7, {"claims"}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_reaches_exactly_the_steps_that_depend_on_it(whole, name):
    setter, value, expected = CHANGES[name]
    changed = copy.deepcopy(whole)
    setter(value)(changed)
    jobs = {"partition": "mnist", "tune": "mnist", "run": "mnist", "artefact": "fig6", "claims": None}
    differing = {
        step
        for step, job in jobs.items()
        if needs.settings_for(step, whole["fedht"], job) != needs.settings_for(step, changed["fedht"], job)
    }
    assert differing == expected


def test_only_restricts_artefacts_claims_and_data_sets(whole):
    cut = copy.deepcopy(whole)
    cut["papers"] = ["fedht"]
    cut["fedht"]["only"] = ["fig5", "rates"]
    assert list(needs.artefacts(cut["fedht"])) == ["fig5", "rates"]
    assert Table(cut)["manifest:"].options["folders"] == ["data/raw/rcv1_binary"]
    assert needs.claim_keys(cut["fedht"]) == [
        "partition:rcv1",
        "run:planted/fedht",
        "run:planted/fediterht",
    ]


def test_keys_of_an_artefact_come_in_the_order_of_the_configuration():
    artefact = {
        "kind": "table",
        "runs": {"b": ["y", "x"], "a": ["x"]},
        "tuned": {"a": ["x"]},
        "partitions": ["c"],
    }
    assert needs.artefact_keys(artefact) == [
        "run:b/y",
        "run:b/x",
        "run:a/x",
        "tuned:a/x",
        "partition:c",
        "data:c",
    ]
    assert needs.used_experiments(artefact) == ["b", "a", "c"]
