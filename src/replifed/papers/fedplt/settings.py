"""Settings in config/papers/fedplt.yaml."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from replifed.settings import fields
from replifed.settings.fields import Count, Counts, Natural, Positive, Several


def _is_grid(grid: list[float]) -> list[float]:
    if grid[2] < 2 or grid[2] != int(grid[2]):
        raise fields.refusal(f"{grid[2]} is no number of points; expected an integer of at least 2")
    return [*grid[:2], int(grid[2])]


Grid = Annotated[list[Positive], Field(min_length=3, max_length=3), AfterValidator(_is_grid)]
RhoGrid = Annotated[Grid, Field(description="geometric grid of penalties: least, largest, number of points")]
Ratio = Annotated[float, Field(gt=1, description="factor between neighbours on the first grid"), fields.REAL]
Reach = Annotated[Count, Field(description="points of the first grid on each side of the reference values")]
Refine = Annotated[
    Natural,
    Field(
        description="times that the log-distance between the best point of a search and its neighbours is "
        "halved, at most until they are a factor of 2^(1/2^refine) apart, or that of the root of the first "
        "grid's factor where it is above 2"
    ),
]
Target = Annotated[Positive, Field(description="a run ends at this error relative to its first")]
TuningRounds = Annotated[Count, Field(description="rounds of a run that chooses parameters")]
Penalty = Annotated[Positive, Field(description="penalty of the splitting")]
Noises = Annotated[Several[Positive], Field(description="levels of the noise")]


class Tuning(fields.Tuning):
    """Search of parameters common to all data sets."""

    ratio: Ratio
    reach: Reach
    refine: Natural = Field(0, description="times that the grid is halved around the best point")


class Own(fields.Settings):
    """Search of parameters for each data set, around those common to all."""

    ratio: Ratio
    refine: Refine = 4


class EqualBudget(Own):
    """The search of every method's local step and own parameters, for each data set by itself."""

    sets: Count = Field(description="so many of the reported data sets, the first ones")
    rounds: Count = Field(description="rounds of a trial")
    reach: Reach
    tolerance: Positive = Field(description="the search ends where a finer grid changes the rate by less")


class Footprint(fields.Repeated):
    """Table I: what methods keep and send."""

    problem: Literal["footprint"] = Field(description="what is run")


class Regression(fields.Repeated):
    """Settings of experiments on logistic regression."""

    agents: Count = Field(description="number of agents, N")
    samples: Count = Field(description="samples of each agent")
    features: Count = Field(description="features without the intercept, n - 1")
    ridge: Positive = Field(description="weight of |x|^2 / 2 in each agent's loss")
    loss: Literal["sum", "mean"] = Field(description="whether an agent's loss sums or averages its samples")
    data: Literal["planted", "classification"] = Field(description="planted labels, or make_classification's")
    rounds: Count = Field(description="most communication rounds of a run")


class LocalSteps(Regression):
    """Those with one number of local steps."""

    local_steps: Count = Field(description="local steps between two communications, N_e")


class Epochs(Regression):
    """Those with several numbers of local steps, and one penalty."""

    rho: Penalty
    epochs: Counts = Field(description="numbers of local steps")


class Comparison(LocalSteps):
    """Table II."""

    problem: Literal["comparison"] = Field(description="what is run")
    solvers: Several[Literal["gradient", "accelerated"]] = Field(description="local solvers")
    cohort: Count = Field(description="agents that take part where only some do")
    baseline_rounds: Count = Field(description="rounds of FedAvg, which stops at a bias")
    target: Target
    tuning_rounds: TuningRounds
    rho_grid: RhoGrid
    refine: Refine = 4
    own: Own = Field(description="how each data set's own parameters are searched around those common to all")
    equal_budget: EqualBudget = Field(
        description="the search of every method's local step and own parameters, for each data set by "
        "itself; all methods have the same grid and the same rule to end"
    )
    tuning: Tuning = Field(description="how parameters common to all data sets are chosen")


class Participation(LocalSteps):
    """Table III."""

    problem: Literal["participation"] = Field(description="what is run")
    active: Counts = Field(description="numbers of agents that take part")
    tuning_rounds: TuningRounds
    rho_grid: RhoGrid
    refine: Refine = 4
    target: Target = 1.0e-10


class Noise(LocalSteps):
    """Table IV."""

    problem: Literal["noise"] = Field(description="what is run")
    tau: Noises
    rho: Penalty
    tail: Count = Field(description="last rounds that errors are averaged over")
    together: Count = Field(25, description="data sets that are run side by side")


class Penalties(LocalSteps):
    """Figure 2."""

    problem: Literal["penalty"] = Field(description="what is run")
    rho_grid: RhoGrid
    valley: fields.Maybe[RhoGrid] = None
    settled: Positive = Field(
        description="runs go on, to four times as many rounds each time, until no rate changes by as much "
        "from half of the rounds to all of them"
    )
    together: Count = Field(20, description="data sets that are run side by side")


class LocalEpochs(Epochs):
    """Figure 3."""

    problem: Literal["epochs"] = Field(description="what is run")
    accelerated_epochs: Counts = Field(description="numbers of accelerated local steps")


class Exactness(Epochs):
    """Remarks 2 and 3."""

    problem: Literal["exactness"] = Field(description="what is run")
    target: Target


class Privacy(Epochs):
    """Proposition 4 beside accuracy."""

    problem: Literal["privacy"] = Field(description="what is run")
    tau: Noises
    clip: Positive = Field(description="L, twice the longest gradient that a sample may have")
    delta: fields.Fraction = Field(description="delta of (epsilon, delta)-privacy")
    record_every: Count = Field(description="rounds between two recorded points")


class Bounds(Epochs):
    """Proposition 2 and Corollary 1."""

    problem: Literal["bounds"] = Field(description="what is run")
    tau: Several[fields.NonNegative] = Field(description="levels of the noise")
    probabilities: Several[fields.Share] = Field(description="probabilities that an agent takes part")


class Worst(Epochs):
    """A round from the worst direction near the fixed point."""

    problem: Literal["worst"] = Field(description="what is run")
    solvers: Several[Literal["gradient", "accelerated"]] = Field(description="local solvers")
    distance: Positive = Field(description="distance of (x, z) to the fixed point before the round")


class Splitting(LocalSteps):
    """Rates and norms of a round near the minimiser, exact and with local steps."""

    problem: Literal["splitting"] = Field(description="what is run")
    rho_grid: RhoGrid


class Variants(Epochs):
    """Variants of Algorithm 1 beyond the tables: composite problems, uncoordinated solvers, minibatches."""

    problem: Literal["variants"] = Field(description="what is run")
    local_steps: Count = Field(description="local steps with minibatches")
    target: Target
    weight: Positive = Field(description="of |x|_1 in composite problems")
    batches: Counts = Field(description="sizes of minibatches")
    tail: Count = Field(description="last rounds that errors with minibatches are averaged over")


Experiment = Annotated[
    Comparison
    | Participation
    | Noise
    | Penalties
    | LocalEpochs
    | Exactness
    | Privacy
    | Bounds
    | Worst
    | Splitting
    | Variants
    | Footprint,
    Field(discriminator="problem"),
]


class Section(fields.Paper[Experiment, fields.Artefact]):
    """Fed-PLT."""
