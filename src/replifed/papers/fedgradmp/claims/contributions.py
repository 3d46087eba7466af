"""Abstract and Section I: contributions, Table I, related work."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from replifed.claims.claim import Claim
from replifed.claims.curves import at, curves, first, level, round_at, rounds_to, steps
from replifed.claims.quantities import run, settings
from replifed.papers.fedgradmp import measures
from replifed.papers.fedgradmp.axes import (
    CLAIM,
    DECADES,
    DIGIT_STEPS,
    DIGITS,
    FIGURE7,
    FIGURE8,
    FIGURE11,
    RATES,
    SHARE,
    options_of,
)
from replifed.papers.fedgradmp.claims.compared import (
    LONG,
    MOST,
    NOISES,
    SHORT,
    SPARSITY,
    faster_in_rounds,
    faster_in_work,
    fewer_bits,
    of_steps,
)
from replifed.papers.fedgradmp.measures import MACHINE, decades, error, log_end, log_error
from replifed.papers.fedgradmp.paper import EXACT_ROUNDS, READINGS


@CLAIM.sentence(
    "fig1.linear",
    "Abstract; Section I-A; Table I; Section V-A, Figure 1",
    "FedGradMP converges linearly, at all heterogeneities, with and without noise.",
    main=True,
)
def _linear() -> Iterator[Claim]:
    for alpha, (noise, name) in product((0.0, 0.5, 1.0, 2.5), NOISES.items()):
        # The first round below the floor ends the descent.
        floor = 1e-13 if noise == 0 else 5e-3
        curve = error("heterogeneity", alpha=alpha, noise=noise)
        pace = measures.pace(curve, floor)
        worst, halves = pace[0], pace[1]
        yield CLAIM(
            f"fig1.linear.{name}-" + f"{alpha:g}".replace(".", "-"), options=options_of("heterogeneity")
        ).shape(
            f"FedGradMP converges linearly at alpha = {alpha:g}, {name}: down to its floor each round "
            "contracts the error, and the second half of the rounds brings at least half of the decades of "
            "the first (Section V-A, Figure 1).",
            ((worst < 1) & (halves >= 0.5)).note(
                "factor of the worst round up to {0.max:.3f}, halves {1.min:.2g} to {1.max:.2g}",
                *(worst, halves),
            ),
            fails="errors that rise, or curves that flatten, above the floor on over a fifth of seeds",
            share=0.8,
            because="errors fall from round to round by random supports; four seeds of five must fit",
            note="theorems bound from above: what goes faster than a line is no fault",
        )


@CLAIM.sentence(
    "fig3.rounds",
    "Abstract; Section V-B1, Figure 3",
    "FedGradMP converges fast in rounds: with little heterogeneity faster than all other methods.",
    main=True,
)
def _fast_in_rounds() -> Iterator[Claim]:
    yield from faster_in_rounds("fig3")


@CLAIM.sentence(
    "fig3.time",
    "Abstract; Sections I-A, III and IV-A; Section V-B1, Figure 3",
    "FedGradMP also converges fast in computing time, since it solves sub-problems of low dimension "
    "efficiently.",
    main=True,
)
def _fast_in_time() -> Iterator[Claim]:
    yield from faster_in_work("fig3")


@CLAIM.sentence(
    "remark4.bias",
    "Section I-A; Table I; Remark 4",
    "FedGradMP converges up to the optimal statistical bias: with a full batch and exact projections, the "
    "inverse root of N|D|.",
    main=True,
    question="On which data, with how many clients, does the residual fall as the inverse root of N|D|?",
)
def _optimal_bias() -> Iterator[Claim]:
    for name, clients, quarter, whole in (
        ("remark4.bias", "10 to 40", "bias", "bias_many"),
        ("remark4.bias.160", "40 to 160", "bias_many", "bias_most"),
    ):
        few, many = log_end(quarter), log_end(whole)
        oracle = 10**many / first(measures.limit(whole))
        yield DECADES(name, artefact="bias").near(
            "With all samples and clients alike the residual is the optimal statistical bias, which falls as "
            f"the inverse root of the number of clients: from {clients} it halves (Remark 4).",
            -0.3010,
            (many - few).note(
                "{0.antilog:.3g} against {1.antilog:.3g}; {2.mean:.3g} times the error of least squares on "
                "the true support",
                *(many, few, oracle),
            ),
            within=0.06,
            because="exponents between -0.4 and -0.6",
            note="the data are ours, since the remark names no experiment; on them its condition (12) holds "
            "with no fixed beta, an erratum shows. Clients pick wrong supports, an error that does not "
            "average out; given the true support, the averaged error about halves",
        )


@CLAIM.sentence(
    "theorem5.conditions",
    "Section I-A; Theorem 5; Section V-A",
    "The conditions of the analysis are mild; the experiments are said to validate it.",
    main=True,
    question="On the data of which figure do clients have 2 rho^- > rho^+?",
)
def _conditions() -> Iterator[Claim]:
    names = ("exact", "heterogeneity")
    yield RATES("theorem5.conditions", options=options_of(*names)).identity(
        "The clients' losses in the experiments have restricted constants with 2 rho^- > rho^+, as Theorem 5 "
        "needs (Figures 1 and 9).",
        measures.conditions_met(*map(settings, names)).needing(*(run(name, "fedgradmp") for name in names)),
        note="so the theorem promises nothing about the experiments that are said to validate it",
    )


@CLAIM.sentence(
    "fig8",
    "Section I-A; Section V-C, Figure 8",
    "Unless their steps are tuned, methods with local stochastic gradients diverge, or converge slowly: "
    "FedIterHT quickly diverges at 0.004, 0.01 and 0.02, and tends to a highly suboptimal point at 0.0001 to "
    "0.002.",
    main=True,
    question="Which tau, which scale of the gradients and how many rounds does Figure 8 have?",
)
def _untuned() -> Iterator[Claim]:
    for name, options in FIGURE8.items():
        large = of_steps(measures.soon, "fediterht", name, LONG)
        yield CLAIM("fig8.diverges", artefact="fig8", options=options).shape(
            "Most runs of FedIterHT quickly diverge at learning rates 0.004, 0.01 and 0.02 "
            f"({READINGS[name]}; Section V-C).",
            # Ten times further off than at the start is as good as diverged.
            (~(large <= 10.0)).note(measures.ended, large),
            fails="a run within ten times the error of its start after a fifth of the rounds",
            share=0.5,
            because=MOST,
            note="which steps diverge depends on tau and on the scale of the gradients, which are not stated",
        )
        small = of_steps(measures.at_rest, "fediterht", name, SHORT)
        yield CLAIM("fig8.stalls", artefact="fig8", options=options).shape(
            "Most runs of FedIterHT come to rest at a highly suboptimal point at learning rates up to 0.002, "
            f"at a relative error above one half ({READINGS[name]}; Section V-C).",
            ((small >= 0.5) & (small <= 10.0)).note(measures.ended, small),
            fails="a run that ends below one half of the error of its start, or diverges",
            share=0.5,
            because=MOST,
            note="of a run that still falls it is not known where it ends",
        )


@CLAIM.sentence(
    "fig9",
    "Section I-A; Section V-C, Figure 9; Section VI",
    "FedGradMP needs no tuning for sparse linear regression: with the same hyperparameters it is at machine "
    "precision after only four rounds of three local iterations.",
    main=True,
)
def _exact() -> Iterator[Claim]:
    exact = error("exact")
    after_four = at(exact, EXACT_ROUNDS)
    yield CLAIM("fig9.precision", options=options_of("exact")).shape(
        "FedGradMP comes to machine precision (1e-14) within four rounds with K = 3, on every seed "
        "(Section V-C, Figure 9).",
        (after_four <= MACHINE).note(
            "largest error {0.max:.2g} after {1} rounds", after_four, round_at(exact, EXACT_ROUNDS)
        ),
        fails="an error above 1e-14 after four rounds",
    )
    yield CLAIM("fig9.rounds", unit="rounds", options=options_of("exact"), informs=True).near(
        "It takes four rounds (Section V-C, Figure 9).",
        float(EXACT_ROUNDS),
        rounds_to(exact, MACHINE),
        within=1.0,
        because="one round, the resolution of a figure that shows one run",
        note='the text has "only four": fewer are as claimed',
    )


@CLAIM.sentence(
    "fig7",
    "Section I-A; Remark 3; Section IV-D; Section V-B2, Figure 7; Section VI",
    "A random Gaussian dictionary, which does not know the data, is effective: better than the standard "
    "basis.",
    main=True,
    question="What is tau in Figures 6 and 7, does it count each class, and what is the dictionary's size?",
)
def _dictionary() -> Iterator[Claim]:
    for (options, pixels, atoms), (name, (step, words)) in product(FIGURE7, DIGIT_STEPS.items()):
        tau = options["tau on digits"]
        gaussian, standard = (
            level(measures.column("train_accuracy", experiment, "fedgradmp", tau, reading=name))
            for experiment in (atoms, pixels)
        )
        whole = tau == "2000"
        yield SHARE("fig7", options={**options, "step on digits": step}, informs=whole).order(
            "FedGradMP with a random Gaussian dictionary is more accurate on the training digits than with "
            f"the standard basis {words}(Section V-B, Figure 7).",
            measures.more_accurate(gaussian, standard),
            note="tau is as large as the number of the atoms' coefficients: no threshold acts"
            if whole
            else "the atoms span a part of the pixels' dimensions, and the standard basis all",
        )


# --- Section I-B ----------------------------------------------------------------------------------


def _faster_with_k(noise: float) -> Iterator[Claim]:
    name = NOISES[noise]
    errors = [log_error(1, "local_iterations", local_steps=K, noise=noise) for K in (3, 6, 9, 12, 15)]
    yield DECADES(f"fig10.rate.{name}", options=options_of("local_iterations")).order(
        f"More local iterations, faster convergence, {name}: the error after the first round is smaller "
        "at K = 15 than at K = 3 (Section V-D).",
        decades(errors[0], errors[-1]),
    )
    listed = "{0.antilog:.2g}, {1.antilog:.2g}, {2.antilog:.2g}, {3.antilog:.2g}, {4.antilog:.2g}"
    yield CLAIM(f"fig10.monotone.{name}", options=options_of("local_iterations")).shape(
        f"The error after the first round falls from each K to the next, {name} (Section V-D).",
        (steps(*errors) < 0).note(f"errors {listed}", *errors),
        fails="an error that rises from one K to the next",
        share=0.75 if noise else None,
        because="a few exceptions: one step of four" if noise else "",
    )


@CLAIM.sentence(
    "fig10.rate.noiseless",
    "Section I-B; Section V-D, Figure 10, left",
    "More local iterations converge faster without noise.",
)
def _faster_with_k_noiseless() -> Iterator[Claim]:
    yield from _faster_with_k(0.0)


@CLAIM.sentence(
    "fig10.rate.noisy",
    "Section I-B; Section V-D, Figure 10, right",
    "More local iterations converge faster with noise, too, with a few exceptions.",
)
def _faster_with_k_noisy() -> Iterator[Claim]:
    yield from _faster_with_k(4e-6)


@CLAIM.sentence(
    "drift", "Section I-B", "More local iterations leave a larger residual, in the experiments too."
)
def _drift() -> Iterator[Claim]:
    few, many = (log_end("local_iterations", local_steps=K, noise=4e-6) for K in (3, 15))
    yield DECADES("fig10.drift", options=options_of("local_iterations")).order(
        "More local iterations leave a larger residual, as clients drift apart: it is larger at K = 15 than "
        "at K = 3 (Section I-B).",
        decades(many, few),
        note="Section V-D says the opposite",
    )


@CLAIM.sentence(
    "fig6-bits",
    "Section I-B",
    "The models that are sent have tau non-zeros, which saves communication; we read this as a smaller error "
    "at equal bits.",
)
def _bits() -> Iterator[Claim]:
    yield from fewer_bits("fig3")
    # The paper shows no bits of digits, where tau is not stated.
    panels = {"train_accuracy": "training", "test_accuracy": "test"}
    for (options, experiment), (value, panel), (name, (step, words)) in product(
        DIGITS, panels.items(), DIGIT_STEPS.items()
    ):
        both = (experiment, "fedgradmp", options["tau on digits"]), ("digits", "fedavg", "")
        (mine, sent), (theirs, spent) = (
            (
                measures.column(value, data, method, variant, reading=name),
                curves(measures.with_bits(run(data, method)), "bits", variant=variant, reading=name),
            )
            for data, method, variant in both
        )
        over = measures.over_budgets(mine, sent, theirs, spent)
        yield SHARE(
            f"fig6-bits.fedavg.{panel}",
            artefact="fig6_bits",
            options={**options, "step on digits": step},
            informs=True,
        ).order(
            f"FedGradMP is more accurate on the {panel} digits than FedAvg {words}when both have sent "
            "as many bits, on the mean over all budgets up to what its rounds send, which is how we read "
            "that sparse models save communication (Section I-B).",
            over[0].note("ahead at {0.mean:.0%} of the budgets", over[1]),
            note=SPARSITY,
        )


@CLAIM.sentence(
    "fig11.rate",
    "Section I-B; Remark 6; Section V-E, Figure 11",
    "The more clients take part in a round, the faster FedGradMP converges, with and without noise, as "
    "Theorem 8 predicts.",
)
def _faster_with_cohorts() -> Iterator[Claim]:
    # At n = 50 one round with K = 3 does most, and with K = 1 the second when there is noise.
    after = {("cohorts_small", 3, 0.0): 1, ("cohorts_small", 3, 4e-6): 1, ("cohorts_small", 1, 4e-6): 2}
    for ((experiment, K), options), (noise, name) in product(FIGURE11.items(), NOISES.items()):
        t = after.get((experiment, K, noise), 3)
        few, many = (log_error(t, experiment, cohort=size, noise=noise, local_steps=K) for size in (10, 30))
        yield DECADES(f"fig11.rate.{name}", options=options).order(
            f"Larger cohorts, faster convergence, {name}: the error after {t} rounds is smaller with 30 "
            "clients than with 10 (Section V-E).",
            decades(few, many),
            note="Theorem 8 does not predict it: by the proof's expectation its rate is the same for all "
            "cohorts, as an erratum shows",
        )
