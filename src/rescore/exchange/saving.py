"""A fitted model on disk: a JSON file for what people read, an npz file for the numbers.

Both are plain data.  Loading executes nothing from the files, whoever wrote them.
"""

import inspect
import json
import os
import zipfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rescore.equations import Equations, from_arrays
from rescore.graph.dag import is_dag
from rescore.known_edges import Knowledge, as_knowledge
from rescore.learners import LEARNERS, load_learner
from rescore.learners.base import StructureLearner
from rescore.learners.parameters import check_fitted
from rescore.protocols import Status
from rescore.tables.table import names_index
from rescore.validation import check_choice

SCHEMA = 3
# Where what a parameter may be, besides numbers and words, lives.  Loaded where a model has it:
# JAX comes with the network.
PARTS = {
    "Balanced": "rescore.weightings.balanced",
    "Drawn": "rescore.weightings.fixed",
    "Environments": "rescore.weightings.environments",
    "Exact": "rescore.weightings.exact",
    "InversePropensity": "rescore.weightings.fixed",
    "Knowledge": "rescore.known_edges",
    "Neural": "rescore.weightings.neural",
    "Precision": "rescore.weightings.precision",
    "ReScore": "rescore.learners.rescore",
    "Uniform": "rescore.weightings.fixed",
}
ARRAYS = (
    "adjacency_matrix",
    "cpdag",
    "sample_weight",
    "losses",
    "row_losses",
    "history",
    "noise_variance",
)
CELLS = "cell_weight"  # there only where variables count rows in their own way
EVIDENCE = ("standard_errors", "explained")  # only where relations are straight lines
EQUATIONS = "equations_"  # how the names of their arrays begin


def save(model: StructureLearner, folder: str | os.PathLike[str]) -> None:
    """Write a fitted model as ``model.json`` and ``arrays.npz`` into ``folder``.

    Row labels other than numbers and text come back as text.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from rescore import Linear
    >>> model = Linear().fit(np.random.default_rng(0).normal(size=(50, 2)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, folder)
    ...     load(folder).adjacency_matrix_.equals(model.adjacency_matrix_)
    True
    """
    check_fitted(model)
    described = json.dumps(_description(model), indent=1, allow_nan=False)
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {
        "adjacency_matrix": model.adjacency_matrix_.to_numpy(),
        "cpdag": model.cpdag_.to_numpy(),
        "sample_weight": model.sample_weight_.to_numpy(),
        "losses": model.losses_.to_numpy(),
        "row_losses": model.row_losses_.to_numpy(),
        "history": model.history_.reset_index().to_numpy(float),
        "noise_variance": model.noise_variance_.to_numpy(),
    }
    if model._cell_weight is not None:
        arrays[CELLS] = np.asarray(model._cell_weight)
    evidence = {name: getattr(model, f"{name}_") for name in EVIDENCE}
    arrays |= {name: found.to_numpy() for name, found in evidence.items() if found is not None}
    arrays |= {EQUATIONS + name: array for name, array in model.equations_.arrays().items()}
    _replace(target / "arrays.npz", lambda path: np.savez_compressed(path, **arrays))
    _replace(target / "model.json", lambda path: path.write_text(described, encoding="utf-8"))


def load(folder: str | os.PathLike[str]) -> Any:
    """The fitted model that `save` wrote into ``folder``.

    Examples
    --------
    >>> load("nowhere")
    Traceback (most recent call last):
        ...
    FileNotFoundError: There is no saved model in 'nowhere': model.json is missing.
    """
    about = _read_description(Path(folder))
    arrays = _read_arrays(Path(folder), len(about["names"]), about)
    model = _estimator(about["estimator"])
    names = names_index(about["names"])
    rows = pd.RangeIndex(len(arrays["losses"])) if about["rows"] is None else about["rows"]
    index = pd.Index(rows, name=about["rows_name"])
    model.n_features_in_ = len(names)
    if about["feature_names"]:
        model.feature_names_in_ = np.array(about["names"], dtype=object)
    model.adjacency_matrix_ = pd.DataFrame(arrays["adjacency_matrix"], names, names)
    model.cpdag_ = pd.DataFrame(arrays["cpdag"].astype(np.int8), names, names)
    model.sample_weight_ = pd.Series(arrays["sample_weight"], index, name="weight")
    model._cell_weight = arrays.get(CELLS)
    model.losses_ = pd.DataFrame(arrays["losses"], index, names)
    model.row_losses_ = pd.Series(arrays["row_losses"], index, name="loss")
    model.history_ = _history(arrays["history"], about["history"])
    model.equations_ = _equations(arrays, about["equations"], len(names))
    for name in EVIDENCE:
        found = arrays.get(name)
        setattr(model, f"{name}_", None if found is None else pd.DataFrame(found, names, names))
    model.noise_variance_ = pd.Series(arrays["noise_variance"], names, name="variance")
    model.status_ = Status[check_choice("status", about["status"], Status.__members__)]
    model.diagnostics_ = about["diagnostics"]
    return model


def _description(model: StructureLearner) -> dict[str, Any]:
    from rescore import __version__

    plain_rows = isinstance(model.losses_.index, pd.RangeIndex) and model.losses_.index.equals(
        pd.RangeIndex(len(model.losses_))
    )
    return {
        "schema": SCHEMA,
        "version": __version__,
        "estimator": _parameters(model),
        "names": [_label(name) for name in model.adjacency_matrix_.columns],
        "feature_names": hasattr(model, "feature_names_in_"),
        "rows": None if plain_rows else [_label(row) for row in model.losses_.index],
        "rows_name": None if model.losses_.index.name is None else str(model.losses_.index.name),
        "history": list(model.history_.reset_index().columns),
        "equations": model.equations_.kind,
        "status": model.status_.name,
        "diagnostics": json.loads(json.dumps(_finite(model.diagnostics_), default=_label)),
    }


def _parameters(model: Any) -> dict[str, Any]:
    name = type(model).__name__
    if callable(model) or name == "Custom" or hasattr(model, "adjacency"):
        raise TypeError(
            "A learner of your own is code, not data, so a model around it cannot be saved. Keep "
            "what it found instead: adjacency_matrix_.to_csv(...), sample_weight_.to_csv(...)."
        )
    if name not in _kinds() or _kind(name) is not type(model):
        raise TypeError(f"Only {', '.join(_kinds())} can be saved, got {type(model)!r}.")
    ours = isinstance(model, StructureLearner)
    params = model.get_params(deep=False) if ours else dict(vars(model))
    if isinstance(params.get("knowledge"), str | os.PathLike):  # the file may change or go
        params["knowledge"] = as_knowledge(params["knowledge"])
    return {"class": name} | {key: _parameter(value) for key, value in params.items()}


def _kinds() -> list[str]:
    return [*LEARNERS, *PARTS]


def _kind(name: str) -> Any:
    return getattr(import_module(PARTS[name]), name) if name in PARTS else load_learner(name)


def _parameter(value: Any) -> Any:
    composed = isinstance(value, StructureLearner | Knowledge) or hasattr(value, "step")
    if composed or callable(value):
        return _parameters(value)
    if _is_plain(value):
        return _label(value)
    return [  # widths of layers; edges or tiers, whose names may be more than text
        _label(item) if _is_plain(item) else [_label(name) for name in item] for item in value
    ]


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str | np.number)


def _estimator(described: dict[str, Any]) -> Any:
    params = dict(described)
    kind = _kind(check_choice("the saved estimator", params.pop("class"), _kinds()))
    nested = {key: _value(value) for key, value in params.items()}
    unknown = set(nested) - set(inspect.signature(kind).parameters)
    if unknown:
        raise ValueError(f"The saved model has parameters this version lacks: {sorted(unknown)}.")
    return kind(**nested)


def _value(saved: Any) -> Any:
    if isinstance(saved, dict):
        return _estimator(saved)
    widths = isinstance(saved, list) and not any(isinstance(item, list) for item in saved)
    return tuple(saved) if widths else saved  # JSON knows lists alone


def _label(value: Any) -> Any:
    """A number or a text as JSON knows it; anything else (a date, a tuple) as text."""
    if isinstance(value, np.generic):
        value = value.item()
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _finite(value: Any) -> Any:
    """JSON has no infinity: an infinite condition number is written as null."""
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _read_description(folder: Path) -> dict[str, Any]:
    path = folder / "model.json"
    if not path.is_file():
        raise FileNotFoundError(f"There is no saved model in '{folder}': model.json is missing.")
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        schema = about["schema"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"'{path}' is not a saved model: {error}.") from None
    if schema != SCHEMA:
        raise ValueError(
            f"'{path}' has schema {schema!r}, but this version reads schema {SCHEMA}. "
            "Load it with the version that wrote it, or fit again."
        )
    return dict(about)


def _read_arrays(folder: Path, d: int, about: dict[str, Any]) -> dict[str, Any]:
    path = folder / "arrays.npz"
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            further = [
                name for name in archive.files if name.startswith((CELLS, *EVIDENCE, EQUATIONS))
            ]
            arrays = {name: archive[name].astype(np.float64) for name in (*ARRAYS, *further)}
    except (ValueError, KeyError, zipfile.BadZipFile, EOFError) as error:
        raise ValueError(f"'{path}' is damaged or not ours: {error}. Fit again.") from None
    n = len(arrays["sample_weight"])
    shapes = {"adjacency_matrix": (d, d), "losses": (n, d), "row_losses": (n,)}
    shapes |= {"noise_variance": (d,), "cpdag": (d, d)}
    optional = {CELLS: (n, d)} | dict.fromkeys(EVIDENCE, (d, d))
    shapes |= {name: shape for name, shape in optional.items() if name in arrays}
    rows_agree = about["rows"] is None or len(about["rows"]) == n
    if not rows_agree or any(arrays[name].shape != shape for name, shape in shapes.items()):
        raise ValueError(f"'{path}' does not belong to its model.json: the shapes differ.")
    if not is_dag(arrays["adjacency_matrix"]):
        raise ValueError(f"The graph in '{path}' has a cycle, so it is not a model of ours.")
    return arrays


def _equations(arrays: dict[str, Any], kind: Any, d: int) -> Equations:
    theirs = {
        name.removeprefix(EQUATIONS): array
        for name, array in arrays.items()
        if name.startswith(EQUATIONS)
    }
    return from_arrays(kind, theirs, d)


def _history(values: Any, columns: list[str]) -> pd.DataFrame:
    history = pd.DataFrame(values, columns=columns)
    return history.astype({"step": int, "edges": int}).set_index("step")


def _replace(path: Path, write: Callable[[Path], Any]) -> None:
    """Write beside ``path`` and move into place, so that a reader never sees half a file."""
    partial = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        write(partial)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
