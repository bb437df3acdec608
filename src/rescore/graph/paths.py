"""Where directed paths lead, and what they say about the order of causes."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["precedence", "reachability"]

Mask = NDArray[np.bool_]


def reachability(A: Mask) -> Mask:
    """``[i, j]`` where a directed path leads from i to j, by repeated squaring.

    Examples
    --------
    >>> reachability(np.array([[False, True, False], [False, False, True], [False] * 3]))[0]
    array([False,  True,  True])
    """
    reach = A.copy()
    while True:
        further = reach | (reach.astype(float) @ reach.astype(float) > 0)
        if (further == reach).all():
            return reach
        reach = further


def precedence(allowed: Mask, required: Mask) -> Mask:
    """``[i, j]`` where i can be put before j in every order worth looking at, (d, d); acyclic.

    Required edges point forward.  And where allowed edges lead from i to j but never back, no graph
    is lost by putting i first, while putting j first would lose the edge.

    Examples
    --------
    >>> only_forward = np.triu(np.ones((3, 3), dtype=bool), k=1)
    >>> (precedence(only_forward, np.zeros((3, 3), dtype=bool)) == only_forward).all()
    np.True_
    """
    d = len(allowed)
    if allowed.sum() == d * (d - 1):
        return required
    reach = reachability(allowed)
    return required | (reach & ~reach.T)
