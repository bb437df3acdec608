"""The scores of one estimated graph, as a value."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Scores"]


@dataclass(frozen=True)
class Scores:
    """All metrics of one estimate, made by `metrics.evaluate`.

    A metric that has no value is None, and ``undefined`` says why.
    ``scores["shd"]`` and ``dict(scores)`` work too.

    Examples
    --------
    >>> from rescore.metrics import evaluate
    >>> scores = evaluate([[0, 1], [0, 0]], [[0, 0], [1, 0]])
    >>> scores.shd, scores["sid"], scores.as_dict()["fdr"]
    (1, 2, 1.0)
    """

    tpr: float | None
    fdr: float
    fpr: float | None
    shd: int
    sid: int | None
    edges: int
    cpdag_shd: int | None
    ancestor_aid: int | None
    oset_aid: int | None
    parent_aid: int | None
    undefined: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)

    def keys(self) -> Iterator[str]:
        """The names of the metrics.

        Examples
        --------
        >>> from rescore.metrics import evaluate
        >>> "shd" in evaluate([[0]], [[0]]).keys()
        True
        """
        return (name for name in self.__dataclass_fields__ if name != "undefined")

    def __getitem__(self, name: str) -> float | None:
        if name not in self.keys():
            raise KeyError(
                f"There is no metric {name!r}; the metrics are {', '.join(self.keys())}."
            )
        return getattr(self, name)

    def as_dict(self) -> dict[str, float | None]:
        """The metrics as a plain dict, ready for JSON.

        Examples
        --------
        >>> from rescore.metrics import evaluate
        >>> evaluate([[0]], [[0]]).as_dict()["shd"]
        0
        """
        return {name: self[name] for name in self.keys()}

    def to_series(self) -> "pd.Series[float]":
        """The metrics as a pandas Series of floats, NaN where there is none.

        Examples
        --------
        >>> from rescore.metrics import evaluate
        >>> float(evaluate([[0]], [[0]]).to_series()["shd"])
        0.0
        """
        import pandas as pd

        return pd.Series(self.as_dict(), dtype=float)

    def __str__(self) -> str:
        lines = []
        for name, value in self.as_dict().items():
            text = f"{value:.4g}" if isinstance(value, float) else str(value)
            if value is None:
                text = f"-  {self.undefined.get(name, '')}"
            lines.append(f"{name:<13} {text}".rstrip())
        return "\n".join(lines)
