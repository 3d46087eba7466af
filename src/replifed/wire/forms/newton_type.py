"""What FedNL and Q-SHED share: a step along p, whose length clients and server find together."""

import numpy as np

from replifed.wire.forms.common import average
from replifed.wire.messages import Dense

# Near the minimiser the required decrease is below the rounding error of the objective.
_ROUNDING = 16 * np.finfo(float).eps


def stopped(method, g):
    """Whether the gradient is so small that the run is over."""
    return np.linalg.norm(g) < method.epsilon


def budget(method, turn):
    """Bits per coordinate that each client may send, (N,); without a channel enough for all vectors."""
    enough = turn.facts.dim * max(method.b_max, method.value_bits)
    return np.full(turn.facts.n_clients, enough) if turn.budget is None else turn.budget


def move(method, x, g, p, turn):
    """The server's part of x <- x + eta p: eta = 1, r, r^2, ... until f(x + eta p) <= f(x) + c eta g'p."""
    p, weights, search = turn.received(Dense(p)), turn.facts.weights, method.line_search
    replies = yield [Dense(p)]
    if search is None:
        return x + p
    eta, f = 1.0, average(replies, weights, part=0)[0]
    for trial in range(1, search.trials + 1):
        if trial > 1:
            replies = yield [Dense(np.ones(1))]  # go on: a shorter step
            eta = eta * search.shrink
        change = average(replies, weights, part=1 if trial == 1 else 0)[0]
        if change <= search.c * eta * (g @ p) + _ROUNDING * abs(f):
            break
    yield [Dense(np.zeros(1))]  # the step is taken
    return x + eta * p


def follow(method, message, own, data, turn):
    """The client's part: f_i(x), and f_i(x + eta p) - f_i(x) for each eta; then it moves, too."""
    x = own["x"]
    if turn.exchange == 1:
        p, eta, here = message[0], 1.0, data.value(x)
        if method.line_search is None:
            return [], own | {"x": x + p}
        change = [Dense(np.array([here])), Dense(np.array([data.value(x + p) - here]))]
        return change, own | {"p": p, "eta": np.array(eta), "f": np.array(here)}
    p, eta = own["p"], own["eta"]
    if not message[0][0]:
        return [], own | {"x": x + eta * p}
    eta = eta * method.line_search.shrink
    return [Dense(np.array([data.value(x + eta * p) - own["f"]]))], own | {"eta": eta}
