"""Fed-PLT (Bastianello, Liu and Johansson 2024, Algorithm 1)."""

import numpy as np

from replifed.wire.forms.common import descend
from replifed.wire.messages import Dense


def client(method, message, own, data, turn):
    (y,) = message
    x, z = own.get("x", _start(method, turn)), own.get("z", np.zeros_like(y))
    v = 2 * y - z  # line 9
    w = x if method.start == "warm" else v
    # lines 10-13: steps on d(w) = f_i(w) + |w - v|^2 / (2 rho)
    x = descend(method.solver, w, data, turn, linear=-v / method.rho, ridge=1 / method.rho)
    z = z + 2 * (x - y)  # line 14
    return [Dense(z)], {"x": x, "z": z}  # line 15; a client that is out keeps both (line 16)


def server(method, state, turn):
    N, D = turn.facts.n_clients, turn.facts.dim
    replies = yield [Dense(state["x"])]  # line 6
    z = np.array(state.get("z", np.zeros((N, D))))
    for i, (z_i,) in replies.items():
        z[i] = z_i
    y = method.penalty.prox(z.mean(axis=0), method.rho / N)  # line 5 of the next round
    return {"x": y, "z": z}


def _start(method, turn):
    """x_{i,0}, normal numbers of the standard deviation `start_deviation`."""
    shape = turn.facts.n_clients, turn.facts.dim
    if not method.start_deviation:
        return np.zeros(shape[1])
    drawn = turn.draw_at_start("start", lambda rng: rng.standard_normal(shape))
    return method.start_deviation * drawn[turn.client]
