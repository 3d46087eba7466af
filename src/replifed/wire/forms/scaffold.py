"""SCAFFOLD (Karimireddy et al. 2020, Algorithm 1)."""

import numpy as np

from replifed.wire.forms.common import descend, mean
from replifed.wire.messages import Dense


def client(method, message, own, data, turn):
    x, c = message  # line 4
    c_i = own.get("c_i", np.zeros_like(x))
    K, eta_l = method.solver.steps, method.step
    # lines 7-10: y <- y - eta_l (g_i(y) - c_i + c)
    y = descend(method.solver, x, data, turn, linear=c - c_i, step=eta_l)
    # line 12: (i) the gradient at x, or (ii) the mean gradient of the steps
    c_new = data.gradient(x) if method.option == "1" else c_i - c + (x - y) / (K * eta_l)
    return [Dense(y - x), Dense(c_new - c_i)], {"c_i": c_new}  # lines 13-14


def server(method, state, turn):
    x, c = state["x"], state.get("c", np.zeros_like(state["x"]))
    replies = yield [Dense(x), Dense(c)]
    share = len(replies) / turn.facts.n_clients  # |S| / N
    # lines 16-17
    return {"x": x + method.server_step * mean(replies), "c": c + share * mean(replies, part=1)}
