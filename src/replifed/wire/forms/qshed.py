"""Q-SHED (Dal Fabbro, Rossi, Schenato and Dey 2023, Algorithm 1)."""

import numpy as np

from replifed.algorithms.shed import renews
from replifed.errors import ConfigError
from replifed.operators.matrices import eigenpairs
from replifed.operators.quantise import draw_dither
from replifed.wire.forms import common
from replifed.wire.forms.common import average
from replifed.wire.forms.newton_type import budget, follow, move, stopped
from replifed.wire.messages import Dense, Quantised


def client(method, message, own, data, turn):
    if turn.exchange > 0:
        return follow(method, message, own, data, turn)
    _check(method)
    n = turn.facts.dim
    x = own.get("x", turn.facts.start)
    renewed = renews(method.renewals, turn.t + 1)  # line 7
    if renewed:  # lines 8-11: eigenpairs of the Hessian, of which nothing has been sent
        values, V = eigenpairs(data.hessian(x))
        none = np.zeros(n, np.int64)
        own = own | {"values": values, "V": V, "bits": none, "dither": _dither(turn)[turn.client]}
    before, q_before = own["bits"], _in_use(own["bits"])
    B = budget(method, turn)[turn.client]
    state = _Sent(own["values"][None], np.array([q_before]), before[None])
    bits = method.allocate(state, np.array([B]))[0]  # lines 13-15
    q = _in_use(bits)  # line 16, eq. (23)
    # line 18: of each coordinate the bits that refine its cell
    new = bits[:q] - before[:q]
    cells = common.cells(own["V"][:q], own["dither"][:q], bits[:q]) & ((1 << new) - 1)[:, None]
    # line 19: eigenvalues up to rho = lambda_{q+1}, of which the server has the first from earlier rounds
    values = own["values"][0 if renewed else q_before + 1 : q + 1]
    g = Dense(data.gradient(x), method.value_bits)  # line 12
    return [g, Dense(values), Quantised(cells, new)], own | {"x": x, "bits": bits}


def server(method, state, turn):
    N, n, p_i = turn.facts.n_clients, turn.facts.dim, turn.facts.weights
    x = state["x"]
    if renews(method.renewals, turn.t + 1):
        none = np.zeros((N, n), np.int64)
        nothing = {"values": np.zeros((N, n)), "cells": np.zeros((N, n, n), np.int64), "bits": none}
        state = state | nothing | {"dither": _dither(turn), "known": np.zeros(N, np.int64)}
    values, cells, bits, known = (state[name].copy() for name in ("values", "cells", "bits", "known"))
    replies = yield []  # clients know x
    g = average(replies, p_i)
    if stopped(method, g):
        return state
    H_i = {}
    for i, (_, new_values, rows) in replies.items():
        new, new_cells = rows[:, 0], rows[:, 1:]
        bits[i, : len(new)] += new
        cells[i, : len(new)] = cells[i, : len(new)] << new[:, None] | new_cells
        values[i, known[i] : known[i] + len(new_values)] = new_values
        known[i] += len(new_values)
        q = _in_use(bits[i])
        rho = values[i, q]  # line 17
        V = common.midpoints(cells[i, :q], state["dither"][i, :q], bits[i, :q])
        if method.normalise:
            V = V / np.maximum(np.linalg.norm(V, axis=1, keepdims=True), np.finfo(float).tiny)
        H_i[i] = [V.T @ ((values[i, :q] - rho)[:, None] * V) + rho * np.eye(n)]  # eq. (22)
    p = -np.linalg.solve(average(H_i, p_i), g)  # lines 24-25
    x = yield from move(method, x, g, p, turn)  # lines 26-28
    return state | {"x": x, "values": values, "cells": cells, "bits": bits, "known": known}


class _Sent:
    """What the allocation of bits looks at."""

    def __init__(self, values, q, bits):
        self.values, self.q, self.bits = values, q, bits


def _in_use(bits):
    """q_t: the last vector that has bits."""
    return int(np.where(bits > 0, np.arange(1, len(bits) + 1), 0).max())


def _dither(turn):
    shape = turn.facts.n_clients, turn.facts.dim, turn.facts.dim
    return turn.draw("dither", lambda rng: draw_dither(rng, shape))


def _check(method):
    if (method.dither, method.overload) != ("nested", "wrap"):
        raise ConfigError(
            f"QShed.dither = {method.dither!r}, overload = {method.overload!r}: on the wire nested and wrap, "
            "whose cells are split bit by bit"
        )
