"""FedGradMP (Jeong, Needell and Qin 2023, Algorithms 1 and 2)."""

import numpy as np

from replifed.operators.projections import onto_ball
from replifed.wire.forms.common import average
from replifed.wire.messages import Sparse

_NEWTON_STEPS, _SHORTEST, _TOLERANCE = 50, 1e-10, 1e-9


def client(method, message, own, data, turn):
    (x,) = message  # x_{t,1} = x_t, and Lambda its support
    K, tau, approx = method.local_steps, method.sparsity, method.projection
    inner = method.inner_steps - method.reuse if method.solver == "sgd" else 0
    inner_batches = iter(turn.minibatches(K * inner, method.batch, "inner"))
    for batch in turn.minibatches(K, method.batch):
        r = data.gradient(x, batch)  # r_{t,k} = grad g_{i,j_k}(x_{t,k})
        Gamma = approx.support(r, 2 * tau) | (x != 0)  # approx_{2 tau}(r) u Lambda
        if method.solver == "exact":  # b = argmin f_i over R(A_Gamma)
            b = minimiser_on(Gamma, x, data)
        elif method.solver == "sgd":  # Algorithm 2
            b = x - method.step * r * Gamma if method.reuse else x
            for _ in range(inner):
                b = b - method.step * data.gradient(b, next(inner_batches)) * Gamma
        else:  # the same on all samples, each step with its own length
            b = descended_on(Gamma, x, data, method.inner_steps)
        x = _pruned(method, b)  # Lambda = approx_tau(b), x_{t,k+1} = P_Lambda b
    return [Sparse(x, tau)], own


def server(method, state, turn):
    replies = yield [Sparse(state["x"], method.sparsity)]
    return {"x": _pruned(method, average(replies, turn.facts.weights))}  # P_{Lambda_s} sum_i p_i x_i


def _pruned(method, b):
    x = method.projection.prune(b, method.sparsity)
    return x if method.radius is None else onto_ball(x, method.radius, method.projection)  # Pi_R


def minimiser_on(support, w, data):
    """argmin f_i over vectors on `support`, the nearest one to `w`, by Newton's method."""
    S, w, f = np.flatnonzero(support), w.copy(), data.value(w)
    for _ in range(_NEWTON_STEPS):
        step = np.linalg.lstsq(data.hessian(w)[np.ix_(S, S)], -data.gradient(w)[S], rcond=1e-12)[0]
        ahead, length = w.copy(), 1.0
        ahead[S] += step
        while (lower := data.value(ahead)) > f and length > _SHORTEST:
            length /= 2
            ahead[S] = w[S] + length * step
        if not lower <= f:
            break
        w, f = ahead, lower
        if np.abs(step).max(initial=0.0) <= _TOLERANCE * np.abs(w).max():
            break
    return w


def descended_on(support, w, data, steps):
    """`w` after gradient steps on `support`: to the minimum along each for least squares, of 1 / L else."""
    for _ in range(steps):
        g = data.gradient(w) * support
        curvature = g @ data.hessian(w) @ g
        exact = data.loss.name == "least_squares" and curvature > 0
        w = w - (g @ g / curvature if exact else 1 / data.L) * g
    return w
