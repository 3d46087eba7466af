"""Random streams: named, so that rows, replicates and methods do not disturb one another."""

import numpy as np

from replifed.randomness import Streams, generator


def normal(rng):
    return rng.standard_normal(4)


def test_first_numbers_are_those_of_always():
    # A change here changes every published number.
    assert generator(319, 1, None, "data").integers(2**32, size=4).tolist() == [
        1393794787,
        242822544,
        3420772261,
        2260919654,
    ]
    assert generator(319, 1, 7, "batch").random(3).tolist() == [
        0.48350966371865456,
        0.5242701195731437,
        0.45516203618567885,
    ]


def test_every_part_of_the_name_counts():
    names = [(s, r, t, p) for s in (0, 1) for r in (0, 1) for t in (None, 0, 1) for p in ("batch", "data")]
    # Numbers that would collide if the parts were glued together without a separator.
    names += [(1, 11, 1, "batch"), (11, 1, 1, "batch"), (1, 1, 11, "batch")]
    drawn = {tuple(generator(*name).integers(2**63, size=2)) for name in names}
    assert len(drawn) == len(names)


def test_a_row_depends_on_its_own_name_alone():
    rows = Streams(5, (3, 8, 3, 9)).at(2).draw("batch", normal)
    assert rows.shape == (4, 4)
    assert np.array_equal(rows[0], rows[2])
    assert not np.array_equal(rows[0], rows[1])
    turned = Streams(5, (9, 8, 3)).at(2).draw("batch", normal)
    assert np.array_equal(turned, rows[[3, 1, 2]])
    # And so it does where it stands alone, and where all rows share their numbers, which come once.
    assert np.array_equal(Streams(5, (8,)).at(2).draw("batch", normal), rows[1:2])
    assert np.array_equal(Streams(5, (8, 8, 8)).at(2).draw("batch", normal), rows[1:2])


def test_numbers_are_drawn_once_per_name():
    calls = []
    Streams(5, (1, 2, 1, 2, 1)).draw("data", lambda rng: calls.append(1) or normal(rng))
    assert len(calls) == 2


def test_rounds_and_purposes_are_independent_of_what_was_drawn_before():
    streams = Streams(5, (1, 2))
    first = streams.at(3).draw("batch", normal)
    streams.at(3).draw("batch", lambda rng: rng.random(1000))
    streams.at(2).draw("cohort", normal)
    assert np.array_equal(streams.at(3).draw("batch", normal), first)
    assert not np.array_equal(streams.at(4).draw("batch", normal), first)
    assert not np.array_equal(streams.at(3).draw("cohort", normal), first)
    assert streams.round_ is None
    assert len(streams) == 2
