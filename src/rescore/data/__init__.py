"""Tables with what is known about them: their true graph, groups of rows, where they came from.

One comes with the package: eleven proteins of human T cells, measured cell by cell under nine
conditions.  The numbers are those of K. Sachs, O. Perez, D. Pe'er, D. Lauffenburger and G. Nolan,
"Causal protein-signaling networks derived from multiparameter single-cell data", Science 308
(2005).  The file `sachs.csv.gz` beside this one is `cdt/data/resources/cyto_full_data.csv` from
the PyPI wheel of cdt 0.6.0 (sha256 a90401b6...9996b), byte for byte, compressed by gzip without a
time stamp.  That wheel's LICENSE.md is the MIT licence, (c) 2018 Diviyan Kalainathan; its metadata
say Apache 2.0.  The licence is in `NOTICE` beside the file.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from importlib.resources import as_file, files
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rescore.tables.table import Table, as_table, names_index, row_labels
from rescore.text import listing, printable

__all__ = ["Dataset", "load_sachs"]


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


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Rows X, and optionally the true graph, a group label per row and a word on the origin.

    Build one with `Dataset.from_arrays` or `Dataset.read`. It cannot be changed: every property
    hands out a copy.

    Examples
    --------
    >>> data = Dataset.from_arrays([[0.0, 1.0], [2.0, 3.0]], truth=[[0, 1], [0, 0]])
    >>> data
    Dataset(n=2, d=2, names=('x0', 'x1'), edges=1)
    >>> data.truth.loc["x0", "x1"]  # row -> column: x0 causes x1
    np.int8(1)
    """

    table: Table
    _edges: NDArray[np.int8] | None  # (d, d), row -> column
    _labels: NDArray[Any] | None  # (n,)
    source: str = ""

    @classmethod
    def from_arrays(
        cls, X: Any, names: Any = None, truth: Any = None, groups: Any = None, source: str = ""
    ) -> "Dataset":
        """A dataset from tables in memory.

        `names` replaces the labels of X's columns. `truth` is a square matrix whose entry [i, j]
        is non-zero for an edge i -> j; a DataFrame is put into the order of X's columns by name.
        `groups` is one label per row.

        Examples
        --------
        >>> data = Dataset.from_arrays([[1, 2], [3, 5]], names=["a", "b"], groups=["u", "v"])
        >>> data.groups.tolist()
        ['u', 'v']
        """
        table = as_table(X) if names is None else as_table(X).renamed(tuple(names))
        edges = None if truth is None else _edges(truth, table.names)
        labels = None if groups is None else row_labels(groups, table.index)
        return cls(table, edges, labels, str(source))

    @classmethod
    def read(
        cls, path: str | PathLike[str], groups: str | None = None, **options: Any
    ) -> "Dataset":
        r"""A dataset from a csv, tsv or parquet file; `options` are those of `read_table`.

        `groups` names the column that holds the group of each row.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "table.csv")
        ...     _ = file.write_text("a,b,where\n1,2,u\n3,5,v\n")
        ...     Dataset.read(file, groups="where")
        Dataset(n=2, d=2, names=('a', 'b'), groups=2, source='...table.csv')
        """
        from rescore.tables.files import read_table

        frame = read_table(path, labels=[] if groups is None else [groups], **options)
        labels = None if groups is None else frame.pop(groups)
        return cls.from_arrays(frame, groups=labels, source=str(path))

    @property
    def X(self) -> pd.DataFrame:  # noqa: N802 - the name it has in every equation
        """The rows, (n, d) float64, on the index they came with; a new copy at each call."""
        return pd.DataFrame(
            self.table.values, index=self.table.index, columns=names_index(self.names), copy=True
        )

    @property
    def truth(self) -> pd.DataFrame | None:
        """The true graph, (d, d) int8: 1 for an edge row -> column; None if unknown."""
        if self._edges is None:
            return None
        axis = names_index(self.names)
        return pd.DataFrame(self._edges, index=axis, columns=axis, copy=True)

    @property
    def groups(self) -> pd.Series | None:
        """One label per row on the index of X; None if there are no groups."""
        if self._labels is None:
            return None
        return pd.Series(self._labels.copy(), index=self.table.index, name="group")

    @property
    def names(self) -> tuple[Hashable, ...]:
        """The labels of the columns, in their order."""
        return self.table.names

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.table.values.shape[0]

    @property
    def d(self) -> int:
        """The number of columns."""
        return self.table.values.shape[1]

    def __repr__(self) -> str:
        shown = ", ".join(f"'{printable(name, 20)}'" for name in self.names[:4])
        parts = [f"n={self.n}", f"d={self.d}", f"names=({shown}{', …' * (self.d > 4)})"]
        if self._edges is not None:
            parts.append(f"edges={int(self._edges.sum())}")
        if self._labels is not None:
            parts.append(f"groups={len(pd.unique(self._labels))}")
        if self.source:
            parts.append(f"source='{printable(self.source)}'")
        return f"Dataset({', '.join(parts)})"


def _edges(truth: Any, names: tuple[Hashable, ...]) -> NDArray[np.int8]:
    """The truth as 0/1 in the order of `names`, checked."""
    matrix = truth
    if isinstance(truth, pd.DataFrame):
        matrix = _aligned(truth, names).to_numpy()
    matrix = np.asarray(matrix)
    if matrix.shape != (len(names), len(names)):
        raise ValueError(
            f"truth must have one row and one column per variable, ({len(names)}, {len(names)}); "
            f"its shape is {matrix.shape}. Give an adjacency matrix, row -> column."
        )
    if matrix.dtype.kind not in "biuf" or not np.isfinite(matrix).all():
        raise ValueError("truth must hold finite numbers: 0 for no edge, non-zero for an edge.")
    loops = [name for name, value in zip(names, matrix.diagonal(), strict=True) if value]
    if loops:
        raise ValueError(
            f"truth has an edge from {listing(loops)} to itself; set its diagonal to zero."
        )
    edges = (matrix != 0).astype(np.int8)
    edges.flags.writeable = False
    return edges


def _aligned(truth: pd.DataFrame, names: Iterable[Hashable]) -> pd.DataFrame:
    """The truth's rows and columns in the order of `names`."""
    wanted = names_index(names)
    for axis, words in ((truth.index, "rows"), (truth.columns, "columns")):
        if not axis.is_unique or set(axis) != set(wanted):
            odd = sorted(set(axis).symmetric_difference(wanted), key=str)
            what = f"; not in both: {listing(odd)}" if odd else "; a name occurs twice"
            raise ValueError(
                f"The {words} of truth must carry the names of the columns of X{what}. "
                "Rename them, or give truth.to_numpy() if the order is already the same."
            )
    return truth.loc[wanted, wanted]


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
    from rescore.tables.files import read_table

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
