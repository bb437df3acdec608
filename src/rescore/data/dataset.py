"""A table with what is known about it: its true graph, its groups of rows, where it came from."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rescore.tables.table import Table, as_table, names_index, row_labels
from rescore.text import listing, printable


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
