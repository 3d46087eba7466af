"""Parts of a message, how many bits of it the ledger counts, and numbers as bits, packed without gaps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from replifed.errors import ReplifedError
from replifed.network.ledger import BITS_PER_VALUE, sparse_bits

_WHOLE = 64  # bits of a double
_IEEE = {16: np.float16, 32: np.float32, 64: np.float64}
# Bits of a double besides its fraction, of which a shorter float keeps the first.
_SIGN_AND_EXPONENT = 12


@dataclass(frozen=True)
class Layout:
    """Shape of a part, from which its bits follow: the receiver reads it before them."""

    kind: int
    width: int  # of a float
    length: int  # d, or n of an eigenvector
    count: int  # non-zeros k, or vectors q
    widths: tuple[int, ...] = ()  # of a coordinate of each vector
    exact: bool = False  # whether floats are doubles, whatever their width

    def float_bits(self, width: int) -> int:
        """Bits of a float of the stated width, as it is sent."""
        return _WHOLE if self.exact else width

    @property
    def booked(self) -> int:
        """Bits that the ledger counts."""
        return KINDS[self.kind].bits_of(replace(self, exact=False))

    @property
    def bits(self) -> int:
        """Bits that are sent: those booked, unless floats are exact."""
        return KINDS[self.kind].bits_of(self)


@dataclass(frozen=True)
class Dense:
    """A vector, all of its coordinates as floats.

    Parameters
    ----------
    values : array, shape (d,)
    width : bits of a float
    """

    values: NDArray
    width: int = BITS_PER_VALUE

    kind: ClassVar = 0

    def layout(self, exact: bool) -> Layout:
        return Layout(self.kind, self.width, _length(self.values), 1, exact=exact)

    @staticmethod
    def bits_of(layout: Layout) -> int:
        return layout.float_bits(layout.width) * layout.length

    def encode(self, layout: Layout) -> NDArray:
        return _floats(self.values, layout.float_bits(layout.width))

    @staticmethod
    def decode(bits: NDArray, layout: Layout) -> NDArray:
        return _read(bits, layout.float_bits(layout.width))


def _length(values: NDArray) -> int:
    if np.ndim(values) != 1:
        raise ReplifedError(f"a part of the shape {np.shape(values)}: give a vector, such as values.ravel()")
    return len(values)


def _floats(values: NDArray, width: int) -> NDArray:
    return packed(from_floats(np.asarray(values, float), width), width)


def _read(bits: NDArray, width: int) -> NDArray:
    return to_floats(unpacked(bits, width), width)


@dataclass(frozen=True)
class Sparse:
    """A vector with at most k coordinates that are not zero: where they are, and their values.

    The support is a list of indices or a mask, whichever is shorter; if a dense vector is shorter than both,
    that is sent. Fewer than k non-zeros are filled up with zeros, so that the length tells nothing.

    Parameters
    ----------
    values : array, shape (d,)
    k : most non-zeros
    width : bits of a float
    """

    values: NDArray
    k: int
    width: int = BITS_PER_VALUE

    kind: ClassVar = 1

    def layout(self, exact: bool) -> Layout:
        d = _length(self.values)
        return Layout(self.kind, self.width, d, min(int(self.k), d), exact=exact)

    @staticmethod
    def bits_of(layout: Layout) -> int:
        k, d, booked = layout.count, layout.length, sparse_bits(layout.count, layout.length, layout.width)
        floats = d if _is_dense(layout) else k
        return int(booked) + (layout.float_bits(layout.width) - layout.width) * floats

    def encode(self, layout: Layout) -> NDArray:
        d, k = layout.length, layout.count
        values = np.asarray(self.values, float)
        support = np.flatnonzero(values)
        if len(support) > k:
            raise ReplifedError(f"a message of {k} non-zeros is to carry {len(support)}: threshold it first")
        if _is_dense(layout):
            return Dense(values, layout.width).encode(layout)
        spare = np.setdiff1d(np.arange(d), support, assume_unique=True)[: k - len(support)]
        support = np.union1d(support, spare)
        if _is_list(layout):
            where = packed(support, (d - 1).bit_length())
        else:
            where = np.isin(np.arange(d), support).astype(np.uint8)
        return np.concatenate([where, _floats(values[support], layout.float_bits(layout.width))])

    @staticmethod
    def decode(bits: NDArray, layout: Layout) -> NDArray:
        d, k = layout.length, layout.count
        if _is_dense(layout):
            return Dense.decode(bits, layout)
        width = layout.float_bits(layout.width)
        of_support = len(bits) - k * width
        where = bits[:of_support]
        indices = (d - 1).bit_length()
        support = unpacked(where, indices).astype(int) if _is_list(layout) else np.flatnonzero(where)
        if len(support) != k or (np.diff(support) <= 0).any() or support[-1:].max(initial=0) >= d:
            raise ReplifedError(f"a support of {k} of {d} coordinates is damaged: send it again")
        values = np.zeros(d)
        values[support] = _read(bits[of_support:], width)
        return values


def _is_dense(layout: Layout) -> bool:
    k, d, width = layout.count, layout.length, layout.width
    return int(sparse_bits(k, d, width)) == width * d


def _is_list(layout: Layout) -> bool:
    """Return whether a list of indices is shorter than a mask; for d = 1, the whole is dense."""
    return layout.count * (layout.length - 1).bit_length() < layout.length


@dataclass(frozen=True)
class Quantised:
    """Numbers of cells, with as many bits a coordinate as each vector has been allocated.

    Arrives as an array (q, 1 + n), in each row the bits of a coordinate and the cells.

    Parameters
    ----------
    cells : int array, shape (q, n)
    widths : int array, shape (q,)
        The ledger does not count these, without which nobody can read the cells: they go into the head.
    """

    cells: NDArray
    widths: NDArray

    kind: ClassVar = 2

    def layout(self, exact: bool) -> Layout:
        q, n = self.cells.shape
        return Layout(self.kind, 0, n, q, tuple(int(width) for width in self.widths))

    @staticmethod
    def bits_of(layout: Layout) -> int:
        return layout.length * sum(layout.widths)

    def encode(self, layout: Layout) -> NDArray:
        rows = [np.zeros(0, np.uint8)]
        for row, width in zip(self.cells, layout.widths, strict=True):
            if (row >> width).any():  # also of what is negative
                raise ReplifedError(f"a cell of {width} bits: must be from 0 to {2**width - 1}")
            rows.append(packed(row, width))
        return np.concatenate(rows)

    @staticmethod
    def decode(bits: NDArray, layout: Layout) -> NDArray:
        end, n = 0, layout.length
        rows = np.zeros((layout.count, 1 + n), np.int64)
        for row, width in zip(rows, layout.widths, strict=True):
            row[0] = width
            if width:
                row[1:] = unpacked(bits[end : end + n * width], width)
            end += n * width
        return rows


@dataclass(frozen=True)
class Eigenpairs:
    """Eigenvalues, 32 bits each, and their eigenvectors with `width` bits a coordinate; one pair a row.

    Parameters
    ----------
    pairs : array, shape (q, 1 + n)
        An eigenvalue and its vector in each row.
    width : bits of a coordinate
    """

    pairs: NDArray
    width: int = BITS_PER_VALUE

    kind: ClassVar = 3

    def layout(self, exact: bool) -> Layout:
        q, n = self.pairs.shape
        # The widths are those of an eigenvalue and of a coordinate.
        return Layout(self.kind, BITS_PER_VALUE, n - 1, q, (self.width,) * q, exact)

    @staticmethod
    def bits_of(layout: Layout) -> int:
        widths = map(layout.float_bits, layout.widths)
        return layout.float_bits(layout.width) * layout.count + layout.length * sum(widths)

    def encode(self, layout: Layout) -> NDArray:
        widths = map(layout.float_bits, layout.widths)
        vectors = [_floats(v, width) for v, width in zip(self.pairs[:, 1:], widths, strict=True)]
        return np.concatenate([_floats(self.pairs[:, 0], layout.float_bits(layout.width)), *vectors])

    @staticmethod
    def decode(bits: NDArray, layout: Layout) -> NDArray:
        n, width = layout.length, layout.float_bits(layout.width)
        end = width * layout.count
        pairs = np.empty((layout.count, 1 + n))
        pairs[:, 0] = _read(bits[:end], width)
        for pair, width in zip(pairs, map(layout.float_bits, layout.widths), strict=True):
            pair[1:] = _read(bits[end : end + n * width], width)
            end += n * width
        return pairs


Part = Dense | Sparse | Quantised | Eigenpairs
KINDS: tuple[type[Dense] | type[Sparse] | type[Quantised] | type[Eigenpairs], ...] = (
    Dense,
    Sparse,
    Quantised,
    Eigenpairs,
)


def packed(integers: NDArray, width: int) -> NDArray:
    """Bits, most significant first, of non-negative integers (m,) below 2^width; shape (m width,)."""
    shifts = np.arange(width - 1, -1, -1, dtype=np.uint64)
    return ((integers.astype(np.uint64)[:, None] >> shifts) & np.uint64(1)).astype(np.uint8).ravel()


def unpacked(bits: NDArray, width: int) -> NDArray:
    """Integers (m,) of which `bits` (m width,) are `packed`."""
    shifts = np.arange(width - 1, -1, -1, dtype=np.uint64)
    return (bits.reshape(-1, width).astype(np.uint64) << shifts).sum(axis=1, dtype=np.uint64)


def from_floats(values: NDArray, width: int) -> NDArray:
    """Integers (m,) whose bits are the floats nearest to `values` (m,).

    Floats of 16, 32 and 64 bits are those of IEEE 754; of other widths, the first bits of a double.

    Raises
    ------
    ReplifedError
        If there is no float of so few, or so many, bits.
    """
    if width in _IEEE:
        with np.errstate(over="ignore"):
            return values.astype(_IEEE[width]).view(f"u{width // 8}").astype(np.uint64)
    dropped = np.uint64(64 - _checked(width))
    whole = np.ascontiguousarray(values, np.float64).view(np.uint64)
    half = np.where(np.isfinite(values), np.uint64(1) << (dropped - np.uint64(1)), np.uint64(0))
    return (whole + half) >> dropped


def to_floats(integers: NDArray, width: int) -> NDArray:
    """Doubles (m,) of the bits that `from_floats` returns."""
    if width in _IEEE:
        return integers.astype(f"u{width // 8}").view(_IEEE[width]).astype(float)
    return (integers.astype(np.uint64) << np.uint64(64 - _checked(width))).view(np.float64)


def _checked(width: int) -> int:
    if not _SIGN_AND_EXPONENT < width < 64:
        raise ReplifedError(
            f"a float of {width} bits: a float on the wire has {_SIGN_AND_EXPONENT + 1} to 64; set b_max, or "
            "vector_bits, to one of these, or single_precision"
        )
    return width
