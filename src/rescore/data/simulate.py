"""Data with a known graph: random DAGs, mechanisms and noise, groups of rows and outlying rows."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rescore.data import Dataset
from rescore.data.mechanisms import (
    MECHANISMS,
    NOISES,
    Adjacency,
    group_members,
    group_scales,
    propagate,
    standard_noise,
)
from rescore.graph.dag import topological_order
from rescore.validation import check_choice, check_integer, check_number

FloatArray = NDArray[np.float64]
ACCEPTED = "a non-negative int, a numpy SeedSequence or a numpy Generator"
RandomState = int | np.random.SeedSequence | np.random.Generator
# Callers often spawn children 0, 1, 2, ... of the same seed for other purposes. This number goes
# in front of ours, so that those children and our streams stay different.
SIMULATION = 0x51B


def simulate(
    graph: str | pd.DataFrame | np.ndarray = "ER",
    degree: int = 2,
    nodes: int = 20,
    samples: int = 2000,
    mechanism: str = "linear",
    noise: str = "gauss",
    *,
    groups: Sequence[float] | None = None,
    noise_scale: float | None = None,
    scale_is: Literal["std", "variance"] = "std",
    corrupt: float = 0.0,
    random_state: RandomState = 0,
) -> Dataset:
    """Rows of the additive noise model x_j = f_j(parents of j) + s_j noise_j, with their truth.

    Parameters
    ----------
    graph
        "ER" (nodes * degree edges), "SF" (Barabási–Albert), or your own DAG: a matrix of 0 and 1
        whose entry [i, j] is 1 for i -> j. With your own, `degree` and `nodes` are not used.
    degree, nodes
        Edges per node and number of variables, named x0, x1, ...
    samples
        Number of rows. "gp" with several parents allows up to 10,000.
    mechanism
        "linear", "gp" (jointly over the parents), "gp-add", "mlp" or "mim": how f_j is drawn.
    noise
        "gauss", "exp", "gumbel" or "uniform", all of mean zero.
    groups
        Shares of the rows, such as (0.9, 0.1). The groups g0, g1, ... have the same f_j and differ
        only in the scales s_j, so `noise_scale` must be given too. Rows of all groups are mixed.
    noise_scale
        In g0 a random half of the variables has s_j = 1, the other half `noise_scale`; g1 is
        flipped; every further group has a new random half. Without `groups`, all rows are as g0.
    scale_is
        Whether `noise_scale` is a factor on the standard deviation ("std") or on the "variance".
    corrupt
        Share of the rows replaced by rows of another model: a new graph of the same kind (your own
        graph relabelled), new f_j, and noise with s_j = 1. Their group is "corrupted".
    random_state
        An int or SeedSequence, always with the same result, or a Generator, which is moved on.
        The graph, f_j, noise, groups and corruption have separate streams: another mechanism
        keeps the graph, and `corrupt` keeps the other rows.

    Examples
    --------
    >>> data = simulate("ER", degree=2, nodes=10, samples=500, groups=(0.9, 0.1), noise_scale=0.1)
    >>> data.X.shape, int(data.truth.to_numpy().sum())
    ((500, 10), 20)
    >>> data.groups.value_counts().to_dict()
    {'g0': 450, 'g1': 50}
    """
    n, share = (
        check_integer("samples", samples, at_least=1),
        check_number("corrupt", corrupt, at_least=0, below=1),
    )
    mechanism, noise = (
        check_choice("mechanism", mechanism, MECHANISMS),
        check_choice("noise", noise, NOISES),
    )
    low = _low_scale(noise_scale, scale_is, grouped=groups is not None)
    rng = streams(random_state)
    truth = _truth(graph, nodes, degree, rng.graph)
    A = truth.to_numpy()  # (d, d)

    member, scales = _groups((1.0,) if groups is None else groups, n, len(A), low, rng.groups)
    E = standard_noise(noise, n, len(A), rng.noise) * scales  # (n, d)
    X = propagate(A, E, mechanism, rng.mechanism)
    labels = np.array([f"g{k}" for k in member], dtype=object)
    if share > 0:
        pick, draw, *model_rngs = rng.corruption.spawn(4)
        rows, other = _outlying_rows(share, n, pick), _another_graph(graph, A, degree, draw)
        X[rows] = _unit_noise_rows(other, len(rows), mechanism, noise, model_rngs)
        labels[rows] = "corrupted"
    return Dataset.from_arrays(
        pd.DataFrame(X, columns=truth.columns),
        truth=truth,
        groups=None if groups is None and share == 0 else labels,
        source=_source(
            graph,
            degree,
            A,
            random_state,
            samples=n,
            mechanism=mechanism,
            noise=noise,
            groups=groups,
            noise_scale=noise_scale,
            scale_is=scale_is,
            corrupt=share,
        ),
    )


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


def _low_scale(noise_scale: float | None, scale_is: str, grouped: bool) -> float:
    """The factor on the noise of the quiet half of the variables, as a standard deviation."""
    unit = check_choice("scale_is", scale_is, ("std", "variance"))
    if noise_scale is None:
        if grouped:
            raise ValueError(
                "groups differ only in their noise scales, and noise_scale is None. "
                "Give noise_scale too, for example 0.1."
            )
        return 1.0
    low = check_number("noise_scale", noise_scale, above=0)
    return low if unit == "std" else float(np.sqrt(low))


def _truth(
    graph: str | pd.DataFrame | np.ndarray, nodes: int, degree: int, rng: np.random.Generator
) -> pd.DataFrame:
    """The graph of the data with its names: drawn, or the user's own."""
    if isinstance(graph, pd.DataFrame | np.ndarray):
        return named_adjacency(graph)
    A = GRAPHS[check_choice("graph", graph, GRAPHS)](nodes, degree, rng)
    return pd.DataFrame(A, index=default_names(len(A)), columns=default_names(len(A)))


def _another_graph(
    graph: str | pd.DataFrame | np.ndarray, A: Adjacency, degree: int, rng: np.random.Generator
) -> Adjacency:
    """A new graph of the same kind as A."""
    if isinstance(graph, str):
        return GRAPHS[check_choice("graph", graph, GRAPHS)](len(A), degree, rng)
    return relabel(A, rng)


def _groups(
    shares: Sequence[float], n: int, d: int, low: float, rng: np.random.Generator
) -> tuple[NDArray[np.int64], FloatArray]:
    """The group (n,) and the noise scales (n, d) of every row."""
    order, halves = rng.spawn(2)
    member = group_members(shares, n, order)
    return member, group_scales(len(shares), d, low, halves)[member]


def _outlying_rows(share: float, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Which rows to replace: the nearest whole number to share * n, at random positions."""
    count = int(np.floor(share * n + 0.5))
    if count in (0, n):
        raise ValueError(
            f"corrupt={share} of {n} rows is {count} rows after rounding, which leaves "
            f"{'none' if count == 0 else 'all'} of them corrupted. Raise samples or change corrupt."
        )
    return rng.permutation(n)[:count]


def _unit_noise_rows(
    graph: Adjacency, n: int, mechanism: str, noise: str, rngs: Sequence[np.random.Generator]
) -> FloatArray:
    """Rows of a model in which every noise has scale 1."""
    function_rng, noise_rng = rngs
    E = standard_noise(noise, n, len(graph), noise_rng)
    return propagate(graph, E, mechanism, function_rng)


def _source(
    graph: object, degree: int, A: Adjacency, random_state: RandomState, **choices: object
) -> str:
    """The call that made the data, on one line, as far as it can be written down."""
    kind = f"{graph.upper()!r}, degree={degree}" if isinstance(graph, str) else "graph"
    seed = "Generator" if isinstance(random_state, np.random.Generator) else random_state
    given = {"nodes": len(A), **choices}
    words = [f"{name}={value!r}" for name, value in given.items() if value is not None]
    return " ".join(f"simulate({kind}, {', '.join(words)}, random_state={seed})".split())


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


def erdos_renyi(nodes: int, degree: int, rng: np.random.Generator) -> Adjacency:
    """A DAG with exactly nodes * degree edges, spread evenly over the pairs of a random order.

    Examples
    --------
    >>> int(erdos_renyi(10, 2, np.random.default_rng(0)).sum())
    20
    """
    d, k = check_integer("nodes", nodes, at_least=1), check_integer("degree", degree, at_least=0)
    pairs = d * (d - 1) // 2
    if d * k > pairs:
        raise ValueError(
            f"An ER graph with {d} nodes and degree {k} needs {d * k} edges, but a DAG on {d} "
            f"nodes has at most {pairs}. Lower degree to {(d - 1) // 2} or raise nodes to "
            f"{2 * k + 1}."
        )
    cause, effect = np.triu_indices(d, 1)
    edges = rng.choice(pairs, d * k, replace=False)
    A = np.zeros((d, d), np.int8)
    A[cause[edges], effect[edges]] = 1
    return relabel(A, rng)


def scale_free(nodes: int, degree: int, rng: np.random.Generator) -> Adjacency:
    """A Barabási–Albert DAG: nodes join one by one, each sending `degree` edges to older ones.

    An older node is chosen with probability proportional to 1 + its in-degree, so hubs are common
    effects, as in the data of NOTEARS; labels are then permuted at random. The first `degree`
    newcomers find fewer than `degree` older nodes and link to all of them, which makes
    nodes * degree - degree * (degree + 1) / 2 edges.

    Examples
    --------
    >>> int(scale_free(10, 2, np.random.default_rng(0)).sum())
    17
    """
    d, k = check_integer("nodes", nodes, at_least=1), check_integer("degree", degree, at_least=0)
    if k >= d:
        raise ValueError(
            f"An SF graph with {d} nodes allows a degree of at most {d - 1}; got {k}. "
            f"Lower degree or raise nodes to {k + 1} or more."
        )
    A = np.zeros((d, d), np.int8)
    for new in range(1, d):
        appeal = 1.0 + A[:new, :new].sum(axis=0)
        older = rng.choice(new, min(new, k), replace=False, p=appeal / appeal.sum())
        A[new, older] = 1
    return relabel(A, rng)


def relabel(graph: Adjacency, rng: np.random.Generator) -> Adjacency:
    """The same graph with its nodes renamed by a random permutation.

    Examples
    --------
    >>> chain = np.eye(4, k=1, dtype=np.int8)
    >>> sorted(relabel(chain, np.random.default_rng(0)).sum(axis=0).tolist())
    [0, 1, 1, 1]
    """
    order = rng.permutation(len(graph))
    return graph[np.ix_(order, order)]


def named_adjacency(graph: pd.DataFrame | np.ndarray) -> pd.DataFrame:
    """A user's own graph as a checked DataFrame of 0 and 1; an array gets the names x0, x1, ...

    Examples
    --------
    >>> named_adjacency(np.array([[0, 1], [0, 0]]))
        x0  x1
    x0   0   1
    x1   0   0
    """
    A = np.asarray(graph)
    if A.ndim != 2 or A.shape[0] != A.shape[1] or not A.size:
        raise ValueError(f"graph must be a square matrix; its shape is {A.shape}.")
    if A.dtype.kind not in "biuf" or not np.isin(A, (0, 1)).all():
        raise ValueError(
            "graph must hold only 0 and 1, with 1 at [i, j] for i -> j. Give (W != 0).astype(int) "
            "if W holds weights."
        )
    names = _names(graph) if isinstance(graph, pd.DataFrame) else default_names(len(A))
    topological_order(A, list(names))  # raises for a cycle; an edge from a node to itself is one
    return pd.DataFrame(A.astype(np.int8), index=names, columns=names)


def default_names(nodes: int) -> pd.Index:
    """The labels x0, x1, ... of simulated variables.

    Examples
    --------
    >>> list(default_names(2))
    ['x0', 'x1']
    """
    return pd.Index([f"x{j}" for j in range(nodes)])


def _names(graph: pd.DataFrame) -> pd.Index:
    """The columns of the frame, which must label its rows in the same order."""
    if not graph.index.equals(graph.columns):
        raise ValueError(
            "The rows and columns of graph must carry the same names in the same order. "
            "Use graph.loc[graph.columns]."
        )
    if not graph.columns.is_unique:
        raise ValueError("A name occurs twice in the columns of graph. Rename one of them.")
    return graph.columns


GRAPHS: dict[str, Callable[[int, int, np.random.Generator], Adjacency]] = {
    "ER": erdos_renyi,
    "SF": scale_free,
}
