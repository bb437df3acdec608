"""What is known about the edges before a fit, by column name: to write down, keep and hand over."""

import os
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rescore.checking import check_integer
from rescore.constraints import Edges, edge_masks, name_pair
from rescore.text import listing, printable

__all__ = ["Knowledge"]

Edge = tuple[Hashable, Hashable]


@dataclass(frozen=True, init=False)
class Knowledge:
    """Edges that must or must not be there, and tiers of variables in the order of time.

    A learner takes it as its parameters ``forbidden`` and ``required``:
    ``Notears(**knowledge.edges())``.  What contradicts itself is refused at once, names that the
    data lack at the fit.

    Parameters
    ----------
    forbidden, required : iterables of (cause, effect), optional
        Edges, by column name.
    tiers : iterable of iterables of names, optional
        The earliest first: nothing in an earlier tier is caused by anything in a later one.
        Variables in no tier are free.
    forbid_within : iterable of int, optional
        The tiers, counted from zero, whose own variables do not cause each other.

    Examples
    --------
    >>> known = Knowledge(tiers=[["age"], ["dose", "diet"], ["outcome"]], forbid_within=[1])
    >>> known.edges()["forbidden"][:3]
    [('dose', 'age'), ('diet', 'age'), ('outcome', 'age')]
    >>> Knowledge(required=[("dose", "age")], tiers=known.tiers)
    Traceback (most recent call last):
        ...
    ValueError: The required edge(s) 'dose -> age' lead from a tier to an earlier one, ...
    """

    forbidden: tuple[Edge, ...]
    required: tuple[Edge, ...]
    tiers: tuple[tuple[Hashable, ...], ...]
    forbid_within: tuple[int, ...]

    def __init__(
        self,
        forbidden: Edges | None = None,
        required: Edges | None = None,
        tiers: Iterable[Iterable[Hashable]] | None = None,
        forbid_within: Iterable[int] | None = None,
    ) -> None:
        groups = tuple(_tier(names) for names in tiers or ())
        fields = {
            "forbidden": tuple(name_pair(edge, "forbidden") for edge in forbidden or ()),
            "required": tuple(name_pair(edge, "required") for edge in required or ()),
            "tiers": groups,
            "forbid_within": _positions(forbid_within or (), len(groups)),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)  # the way to fill a frozen dataclass
        _refuse_repetition(groups)
        self._refuse_contradictions()

    def edges(self) -> dict[str, list[Edge] | None]:
        """The parameters ``forbidden`` and ``required`` of a learner; None where nothing is known.

        Examples
        --------
        >>> Knowledge(tiers=[["rain"], ["grass"]]).edges()
        {'forbidden': [('grass', 'rain')], 'required': None}
        """
        forbidden = list(dict.fromkeys((*self.forbidden, *self._by_tiers())))
        return {"forbidden": forbidden or None, "required": list(self.required) or None}

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Knowledge":
        """The knowledge in a file: JSON if its name ends in .json, otherwise as Tetrad writes it.

        Examples
        --------
        >>> Knowledge.read("nowhere.json")
        Traceback (most recent call last):
            ...
        ValueError: There is no file 'nowhere.json'. Check the path and the folder.
        """
        from rescore.knowledge.files import from_file

        return cls(**from_file(Path(path)))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a file that `read` reads: JSON if its name ends in .json, otherwise Tetrad's.

        Examples
        --------
        >>> import tempfile
        >>> known = Knowledge(required=[("rain", "grass")])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     known.write(Path(folder, "known.txt"))
        ...     print(Path(folder, "known.txt").read_text())
        ...     Knowledge.read(Path(folder, "known.txt")) == known
        /knowledge
        <BLANKLINE>
        requiredirect
        rain grass
        <BLANKLINE>
        True
        """
        from rescore.knowledge.files import to_file

        to_file(self, Path(path))

    def _by_tiers(self) -> Iterator[Edge]:
        """Edges that the tiers forbid, by effect: from a later tier, or within the effect's own."""
        for position, tier in enumerate(self.tiers):
            later = [name for other in self.tiers[position + 1 :] for name in other]
            within = tier if position in self.forbid_within else ()
            for effect in tier:
                yield from ((cause, effect) for cause in (*within, *later) if cause != effect)

    def _refuse_contradictions(self) -> None:
        by_tiers = set(self._by_tiers())
        against = [f"{cause} -> {effect}" for cause, effect in self.required
                   if (cause, effect) in by_tiers]  # fmt: skip
        if against:
            raise ValueError(
                f"The required edge(s) {listing(against)} lead from a tier to an earlier one, or "
                "within a tier that forbids it. Drop them, or move the variables."
            )
        named = list(dict.fromkeys(name for edge in self.required for name in edge))
        both_named = [edge for edge in self.forbidden if set(edge) <= set(named)]
        edge_masks(named, both_named, self.required)  # raises for cycles and for edges in both


def _tier(names: Any) -> tuple[Hashable, ...]:
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise TypeError(
            "Each of the tiers must be a list of column names, such as "
            f"[['age'], ['dose', 'outcome']]; got {printable(repr(names))}."
        )
    tier = tuple(names)
    if not tier:
        raise ValueError("A tier is empty. Leave it out, or name its columns.")
    return tier


def _positions(given: Iterable[int], count: int) -> tuple[int, ...]:
    positions = {check_integer("forbid_within", position, at_least=0) for position in given}
    if positions and max(positions) >= count:
        raise ValueError(
            f"forbid_within names tier {max(positions)}, counted from zero, but there are {count}."
        )
    return tuple(sorted(positions))


def _refuse_repetition(tiers: Sequence[tuple[Hashable, ...]]) -> None:
    places = Counter(name for tier in tiers for name in tier)
    twice = [name for name, count in places.items() if count > 1]
    if twice:
        raise ValueError(
            f"{listing(twice)} occur(s) in the tiers more than once; a variable has one place."
        )
