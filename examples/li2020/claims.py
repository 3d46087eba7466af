"""What is measured for each claim; `claims.yaml` says in words what is claimed."""

from functools import partial
from itertools import pairwise, product
from pathlib import Path

import yaml

from replifed.claims.axes import Axes, Axis, Option
from replifed.claims.curves import at, curves, last, level
from replifed.claims.quantities import formula, run
from replifed.claims.statements import Statements

from . import measures as of
from .figures import NAMES, published

TEXTS = yaml.safe_load(Path(__file__).with_name("claims.yaml").read_text(encoding="utf-8"))
AXES = Axes(
    *(
        Axis(name, one["question"], *(Option(**option) for option in one["options"]))
        for name, one in TEXTS["axes"].items()
    ),
    inferred={"decay": "stored", "training": "code", "level": "matched"},
    fitted_on=["section4.values", "fig1a.points"],
)
CLAIM = Statements("li2020", AXES)
FIXED, DECAYING, FALLING = (run(name, "fedavg") for name in ("fixed", "decaying", "falling"))
RUN, MIXED, TEXT = (run(name, "fedavg") for name in ("published_run", "e_balanced", "e_balanced_text"))
SYNTHETIC, READINGS, ALL_E = ("synthetic00", "synthetic11"), ("text", "code"), (1, 5, 10, 50, 100)
THEIRS = published("fig1a").query("dataset == 'mnist_balanced' and local_steps <= 1000")
THEIRS = dict(zip(THEIRS["local_steps"], THEIRS["rounds"], strict=True))


def distances(history, E):
    return curves(history, value="distance", local_steps=E)


def end(experiment, reading="text", scheme="I", K=10, E=100, rounds=None):
    """Mean cross-entropy of the last tenth of the rounds, or that after some rounds, a number a seed."""
    where = {"reading": reading, "scheme": scheme, "cohort": K, "local_steps": E}
    curve = curves(run(experiment, "fedavg"), **where)
    return level(curve) if rounds is None else at(curve, rounds)


def both(measured, *more):
    """Yield a claim for each synthetic data set and reading, and whatever else it is about."""
    for data, r, *others in product(SYNTHETIC, READINGS, *more):
        suffix, name = ".".join([data, *others]).replace(" .", "_"), " with ".join([NAMES[data], *others])
        yield suffix, name, {"training": r}, measured(data, r, *others)


def against(data, r, other, rounds=None):
    one, best = (end(f"schemes_{data}", r, scheme, rounds=rounds) for scheme in (other, "I"))
    return one / best


def of_k(data, r):
    return end(f"k_{data}", r, K=10, E=50) / end(f"k_{data}", r, K=100, E=50)


def u_shaped(data, r):
    largest = {"synthetic00": 1000, "synthetic11": 500}[data]
    few, middle, many = (of.rounds(run(f"e_{data}", "fedavg"), data, E, r) for E in (50, 200, largest))
    return (middle < few) & (middle < many)


def unstable(data, r):
    rises = [of.rise(run(f"schemes_{data}", "fedavg"), r, scheme) for scheme in ("II", "transformed")]
    return (rises[0] >= 0.5) & (rises[1] < 0.5)


def falls(history, several):
    return of.cases(*(of.falls(distances(history, E)) for E in several))


def theorems(measured, experiment, *schemes):
    history = run(experiment, "fedavg")
    for scheme in schemes:
        name = "all devices" if scheme == "full" else f"scheme {scheme}"
        yield scheme.lower(), name, {}, measured(history, scheme)


def by_reading(measured):
    return [("", "", {"training": r}, measured(r)) for r in READINGS]


def single(measured, **options):
    return [("", "", options, measured)]


def points():
    """Yield Figure 1a's points, with the rounds of the E beside them as rivals."""
    for (reading, history), (E, theirs) in product({"mixed": MIXED, "text": TEXT}.items(), THEIRS.items()):
        rival = min((THEIRS[e] for e in THEIRS if e != E), key=lambda one: abs(one - theirs))
        more = {"published": str(theirs), "rival": float(rival)}
        options = {"training": reading, "level": "matched"}
        yield str(E), str(E), options, of.rounds(history, "balanced", E, reading), more


def losses():
    for reading, (r, loss) in product(READINGS, {50: "0.654", 100: "0.584", 200: "0.538"}.items()):
        yield str(r), str(r), {"training": reading}, at(curves(RUN, reading=reading), r), {"published": loss}


def no_rise(history, r):
    several = [of.rounds(history, "balanced", E, r) for E in THEIRS]
    return of.cases(*(second <= first for first, second in pairwise(several)))


ENDS = [last(distances(FIXED, E)) for E in ALL_E]
I, II, ORIGINAL, TRANSFORMED = (  # noqa: E741
    end("schemes_balanced", scheme=s) for s in ("I", "II", "original", "transformed")
)
MATCHED, PLAIN = {"level": "matched"}, {"training": "text"}
# By claim: what its id and its statement name, its options, what is measured, and what else it needs.
MEASURED = {
    "bounds.below": theorems(of.is_bounded, "theorem1", "full"),
    "bounds.rate": theorems(of.is_of_rate, "theorem1", "full"),
    "fig1d.slows": by_reading(lambda r: end("schemes_synthetic11", r) - end("schemes_synthetic00", r)),
    "fig1b.k": both(of_k),
    "bounds.schemes.below": theorems(of.is_bounded, "theorems23", "I", "II"),
    "bounds.schemes.rate": theorems(of.is_of_rate, "theorems23", "I", "II"),
    "fig1d.best": both(against, ("transformed", "II", "original")),
    "fig1a.u": both(u_shaped),
    "theorem4.away": single(of.cases(ENDS[0] < 1e-6, *(one > 1e-2 for one in ENDS[1:]))),
    "theorem4.law": single(formula(of.is_law)),
    "theorem4.decay": [
        ("", "", {"decay": "falling"}, falls(FALLING, (5, 10))),
        ("", "", {"decay": "stored"}, falls(DECAYING, ALL_E[1:])),
    ],
    "fig1d.crucial": both(against, ("II", "original")),
    "bounds.means": single(formula(of.are_means)),
    "bounds.variance": single(formula(of.are_variances)),
    "theorem4.once": single(formula(of.is_far)),
    "theorem4.values": [
        ("fix", "fixed", {}, of.is_stored("fix", FIXED)),
        ("decay", "decaying", {"decay": "stored"}, of.is_stored("decay", DECAYING)),
    ],
    "theorem4.rise": single(of.cases(*(first < second for first, second in pairwise(ENDS)))),
    "theorem4.one": single(of.is_descent(FIXED)),
    "run.loss": losses(),
    "run.nearest": single(of.is_code_nearest(RUN)),
    "run.devices": single(formula(of.are_devices)),
    "fig1a.balanced": points(),
    "fig1a.falls": [
        ("", "", {"training": r}, no_rise(one, r)) for r, one in {"mixed": MIXED, "text": TEXT}.items()
    ],
    "fig1a.minimum": by_reading(
        lambda r: (
            of.best_E(run("e_synthetic00", "fedavg"), "synthetic00", r)
            - of.best_E(run("e_synthetic11", "fedavg"), "synthetic11", r)
        )
    ),
    "fig1b.slight": both(of_k),
    "fig1c.near": single(II / I, **PLAIN),
    "fig1c.original": [("i", "I", PLAIN, ORIGINAL / I), ("ii", "II", PLAIN, ORIGINAL / II)],
    "fig1c.slightly": single(II / I, **PLAIN),
    "fig1c.same": single(abs(TRANSFORMED - II) <= 1e-4, **PLAIN),
    "fig1d.unstable": both(unstable),
    "fig1d.slower": both(partial(against, rounds=100), ("transformed", "original", "original .3")),
}


def declared(claims):
    """Yield the claims on a sentence."""
    for claim, given in claims.items():
        given = dict(given)
        form, statement = given.pop("form"), given.pop("statement")
        for suffix, name, options, measured, *more in MEASURED[claim]:
            options = options | (MATCHED if claim.startswith("fig1a") else {})
            more = {**given, **(more[0] if more else {}), "options": options}
            fixed = [more.pop("published")] if form in ("value", "near") else []
            maker = getattr(CLAIM(".".join(filter(None, [claim, suffix]))), form)
            yield maker(statement.replace("NAME", name), *fixed, measured, **more)


for sentence, one in TEXTS["sentences"].items():
    texts = {key: value for key, value in one.items() if key != "claims"}
    CLAIM.sentence(sentence, **texts)(lambda claims=one["claims"]: declared(claims))
CLAIMS, SENTENCES = CLAIM.all(), CLAIM.sentences
