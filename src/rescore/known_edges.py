"""What is known about the edges before a fit, by column name, and the masks it becomes."""

import os
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rescore.graph.dag import reachability, topological_order
from rescore.knowledge_files import from_file, to_file
from rescore.moments import Matrix
from rescore.protocols import Mask
from rescore.text import listing, printable
from rescore.validation import check_integer

Edges = Iterable[tuple[Hashable, Hashable]]
Edge = tuple[Hashable, Hashable]


def edge_masks(
    names: Sequence[Hashable], forbidden: Edges | None = None, required: Edges | None = None
) -> tuple[Mask, Mask]:
    """``(allowed, required)``, each (d, d) with ``[i, j]`` for i → j, from pairs of names.

    Edges that would close a cycle with the required ones are not allowed either, so that a
    learner never has to choose between them.

    Examples
    --------
    >>> allowed, required = edge_masks(["a", "b"], required=[("a", "b")])
    >>> allowed
    array([[False,  True],
           [False, False]])
    """
    must = _mask(names, required, "required")
    must_not = _mask(names, forbidden, "forbidden")
    _refuse_contradictions(names, must, must_not)
    topological_order(must, list(names))  # raises for required edges that form a cycle
    closes_a_cycle = reachability(must).T
    return ~(must_not | closes_a_cycle | np.eye(len(names), dtype=bool)), must


def _mask(names: Sequence[Hashable], edges: Edges | None, word: str) -> Mask:
    position = {name: i for i, name in enumerate(names)}
    mask = np.zeros((len(names), len(names)), dtype=bool)
    for edge in edges if edges is not None else ():
        cause, effect = name_pair(edge, word)
        unknown = [name for name in (cause, effect) if name not in position]
        if unknown:
            raise ValueError(
                f"The {word} edges name {listing(unknown)}, which the data do not have; "
                f"the columns are {listing(names)}."
            )
        mask[position[cause], position[effect]] = True
    return mask


def receipts(
    names: Sequence[Hashable],
    W: Matrix,
    forbidden: Edges | None = None,
    required: Edges | None = None,
) -> list[dict[str, Any]]:
    """Each forbidden and required edge, and whether the graph ``W`` (d, d) obeys it.

    Examples
    --------
    >>> receipts(["a", "b"], np.array([[0, 2], [0, 0]]), forbidden=[("b", "a")])
    [{'constraint': 'b -> a forbidden', 'holds': True}]
    """
    position = {name: i for i, name in enumerate(names)}
    rules = [(edge, False, "forbidden") for edge in forbidden or ()]
    rules += [(edge, True, "required") for edge in required or ()]
    return [
        {
            "constraint": f"{cause} -> {effect} {word}",
            "holds": bool((W[position[cause], position[effect]] != 0) == there),
        }
        for (cause, effect), there, word in rules
    ]


def name_pair(edge: Any, word: str) -> tuple[Hashable, Hashable]:
    """``edge`` as (cause, effect); ``word`` says in the error which edges are meant.

    Examples
    --------
    >>> name_pair(["a", "b"], "forbidden")
    ('a', 'b')
    """
    if isinstance(edge, str) or not isinstance(edge, Sequence) or len(edge) != 2:
        raise TypeError(
            f"Each of the {word} edges must be a pair (cause, effect) of column names, "
            f"got {printable(repr(edge))}."
        )
    return edge[0], edge[1]


def _refuse_contradictions(names: Sequence[Hashable], must: Mask, must_not: Mask) -> None:
    both = [f"{names[i]} -> {names[j]}" for i, j in np.argwhere(must & must_not)]
    if both:
        raise ValueError(
            f"{listing(both)} is both required and forbidden. Remove it from one of the two."
        )


@dataclass(frozen=True, init=False)
class Knowledge:
    """Edges that must or must not be there, and tiers of variables in the order of time.

    Every learner takes it, or the path of a file that holds it: ``Linear(knowledge=known)``.  What
    contradicts itself is refused at once, names that the data lack at the fit.

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
            "forbidden": _pairs(forbidden, "forbidden"),
            "required": _pairs(required, "required"),
            "tiers": groups,
            "forbid_within": _positions(forbid_within or (), len(groups)),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)  # the way to fill a frozen dataclass
        _refuse_repetition(groups)
        self._refuse_contradictions()

    def joined(self, forbidden: Edges | None = None, required: Edges | None = None) -> "Knowledge":
        """All that is known here, and more edges.

        Examples
        --------
        >>> Knowledge(tiers=[["rain"], ["grass"]]).joined(required=[("grass", "rain")])
        Traceback (most recent call last):
            ...
        ValueError: The required edge(s) 'grass -> rain' lead from a tier to an earlier one, ...
        """
        return Knowledge(
            (*self.forbidden, *_pairs(forbidden, "forbidden")),
            (*self.required, *_pairs(required, "required")),
            self.tiers,
            self.forbid_within,
        )

    def edges(self) -> dict[str, list[Edge] | None]:
        """The parameters ``forbidden`` and ``required`` of a learner; None where nothing is known.

        Examples
        --------
        >>> Knowledge(tiers=[["rain"], ["grass"]]).edges()
        {'forbidden': [('grass', 'rain')], 'required': None}
        """
        forbidden = list(dict.fromkeys((*self.forbidden, *self._by_tiers())))
        required = list(dict.fromkeys(self.required))
        return {"forbidden": forbidden or None, "required": required or None}

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
        to_file(asdict(self), Path(path))

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


Known = Knowledge | str | os.PathLike[str]


def as_knowledge(known: Known | None) -> Knowledge:
    """The knowledge itself, or what its file holds; None is knowing nothing.

    Examples
    --------
    >>> as_knowledge([("rain", "grass")])
    Traceback (most recent call last):
        ...
    TypeError: knowledge must be a Knowledge or the path of a file, got [('rain', 'grass')]. ...
    """
    if known is None:
        return Knowledge()
    if isinstance(known, Knowledge):
        return known
    if isinstance(known, str | os.PathLike):
        return Knowledge.read(known)
    raise TypeError(
        f"knowledge must be a Knowledge or the path of a file, got {printable(repr(known))}. "
        "Edges alone are given as forbidden= and required=."
    )


def _pairs(edges: Edges | None, word: str) -> tuple[Edge, ...]:
    return tuple(name_pair(edge, word) for edge in (() if edges is None else edges))


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
