"""What people keep as logs: each form and name, each way to say what is not clear, and damage to them."""

import gzip
import io
import json
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from replifed.cli import main
from replifed.cli import new as cli_new
from replifed.errors import DataError, ReplifedError
from replifed.logs import histories
from replifed.logs.histories import combine_logs, settings_of
from replifed.logs.names import guess
from replifed.logs.reading import read
from replifed.logs.values import holding
from replifed.problems import from_clients

METHODS = {"fed_avg": 0.9, "scaffold": 0.8}
ROUNDS, SEEDS = 9, 5


def curve(rate, seed=0):
    return [rate**t * (1 + 0.01 * seed) for t in range(ROUNDS)]


def frame(method, seed):
    return pd.DataFrame({"round": range(ROUNDS), "loss": curve(METHODS[method], seed)})


def arrays(**named):
    stream = io.BytesIO()
    np.savez(stream, **named)
    return stream.getvalue()


def array(value):
    stream = io.BytesIO()
    np.save(stream, value)
    return stream.getvalue()


def parquet(table):
    stream = io.BytesIO()
    table.to_parquet(stream)
    return stream.getvalue()


def history(table):
    pairs = table[["round", "loss"]].to_numpy().tolist()
    return json.dumps({"losses_distributed": [], "metrics_centralized": {"loss": pairs}}, indent=1)


# Bytes of the table of a run, and the ending of its file.
FORMS = {
    "csv": lambda f: (f.to_csv(index=False), "csv"),
    "utf-16": lambda f: (f.to_csv(index=False).encode("utf-16"), "csv"),
    "latin-1": lambda f: (f"# modèle\n{f.to_csv(index=False)}".encode("latin-1"), "csv"),
    "spaces": lambda f: (f.to_string(index=False, float_format=repr), "txt"),
    "tabs": lambda f: (f.to_csv(index=False, sep="\t"), "tsv"),
    "comment": lambda f: ("# " + f.to_csv(index=False, sep=" "), "dat"),
    "no header": lambda f: (f.to_csv(index=False, header=False), "csv"),
    "values": lambda f: (f[["loss"]].to_csv(index=False, header=False), "txt"),
    "row": lambda f: (f.set_index("round").T.to_csv(index=False), "csv"),
    "percent": lambda f: (f.assign(loss=[f"{100 * v!r}%" for v in f["loss"]]).to_csv(index=False), "csv"),
    "tensor": lambda f: (
        f.assign(loss=[f"tensor({v!r}, device='x')" for v in f["loss"]]).to_csv(index=False),
        "csv",
    ),
    "numpy": lambda f: (f.assign(loss=[f"np.float64({v!r})" for v in f["loss"]]).to_csv(index=False), "csv"),
    "gz": lambda f: (gzip.compress(f.to_csv(index=False).encode()), "csv.gz"),
    "lines": lambda f: (f.to_json(orient="records", lines=True, double_precision=15), "jsonl"),
    "lists": lambda f: (json.dumps(f.to_dict("list")), "json"),
    "columns": lambda f: (f.to_json(double_precision=15), "json"),
    "by round": lambda f: (f.set_index("round").to_json(orient="index", double_precision=15), "json"),
    "pairs": lambda f: (json.dumps(f.to_numpy().tolist()), "json"),
    "history": lambda f: (history(f), "json"),
    "npz": lambda f: (arrays(round=f["round"], loss=f["loss"], lr=0.1), "npz"),
    "npz of pairs": lambda f: (arrays(loss=f.to_numpy()), "npz"),
    "npy": lambda f: (array(f.to_numpy()), "npy"),
    "npy of values": lambda f: (array(f["loss"].to_numpy()), "npy"),
    "parquet": lambda f: (parquet(f), "parquet"),
}  # fmt: skip


def put(name, content):
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())


def new(*more, lower="loss"):
    return main(
        ["new", "paper", "demo", "--from-logs", "logs", *(["--lower", lower] if lower else []), *more]
    )


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("form", FORMS)
def test_each_form_holds_the_same_runs(form, capsys):
    for method in METHODS:
        for seed in range(SEEDS):
            content, end = FORMS[form](frame(method, seed))
            put(f"logs/{method}_seed_{seed}.{end}", content)
    assert new() == 0
    said = capsys.readouterr().out
    for method in METHODS:
        assert f"method {method} ({method}): {SEEDS} seeds, {ROUNDS} rounds" in said
    (settings,) = yaml.safe_load(Path("demo/settings.yaml").read_text())["demo"]["experiments"].values()
    runs = histories.read(Path("demo"), histories.checked(settings)).history("scaffold")
    wanted = [value for seed in range(SEEDS) for value in curve(0.8, seed)]
    scale = 100 if form == "percent" else 1
    np.testing.assert_allclose(runs["loss"] / scale, wanted, rtol=1e-6)


# --- Several runs in a file ---


def wide(columns):
    return pd.DataFrame({"round": range(ROUNDS), **columns}).to_csv(index=False)


TWO = {name: curve(rate) for name, rate in METHODS.items()}
MANY = {f"{name}_seed{seed}": curve(METHODS[name], seed) for name in METHODS for seed in range(SEEDS)}
WANDB = {
    f"{name} - {metric}{end}": values
    for name, values in MANY.items()
    for metric in ("loss", "lr")
    for end in ("", "__MIN", "__MAX")
}
TOGETHER = {
    "columns": ("a.csv", wide(TWO), (), 1),
    "columns of seeds": ("a.csv", wide(MANY), (), SEEDS),
    "wandb": ("a.csv", wide(WANDB), (), SEEDS),
    "named rows": ("a.csv", "method,0,5,10\nfed_avg,1,.5,.2\nscaffold,1,.4,.1\n", (), 1),
    "rows": ("a.csv", ",0,5,10\nfed_avg,1,.5,.2\nscaffold,1,.4,.1\n", ("--method", "row"), 1),
    "arrays": ("a.npz", arrays(**TWO), (), 1),
    "objects": ("a.json", json.dumps({name: {"loss": values} for name, values in TWO.items()}), (), 1),
    "tall": (
        "a.csv",
        pd.concat([frame(m, s).assign(algo=m, rep=s) for m in METHODS for s in range(SEEDS)]).to_csv(),
        (),
        SEEDS,
    ),
}


@pytest.mark.parametrize("kind", TOGETHER)
def test_a_file_of_several_runs_is_taken_apart(kind, capsys):
    name, content, more, seeds = TOGETHER[kind]
    put(f"logs/{name}", content)
    assert new(*more) == 0
    said = capsys.readouterr().out
    for method in METHODS:
        assert f"method {method} ({method}): {seeds} seed" in said
    assert main(["judge", "demo"]) == 0


def test_rows_of_arrays_are_runs_of_what_somebody_says(capsys):
    for method, rate in METHODS.items():
        columns = np.array([curve(rate, seed) for seed in range(3)]).T
        put(f"logs/{method}.npz", arrays(t=np.arange(ROUNDS), loss=columns))
    assert new() == 2
    assert "--seed row if each is a seed, --method row if each is a method" in capsys.readouterr().err
    assert new("--seed", "row") == 0
    assert "method fed_avg (fed_avg): 3 seeds, 9 rounds" in capsys.readouterr().out


# --- Names ---


@pytest.mark.parametrize(
    ("names", "pattern"),
    [
        ("{m}_seed_{s}", "{method}_seed_{seed}"),
        ("{m}_seed_{s}_Dec3", "{method}_seed_{seed}_Dec3"),
        ("{m}_run{s}_Dec1{s}", "{method}_run{seed}*"),
        ("{m}-rep={s}", "{method}-rep={seed}"),
        ("{m}_{s}", "{method}_{seed}"),
        ("{m}_mu0.1_{s}", "{method}_{seed}"),
        ("{s}/{m}", "{seed}/{method}"),
        ("{m}/{s}/metrics", "{method}/{seed}/metrics"),
        ("{m}/ex{s}", "{method}/ex{seed}"),
        ("mnist/{m}/seed_{s}", "mnist/{method}/seed_{seed}"),
        ("fold{s}_{m}", "fold{seed}_{method}"),
    ],
)
def test_names_say_method_and_seed(names, pattern):
    listed = [names.format(m=m, s=s) for m in METHODS for s in range(SEEDS)]
    assert guess(listed, method=True, seed=True)[0] == pattern


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (
            ["a_Dec3", "a_Dec4"],
            r"a_Dec3 and a_Dec4 differ by digits or a date alone.*'\{method\}_Dec\{seed\}",
        ),
        (["a_mu0.1", "a_mu1.0"], "differ by digits or a date alone"),
        (["a1", "a2", "b1"], "rename them"),
        ([f"{d}/{m}/{s}" for d in "xy" for m in "ab" for s in "12"], "differ in several parts"),
        ([f"a_run{r}_fold{f}" for r in range(2) for f in range(2)], "differ by digits or a date alone"),
    ],
)
def test_names_that_are_not_clear_are_asked_about(names, text):
    with pytest.raises(DataError, match=text):
        guess(names, method=True, seed=True, end=".csv")


@pytest.mark.parametrize(
    "name", ["global_round", "iters", "epochs", "step", "Communication Rounds", "Epoch #"]
)
def test_rounds_have_many_names(name, capsys):
    put("logs/a.csv", frame("scaffold", 0).rename(columns={"round": name}).to_csv(index=False))
    assert new() == 0 and f"round: column {name}" in capsys.readouterr().out


# --- What somebody says ---


def test_a_failure_leaves_settings_that_the_next_call_reads(capsys):
    for seed in range(2):
        own = frame("scaffold", seed).rename(columns={"round": "tick"})
        put(f"logs/a_seed{seed}.csv", own.to_csv(index=False))
    assert new() == 2
    said = capsys.readouterr().err
    assert "no column of rounds: name it" in said and said.count("\n") == 1
    draft = Path("demo/settings.yaml")
    assert list(Path("demo").iterdir()) == [draft] and "# Columns: tick, loss" in draft.read_text()
    draft.write_text(draft.read_text().replace("columns: {}", "colums: {round: tick}"))
    assert new() == 2 and "demo/settings.yaml: colums: unknown key" in capsys.readouterr().err
    draft.write_text(draft.read_text().replace("colums", "columns"))
    assert new(lower=None) == 0 and main(["judge", "demo"]) == 0
    assert new() == 2 and "demo exists already" in capsys.readouterr().err


def test_names_in_braces_are_columns_and_every_where_counts(capsys):
    for method in METHODS:
        for tau in ("1e-1", "1"):
            for data in ("a9a", "w8a"):
                put(f"logs/{method}_{data}_tau{tau}.csv", frame(method, 0).to_csv(index=False))
    said = "--files", "{solver}_{data}_tau{tau}.csv", "--where"
    for number, more in enumerate((["tau=1e-1", "data=a9a"], ["tau=.1", "--where", "data=a9a"])):
        assert new(*said, *more, "--until", "5", "--to", str(number)) == 0
        told, text = capsys.readouterr().out, Path(f"{number}/demo/settings.yaml").read_text()
        assert "method: column solver" in told and "method scaffold (scaffold): 1 seed, 6 rounds" in told
        assert 'where: {"tau": 0.1, "data": "a9a"}' in text and "until: 5" in text
    assert main(["judge", "1/demo"]) == 0
    assert new(*said, "tau=0.2") == 2
    assert "no line has tau = 0.2; tau is 1, 0.1" in capsys.readouterr().err
    assert new(*said, "tau=1", "--where", "tau=2", "--to", "3") == 2
    assert "--where tau=2: tau is to be 1, too; give one value" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("values", "wanted", "found"),
    [
        (["0.10", "1e-1", ".1", "a"], 0.1, [0, 1, 2]),
        ([0.1, 1.0], "1e-1", [0]),
        ([True, False], "true", [0]),
        ([1, 0], True, [0]),
        ([f"{10**24 + 1}", f"{10**24 + 2}"], f"{10**24 + 1}", [0]),
        ([np.nan, 1.0], "nan", []),
        (["None", None], "None", [0]),
        (pd.Categorical([1, 2]), "1", [0]),
    ],
)
def test_a_line_is_chosen_by_its_value(values, wanted, found):
    assert np.flatnonzero(holding(pd.Series(values), wanted)).tolist() == found


def test_other_files_are_named_and_none_is_run(capsys):
    class Bad:
        def __reduce__(self):
            return os.mkdir, ("ran",)

    put("logs/a.csv", frame("scaffold", 0).to_csv(index=False))
    for name in ("b.pkl", "c.pt", "d.mat", "e.csv"):
        put(f"logs/{name}", pickle.dumps(Bad()))
    put("logs/f.npy", array(np.array([Bad()], dtype=object)))
    assert new() == 0
    said = capsys.readouterr().out
    assert "left out: 5 files (b.pkl, c.pt, d.mat, ...); logs/b.pkl is a pickle, which is not opened" in said
    for name, kind in (("b.pkl", "pickle"), ("c.pt", "file of torch"), ("d.mat", "file of MATLAB")):
        with pytest.raises(DataError, match=f"is a {kind}, .*: import .*{name}.*to_csv"):
            read(Path("logs", name))
    assert not Path("ran").exists()


# --- What counts ---


def test_lines_of_clients_become_their_weighted_mean():
    rows = [(s, t, c, 10 * c, c + t + s) for s in range(3) for t in range(4) for c in (1, 2, 3)]
    table = pd.DataFrame(rows, columns=["seed", "round", "client", "samples", "loss"])

    def read_as(table=table, columns=("client", "weight"), **more):
        columns = {name: {"weight": "samples"}.get(name, name) for name in columns}
        return combine_logs([table], settings_of({"loss": "lower"}, columns=columns, **more))

    mean = sum(10 * c * c for c in (1, 2, 3)) / 60
    np.testing.assert_allclose(read_as().frame.groupby("round")["loss"].first(), mean + np.arange(4))
    assert read_as().remarks[0] == "numbers are means over clients (client), weighted by samples"
    with pytest.raises(DataError, match=r"each line is a client \(client\), and nothing says how much it"):
        read_as(columns=("client",))
    with pytest.raises(DataError, match="seconds is counted by client"):
        read_as(table.assign(time=1.0), axes={"seconds": "time"})
    table.loc[4, "loss"] = np.nan
    assert read_as().frame["loss"].isna().sum() == 3  # that round, of all seeds


def test_categories_long_ids_and_numbers_as_labels_are_names(capsys):
    table = pd.concat(
        frame(m, s).assign(method=label, seed=f"{10**24 + s}")
        for m, label in zip(METHODS, (2020, 2021), strict=True)
        for s in range(SEEDS)
    )
    Path("logs").mkdir()
    table.astype({"method": "category"}).to_parquet("logs/a.parquet")
    assert new() == 0
    assert "method method_2020 (2020): 5 seeds" in capsys.readouterr().out
    assert main(["judge", "demo"]) == 0


def test_a_renamed_metric_names_the_file_that_draws_it(capsys):
    put("logs/a.csv", frame("scaffold", 0).to_csv(index=False))
    assert new() == 0
    for name in ("settings.yaml", "claims.py"):
        file = Path("demo", name)
        file.write_text(file.read_text().replace("loss: {", "cost: {").replace('"loss")', '"cost")'))
    capsys.readouterr()
    assert main(["judge", "demo"]) == 2
    assert "demo/figures.py: the logs have no ['loss']; metrics in" in capsys.readouterr().err


def test_an_init_that_is_broken_off_can_be_made_again(monkeypatch):
    copytree = cli_new.shutil.copytree
    with monkeypatch.context() as patch:
        patch.setattr(cli_new.shutil, "copytree", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            main(["init", "work"])
    assert cli_new.shutil.copytree is copytree and not any(Path("work").iterdir())
    assert main(["init", "work"]) == 0 and Path("work/workflow/Snakefile").is_file()


def test_labels_of_a_softmax_are_numbered_as_in_files():
    X, y = np.eye(4), np.array([1, 2, 3, 1])
    with pytest.warns(UserWarning, match="targets 1, 2, 3 are numbered from 0 in their order: 3 classes"):
        numbered = from_clients([(X, y)] * 2, loss="softmax")
    wanted = from_clients([(X, y - 1)] * 2, loss="softmax")
    assert numbered.loss_function == wanted.loss_function
    np.testing.assert_array_equal(numbered.y, wanted.y)
    with pytest.raises(ReplifedError, match="whole numbers from 0 to 2"):
        from_clients([(X, y)], loss="softmax", classes=3)


# --- Damage ---

HEADER = "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"


def bomb():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        head = HEADER.ljust(117) + "\n"
        archive.writestr("loss.npy", b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode())
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("a.npz", bomb, "the 1,000,000,000,000 values of loss.npy take .* above the limit of 2 GiB"),
        ("a.csv.gz", lambda: gzip.compress(bytes(1 << 27), 1), "unpacks to .* above the limit of 64 MiB"),
        ("a.json", lambda: b"[" * 10**5, "nested too deep"),
        (
            "a.jsonl",
            lambda: b'{"a": 1}\n{"a": ' + b"[" * 10**5,
            "line 2: no JSON of a log: it is nested too deep",
        ),
        ("a.json", lambda: b'{"a": 1' + b"0" * 400 + b"}", ""),
        ("a.json", lambda: b"  \n\n", "a.json is empty"),
        ("a.csv", lambda: b"round,loss\n" + b"\n" * (1 << 24), "judging its 16,777,217 lines takes 4 GiB"),
        ("a.json", lambda: b"\xef\xbb\xbf\n\n", "a.json is no log"),
    ],
)
def test_bombs_are_refused_in_one_line(name, content, text, capsys):
    put(f"logs/{name}", content())
    if text:
        with pytest.raises(DataError, match=text):
            read(Path("logs", name))
    assert new() == 2 and capsys.readouterr().err.count("\n") == 1
