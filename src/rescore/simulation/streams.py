"""One seed, five independent streams of random numbers: changing one choice moves no other draw."""

from typing import NamedTuple

import numpy as np

__all__ = ["RandomState", "Streams", "streams"]

ACCEPTED = "a non-negative int, a numpy SeedSequence or a numpy Generator"
RandomState = int | np.random.SeedSequence | np.random.Generator

# Callers often spawn children 0, 1, 2, ... of the same seed for other purposes. This number goes
# in front of ours, so that those children and our streams stay different.
SIMULATION = 0x51B


class Streams(NamedTuple):
    """The generators that `simulate` draws from, one for each part of the data."""

    graph: np.random.Generator
    mechanism: np.random.Generator
    noise: np.random.Generator
    groups: np.random.Generator
    corruption: np.random.Generator


def streams(random_state: RandomState) -> Streams:
    """The five streams of a seed.

    The same int or SeedSequence always gives the same streams, and a SeedSequence is left as it
    was. A Generator is moved on by the draw of a new seed, so that it gives other streams at
    every call.

    Examples
    --------
    >>> streams(7).noise.random() == streams(7).noise.random()
    True
    >>> streams(7).noise.random() == streams(7).graph.random()
    False
    """
    seed = _seed_sequence(random_state)
    children = [
        np.random.SeedSequence(
            seed.entropy, spawn_key=(*seed.spawn_key, SIMULATION, k), pool_size=seed.pool_size
        )
        for k in range(len(Streams._fields))
    ]
    return Streams(*map(np.random.default_rng, children))


def _seed_sequence(random_state: object) -> np.random.SeedSequence:
    if isinstance(random_state, np.random.SeedSequence):
        return random_state
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence(random_state.integers(2**63, size=2).tolist())
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer):
        raise TypeError(f"random_state must be {ACCEPTED}; got {random_state!r}.")
    if random_state < 0:
        raise ValueError(f"random_state must be {ACCEPTED}; got {random_state}.")
    return np.random.SeedSequence(int(random_state))
