"""Methods under partial participation: against plain loops, empty rounds, the ledger, and the comparison."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

import replifed as rf
from planned_comparison import PLAIN
from planned_comparison import config as config_of
from replifed.algorithms.base import Method, Round, ServerModel, without_form
from replifed.algorithms.cohort import Cohort
from replifed.algorithms.registry import BUILT_IN, METHODS, method_class
from replifed.engine.simulate import simulate
from replifed.errors import ReplifedError
from replifed.network.participation import Asked, FixedSize, Markov, Participation
from replifed.papers.cross.cohorts import of_all_methods
from replifed.problems.dense import DenseLinearModel
from replifed.problems.losses import LeastSquares
from replifed.randomness import Streams
from replifed.settings import cohorts
from replifed.settings.comparison import comparison, errors

rng = np.random.default_rng(5)
N, M, D, K, RUNS, T = 8, 6, 4, 3, (1, 2, 7), 12
X, Y = rng.normal(size=(1, N, M, D)), rng.normal(size=(1, N, M))
SIZES = np.array([[6, 3, 5, 2, 6, 4, 1, 6]])
PROBLEM = DenseLinearModel(X, Y, LeastSquares(), sizes=SIZES, l2=0.1)  # weights by samples
P = PROBLEM.weights[0]
EQUAL = DenseLinearModel(X, Y, LeastSquares(), sizes=SIZES, weights=np.full((1, N), 1 / N), l2=0.1)
STREAMS = Streams(4, RUNS)
ETA = 0.03
WAYS = {
    "uniform": Asked(3),
    "share": Asked("25%"),
    "by-size": Asked(4, "by-size"),
    "markov": Asked(2, "markov:1.5,4"),
    "markov of all": Asked(None, "markov:1.2,5"),
    "cyclic": Asked(2, "cyclic:3"),
    "scaled": Asked(3, average="scaled"),
    "completed": Asked(None, "markov:1.2,5", "completed"),
}


def gradient(i, w):
    n = SIZES[0, i]
    A, b = X[0, i, :n], Y[0, i, :n]
    return A.T @ (A @ w - b) / n + 0.1 * w


def plain_shares(asked, who, drawn, p):
    """The share of each client and of the old model, by the definitions."""
    if asked.availability == "by-size":
        return {i: drawn[i] for i in who}, 0.0
    if asked.average == "scaled":
        return {i: N / len(who) * p[i] for i in who}, 0.0
    if asked.average == "completed":
        return {i: p[i] for i in who}, 1 - sum(p[i] for i in who)
    return {i: p[i] / sum(p[j] for j in who) for i in who}, 0.0


def attendance(asked, problem, run):
    """Who takes part in each round of a run, and the shares of draws, from the law alone."""
    law = asked.law(problem)
    for t in range(T):
        active, chosen, *weights = law(STREAMS.at(t), N)
        who = np.flatnonzero(active[run if len(active) > 1 else 0])
        drawn = dict(zip(chosen[run].tolist(), weights[0][run].tolist(), strict=True)) if weights else {}
        yield who.tolist(), drawn


@pytest.mark.parametrize("way", WAYS)
def test_fedavg_with_cohorts_is_a_plain_loop(way):
    asked = WAYS[way]
    method = rf.method("fedavg", step=ETA, local_steps=K)
    history = simulate(method, PROBLEM, STREAMS, T, cohort=asked.law(PROBLEM))
    empty = 0
    for run in range(len(RUNS)):
        x, came, nobody = np.zeros(D), 0, 0
        for who, drawn in attendance(asked, PROBLEM, run):
            came, nobody = came + len(who), nobody + (not who)
            if not who:
                continue
            share, rest = plain_shares(asked, who, drawn, P)
            new = rest * x
            for i in who:
                w = x.copy()
                for _ in range(K):
                    w = w - ETA * gradient(i, w)
                new = new + share[i] * w
            x = new
        np.testing.assert_allclose(history.state.x[run], x, atol=1e-12, rtol=0)
        ledger = {name: totals[-1, run] for name, totals in history.ledger.items()}
        assert (ledger["took_part"], ledger["empty_rounds"]) == (came, nobody)
        assert ledger["bits_up"] == ledger["bits_down"] == 32 * D * came
        assert ledger["exchanges"] == T - nobody
        empty += nobody
    assert (empty > 0) == (way in ("markov", "markov of all", "completed"))


@pytest.mark.parametrize("option", ["1", "2"])
@pytest.mark.parametrize("way", ["uniform", "by-size", "markov", "markov of all", "cyclic"])
def test_scaffold_with_cohorts_is_a_plain_loop(way, option):
    asked = WAYS[way]
    method = rf.method("scaffold", step=ETA, solver=rf.Gradient(steps=K), option=option, server_step=0.8)
    history = simulate(method, EQUAL, STREAMS, T, cohort=asked.law(EQUAL))
    for run in range(len(RUNS)):
        x, c, c_i = np.zeros(D), np.zeros(D), np.zeros((N, D))
        for who, _ in attendance(asked, EQUAL, run):
            if not who:
                continue
            models, controls = {}, {}
            for i in who:
                y = x.copy()
                for _ in range(K):
                    y = y - ETA * (gradient(i, y) - c_i[i] + c)
                models[i] = y
                controls[i] = gradient(i, x) if option == "1" else c_i[i] - c + (x - y) / (K * ETA)
            x_new = x + 0.8 * np.mean([models[i] - x for i in who], axis=0)
            c = c + len(who) / N * np.mean([controls[i] - c_i[i] for i in who], axis=0)
            for i in who:
                c_i[i] = controls[i]
            x = x_new
        np.testing.assert_allclose(history.state.x[run], x, atol=1e-12, rtol=0)
        np.testing.assert_allclose(history.state.c[run], c, atol=1e-12, rtol=0)
        np.testing.assert_allclose(c, c_i.mean(axis=0), atol=1e-12, rtol=0)


def nobody_after(round_):
    """Return a law by which clients 1 and 4 come, and from a round on nobody does."""

    def law(streams, n_clients):
        active = np.isin(np.arange(n_clients), [1, 4])[None] & (streams.round_ < round_)
        return Participation(active, np.array([[1, 4]]))

    return law


def made(name):
    return method_class(name).example()


TAKES_COHORTS = [
    name
    for name in BUILT_IN
    if method_class(name).partial_participation and method_class(name).needs[0].__name__ == "Smooth"
]


@pytest.mark.parametrize("name", TAKES_COHORTS)
def test_a_round_to_which_nobody_comes_is_empty(name):
    problem = DenseLinearModel(X, Y, LeastSquares(), l2=0.1)
    with np.errstate(all="raise"):
        two = simulate(made(name), problem, STREAMS, 2, cohort=nobody_after(2))
        five = simulate(made(name), problem, STREAMS, 5, cohort=nobody_after(2))
    for before, after in zip(two.state, five.state, strict=True):
        np.testing.assert_array_equal(before, after)
    for kind, totals in two.ledger.items():
        assert kind == "empty_rounds" or np.array_equal(totals[-1], five.ledger[kind][-1])
    assert (five.ledger["empty_rounds"][-1] == 3).all() and (five.ledger["took_part"][-1] == 4).all()


@pytest.mark.parametrize("name", TAKES_COHORTS)
@pytest.mark.parametrize("law", [Markov(2, 3, 3), Asked(3, "by-size").law(PROBLEM)], ids=["markov", "draws"])
def test_a_run_beside_others_is_the_run_alone(name, law):
    problem = DenseLinearModel(X, Y, LeastSquares(), l2=0.1)
    history = simulate(made(name), problem, STREAMS, 6, cohort=law)
    alone = simulate(made(name), problem, Streams(4, RUNS[1:2]), 6, cohort=law)
    for many, one in zip(history.state, alone.state, strict=True):
        np.testing.assert_allclose(many[1], one[0], atol=1e-12)
    for kind, totals in history.ledger.items():
        np.testing.assert_allclose(totals[:, 1], alone.ledger[kind][:, 0])


def test_a_method_that_averages_all_who_compute_is_stopped():
    class Old(Method):
        def round(self, state, problem, ctx):
            cohort = Cohort(problem, ctx)
            local = problem.local(state.x, clients=cohort.index)
            w = local.start - 0.1 * local.gradient(local.start, None)
            return ServerModel(local.mean(w)), cohort.cost(1, None)

    simulate(Old(), PROBLEM, STREAMS, 2, cohort=FixedSize(3))
    with pytest.raises(ReplifedError, match="fixed size only"):
        simulate(Old(), PROBLEM, STREAMS, 9, cohort=Markov(1, 4, 3))


# -- The library -------------------------------------------------------------------------------------


def test_the_library_takes_the_words_of_the_command():
    method = rf.method("fedavg", step=ETA, local_steps=K)
    ten, share = (rf.run(method, PROBLEM, 5, 2, cohort=cohort) for cohort in (2, "25%"))
    assert ten.equals(share) and (ten["took_part"] == 2 * ten["round"]).all()
    compared = rf.compare({"a": method}, PROBLEM, 5, 2, cohort=3, availability="markov:2,2")
    assert compared.frame["took_part"].max() <= 15
    scheme = rf.run(method, PROBLEM, 5, 2, cohort=3, average="transformed")
    by_hand = rf.run(method, PROBLEM.with_equal_weights(), 5, 2, cohort=3)
    np.testing.assert_allclose(scheme["objective"], by_hand["objective"])
    law = rf.run(method, PROBLEM, 5, 2, cohort=FixedSize(2))
    assert law.equals(ten)


@pytest.mark.parametrize(
    "name, options, says",
    [
        ("fedavg", {"cohort": 0}, "cohort = 0: must be from 1 to 8 clients"),
        ("fedavg", {"cohort": 9}, "cohort = 9: must be from 1 to 8 clients"),
        ("fedavg", {"cohort": FixedSize(2), "availability": "cyclic:2"}, "cohort is a law: leave out"),
        ("fedavg", {"cohort": 2, "average": "plain"}, "average = 'plain'"),
        ("mb_sgd", {"cohort": 2, "average": "scaled"}, "MinibatchSGD does not average with the weights p_i"),
        ("fedlin", {"cohort": 2}, r"full participation only \(all clients in every round: the first"),
    ],
)
def test_the_library_refuses_in_one_line(name, options, says):
    with pytest.raises(ReplifedError, match=says) as refusal:
        rf.run(made(name), EQUAL, 2, **options)
    assert len(str(refusal.value).splitlines()) == 1


# -- The comparison ----------------------------------------------------------------------------------


def test_every_method_says_what_its_paper_and_the_code_do():
    for name in BUILT_IN:
        cls = method_class(name)
        assert cls.cohorts.paper, name
        assert bool(cls.cohorts.code) == cls.partial_participation, name
        assert cls.partial_participation or without_form(cls), name
    page = (Path(__file__).parents[2] / "docs/comparison.md").read_text(encoding="utf-8")
    assert of_all_methods() in page, (
        "write replifed.papers.cross.cohorts.of_all_methods() to docs/comparison.md"
    )


METHODS_ASKED = ["fedavg", "scaffold", "fedlin", "fedac"]
config = partial(config_of, plain=PLAIN | {"methods": METHODS_ASKED})


def test_a_comparison_with_cohorts_leaves_out_who_has_no_form_and_says_so():
    section = comparison(config(cohort="20%", availability="markov:20,5"))
    (name,) = section["experiments"]
    one = section["experiments"][name]
    assert name == "phishing_cohort_20pct_markov_20_5"
    assert one["methods"] == ["fedavg", "scaffold"] and one["cohort"] == "20%"
    told = section["artefacts"]["cohorts"]["settings"]
    assert set(told["left_out"]) == {"fedlin", "fedac"} and "20% of the clients at most" in told["said"]
    everyone = comparison(config(cohort=2, everyone=True))["experiments"]["phishing_cohort_2"]
    assert everyone["methods"] == METHODS_ASKED
    plain = comparison(config())
    assert (
        plain["experiments"]["phishing"]["methods"] == METHODS_ASKED and "cohorts" not in plain["artefacts"]
    )


@pytest.mark.parametrize(
    "requested, key, says",
    [
        ({"cohort": 11}, "cohort", "phishing: 11: must be from 1 to 10 clients"),
        ({"cohort": 11, "clients": 12, "partition": "iid"}, None, ""),
        ({"availability": "cyclic:11"}, "availability", "must be between 1 and 10 groups"),
        ({"everyone": True}, "everyone", "give a cohort"),
        ({"cohort": 2, "against": ["fedlin"]}, "cohort", "none has a form for cohorts"),
        ({"average": "scaled"}, "average", "give a cohort"),
    ],
)
def test_settings_of_cohorts_are_checked_before_any_job(requested, key, says):
    found = list(errors(config(**requested)))
    assert [path for path, _ in found] == ([("comparison", key)] if key else [])
    assert all(says in text for _, text in found)


def test_custom_methods_are_asked_too(tmp_path, monkeypatch):
    monkeypatch.setattr("replifed.algorithms.registry.METHODS", dict(METHODS))
    file = tmp_path / "mine.py"
    file.write_text(
        "from dataclasses import dataclass\n"
        "from replifed.algorithms.base import Method\n"
        "@dataclass(frozen=True, kw_only=True)\n"
        "class Mine(Method):\n"
        "    partial_participation = False\n"
        "    def round(self, state, problem, ctx):\n"
        "        return state, None\n",
        encoding="utf-8",
    )
    asked = {**config(cohort=2), "methods": {"mine": f"{file}:Mine"}}
    assert cohorts.reasons({"cohort": 2}, asked, ["mine", "fedavg"]) == {
        "mine": "it is defined for all clients"
    }


def test_minibatches_without_repeats_are_uniform_subsets():
    sizes, size, steps = SIZES[0], 4, 6000
    cohort = Cohort(PROBLEM, Round(0, None, None, STREAMS.at(0)))
    drawn = np.stack(cohort.minibatches(steps, size, replace=False), axis=1)
    assert drawn.shape == (len(RUNS), steps, N, size)
    for i, n in enumerate(sizes):
        counts = np.stack([(drawn[:, :, i] == j).sum(axis=-1) for j in range(n)], axis=-1)
        assert (
            counts.sum(axis=-1).min() == size and counts.min() >= size // n and counts.max() <= -(-size // n)
        )
        # Each sample, and each pair, as often as any other: within five deviations.
        often = counts > size // n
        p = (size % n) / n
        assert often.mean(axis=(0, 1)) == pytest.approx(p, abs=5 * np.sqrt(p / often[..., 0].size))
        pairs = np.einsum("rsj,rsk->jk", often, often, dtype=float) / often[..., 0].size
        both = p * (size % n - 1) / max(n - 1, 1)
        assert pairs[~np.eye(n, dtype=bool)] == pytest.approx(both, abs=5 * np.sqrt(p / often[..., 0].size))
