"""The experiments that come with the library, and those in a user's own files."""

from importlib.resources import files
from pathlib import Path

from rescore.checking import check_choice
from rescore.experiments.spec import Experiment, read_experiment

__all__ = ["declared", "find"]


def declared() -> list[Experiment]:
    """All experiments of the paper, in the order of their names.

    Examples
    --------
    >>> [e.title for e in declared() if e.name == "sachs"]
    ['Sachs: eleven proteins, nine conditions']
    """
    return [read_experiment(path) for path in _files()]


def find(name: str) -> Experiment:
    """The experiment of that name, or in that file.

    Examples
    --------
    >>> find("sachs").published
    'sachs'
    """
    if name.endswith(".toml"):
        return read_experiment(Path(name))
    known = {path.stem: path for path in _files()}
    return read_experiment(known[check_choice("the experiment", name, known)])


def _files() -> list[Path]:
    """The declarations: beside this file where the library is installed, else in the repository."""
    installed = Path(str(files("rescore.experiments") / "declarations"))
    folder = installed if installed.is_dir() else Path(__file__).parents[3] / "experiments"
    return sorted(folder.glob("*.toml"))
