"""What the claims of this paper measure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replifed.claims.verdicts import Measured, NotMeasurableError
from replifed.papers.fedmm.experiments import tuned_betas
from replifed.papers.measures import Curves, any_chaotic, curves, paired

Measure = Callable[[Any], Measured]

# Share of a run at its beginning and end whose mean is compared.
_WINDOW = 0.1


def beta_of(inputs: Any, experiment: str, method: str, reading: str) -> float:
    """The step at which `method` is read: its own, or FedMM's."""
    return tuned_betas(inputs.tuned(experiment, method))[reading]


def _curve(inputs: Any, experiment: str, method: str, reading: str, value: str = "objective") -> Curves:
    beta = beta_of(inputs, experiment, method, reading)
    found = curves(inputs.run(experiment, method), value, beta=beta)
    return _after_start(found) if value != "objective" else found


def _after_start(one: Curves) -> Curves:
    """Updates are of the round behind them, so round 0 has none."""
    return one._replace(rounds=one.rounds[1:], values=one.values[:, 1:])


def _ends(one: Curves) -> tuple[NDArray, NDArray]:
    """Mean of the first and of the last tenth of each curve."""
    count = max(round(_WINDOW * len(one.rounds)), 1)
    return one.values[:, :count].mean(axis=1), one.values[:, -count:].mean(axis=1)


def monotone(experiment: str) -> Measure:
    """No recorded objective of FedMM lies 1 % above the one before, over windows of five records."""

    def measure(inputs: Any) -> Measured:
        one = _curve(inputs, experiment, "fedmm", "own")
        width = min(5, len(one.rounds) - 1)
        smooth = np.apply_along_axis(np.convolve, 1, one.values, np.full(width, 1 / width), "valid")
        rises = (smooth[:, 1:] / smooth[:, :-1] - 1).max(axis=1)
        said = f"largest rise {100 * rises.max():.2g} %"
        return Measured(rises <= 0.01, note=said, chaotic=any_chaotic(one))

    return measure


def diverges(experiment: str, reading: str) -> Measure:
    """The last objective of parameter aggregation lies 2 % above its lowest."""

    def measure(inputs: Any) -> Measured:
        one = _curve(inputs, experiment, "parameter_aggregation", reading)
        ratio = one.values[:, -1] / one.values.min(axis=1)
        said = f"last over lowest objective {ratio.mean():.4g} on average, {ratio.max():.4g} at most"
        beta = beta_of(inputs, experiment, "parameter_aggregation", reading)
        return Measured(ratio > 1.02, note=f"β = {beta:g}: {said}", chaotic=any_chaotic(one))

    return measure


def better(experiment: str, reading: str) -> Measure:
    """Final objectives: parameter aggregation minus FedMM."""

    def measure(inputs: Any) -> Measured:
        ours = _curve(inputs, experiment, "fedmm", "own")
        naive = _curve(inputs, experiment, "parameter_aggregation", reading)
        ours, naive = paired(ours, naive)
        difference = naive.values[:, -1] - ours.values[:, -1]
        if not np.isfinite(difference).all():
            raise NotMeasurableError("a run diverged beyond all numbers")
        betas = [beta_of(inputs, experiment, "fedmm", "own")]
        betas.append(beta_of(inputs, experiment, "parameter_aggregation", reading))
        said = f"FedMM at β = {betas[0]:g}, the naive method at {betas[1]:g}"
        return Measured(difference, note=said, chaotic=any_chaotic(ours, naive))

    return measure


def decays(experiment: str, method: str, value: str) -> Measure:
    """The last tenth of an update's curve lies below its first tenth."""

    def measure(inputs: Any) -> Measured:
        one = _curve(inputs, experiment, method, "own", value)
        first, last = _ends(one)
        said = f"last over first tenth {np.mean(last / first):.3g} on average"
        return Measured(last < first, note=said, chaotic=any_chaotic(one))

    return measure


def does_not_decay(experiment: str, value: str, reading: str) -> Measure:
    """Of parameter aggregation the last tenth of an update's curve is no lower than the first."""

    def measure(inputs: Any) -> Measured:
        one = _curve(inputs, experiment, "parameter_aggregation", reading, value)
        first, last = _ends(one)
        said = f"last over first tenth {np.mean(last / first):.3g} on average"
        return Measured(last >= first, note=said, chaotic=any_chaotic(one))

    return measure


def _updates(inputs: Any, experiment: str, reading: str, value: str) -> list[Curves]:
    """An update of FedMM and of parameter aggregation, on the seeds that both have."""
    methods = ("fedmm", "parameter_aggregation")
    return paired(*(_curve(inputs, experiment, method, reading, value) for method in methods))


def naive_decays_faster(experiment: str, reading: str) -> Measure:
    """log of last over first tenth of E^p: FedMM minus parameter aggregation."""

    def measure(inputs: Any) -> Measured:
        ours, naive = _updates(inputs, experiment, reading, "parameter_update")
        drop = [np.log(last / first) for first, last in (_ends(ours), _ends(naive))]
        return Measured(drop[0] - drop[1], chaotic=any_chaotic(ours, naive))

    return measure


def overtaken(experiment: str, reading: str) -> Measure:
    """FedMM's E^p is lower in the first fifth of the rounds, relative to its start, and higher at the end."""

    def measure(inputs: Any) -> Measured:
        ours, naive = _updates(inputs, experiment, reading, "parameter_update")
        early = max(len(ours.rounds) // 5, 1)
        first = ours.values[:, :early].mean(axis=1) < naive.values[:, :early].mean(axis=1)
        last = _ends(ours)[1] > _ends(naive)[1]
        said = f"early {int(first.sum())}, late {int(last.sum())} of {len(first)}"
        return Measured(first & last, note=said, chaotic=any_chaotic(ours, naive))

    return measure


def unstable(experiment: str, reading: str) -> Measure:
    """Spread of log E^s around its trend in the last third: parameter aggregation minus FedMM."""

    def measure(inputs: Any) -> Measured:
        pair = _updates(inputs, experiment, reading, "surrogate_update")
        ours, naive = (_roughness(one) for one in pair)
        return Measured(naive - ours, chaotic=any_chaotic(*pair))

    return measure


def _roughness(one: Curves) -> NDArray:
    count = max(len(one.rounds) // 3, 4)
    if len(one.rounds) < count:
        raise NotMeasurableError("too few rounds to tell noise from trend")
    t, tail = np.linspace(-1, 1, count), np.log(one.values[:, -count:])
    slope, offset = np.polyfit(t, tail.T, 1)
    return (tail - slope[:, None] * t - offset[:, None]).std(axis=1, ddof=2)


# -- Figure 2 ------------------------------------------------------------------------------------------


def _variates(inputs: Any, experiment: str, alpha: float, share: float, value: str) -> Curves:
    history = inputs.run(experiment, "fedmm")
    found = curves(history, value, alpha=alpha, participation=share)
    return _after_start(found) if value != "objective" else found


def same_objective(experiment: str, alpha: float, share: float) -> Measure:
    """Final objectives with and without control variates differ by less than 2 %."""

    def measure(inputs: Any) -> Measured:
        with_, without = (_variates(inputs, experiment, a, share, "objective") for a in (alpha, 0.0))
        gap = np.abs(with_.values[:, -1] / without.values[:, -1] - 1)
        return Measured(gap < 0.02, note=f"largest difference {100 * gap.max():.2g} %")

    return measure


def no_effect(experiment: str, alpha: float, share: float) -> Measure:
    """E^s with and without control variates differ by less than 1 % in every recorded round."""

    def measure(inputs: Any) -> Measured:
        pair = (_variates(inputs, experiment, a, share, "surrogate_update") for a in (alpha, 0.0))
        with_, without = pair
        gap = np.abs(with_.values / without.values - 1).max(axis=1)
        return Measured(gap < 0.01, note=f"largest relative difference {gap.max():.2g}")

    return measure


def lower_updates(experiment: str, alpha: float, share: float, value: str) -> Measure:
    """log of an update in the last tenth: without minus with control variates."""

    def measure(inputs: Any) -> Measured:
        pair = (_variates(inputs, experiment, a, share, value) for a in (alpha, 0.0))
        with_, without = (np.log(_ends(one)[1]) for one in pair)
        ratio = np.exp(np.mean(with_ - without))
        return Measured(without - with_, note=f"with over without {ratio:.2g}")

    return measure


# -- identities ----------------------------------------------------------------------------------------


def is_em(experiment: str) -> Measure:
    """FedMM with everybody, all samples and step 1 gives EM's objective in every round, to 1e-10."""

    def measure(inputs: Any) -> Measured:
        em = curves(inputs.run(experiment, "sa_ssmm"), reading="exact")
        ours = curves(inputs.run(experiment, "fedmm"), reading="exact")
        gap = np.abs(ours.values / em.values - 1).max(axis=1)
        return Measured(gap < 1e-10, note=f"largest relative difference {gap.max():.2g}")

    return measure


def near_em(experiment: str) -> Measure:
    """Share of EM's whole descent that the federated run still lacks at its end is below 1 %."""

    def measure(inputs: Any) -> Measured:
        em = curves(inputs.run(experiment, "sa_ssmm"), reading="exact")
        ours = curves(inputs.run(experiment, "fedmm"), reading="federated")
        em, ours = paired(em, ours)
        left = (ours.values[:, -1] - em.values[:, -1]) / (em.values[:, 0] - em.values[:, -1])
        return Measured(left < 0.01, note=f"largest share {left.max():.2g}")

    return measure


def toy(reading: str, method: str) -> Measure:
    """Rounds from the first on at which the toy's solution is met (FedMM) or missed by 5 % (naive)."""

    def measure(inputs: Any) -> Measured:
        from replifed.papers.fedmm.simulations import TOYS

        z = inputs.settings["experiments"]["remark1"]["values"][reading]
        solution = float(TOYS[reading].T(np.array([np.mean(z)]))[0])
        history = inputs.run("remark1", method)
        theta = history[(history["reading"] == reading) & (history["round"] > 0)]["theta"].to_numpy()
        error = np.abs(theta - solution)
        holds = error < 1e-14 if method == "fedmm" else (error > 0.05) & (np.ptp(theta) < 1e-14)
        return Measured(holds, note=f"error {error.max():.3g}")

    return measure


def variates_add_up(inputs: Any) -> Measured:
    """|V - sum_i mu_i V_i| stays at rounding over rounds with cohorts, minibatches and quantisation."""
    from replifed.algorithms.fedmm import FedMM
    from replifed.network.participation import FixedSize, Independent
    from replifed.papers.fedmm.simulations import em_problem
    from replifed.randomness import Streams
    from replifed.simulate import simulate

    settings = {"seed": 1, "model": "poisson", "clients": 8, "samples": 80, "lam": 0.1}
    problem = em_problem(settings, 1)
    gaps = []
    for cohort, p in ((None, None), (FixedSize(3), None), (Independent(0.4), 0.4)):
        algorithm = FedMM(beta=0.5, alpha=0.2, bits=6, batch=4, participation=p)
        state = simulate(algorithm, problem, Streams(1, (1, 2)), 20, cohort=cohort).state
        gaps.append(np.abs((problem.weights[..., None] * state.V_i).sum(axis=1) - state.V).max())
    return Measured(np.array(gaps) < 1e-12, note=f"largest gap {max(gaps):.2g}")


# -- Figure 3 ------------------------------------------------------------------------------------------


def beats_fedadam(experiment: str, by: str) -> Measure:
    """log of the final L2-UVP: FedAdam minus FedMM-OT, after equally many rounds or sample gradients."""

    def measure(inputs: Any) -> Measured:
        histories = {name: inputs.run(experiment, name) for name in ("fedmm_ot", "fedadam")}
        ours, adam = paired(*(curves(history, "uvp") for history in histories.values()))
        if by == "round":
            return Measured(np.log(adam.values[:, -1] / ours.values[:, -1]))
        work = [
            history.groupby("round")["sample_gradients"].mean().to_numpy() for history in histories.values()
        ]
        last = min(work[0][-1], work[1][-1])
        # The last record of each that has used no more than both have.
        places = [int(np.searchsorted(one, last, side="right")) - 1 for one in work]
        return Measured(
            np.log(adam.values[:, places[1]] / ours.values[:, places[0]]),
            note=f"FedMM-OT after {ours.rounds[places[0]]} rounds, FedAdam after {adam.rounds[places[1]]}",
        )

    return measure


def uvp_ratio(experiment: str) -> Measure:
    """FedAdam's final L2-UVP is more than 1.5 times FedMM-OT's."""

    def measure(inputs: Any) -> Measured:
        pair = (curves(inputs.run(experiment, name), "uvp") for name in ("fedmm_ot", "fedadam"))
        ours, adam = paired(*pair)
        ratio = adam.values[:, -1] / ours.values[:, -1]
        return Measured(ratio > 1.5, note=f"ratio {ratio.mean():.3g} on average")

    return measure
