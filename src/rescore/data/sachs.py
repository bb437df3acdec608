"""Eleven proteins of human T cells, measured cell by cell under nine conditions (Sachs 2005).

The numbers are those of K. Sachs, O. Perez, D. Pe'er, D. Lauffenburger and G. Nolan, "Causal
protein-signaling networks derived from multiparameter single-cell data", Science 308 (2005).
The file `sachs.csv.gz` beside this one is `cdt/data/resources/cyto_full_data.csv` from the PyPI
wheel of cdt 0.6.0 (sha256 a90401b6...9996b), byte for byte, compressed by gzip without a time
stamp. That wheel's LICENSE.md is the MIT licence, (c) 2018 Diviyan Kalainathan; its metadata say
Apache 2.0. The licence is in `NOTICE` beside the file.
"""

from importlib.resources import as_file, files

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rescore.data.dataset import Dataset
from rescore.tables.files import read_table
from rescore.text import printable

FILE_SHA256 = "fc331dcd0bc1d8765986b88cd1d23dd5a3f52e4ffc299fdf96de9d522ddf01aa"  # unpacked
VALUES_SHA256 = "9b3f895c1652f9230a3356d76d7a320c88494feee9c6df509b001ccef8eae484"  # float64, C
NAMES = ("Raf", "Mek", "Plcg", "PIP2", "PIP3", "Erk", "Akt", "PKA", "PKC", "P38", "Jnk")
# The file stacks the conditions in this order; it does not label its rows itself.
CONDITIONS = {
    "cd3cd28": 853,
    "cd3cd28 + ICAM-2": 902,
    "cd3cd28 + Akt inhibitor": 911,
    "cd3cd28 + G0076": 723,
    "cd3cd28 + psitectorigenin": 810,
    "cd3cd28 + U0126": 799,
    "cd3cd28 + LY294002": 848,
    "PMA": 913,
    "β2cAMP": 707,
}
_COMMON = (
    "Raf>Mek Mek>Erk Erk>Akt Plcg>PIP2 PIP3>PIP2 "
    "PKA>Raf PKA>Mek PKA>Erk PKA>Akt PKA>P38 PKA>Jnk "
    "PKC>Raf PKC>Mek PKC>PKA PKC>P38 PKC>Jnk"
)
TRUTHS = {  # cause>effect
    "consensus-17": f"{_COMMON} Plcg>PIP3",
    "extended-20": f"{_COMMON} PIP3>Plcg PIP2>PKC Plcg>PKC PIP3>Akt",
}


def load_sachs(truth: str = "consensus-17") -> Dataset:
    """The 7466 cells by 11 proteins, their nine conditions as groups, and a graph from biology.

    `truth` names the graph: "consensus-17", the 17 edges most papers compare with, or
    "extended-20", which turns Plcg -> PIP3 around and adds PIP2 -> PKC, Plcg -> PKC and
    PIP3 -> Akt. Both are acyclic.

    Examples
    --------
    >>> data = load_sachs()
    >>> data.n, data.d, int(data.truth.to_numpy().sum())
    (7466, 11, 17)
    >>> data.groups.unique()[7]
    'PMA'
    """
    if truth not in TRUTHS:
        raise ValueError(
            f"There is no graph '{printable(truth)}' for the Sachs data; "
            f"choose one of {', '.join(TRUTHS)}."
        )
    with as_file(files("rescore.data") / "sachs.csv.gz") as path:
        values = read_table(path).to_numpy()  # the file's own headings (praf, p44/42) are unusual
    groups = np.repeat(list(CONDITIONS), list(CONDITIONS.values()))
    source = "Sachs et al., Science 308 (2005); file from the wheel of cdt 0.6.0"
    return Dataset.from_arrays(
        pd.DataFrame(values, columns=list(NAMES)), truth=_graph(truth), groups=groups, source=source
    )


def _graph(truth: str) -> NDArray[np.int8]:
    """The adjacency matrix of a named graph, row -> column, in the order of NAMES."""
    A = np.zeros((len(NAMES), len(NAMES)), dtype=np.int8)
    for edge in TRUTHS[truth].split():
        cause, effect = edge.split(">")
        A[NAMES.index(cause), NAMES.index(effect)] = 1
    return A
