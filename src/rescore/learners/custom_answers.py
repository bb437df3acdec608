"""What a learner of the user's own returned, as arrays of ours, or a sentence why not."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rescore.moments import Matrix
from rescore.protocols import State
from rescore.text import listing

ADVICE = "Return an array (d, d) whose entry [i, j] is not zero where column i causes column j."


def returned_graph(value: Any, d: int) -> Matrix:
    """Edge strengths (d, d) from an array (numpy, JAX, torch), a DataFrame or a networkx.DiGraph.

    Labels are positions: the columns handed over are numbered from zero.

    Examples
    --------
    >>> returned_graph([[0, 2], [0, 0]], 2)
    array([[0., 2.],
           [0., 0.]])
    >>> returned_graph(None, 2)
    Traceback (most recent call last):
        ...
    TypeError: Your learner returned None, which is no graph. Return an array (d, d) whose ...
    """
    if hasattr(value, "is_directed") and hasattr(value, "edges"):
        value = _from_networkx(value, d)
    elif isinstance(value, pd.DataFrame):
        value = _from_table(value, d)
    W = _numbers(value, "graph")
    if W.shape != (d, d):
        raise ValueError(
            f"Your learner returned a graph of shape {W.shape} for {d} columns. {ADVICE}"
        )
    _refuse_non_finite(W, "graph")
    if W.diagonal().any():
        raise ValueError(
            "Your learner returned a graph with a self-loop. Set its diagonal to zero."
        )
    _refuse_endpoint_marks(W)
    return W


def returned_losses(value: Any, shape: tuple[int, int]) -> Matrix:
    """Squared residuals (n, d).

    Examples
    --------
    >>> returned_losses(np.ones(3), (3, 2))
    Traceback (most recent call last):
        ...
    ValueError: losses must return one squared residual per row and variable, shape (3, 2); ...
    """
    losses = _numbers(value, "table of losses")
    if losses.shape != shape:
        raise ValueError(
            f"losses must return one squared residual per row and variable, shape {shape}; got "
            f"{losses.shape}."
        )
    _refuse_non_finite(losses, "table of losses")
    return losses


def returned_state(value: Any, method: str) -> State:
    """The state itself.

    Examples
    --------
    >>> returned_state(1.0, "step")
    Traceback (most recent call last):
        ...
    TypeError: step must return a rescore.protocols.State, got 1.0: State(your_parameters, ...
    """
    if isinstance(value, State):
        return value
    raise TypeError(
        f"{method} must return a rescore.protocols.State, got {value!r}: State(your_parameters, "
        "Status.CONVERGED) ends the fit, State(your_parameters) goes on."
    )


def _numbers(value: Any, what: str) -> Matrix:
    if hasattr(value, "detach"):  # a torch tensor that may still belong to a computation
        value = value.detach().cpu()
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"Your learner returned {value!r}, which is no {what}. {ADVICE}")
    return array.astype(np.float64)


def _refuse_non_finite(array: Matrix, what: str) -> None:
    bad = int((~np.isfinite(array)).sum())
    if bad:
        raise ValueError(
            f"Your learner returned a {what} with {bad} NaN or infinite value(s). Standardise the "
            "columns (standardize=True) or lower its step size if it diverged."
        )


def _refuse_endpoint_marks(W: Matrix) -> None:
    """causal-learn marks the tail of an edge -1 and its head 1, in opposite cells."""
    if set(np.unique(W)) <= {-1.0, 0.0, 1.0} and ((W == -1) & (W.T == 1)).any():
        raise ValueError(
            "Your learner returned -1 and 1 in opposite cells, as causal-learn marks the two ends "
            "of an edge. Return `graph == -1`, which is [i, j] for i -> j."
        )


def _from_networkx(G: Any, d: int) -> NDArray[np.float64]:
    if not G.is_directed() or G.is_multigraph():
        raise TypeError(
            f"Your learner returned a {type(G).__name__}; a networkx.DiGraph is needed."
        )
    _refuse_names(list(G), d)
    W = np.zeros((d, d))
    for i, j, weight in G.edges(data="weight", default=1.0):
        W[i, j] = weight
    return W


def _from_table(frame: pd.DataFrame, d: int) -> NDArray[Any]:
    rows, columns = list(frame.index), list(frame.columns)
    _refuse_names([*rows, *columns], d)
    if len(set(rows)) != d or len(set(columns)) != d or frame.shape != (d, d):
        raise ValueError(
            f"Your learner returned a table of shape {frame.shape} for {d} columns. {ADVICE}"
        )
    return frame.reindex(index=range(d), columns=range(d)).to_numpy()


def _refuse_names(labels: list[Any], d: int) -> None:
    """Names might come in any order, and which columns they mean cannot be known."""
    odd = [label for label in labels if label not in range(d)]
    if odd:
        raise ValueError(
            f"Your learner returned the labels {listing(dict.fromkeys(odd))}, but the columns it "
            f"was given are numbered 0 to {d - 1}. {ADVICE}"
        )
