"""A fitted model on disk: a JSON file for what people read, an npz file for the numbers.

Both are plain data.  Loading executes nothing from the files, whoever wrote them.  They change at
once (`rescore.staging`), and the JSON file carries a digest of the numbers it belongs to.
"""

import hashlib
import inspect
import json
import math
import os
import zipfile
import zlib
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rescore.categories import equations_of
from rescore.equations import Equations
from rescore.graph.dag import is_dag
from rescore.known_edges import Knowledge, as_knowledge
from rescore.learners import LEARNERS, load_learner
from rescore.learners.base import StructureLearner
from rescore.learners.estimator import check_fitted
from rescore.protocols import Status
from rescore.staging import Place, settled, staged
from rescore.tables.table import names_index
from rescore.text import printable
from rescore.validation import check_choice

SCHEMA = 4
# Where what a parameter may be, besides numbers and words, lives.  Loaded where a model has it:
# JAX comes with the network.
PARTS = {
    "Balanced": "rescore.weightings.balanced",
    "Drawn": "rescore.weightings",
    "Environments": "rescore.weightings.environments",
    "Exact": "rescore.weightings",
    "InversePropensity": "rescore.weightings",
    "Knowledge": "rescore.known_edges",
    "Neural": "rescore.weightings.neural",
    "Precision": "rescore.weightings.precision",
    "ReScore": "rescore.learners.rescore",
    "Uniform": "rescore.weightings",
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
# What a file may unpack to: real losses hardly shrink, so that no model of ours comes near.
MOST_BYTES, MOST_TIMES = 1 << 28, 100


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
    _refuse_others_model(Path(folder))
    with staged(folder) as scratch:
        write_model(model, scratch)


def write_model(model: StructureLearner, folder: Path) -> None:
    """The two files of a fitted model, into a folder that nobody reads yet."""
    arrays = _arrays(model)
    about = _description(model) | {"arrays": _digest(arrays)}
    text = json.dumps(about, indent=1, allow_nan=False)
    (folder / "model.json").write_text(text, encoding="utf-8")
    np.savez_compressed(folder / "arrays.npz", **arrays)


def fingerprint(model: StructureLearner) -> str:
    """A digest of all numbers of a fitted model, by which its files know each other.

    Examples
    --------
    >>> from rescore import Linear
    >>> one, other = Linear().fit([[0.0], [1.0]]), Linear().fit([[0.0], [2.0]])
    >>> fingerprint(one) == fingerprint(one), fingerprint(one) == fingerprint(other)
    (True, False)
    """
    return _digest(_arrays(model))


def saved_fingerprint(place: Place) -> str | None:
    """The fingerprint of the model in a settled folder; None if there is no whole one."""
    try:
        return str(_read_description(place("model.json"))["arrays"])
    except (FileNotFoundError, ValueError, KeyError):
        return None


def load(folder: str | os.PathLike[str]) -> Any:
    """The fitted model that `save` wrote into ``folder``.

    Examples
    --------
    >>> load("nowhere")
    Traceback (most recent call last):
        ...
    FileNotFoundError: There is no saved model in 'nowhere': model.json is missing.
    """
    with settled(folder) as place:
        return read_model(place)


def read_model(place: Place) -> Any:
    """The same, for whoever has settled the folder."""
    about = _read_description(place("model.json"))
    path = place("arrays.npz")
    try:
        arrays = _read_arrays(path, len(about["names"]), about)
        model = _model(about, arrays)
        if _digest(arrays) != about["arrays"]:
            raise ValueError(
                f"'{printable(path, 200)}' does not belong to its model.json: its numbers are of "
                "another fit. Copy both files from one folder, or fit again."
            )
        return model
    except (KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise ValueError(_not_ours(place("model.json"), error)) from None


def _model(about: dict[str, Any], arrays: dict[str, Any]) -> Any:
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
    model.categories_ = {name: tuple(levels) for name, levels in about.get("categories", [])}
    model.status_ = Status[check_choice("status", about["status"], Status.__members__)]
    model.diagnostics_ = about["diagnostics"]
    return model


def _arrays(model: StructureLearner) -> dict[str, Any]:
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
    return arrays | {EQUATIONS + name: array for name, array in model.equations_.arrays().items()}


def _digest(arrays: dict[str, Any]) -> str:
    """Of names, shapes and numbers, whatever type or order in memory they have."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name], dtype="<f8")
        digest.update(f"{name} {array.shape} ".encode())
        digest.update(array.data)
    return digest.hexdigest()


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
        "categories": [
            [_label(name), [_label(level) for level in levels]]
            for name, levels in model.categories_.items()
        ],
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


def _read_description(path: Path) -> dict[str, Any]:
    if not path.is_file():
        folder = printable(path.parent, 200)
        raise FileNotFoundError(f"There is no saved model in '{folder}': model.json is missing.")
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        schema = about["schema"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(_not_ours(path, error)) from None
    if schema != SCHEMA:
        raise ValueError(
            f"'{printable(path, 200)}' has schema {printable(schema)}, but this version reads "
            f"schema {SCHEMA}. Load it with the version that wrote it, or fit again."
        )
    return dict(about)


def _not_ours(path: Path, error: Exception) -> str:
    return (
        f"'{printable(path, 200)}' is not a saved model: {printable(error, 200)} "
        f"({type(error).__name__}). Fit again."
    )


def _refuse_others_model(folder: Path) -> None:
    """A file that happens to be called as ours is somebody's."""
    with settled(folder) as place:
        path = place("model.json")
        try:
            ours = not path.exists() or {"schema", "estimator"} <= set(json.loads(path.read_text()))
        except (ValueError, TypeError, RecursionError):
            ours = False
    if not ours:
        raise ValueError(
            f"'{printable(path, 200)}' is not a model that was saved here, so it is not replaced. "
            "Give another folder, or move the file away."
        )


def _read_arrays(path: Path, d: int, about: dict[str, Any]) -> dict[str, Any]:
    shown = printable(path, 200)
    try:
        with path.open("rb") as file:
            _refuse_bomb(file, path)
            with np.load(file, allow_pickle=False) as archive:
                further = [
                    name for name in archive.files if name.startswith((CELLS, *EVIDENCE, EQUATIONS))
                ]
                arrays = {name: archive[name].astype(np.float64) for name in (*ARRAYS, *further)}
    except (
        ValueError, TypeError, KeyError, NotImplementedError, zipfile.BadZipFile, zlib.error,
        EOFError, OSError, RecursionError, SyntaxError, OverflowError, MemoryError,
    ) as error:  # fmt: skip
        if isinstance(error, PermissionError):
            raise
        raise ValueError(
            f"'{shown}' is damaged or not ours: {printable(error, 200)}. Fit again."
        ) from None
    _check_shapes(arrays, d, about, shown)
    _check_numbers(arrays, shown)
    return arrays


def _refuse_bomb(file: Any, path: Path) -> None:
    """Before anything is unpacked: every array's header says how many numbers it would be."""
    most = max(MOST_BYTES, MOST_TIMES * path.stat().st_size)
    with zipfile.ZipFile(file) as archive:
        wanted = sum(max(member.file_size, _asked(archive, member)) for member in archive.filelist)
    file.seek(0)
    if wanted > most:
        raise ValueError(
            f"it would unpack to {wanted / 1e9:.3g} GB, more than the {most / 1e9:.3g} GB that a "
            "file of its size may"
        )


def _asked(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> int:
    """The bytes of an array as float64, by its header."""
    with archive.open(member) as content:
        major, _ = np.lib.format.read_magic(content)
        read = np.lib.format.read_array_header_1_0
        shape, _, dtype = (read if major == 1 else np.lib.format.read_array_header_2_0)(content)
    if dtype.kind not in "biuf" or any(length < 0 for length in shape):
        raise ValueError(f"{printable(member.filename)} holds no numbers")
    return 8 * math.prod(int(length) for length in shape)


def _check_shapes(arrays: dict[str, Any], d: int, about: dict[str, Any], shown: str) -> None:
    n = arrays["sample_weight"].size
    shapes = {"adjacency_matrix": (d, d), "losses": (n, d), "row_losses": (n,)}
    shapes |= {"noise_variance": (d,), "cpdag": (d, d), "sample_weight": (n,)}
    shapes |= {"history": (*arrays["history"].shape[:1], len(about["history"]))}
    optional = {CELLS: (n, d)} | dict.fromkeys(EVIDENCE, (d, d))
    shapes |= {name: shape for name, shape in optional.items() if name in arrays}
    rows_agree = about["rows"] is None or len(about["rows"]) == n
    if not rows_agree or any(arrays[name].shape != shape for name, shape in shapes.items()):
        raise ValueError(
            f"'{shown}' does not belong to its model.json: the shapes differ. Copy both files "
            "from one folder, or fit again."
        )


def _check_numbers(arrays: dict[str, Any], shown: str) -> None:
    """What every fit of ours ends with: a DAG, weights that are shares, no NaN in a result."""
    if not np.isfinite(arrays["adjacency_matrix"]).all():
        raise ValueError(f"The graph in '{shown}' has weights that are not finite. Fit again.")
    if not is_dag(arrays["adjacency_matrix"]):
        raise ValueError(
            f"The graph in '{shown}' has a cycle, so it is not a model of ours. Fit again."
        )
    equations = [array for name, array in arrays.items() if name.startswith(EQUATIONS)]
    if not all(np.isfinite(array).all() for array in equations):
        raise ValueError(f"The equations in '{shown}' are not finite numbers. Fit again.")
    if not np.isin(arrays["cpdag"], (0, 1)).all():
        raise ValueError(f"The directions in '{shown}' are not 0 or 1. Fit again.")
    if not (arrays["noise_variance"] >= 0).all():
        raise ValueError(f"A noise variance in '{shown}' is negative or not a number. Fit again.")
    for name in (CELLS, "sample_weight"):
        w = arrays.get(name, arrays["sample_weight"])
        total = w.sum() / (w.shape[1] if w.ndim == 2 else 1)
        if not (w >= 0).all() or not abs(total - 1) < 1e-6:
            raise ValueError(
                f"The row weights in '{shown}' are not shares that sum to one, so they are not a "
                "model's of ours. Fit again."
            )


def _equations(arrays: dict[str, Any], kind: Any, d: int) -> Equations:
    theirs = {
        name.removeprefix(EQUATIONS): array
        for name, array in arrays.items()
        if name.startswith(EQUATIONS)
    }
    return equations_of(kind, theirs, d)


def _history(values: Any, columns: list[str]) -> pd.DataFrame:
    history = pd.DataFrame(values, columns=columns)
    return history.astype({"step": int, "edges": int}).set_index("step")
