"""The learners, one file each from public class to step, and the one list of them.

A new learner is a file and a line of ``LEARNERS``.  From there it reaches the names of the package,
the command line, saving, experiments, the checks that all must pass and the documentation's table.
"""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = [
    "FOLDER",
    "LEARNERS",
    "RECOMMENDED",
    "learner_called",
    "load_learner",
    "option_word",
    "register",
]

# Class -> module.  Loaded on first use, so that knowing the names costs nothing.
LEARNERS: dict[str, str] = {
    "Linear": ".linear",
    "Notears": ".notears",
    "Dagma": ".dagma",
    "Golem": ".golem",
    "GES": ".ges",
    "Additive": ".additive",
    "GaussianProcess": ".gaussian_process",
    "NotearsMLP": ".networks.notears_mlp",
    "GranDAG": ".networks.gran_dag",
    "DICD": ".dicd",
    "DICDMLP": ".networks.dicd_mlp",
    "CDNOD": ".cdnod",
    "SortNRegress": ".baselines",
    "Random": ".baselines",
    "Empty": ".baselines",
}
RECOMMENDED = "Linear"  # what ReScore() wraps, and commands that are told no learner fit
FOLDER = Path(__file__).parent  # of the sources: some defaults are read without importing


def register(name: str, module: str) -> None:
    """Add a learner of another package by the name of its class and of its module.

    Examples
    --------
    >>> register("Linear", "mypackage.linear")
    Traceback (most recent call last):
        ...
    ValueError: There is a learner 'Linear' already. Give yours another name.
    """
    if LEARNERS.get(name, module) != module:
        raise ValueError(f"There is a learner '{name}' already. Give yours another name.")
    LEARNERS[name] = module


def load_learner(name: str) -> Any:
    """The class of that name, imported on first use.

    Examples
    --------
    >>> load_learner("Notears")(lambda1=0.2)
    Notears(lambda1=0.2)
    """
    return getattr(import_module(LEARNERS[name], __name__), name)


def option_word(name: str) -> str:
    """How the command line calls a class.

    Examples
    --------
    >>> option_word("Notears"), option_word("NotearsMLP"), option_word("SortNRegress")
    ('notears', 'notears-mlp', 'sort-n-regress')
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name).lower()


def learner_called(word: str) -> str:
    """The class that a word means; hyphens and capitals are of no matter.

    Examples
    --------
    >>> learner_called("gran-dag"), learner_called("cd-nod")
    ('GranDAG', 'CDNOD')
    >>> learner_called("magic")
    Traceback (most recent call last):
        ...
    ValueError: --learner must be one of linear, notears, dagma, ...
    """
    wanted = word.replace("-", "").lower()
    for name in LEARNERS:
        if name.lower() == wanted:
            return name
    known = ", ".join(option_word(name) for name in LEARNERS)
    raise ValueError(f"--learner must be one of {known}; got {word!r}.")


def __getattr__(name: str) -> Any:
    if name not in LEARNERS:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return load_learner(name)
