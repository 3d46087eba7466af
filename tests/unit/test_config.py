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


def at(path):
    """Return a function that sets the value at a path of keys."""
    *above, key = path.split(".")

    def setter(value):
        def change(tree):
            for one in above:
                tree = tree[one]
            tree[key] = value

        return change

    return setter


simulation, mnist = "fedht.experiments.simulation1", "fedht.experiments.mnist"

# What is changed, to what, and what the one line must say beside the key and the value.
FAULTS = [
    ("scal", "small", "did you mean 'scale'?"),
    ("foo", 1, "foo: unknown key with value 1", "known: comparison, cross, data"),
    ("scale", "smal", "one of paper, small, tiny", "did you mean 'small'?"),
    ("papers", ["fedth"], 'papers[0]: "fedth"', "did you mean 'fedht'?"),
    ("data.mirror", 5, "a text or null"),
    ("paths.data", "", "a text"),
    ("fedht.seed", -1, "an integer of at least 0"),
    ("fedht.only", ["fig11"], "'fig11'", "did you mean 'fig1'?"),
    ("fedmm.only", ["steps"], "fedmm/steps is no longer made: "),
    (f"{simulation}.rounds", True, "an integer"),
    (f"{simulation}.record_every", 0, "an integer of at least 1"),
    (f"{simulation}.bach", 50, "value 50", "did you mean 'batch'?"),
    (f"{simulation}.batch", "fifty", "an integer of at least 1"),
    (f"{simulation}.batch", 101, "at most 100"),
    (f"{simulation}.tuning.steps", ["1e-3"], "steps[0]: ", "1.0e-3"),
    (f"{simulation}.tuning.steps", [1, 0], "steps[1]: 0", "above 0"),
    (f"{simulation}.tuning.common_fraction", 0, "above 0"),
    (f"{simulation}.tuning.replicates", [101, 2], "2 would be both"),
    (f"{simulation}.full_batch_replicates", [101], "tuning.replicates: ", "101 would be both"),
    (f"{simulation}.levels", [[0.1]], "levels[0]: [0.1]", "at least 2 long"),
    (f"{simulation}.local_steps", [3, 3], "without repeats"),
    (f"{simulation}.replicates", [], "at least 1 long"),
    (f"{simulation}.problem", "simulations", "did you mean 'simulation'?"),
    (f"{simulation}.planted", 1001, "at most 1000"),
    (f"{simulation}.split", {"fediterth": 2}, "unknown method 'fediterth'", "did you mean 'fediterht'?"),
    (f"{simulation}.split", {"fedht": 0}, "split.fedht: 0", "at least 1"),
    ("fedplt.experiments.penalty.split", {"fedplt": 2}, ""),
    (f"{mnist}.features", 5, "unknown key", "batch, classes, dataset"),
    (f"{mnist}.dataset", "mnits", "did you mean 'mnist'?"),
    (f"{mnist}.sparsity", 7841, "at most 7840"),
    (f"{mnist}.partition.clusters", "label", "did you mean 'labels'?"),
    (f"{mnist}.partition.shards_per_client", 3, "divisor of the 200"),
    # A misspelt method is one error, however many artefacts show it.
    (f"{mnist}.methods", ["fedht", "fediterth"], "unknown method 'fediterth'; did you mean 'fediterht'?"),
    ("fedplt.experiments.comparison.rho_grid", [0.1, 1, 5, 5], "at most 3 long"),
    ("fedplt.experiments.comparison.cohort", 11, "at most 10"),
    ("fedplt.experiments.participation.active", [5, 11], "active: 11 ", "at most 10"),
    ("fedplt.experiments.noise.tail", 151, "at most 150"),
    ("fedmm.experiments.transport_2.searched.fedmm_ot.uvp", [1.0], "expected one for each step"),
    (
        "fedmm.experiments.movielens.betas",
        [1],
        "fedmm.experiments.movielens: ",
        "one of the keys betas, tuning",
    ),
    ("qshed.experiments.fmnist.renewals", "fibonaci", "one of fibonacci, ", " or an integer of at least 1"),
    ("qshed.experiments.fmnist.line_search.c", 1, "a number above 0 and below 1"),
    (
        "cross.artefacts.fig4.runs.planted",
        ["fedht", "fediterht", "distributed_iht"],
        "cross.experiments.planted.methods: ",
        "fedgradmp is run, but no figure",
    ),
    ("fedht.artefacts.fig1.kind", "figur", "did you mean 'figure'?"),
    ("fedht.artefacts.new", {"kind": "table"}, "runs, tuned, partitions"),
    ("fedht.artefacts.fig 1", {"kind": "table", "partitions": ["mnist"]}, "small letters"),
    ("fedht.artefacts.fig1.runs", {"simulaton1": ["fedht"]}, "did you mean 'simulation1'?"),
    ("fedht.artefacts.rates.runs", {"planted": ["fedavg"]}, "'fedavg'", "known: fedht, fediterht"),
    ("fedht.artefacts.tuning.tuned", {"planted": ["fedht"]}, '"planted"', "simulation1"),
    ("fedht.artefacts.table2.partitions", ["simulation1"], '"simulation1"', "mnist"),
]


@pytest.mark.parametrize(("key", "value", "words"), [(key, value, words) for key, value, *words in FAULTS])
def test_a_fault_is_one_line_that_names_key_value_and_way_out(whole, key, value, words):
    (line,) = faults(whole, at(key)(value))
    place = next((word for word in words if word.endswith(": ")), key)
    for word in (place, *words):
        assert word in line


def test_a_dotted_key_is_told_how_to_be_written(whole):
    assert "--config 'fedht={seed: ...}'" in faults(whole, lambda tree: tree.update({"fedht.seed": 3}))[0]


SMALL = [
    (
        "fedht: {experiments: {mnit: {rounds: 20}}}",
        "fedht.experiments: unknown experiment 'mnit'; did you mean",
    ),
    ("fedht: {experiments: {mine: {problem: simulatoin}}}", "fedht.experiments.mine.problem: "),
    ("datasets: {mine: {path: absent.csv, label: y}}", "datasets.mine.path: absent.csv does not exist; give"),
    ("papers: [fedth]", "papers: unknown paper 'fedth'; did you mean 'fedht'?"),
]


@pytest.mark.parametrize(("text", "says"), SMALL)
def test_a_name_in_a_file_that_is_not_known_is_named_with_the_file(tmp_path, text, says):
    (tmp_path / "mine.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        config.load([tmp_path / "mine.yaml"], root=ROOT)
    assert str(caught.value).startswith(says) and "\n" not in str(caught.value)


def test_overrides_merge_mappings_and_the_command_line_is_laid_over_all_files(tmp_path):
    (tmp_path / "mine.yaml").write_text("fedht: {experiments: {mnist: {local_steps: [7], rounds: 20.0}}}\n")
    loaded = config.load([tmp_path / "mine.yaml"], ROOT)["fedht"]["experiments"]["mnist"]
    assert (loaded["local_steps"], loaded["dataset"]) == ([7], "mnist")
    assert loaded["rounds"] == 20 and isinstance(loaded["rounds"], int)
    given = {"paths": {"figures": "f2"}, "fedht": {"experiments": {"mnist": {"local_steps": [9]}}}}
    loaded = config.load([tmp_path / "mine.yaml"], ROOT, given)
    assert loaded["paths"]["figures"] == "f2"
    assert loaded["fedht"]["experiments"]["mnist"]["local_steps"] == [9]
    with pytest.raises(ConfigError, match=r"correct what follows --config$"):
        config.load([], ROOT, {"fedht": {"seed": "x"}})


@pytest.mark.parametrize("scale", ["small", "tiny"])
def test_the_other_scales_write_elsewhere_and_small_cuts_no_method_panel_data_set_or_artefact(whole, scale):
    cut = config.load([ROOT / f"config/{scale}.yaml"], root=ROOT)
    elsewhere = {"results": f"results/{scale}", "figures": f"figures/{scale}"}
    assert (cut["scale"], cut["paths"]) == (scale, {"data": "data", **elsewhere, "logs": "logs"})
    if scale == "tiny":
        return

    def drawn(section):
        return {name: {**one, "settings": None} for name, one in needs.artefacts(section).items()}

    assert drawn(cut["fedht"]) == drawn(whole["fedht"])
    may_change = {"local_steps", "rounds", "baseline_rounds", "full_batch_rounds", "full_batch_replicates"}
    may_change |= {"record_every", "replicates", "tuning"}
    for name, experiment in whole["fedht"]["experiments"].items():
        other = cut["fedht"]["experiments"][name]
        own = may_change | ({"clients"} if name == "simulation2" else set())
        kept = [{key: value for key, value in one.items() if key not in own} for one in (experiment, other)]
        assert kept[0] == kept[1]
        for key in ("local_steps", "replicates"):
            assert set(other[key]) <= set(experiment[key])


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
    "path", ["papers", "paths", "fedht", "fedht.experiments", simulation, "fedht.artefacts.fig1"]
)
def test_a_wrong_kind_of_value_anywhere_is_a_fault_and_no_crash(whole, path, broken):
    assert faults(whole, at(path)(broken))


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


def test_only_restricts_artefacts_claims_and_data_sets(whole):
    cut = copy.deepcopy(whole)
    cut["papers"] = ["fedht"]
    cut["fedht"]["only"] = ["fig5", "rates"]
    assert list(needs.artefacts(cut["fedht"])) == ["fig5", "rates"]
    assert Table(cut)["manifest:"].options["folders"] == ["data/raw/rcv1_binary"]
    assert needs.claim_keys(cut["fedht"]) == ["partition:rcv1", "run:planted/fedht", "run:planted/fediterht"]
