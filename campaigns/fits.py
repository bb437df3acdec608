"""Odd tables, fitted by every learner with every weighting: a sound graph, or a sentence."""

import contextlib
import itertools
import os
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import rescore as rs
from rescore.graph.dag import is_dag
from rescore.moments import Cells
from rescore.tables.convert import DataWarning

COUNT, SECONDS, TESTED = 5000, 1200, 40

# What costs milliseconds, and what compiles and trains: one case in twelve, of few shapes.
QUICK = [
    "Linear", "Notears", "Dagma", "Golem", "GES", "DICD", "SortNRegress", "Additive", "Random",
    "Empty",
]  # fmt: skip
SLOW = ["NotearsMLP", "GranDAG", "DICDMLP", "GaussianProcess", "CDNOD"]
ROWS = {True: (2, 3, 5, 12, 30, 60, 100), False: (3, 12, 60)}  # by whether the learner is quick
COLUMNS = {True: (1, 2, 5, 6), False: (2, 5)}
FIRST_SLOW, EVERY = 120, 12
WEIGHTINGS = [
    "plain", "auto", "environments", "balanced", "exact", "neural", "precision", "uniform",
    "inverse-propensity",
]  # fmt: skip
# Of libraries underneath: whatever they say, we should have said it before.
FOREIGN = ("broadcast", "zip()", "singular", "reduction operation", "did not converge in", "NaN")

Case = dict[str, Any]


def cases(seed: int) -> Iterator[Case]:
    """Every learner and every kind of table in turn, the rest by chance."""
    number = 0
    while True:
        rng = np.random.default_rng([seed, number])
        quick = number < FIRST_SLOW or number % EVERY > 0
        learners = QUICK if quick else SLOW
        turn = number if quick else number // EVERY
        yield {
            "seed": [seed, number],
            "learner": learners[turn % len(learners)],
            "kind": KINDS[int(rng.integers(len(KINDS)))],
            "weighting": str(rng.choice(WEIGHTINGS)),
            "n": int(rng.choice(ROWS[quick])),
            "d": int(rng.choice(COLUMNS[quick])),
        }
        number += 1


def try_one(case: Case) -> str:
    """Fit one table, and look at everything that came of it."""
    rng = np.random.default_rng([*case["seed"], 1])
    X, model = table(case["kind"], case["n"], case["d"], rng), _model(case, rng)
    groups = {"groups": np.arange(len(X)) % 2} if model.needs_groups else {}
    with warnings.catch_warnings(record=True) as caught, _quiet():
        warnings.simplefilter("always")
        try:
            model.fit(X, **groups)
        except (ValueError, TypeError) as error:
            return "refused" if is_sentence(str(error)) else f"BROKEN: {error}"
        predicted = model.predict(X).to_numpy()
    ours = (DataWarning, ConvergenceWarning)
    raw = [w for w in caught if not issubclass(w.category, ours)]
    wrong = [f"{w.category.__name__}: {w.message}, {w.filename[-30:]}:{w.lineno}" for w in raw]
    wrong += [*faults(model, predicted), *misfits(model)]
    return f"BROKEN: {'; '.join(sorted(set(wrong)))}" if wrong else "fitted"


def is_sentence(text: str) -> bool:
    """Whether an error says something to a user."""
    whole = len(text) > 30 and text.rstrip().endswith((".", ".)"))
    return whole and not any(words in text for words in FOREIGN)


def faults(model: Any, predicted: Any) -> Iterator[str]:
    """What is not finite, not a DAG, or no probability."""
    W, w, cells = model.adjacency_matrix_.to_numpy(), model.sample_weight_, model.cell_weight_
    numbers = {
        "weights of edges": W,
        "weights of rows": w,
        "weights of cells": cells,
        "losses": model.losses_,
        "losses of rows": model.row_losses_,
        "variances": model.noise_variance_,
        "predictions": predicted,
        "history": model.history_,
    }
    unsound = [name for name, values in numbers.items() if not np.isfinite(values).all(axis=None)]
    yield from (f"{name} that are not finite" for name in unsound)
    if not unsound and not is_dag(W):
        yield "a cycle"
    if not (w >= 0).all() or abs(w.sum() - 1) > 1e-9:
        yield f"weights that sum to {w.sum()}"
    if not (cells >= 0).all(axis=None) or abs(cells.to_numpy().sum() / len(W) - 1) > 1e-8:
        yield f"weights of cells that sum to {cells.to_numpy().sum()} for {len(W)} columns"


def misfits(model: Any) -> Iterator[str]:
    """Where what is told of the weights is not so of the weights."""
    told, w = model.diagnostics_["weighting"], model._cell_weight
    if "share_after" in told and abs(sum(told["share_after"]) - 1) > 1e-6:
        yield "shares that do not sum to one"
    if not isinstance(w, Cells):
        equal = np.allclose(model.sample_weight_, 1 / len(model.sample_weight_))
        if told.get("groups") == 1 and not equal:
            yield "rows that are alike and weigh differently"
        return
    K, d = w.precision.shape
    if {told["groups"], len(told["noise"]), len(told["variance"])} != {K}:
        yield "groups that are not those weighted"
        return
    shares = w.membership.sum(axis=0)
    same = {
        "share_before": shares,
        "share_after": shares * w.precision.sum(axis=1) / d,
        "membership": w.membership.argmax(axis=1),
    }
    yield from (f"another {n}" for n, v in same.items() if not np.allclose(told[n], v, atol=1e-6))
    names = list(model.adjacency_matrix_.columns)
    own = [(one["group"], names.index(one["variable"])) for one in told.get("interventions", [])]
    if any(w.precision[place] for place in own):
        yield "a mechanism of its own that counts"


def _model(case: Case, rng: np.random.Generator) -> Any:
    learner = getattr(rs, case["learner"])()
    if rng.random() < 0.15:
        learner.set_params(standardize=True)
    if case["learner"] == "NotearsMLP" and rng.random() < 0.3:
        learner.set_params(scheme="paper")
    if case["weighting"] == "plain":
        return learner
    bounded = case["weighting"] in ("exact", "neural")
    more = {"tau": float(rng.choice([0.1, 0.5]))} if bounded else {}
    return rs.ReScore(learner, weighting=case["weighting"], **more)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """What a library prints is none of our business."""
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        yield


def table(kind: str, n: int, d: int, rng: np.random.Generator) -> Any:
    """Rows of a random linear model, made odd."""
    X = rng.normal(size=(n, d))
    order = rng.permutation(d)
    for a, b in itertools.pairwise(order):
        X[:, b] += rng.choice([0.0, -1.5, 0.8, 2.0]) * X[:, a]
    return ODD[kind](X, int(rng.integers(n)), int(rng.integers(d)), rng)


def _ten_to(rng: np.random.Generator, *powers: float) -> float:
    return float(10.0 ** rng.choice(powers))


def _column(values: Any) -> Any:
    """A kind of table with one column made odd: a function of it, of all others and of chance."""

    def odd(X: Any, _: int, j: int, rng: np.random.Generator) -> Any:
        X[:, j] = values(X[:, j], np.delete(X, j, axis=1), rng)
        return X

    return odd


def _cell(X: Any, i: int, j: int, rng: np.random.Generator) -> Any:
    X[i, j] = _ten_to(rng, 6, 15, 50, 100, 149.9)
    return X


def _mixed(X: Any, i: int, j: int, rng: np.random.Generator) -> Any:
    X = X * 10.0 ** rng.uniform(-150, 140, size=X.shape[1])
    X[i, j] *= rng.choice([1.0, 1e8])
    return X


ODD: dict[str, Any] = {
    "ordinary": lambda X, i, j, rng: X,
    "constant": _column(lambda x, others, rng: x * 0 + rng.choice([0.0, 3.0, 1e20, 1e-300])),
    "duplicated": _column(
        lambda x, others, rng: (others[:, 0] if others.size else x) * rng.choice([1.0, -2.0, 1e6])
    ),
    "collinear": _column(lambda x, others, rng: others.sum(axis=1)),
    "one-hot": lambda X, i, j, rng: np.eye(X.shape[1])[rng.integers(X.shape[1], size=len(X))],
    "ranks": lambda X, i, j, rng: X.argsort(axis=0).argsort(axis=0),
    "timestamps": _column(
        lambda x, others, rng: 1.7e15 + np.cumsum(rng.integers(1, _ten_to(rng, 1, 5, 9), len(x)))
    ),
    "huge column": _column(lambda x, others, rng: x * _ten_to(rng, 8, 15, 50, 100, 149)),
    "tiny column": _column(lambda x, others, rng: x * _ten_to(rng, -8, -15, -50, -150, -200, -310)),
    "huge cell": _cell,
    "integers": lambda X, i, j, rng: np.round(X * rng.choice([1, 5, 1000])).astype(int),
    "heavy tails": lambda X, i, j, rng: X * rng.standard_cauchy((len(X), 1)) ** rng.choice([1, 3]),
    "all huge": lambda X, i, j, rng: X * _ten_to(rng, 12, 50, 100, 149),
    "all tiny": lambda X, i, j, rng: X * _ten_to(rng, -6, -50, -100, -160, -200, -310),
    "two values": lambda X, i, j, rng: (X > 0).astype(float),
    "rounded": lambda X, i, j, rng: np.round(X, 1) + _ten_to(rng, 0, 10),
    "mixed": _mixed,
}
KINDS = list(ODD)
