"""The data sets of `any_units.py`: a function of a seed for every data set of every setting.

2,000 rows unless said.  The units are a factor exp(U(-3, 3)) on each column unless a name says
otherwise: "own" are the units in which the noise was drawn, "standardised" are columns of
deviation one.  The order of the columns tells nothing: every random graph of `rescore.data` has
its nodes relabelled at random.
"""

import itertools
from functools import partial

import numpy as np

import rescore as rs
from rescore.data.mechanisms import (
    coefficients,
    group_members,
    linear_coefficients,
    propagate,
    standard_noise,
)
from rescore.data.simulate import GRAPHS, relabel, scale_free, streams
from rescore.graph.dag import topological_order

ROWS = 2000
UNITS_STREAM = 0xA0  # beside the streams of `simulate`, so that units depend on nothing else
TWO_GROUPS, THREE_GROUPS = (0.8, 0.2), (0.6, 0.25, 0.15)
GROUP_SCALES, VARIABLE_SCALES = (0.3, 3.0), (0.5, 2.0)  # of the noise, log-uniform between
WEAK_EFFECTS = (0.1, 0.5)  # deviations of the effect for a deviation of the cause
MOST_EXPLAINED = 0.9  # of a variance by its causes; weak effects that add up to more are shrunk
BASE = "base"

UNITS = {
    "own": lambda X, rng: np.ones(X.shape[1]),
    "random": lambda X, rng: np.exp(rng.uniform(-3, 3, X.shape[1])),
    "standardised": lambda X, rng: 1 / X.std(axis=0),
}


def in_units(X, units, seed):
    return X * UNITS[units](X, np.random.default_rng((seed, UNITS_STREAM)))


def log_uniform(bounds, shape, rng):
    return np.exp(rng.uniform(*np.log(bounds), shape))


def linear(
    kind,
    nodes,
    degree,
    seed,
    *,
    shares=(1.0,),
    scales=VARIABLE_SCALES,
    noise="gauss",
    units="random",
):
    """Linear rows; each group of them has a noise scale of its own for every variable."""
    rng = streams(seed)
    graph = GRAPHS[kind](nodes, degree, rng.graph)
    member = group_members(shares, ROWS, rng.groups)
    scale = log_uniform(scales, (len(shares), nodes), rng.groups)  # (K, d)
    E = standard_noise(noise, ROWS, nodes, rng.noise) * scale[member]
    X = propagate(graph, E, "linear", rng.mechanism)
    return rs.Dataset.from_arrays(in_units(X, units, seed), truth=graph, groups=member)


def simulated(seed, *, units, without=None, **settings):
    """Rows of `rs.simulate` in other units, and without the group named."""
    data = rs.simulate(random_state=seed, **settings)
    X, groups = data.X.to_numpy(), data.groups
    kept = np.ones(len(X), bool) if groups is None else (groups != without).to_numpy()
    return rs.Dataset.from_arrays(
        in_units(X[kept], units, seed),
        truth=data.truth.to_numpy(),
        groups=None if groups is None else groups[kept].to_numpy(),
    )


def sparse(nodes, edges, rng):
    """A DAG with any number of edges, spread evenly: ER graphs of a fractional degree."""
    cause, effect = np.triu_indices(nodes, 1)
    chosen = rng.choice(len(cause), edges, replace=False)
    A = np.zeros((nodes, nodes), np.int8)
    A[cause[chosen], effect[chosen]] = 1
    return relabel(A, rng)


def hubs(nodes, edges, rng):
    """A scale-free tree whose hubs are causes: twenty causes of one effect could not all count."""
    return scale_free(nodes, edges // nodes, rng).T


def weak(graph_of, nodes, edges, seed, *, shares=(1.0,), scales=(1.0, 1.0)):
    """Every variable of variance one before the units, every effect between 0.1 and 0.5.

    Where there are groups of rows, that is before the noise of each is scaled.
    """
    rng = streams(seed)
    graph = graph_of(nodes, edges, rng.graph)
    B, noise = weak_effects(graph, rng.mechanism)
    member = group_members(shares, ROWS, rng.groups)
    scale = noise * log_uniform(scales, (len(shares), nodes), rng.groups)  # (K, d)
    E = standard_noise("gauss", ROWS, nodes, rng.noise) * scale[member]
    X = E @ np.linalg.inv(np.eye(nodes) - B)
    return rs.Dataset.from_arrays(in_units(X, "random", seed), truth=graph, groups=member)


def weak_effects(graph, rng):
    """Coefficients (d, d) and noise deviations (d,) that give every variable a variance of one."""
    d = len(graph)
    B, R, noise = np.zeros((d, d)), np.eye(d), np.ones(d)
    for j in topological_order(graph):
        parents = np.flatnonzero(graph[:, j])
        b = rng.uniform(*WEAK_EFFECTS, len(parents)) * rng.choice((-1.0, 1.0), len(parents))
        explained = b @ R[np.ix_(parents, parents)] @ b
        excess = max(explained, MOST_EXPLAINED) / MOST_EXPLAINED
        B[parents, j] = b / np.sqrt(excess)
        noise[j] = np.sqrt(1 - explained / excess)
        R[:, j] = R[j] = R @ B[:, j]  # zero for variables further down, until their turn comes
        R[j, j] = 1.0
    return B, noise


def simpson(nodes, seed):
    """Two groups that differ in their means alone, of variables unrelated in each."""
    rng = streams(seed)
    member = group_members((0.6, 0.4), ROWS, rng.groups)
    shift = rng.mechanism.uniform(1.5, 3, nodes) * rng.mechanism.choice((-1.0, 1.0), nodes)
    X = standard_noise("gauss", ROWS, nodes, rng.noise) + np.outer(member, shift)
    no_edges = np.zeros((nodes, nodes), np.int8)
    return rs.Dataset.from_arrays(in_units(X, "random", seed), truth=no_edges, groups=member)


def changed_mechanisms(spread, seed):
    """Rows of 20 variables, of which three groups have one mechanism redrawn each.

    The label of such a group is the name of its variable; the other rows are the base.  Noise
    scales differ between groups by a factor of up to ``spread`` either way.
    """
    rng = streams(seed)
    graph = GRAPHS["ER"](20, 2, rng.graph)
    member = group_members((0.4, 0.2, 0.2, 0.2), ROWS, rng.groups)
    scale = log_uniform(VARIABLE_SCALES, 20, rng.groups) * log_uniform(
        (1 / spread, spread), (4, 20), rng.groups
    )  # (K, d)
    E = standard_noise("gauss", ROWS, 20, rng.noise) * scale[member]
    targets = rng.corruption.choice(np.flatnonzero(graph.any(axis=0)), 3, replace=False)
    base = linear_coefficients(graph, rng.mechanism)
    X = np.empty_like(E)
    for k, B in enumerate([base, *(redrawn(base, j, rng.corruption) for j in targets)]):
        X[member == k] = E[member == k] @ np.linalg.inv(np.eye(20) - B)
    labels = np.array([BASE, *(f"x{j}" for j in targets)])[member]
    return rs.Dataset.from_arrays(in_units(X, "random", seed), truth=graph, groups=labels)


def redrawn(B, j, rng):
    """The same coefficients but for those of variable j on its parents."""
    changed, parents = B.copy(), np.flatnonzero(B[:, j])
    changed[parents, j] = coefficients(len(parents), rng)
    return changed


TRANSFORMS = {
    **{f"log(x + {c})": lambda x, c=c: np.log(x + c) for c in (1, 3, 10, 30)},
    **{f"asinh(x / {c})": lambda x, c=c: np.arcsinh(x / c) for c in (5, 150)},
    "fourth root": lambda x: x**0.25,
    "ranks": lambda x: x.rank(),
    "raw": lambda x: x,
}


def sachs(transform, observational, seed):
    """The Sachs data, standardised; all rows, or those of the first condition alone."""
    data = rs.load_sachs()
    rows = (data.groups == data.groups.iloc[0]) | (not observational)
    X = TRANSFORMS[transform](data.X[rows]).to_numpy()
    return rs.Dataset.from_arrays(
        in_units(X, "standardised", seed),
        names=data.names,
        truth=data.truth.to_numpy(),
        groups=data.groups[rows].to_numpy(),
    )


NETWORKS = {
    f"{name}, {d} nodes": (graph_of, d, edges * d // 100)
    for d in (50, 100)
    for name, graph_of, edges in (
        ("ER1", sparse, 100),
        ("ER1.5", sparse, 150),
        ("SF1, hubs as causes", hubs, 100),
    )
}
ER2 = partial(linear, "ER", 20, 2)
TWO = partial(ER2, shares=TWO_GROUPS, scales=GROUP_SCALES)
FLIPPED = {"groups": (0.9, 0.1), "noise_scale": 0.1, "samples": 1000}

DATA = {
    "groups-2": {"ER2, 20 nodes": TWO},
    "groups-3": {"ER2, 20 nodes": partial(ER2, shares=THREE_GROUPS, scales=GROUP_SCALES)},
    "flipped": {
        f"{units} units": partial(simulated, units=units, **FLIPPED)
        for units in ("standardised", "own")
    },
    "equal": {
        f"{kind}{k}, {d} nodes": partial(simulated, units="own", graph=kind, degree=k, nodes=d)
        for kind, d, k in itertools.product(("ER", "SF"), (10, 20, 50), (2, 4))
    },
    "unequal": {
        f"{kind}{k}, {d} nodes": partial(linear, kind, d, k)
        for d, k, kind in itertools.product((20, 50), (1, 2, 4), ("ER", "SF"))
    },
    "weak": {name: partial(weak, *network) for name, network in NETWORKS.items()},
    "networks": {
        name: partial(weak, *network, shares=TWO_GROUPS, scales=(1 / 3, 3))
        for name, network in NETWORKS.items()
    },
    "shapes": {
        f"{noise}, {d} nodes": partial(linear, "ER", d, 2, noise=noise)
        for noise, d in itertools.product(("exp", "gumbel", "uniform"), (10, 20))
    },
    "corrupted": {
        f"{share:.0%}, {units} units{', without those rows' if without else ''}": partial(
            simulated, units=units, without=without, corrupt=share
        )
        for share, units, without in itertools.product(
            (0.02, 0.05), ("own", "standardised"), (None, "corrupted")
        )
    },
    "simpson": {f"{d} nodes": partial(simpson, d) for d in (2, 6)},
    "targets": {
        "ER2, 20 nodes": partial(changed_mechanisms, 1.25),
        "ER2, 20 nodes, noise of groups differs": partial(changed_mechanisms, 3.0),
    },
    "learners": {"two groups, standardised": partial(TWO, units="standardised")},
    "sachs": {
        f"{name}, {'853' if observational else '7,466'} rows": partial(sachs, name, observational)
        for observational, name in itertools.product((False, True), TRANSFORMS)
    },
    "cpu": {"one group, 20 nodes": ER2, "two groups, 20 nodes": TWO},
    "cpu-size": {f"ER2, {d} nodes": partial(linear, "ER", d, 2) for d in (50, 100, 500)},
}
