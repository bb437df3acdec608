"""The learners of `any_units.py`: ours, and peers from causal-learn and lingam.

Every one is at its defaults, unless its name says otherwise.  The default penalty of
causal-learn's BOSS is four times that of the BIC (its `lambda_value` is 2, and 0.5 is the BIC);
"BOSS BIC" has that of the BIC.  DirectLiNGAM prunes by the adaptive lasso; "DirectLiNGAM > 0.05"
also cuts coefficients of up to 0.05 deviations of the effect per deviation of the cause.
"""

import random
import subprocess
import tempfile
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import bench  # first: it pins the threads
import numpy as np

import rescore as rs
from rescore.graph.dag import consistent_dag
from rescore.learners.linear import OrderBackbone
from rescore.moments import Cells
from rescore.protocols import Problem

PEERS_PYTHON = bench.RESULTS.parents[1] / ".venv-peers" / "bin" / "python"
PLAIN = {
    "Linear": rs.Linear(),
    "GES": rs.GES(),
    "Notears": rs.Notears(),
    "Golem": rs.Golem(),
    "Dagma": rs.Dagma(),
    "Additive": rs.Additive(),
}
OURS = PLAIN | {f"ReScore({name})": rs.ReScore(model) for name, model in PLAIN.items()}


class Found(NamedTuple):
    """A DAG, (d, d), the CPU seconds it took, and the model where it is one of ours."""

    graph: np.ndarray
    cpu_seconds: float
    model: rs.ReScore | None = None


def fit(name, data):
    if name in OURS:
        return ours(OURS[name], data, name)
    return PEERS[name](data)


def ours(model, data, name):
    """Fitted once before at this size, so that compilation is not counted."""
    if (name, data.n, data.d) not in ours.compiled:
        model.fit(data.X)
        ours.compiled.add((name, data.n, data.d))
    fitted, seconds = bench.cpu_seconds(lambda: model.fit(data.X))
    return Found(fitted.adjacency_matrix_.to_numpy(), seconds, fitted)


ours.compiled = set()


def with_labels(data):
    """The yardstick: the search of `Linear` over groups of rows that it is told."""
    problem = Problem.unconstrained(data.X.to_numpy())
    groups = np.unique(data.groups, return_inverse=True)[1]
    cells = Cells(np.eye(groups.max() + 1)[groups] / data.n, np.ones((groups.max() + 1, data.d)))
    learner = OrderBackbone()
    first = learner.init(problem)
    state, seconds = bench.cpu_seconds(lambda: learner.step(problem, cells, first))
    return Found(learner.adjacency(state), seconds)


def boss(data, parameters=None):
    """A DAG of the class that causal-learn's best order score search ends with."""
    from causallearn.search.PermutationBased.BOSS import boss as search

    random.seed(0)  # it shuffles the variables by the global generator
    X = data.X.to_numpy()
    found, seconds = bench.cpu_seconds(lambda: search(X, parameters=parameters, verbose=False))
    tails = found.graph == -1  # at i of an edge i -> j, at both ends of an undirected one
    return Found(consistent_dag(tails), seconds)


def direct_lingam(data, cut=0.0):
    B, seconds = lingam_coefficients(data)
    deviation = data.X.to_numpy().std(axis=0)
    standardised = B * deviation[:, None] / deviation
    return Found(np.where(np.abs(standardised) > cut, B, 0.0), seconds)


@lru_cache(maxsize=1)  # of the same table, for both cuts
def lingam_coefficients(data):
    """Coefficients (d, d), row -> column, and CPU seconds, from the peers' environment."""
    if not PEERS_PYTHON.exists():
        raise FileNotFoundError(
            f"DirectLiNGAM runs in an environment of its own, and there is no {PEERS_PYTHON}. "
            "Make it with `make peers`."
        )
    script = Path(__file__).with_name("lingam_peer.py")
    with tempfile.TemporaryDirectory() as folder:
        table, coefficients = Path(folder, "table.npy"), Path(folder, "coefficients.npy")
        np.save(table, data.X.to_numpy())
        command = [PEERS_PYTHON, script, table, coefficients]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        return np.load(coefficients), float(done.stdout)


PEERS = {
    "Linear, labels": with_labels,
    "BOSS": boss,
    "BOSS BIC": partial(boss, parameters={"lambda_value": 0.5}),
    "DirectLiNGAM": direct_lingam,
    "DirectLiNGAM > 0.05": partial(direct_lingam, cut=0.05),
}
