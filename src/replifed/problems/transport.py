"""Transport maps between a mixture held by clients and a public measure, with a known optimal map.

The Wasserstein-2 benchmark of Korotin et al. (Do neural optimal transport solvers work?, NeurIPS 2021): P is
a mixture of three Gaussians, and Q its image under the gradient of a convex potential, which is therefore
the optimal map. Potentials are input-convex networks, the DenseICNN of Korotin et al. (Wasserstein-2
generative networks, ICLR 2021), rank 1: with q_k(x) = (x Q_k)^2 + x A_k' + b_k,

    a_1 = C_0 q_0(x) + q_1(x),    a_2 = C_1 celu(a_1) + q_2(x),    f(x) = w' celu(a_2) + strong |x|^2 / 2,

convex in x where C_0, C_1 and w are non-negative. Training the map grad f asks for parameter derivatives of
<v, grad f(x)>: a tangent carried forward, then one sweep back; no automatic differentiation is needed.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from replifed.memory import keep_freed

# Strong convexity of the trained networks.
_STRONG = 1e-4


class _Weights(NamedTuple):
    Q: list[NDArray]
    A: list[NDArray]
    b: list[NDArray]
    C: list[NDArray]
    w: NDArray


def benchmark_hidden(dim: int) -> tuple[int, int, int]:
    """Widths that the Wasserstein-2 benchmark uses."""
    return max(2 * dim, 64), max(2 * dim, 64), max(dim, 32)


@dataclass(frozen=True, kw_only=True)
class ICNN:
    """A network R^dim -> R with three hidden layers. Parameters are flat vectors, (..., parameters)."""

    dim: int
    hidden: tuple[int, int, int]
    strong: float  # weight of |x|^2 / 2

    @cached_property
    def shapes(self) -> list[tuple[int, ...]]:
        """Of Q_k, A_k, b_k for each layer, then C_0, C_1, w: the order of the benchmark's checkpoints."""
        d, (h0, h1, h2) = self.dim, self.hidden
        layers = [shape for h in self.hidden for shape in ((d, h), (h, d), (h,))]
        return [*layers, (h1, h0), (h2, h1), (h2,)]

    @cached_property
    def _ends(self) -> NDArray:
        return np.cumsum([0, *(int(np.prod(shape)) for shape in self.shapes)])

    @property
    def parameters(self) -> int:
        return int(self._ends[-1])

    def weights(self, flat: NDArray) -> _Weights:
        """Parameters by layer."""
        pieces = [
            flat[..., begin:end].reshape(*flat.shape[:-1], *shape)
            for begin, end, shape in zip(self._ends[:-1], self._ends[1:], self.shapes, strict=True)
        ]
        return _Weights(pieces[0:9:3], pieces[1:9:3], pieces[2:9:3], pieces[9:11], pieces[11])

    def clamped(self, flat: NDArray) -> NDArray:
        """Nearest parameters of a convex network, with C_0, C_1 and w at least 0."""
        out, begin = flat.copy(), self._ends[9]
        np.maximum(out[..., begin:], 0, out=out[..., begin:])
        return out

    def at(self, flat: NDArray, x: NDArray) -> Evaluated:
        """Evaluate the networks `flat` (..., parameters) at points `x` (..., B, dim)."""
        return Evaluated(self, flat, x)

    def value(self, flat: NDArray, x: NDArray) -> NDArray:
        """f, (..., B, dim) -> (..., B)."""
        return self.at(flat, x).value()

    def push(self, flat: NDArray, x: NDArray) -> NDArray:
        """grad f, (..., B, dim) -> (..., B, dim)."""
        return self.at(flat, x).push()

    def derivative(
        self, flat: NDArray, x: NDArray, *, c: NDArray | None = None, v: NDArray | None = None
    ) -> NDArray:
        """Derivative in the parameters, (..., parameters); see `Evaluated.derivative`."""
        return self.at(flat, x).derivative(c=c, v=v)[0]

    def initial(self, normal: NDArray) -> NDArray:
        """Initial parameters of a convex network: 0.1 times standard `normal` numbers, clamped."""
        return self.clamped(0.1 * normal)


class Evaluated:
    """Networks at points x (..., B, dim): one forward pass, from which values and all derivatives follow."""

    def __init__(self, net: ICNN, flat: NDArray, x: NDArray) -> None:
        from replifed.kernels.convex_networks import celu, quadratic

        self.net, self.x, self._lead = net, x, np.broadcast_shapes(x.shape[:-2], flat.shape[:-1])
        self._weights = weights = net.weights(flat)
        self._p = p = [x @ Q for Q in weights.Q]
        q = [quadratic(p[k], x @ _transposed(weights.A[k]), weights.b[k]) for k in range(3)]
        a1 = q[0] @ _transposed(weights.C[0])
        a1 += q[1]
        s1 = _slope(a1)
        u1 = celu(a1, s1)
        a2 = u1 @ _transposed(weights.C[1])
        a2 += q[2]
        self._below, self._a, self._s = (q[0], u1), (a1, a2), (s1, _slope(a2))

    @cached_property
    def _top(self) -> NDArray:
        """celu(a_2), shape (..., B, h)."""
        from replifed.kernels.convex_networks import celu

        return celu(self._a[1], self._s[1])

    def value(self) -> NDArray:
        """f, shape (..., B)."""
        quadratic = 0.5 * self.net.strong * (self.x**2).sum(axis=-1)
        return (self._top @ self._weights.w[..., None])[..., 0] + quadratic

    def push(self) -> NDArray:
        """grad f, shape (..., B, dim)."""
        from replifed.kernels.convex_networks import twice, weighted

        weights, (s1, s2) = self._weights, self._s
        e2 = weighted(weights.w, s2)
        e1 = e2 @ weights.C[1]
        e1 *= s1
        e0 = e1 @ weights.C[0]
        out = self.net.strong * self.x
        for k, e in enumerate((e0, e1, e2)):
            out = out + twice(e, self._p[k]) @ _transposed(weights.Q[k]) + e @ weights.A[k]
        return out

    def derivative(
        self, *, c: NDArray | None = None, v: NDArray | None = None, at_points: bool = False
    ) -> tuple[NDArray, NDArray | None]:
        """Derivative of sum_b c_b f(x_b) + <v_b, grad f(x_b)> in the parameters and, if asked for, in x.

        v is (..., B, dim), and c is (..., B), both 0 by default. The derivative in x is
        c_b grad f(x_b) + (Hessian of f at x_b) v_b.
        """
        from replifed.kernels.convex_networks import bent, summed, twice, weighted

        weights, x, p, strong = self._weights, self.x, self._p, self.net.strong
        (u0, u1), (a1, a2), (s1, s2) = self._below, self._a, self._s
        C0, C1, w = weights.C[0], weights.C[1], weights.w
        # Reverse sweep of the values: e_k is the derivative by q_k.
        e: list[NDArray] = []
        grad_w: Any = 0
        grad_C1: Any = 0
        grad_C0: Any = 0
        if c is not None:
            grad_w = summed(self._top, c)
            e2 = weighted(w, s2, c)
            e1 = e2 @ C1
            e1 *= s1
            e = [e1 @ C0, e1, e2]
            grad_C1, grad_C0 = _outer(e2, u1), _outer(e1, u0)
        t: list[NDArray] = []
        if v is not None:
            # Forward tangents along v, then their reverse sweep.
            pd = [v @ Q for Q in weights.Q]
            qd = [v @ _transposed(A) for A in weights.A]
            for k in range(3):
                qd[k] += twice(p[k], pd[k])
            a1d = qd[0] @ _transposed(C0)
            a1d += qd[1]
            u1d = s1 * a1d
            a2d = u1d @ _transposed(C1)
            a2d += qd[2]
            t2 = weighted(w, s2)
            f2 = bent(w[..., None, :], a2, s2, a2d)
            t1, f1 = t2 @ C1, f2 @ C1
            f1 *= s1
            f1 += bent(t1, a1, s1, a1d)
            t1 *= s1
            t0, f0 = t1 @ C0, f1 @ C0
            t = [t0, t1, t2]
            grad_w = grad_w + summed(s2 * a2d)
            grad_C1 = grad_C1 + _outer(t2, u1d) + _outer(f2, u1)
            grad_C0 = grad_C0 + _outer(t1, qd[0]) + _outer(f1, u0)
            f = [f0, f1, f2]
            e = [by_value + by_slope for by_value, by_slope in zip(e, f, strict=True)] if e else f
        flat = np.empty((*self._lead, self.net.parameters), e[0].dtype)
        grad, points = self.net.weights(flat), None
        if at_points:
            points = np.zeros((*self._lead, *x.shape[-2:]), dtype=x.dtype)
            points += 0 if c is None else c[..., None] * strong * x
            points += 0 if v is None else strong * v
        for k in range(3):
            grad_A = _outer(e[k], x)
            if v is None:
                by_p = twice(p[k], e[k])
                grad_Q = _outer(x, by_p)
            else:
                by_p = twice(p[k], e[k], pd[k], t[k])
                grad_A += _outer(t[k], v)
                grad_Q = _outer(v, twice(p[k], t[k])) + _outer(x, by_p)
            if at_points:
                points = points + by_p @ _transposed(weights.Q[k]) + e[k] @ weights.A[k]
            grad.Q[k][...], grad.A[k][...], grad.b[k][...] = grad_Q, grad_A, summed(e[k])
        grad.C[0][...], grad.C[1][...], grad.w[...] = grad_C0, grad_C1, grad_w
        return flat, points


def _slope(a: NDArray) -> NDArray:
    """celu'(a) = exp(min(a, 0)); celu(a) = max(a, 0) + celu'(a) - 1."""
    s = np.minimum(a, 0)
    return np.exp(s, out=s)


def _outer(left: NDArray, right: NDArray) -> NDArray:
    """sum_b left_b right_b', (..., B, m), (..., B, n) -> (..., m, n)."""
    return _transposed(left) @ right


def _transposed(a: NDArray) -> NDArray:
    return np.swapaxes(a, -1, -2)


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """The benchmark's P in R^dim: centres on a grid, covariances from random maps, variance dim."""

    dim: int
    # Number of components, and the standard deviation of each before standardising.
    components: ClassVar[int] = 3
    std: ClassVar[float] = 0.4

    @cached_property
    def _drawn(self) -> tuple[NDArray, NDArray]:
        """Centres (k, d) and maps (k, d, d)."""
        k, d = self.components, self.dim
        rng = np.random.RandomState(0)  # numpy's legacy generator and the seed of the benchmark
        centres = np.stack([rng.choice(k, k, replace=False) for _ in range(d)], axis=1) - (k - 1) / 2
        maps = rng.normal(size=(k, d, d))
        maps /= np.linalg.norm(maps, axis=2, keepdims=True)
        scale = np.sqrt(((centres**2).sum(axis=1).mean() + d * self.std**2) / d)
        return centres / scale, maps / scale

    def sample(self, rng: np.random.Generator, size: int) -> NDArray:
        """Draw `size` samples, (size, dim)."""
        centres, maps = self._drawn
        which = rng.integers(self.components, size=size)
        noise = rng.standard_normal((size, self.dim))
        return (maps[which] @ noise[:, :, None])[:, :, 0] * self.std + centres[which]


class TrueMap:
    """Gradient of the sum of a `pair` (2, parameters) of networks, standardised on `samples`."""

    def __init__(self, pair: NDArray, dim: int, samples: NDArray) -> None:
        self.net = ICNN(dim=dim, hidden=benchmark_hidden(dim), strong=1e-2)
        self.pair = np.asarray(pair, dtype=float)
        self.shift: NDArray | float = 0.0
        self.scale = 1.0
        pushed = self(samples)
        self.shift = pushed.mean(axis=0)
        self.scale = 1 / np.sqrt(pushed.var(axis=0).mean())

    def __call__(self, x: NDArray) -> NDArray:
        """T*(x), (n, dim) -> (n, dim)."""
        return self.scale * (self.net.push(self.pair, x[None]).sum(axis=0) - self.shift)


@runtime_checkable
class Transport(Protocol):
    """Capability of a federated transport problem."""

    net: ICNN

    def sources(self, chosen: NDArray, batch: NDArray | None) -> NDArray:
        """Minibatch of each chosen client's samples of P, or all of them, (R or 1, c, b, dim)."""

    def targets(self, batch: NDArray) -> NDArray:
        """Public samples of Q, (R or 1, b, dim)."""


class FederatedTransport:
    """Samples of P split between clients, public samples of Q, and the error of a map against the true T*.

    Of each of S data sets, one for all runs or one a run, the clients' samples of P are (N, m, dim),
    `targets` (n, dim) samples of Q, and `tests` (n', dim) further samples of P, on which maps are compared.
    From now on the process keeps memory that it frees: a step of training makes some twenty arrays of half a
    megabyte.
    """

    def __init__(self, sources: NDArray, targets: NDArray, tests: NDArray, true_map: Any) -> None:
        keep_freed()
        S, N, m, dim = sources.shape
        self.n_clients, self.dtype = N, np.dtype(np.float32)
        self.net = ICNN(dim=dim, hidden=benchmark_hidden(dim), strong=_STRONG)
        self.dim = self.net.parameters
        self.sizes, self.weights = np.full((S, N), m), np.full((S, N), 1 / N)
        self._sets = np.arange(S)  # each run's, or that of all
        self._sources, self._targets = sources.astype(np.float32), targets.astype(np.float32)
        self._tests, self._images = tests.astype(np.float32), np.stack([true_map(x) for x in tests])
        self._variance = self._images.var(axis=1).sum(axis=-1)
        self.n_targets = targets.shape[1]

    def repeated(self, times: int) -> FederatedTransport:
        """Return the problem in which each run appears `times` times in a row."""
        if len(self._sets) == 1:
            return self
        more = copy.copy(self)
        more._sets, more.sizes, more.weights = (
            np.repeat(array, times, axis=0) for array in (self._sets, self.sizes, self.weights)
        )
        return more

    def sources(self, chosen: NDArray, batch: NDArray | None) -> NDArray:
        sets = self._sets[:, None]
        if batch is None:
            return self._sources[sets, chosen]
        return self._sources[sets[..., None], chosen[:, :, None], batch]

    def targets(self, batch: NDArray) -> NDArray:
        return self._targets[self._sets[:, None], batch]

    def uvp(self, omega: NDArray) -> NDArray:
        """L2-UVP of grad f_omega, in percent: 100 E|T(x) - T*(x)|^2 / Var(Q), Var the covariance's trace."""
        sets = np.broadcast_to(self._sets, len(omega))
        # Run by run: a network's layers take many times the memory of the test samples.
        runs = zip(omega, sets, strict=True)
        return np.array([self._uvp(self.net.push(flat, self._tests[s]), s) for flat, s in runs])

    def _uvp(self, images: NDArray, s: int) -> float:
        return 100 * ((images - self._images[s]) ** 2).sum(axis=-1).mean() / self._variance[s]

    def linear_uvp(self) -> NDArray:
        """L2-UVP (S,) of the best linear maps between Gaussians with the moments of P and Q."""
        pairs = enumerate(zip(self._tests.astype(float), self._images, strict=True))
        return np.array([self._uvp(_linear_map(x, y), s) for s, (x, y) in pairs])


def _linear_map(x: NDArray, y: NDArray) -> NDArray:
    """Images (n, dim) of x under the best linear map between Gaussians with the moments of x and of y."""
    from scipy.linalg import sqrtm

    root = np.real(sqrtm(np.cov(x.T)))
    inverse = np.linalg.inv(root)
    weight = inverse @ np.real(sqrtm(root @ np.cov(y.T) @ root)) @ inverse
    return (x - x.mean(axis=0)) @ weight.T + y.mean(axis=0)
