"""How the networks' penalties, and the cut on what their inputs explain, grow with variables.

Tuned on simulated Gaussian-process data.
"""

from rescore.backbones.explained import break_even
from rescore.moments import Matrix

# More inputs overfit more: beyond so many variables the penalties grow, by this power.
ALONE, CROWDING = 18, 1.2
FEW = 10  # refits on a DAG of more variables than this have penalties as much larger
# What an input explains by chance, on average, is CHANCE · units / rows; penalties that are x times
# larger leave it less by x^CALM.
CHANCE, CALM = 2.4, 0.2
ROWS = 2000  # of the data this was tuned on


def stiffness(d: int, *, dag: bool) -> float:
    """The factor on the penalties of d networks, which see all variables or those of a DAG.

    Examples
    --------
    >>> stiffness(10, dag=False), stiffness(20, dag=True)
    (1.0, 2.0)
    """
    return max(1.0, d / FEW if dag else (d / ALONE) ** CROWDING)


def floor(least_share: float, rows: float) -> float:
    """The share of its effect's variance that an edge must explain: none up to 2,000 rows.

    Few rows leave so much to chance that only sizeable effects are certain.  With more, the
    slightest dependence is, and its size must decide: ``least_share (1 − 2000/rows)`` is asked for.

    Examples
    --------
    >>> floor(0.01, 2000), floor(0.01, 8000)
    (0.0, 0.0075)
    """
    return least_share * max(0.0, 1 - ROWS / rows)


def cut(D: Matrix, d: int, pairs: int, units: int, rows: float) -> float:
    """What an input of a DAG of d networks must explain: the D of an edge as likely there as not.

    D (k,) are those of the edges left; a DAG has one candidate for each of so many possible pairs.

    Examples
    --------
    >>> import numpy as np
    >>> round(cut(np.full(9, 0.5), d=10, pairs=45, units=10, rows=2000), 3)
    0.046
    """
    chance = CHANCE * units / rows / stiffness(d, dag=True) ** CALM
    return break_even(D, max(pairs - len(D), 0), chance)
