"""Knowledge about edges in files: JSON, and the text format of Tetrad.

Tetrad's first line is ``/knowledge``, or ``/knowledge comma`` if commas rather than blanks separate
the names; lines that begin with ``//`` are remarks.  Then come sections:

- ``addtemporal``: a tier a line, its number, ``*`` after it if edges within are forbidden, ``-`` if
  it can cause the next tier only, and names;
- ``tierstructure`` and a name: the same, for tiers beside the main ones;
- ``forbiddirect``, ``requiredirect``: an edge a line, cause and effect;
- ``forbiddengroup``, ``requiredgroup``: a line of causes and a line of effects, all pairs of them.
"""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rescore.staging import write_whole
from rescore.tables.files import read_text_bytes
from rescore.text import listing, printable

PARTS = ("forbidden", "required", "tiers", "forbid_within")
PAIRS = {"forbiddirect": "forbidden", "requiredirect": "required"}
GROUPS = {"forbiddengroup": "forbidden", "requiredgroup": "required"}
SECTIONS = ("addtemporal", "tierstructure", *PAIRS, *GROUPS)
_HEADER = re.compile(r"/knowledge(\s+comma)?", re.IGNORECASE)
_TIER = re.compile(r"(\d+)([*-]*)(?:\s+(.*))?", re.ASCII)
BLANK = re.compile(r"\s", re.ASCII)  # as Tetrad counts them, which a no-break space is not
_BYBLANKS = re.compile(r'"([^"]*)"(?!\S)|(\S+)', re.ASCII)
_BY_COMMAS = re.compile(r'\s*"([^"]*)"\s*(?:,|$)|([^,]+)', re.ASCII)
Line = tuple[int, str]
Tier = tuple[int, str, list[str]]  # number, marks and names
Edge = tuple[str, str]


def from_file(path: Path) -> dict[str, Any]:
    """The parts of the knowledge in a file, or a sentence with the line that cannot be read."""
    text = read_text_bytes(path).decode()
    try:
        return _from_json(text) if _is_json(path) else from_tetrad(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"'{printable(path, 200)}' is no knowledge file: {error}") from None


def to_file(parts: dict[str, Any], path: Path) -> None:
    """Write the parts of the knowledge in the format that the file's name asks for."""
    text = _as_json(parts) if _is_json(path) else _as_tetrad(parts)
    write_whole(path, text.encode())


def _is_json(path: Path) -> bool:
    return path.suffix.lower() == ".json"


def _from_json(text: str) -> dict[str, Any]:
    data = json.loads(text)
    if not isinstance(data, dict):
        raise ValueError(f"it must hold an object with {', '.join(PARTS)}.")
    unknown = data.keys() - set(PARTS)
    if unknown:
        raise ValueError(f"it has {listing(sorted(unknown))}; known are {', '.join(PARTS)}.")
    for part, value in data.items():
        nested = isinstance(value, list) and (
            part == "forbid_within" or all(isinstance(item, list) for item in value)
        )
        if not nested:
            raise ValueError(f'"{part}" must be a list of lists, such as [["a", "b"]].')
    _check_names(data)
    return data


def _as_json(parts: dict[str, Any]) -> str:
    _check_names(parts)
    return json.dumps({part: value for part, value in parts.items() if value}, indent=1) + "\n"


def _as_tetrad(parts: dict[str, Any]) -> str:
    """The knowledge as text, with commas only where names have blanks."""
    _refuse_unfit(parts)
    comma = any(BLANK.search(name) for name in _names(parts))
    closed = parts["forbid_within"]
    tiers = [
        f"{k + 1}{'*' * (k in closed)} {_joined(names, comma)}"
        for k, names in enumerate(parts["tiers"])
    ]
    sections = {"addtemporal": tiers} | {
        word: [_joined(edge, comma) for edge in parts[part]] for word, part in PAIRS.items()
    }
    blocks = ["\n".join((word, *lines)) for word, lines in sections.items() if lines]
    return "\n\n".join(["/knowledge comma" if comma else "/knowledge", *blocks]) + "\n"


def _joined(names: Iterable[Any], comma: bool) -> str:
    quoted = (f'"{name}"' if comma and "," in name else name for name in names)
    return (", " if comma else " ").join(quoted)


def _refuse_unfit(parts: dict[str, Any]) -> None:
    names = _names(parts)
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong:
        raise ValueError(
            f"Tetrad's format holds names that are text, not {listing(wrong)}. Write a file whose "
            "name ends in .json, or rename the columns."
        )
    refuse_patterns(parts)
    unfit = [name for name in names if not _fits(name)]
    if unfit:
        raise ValueError(
            f"Tetrad's format cannot hold the name(s) {listing(unfit)}, because of quotes, line "
            "breaks, blanks at an end, a slash or a word of the format. Write a file whose name "
            "ends in .json."
        )


def _fits(name: str) -> bool:
    unbroken = len(name.splitlines()) == 1 and name.strip() == name and '"' not in name
    return unbroken and not name.lower().startswith(("/", *SECTIONS))


def _names(parts: dict[str, Any]) -> list[Any]:
    return [name for part in PARTS[:3] for each in parts.get(part, ()) for name in each]


def _check_names(parts: dict[str, Any]) -> None:
    wrong = [
        name for name in _names(parts) if not isinstance(name, str | int) or isinstance(name, bool)
    ]
    if wrong:
        raise ValueError(
            f"the name(s) {listing(wrong)} cannot be written to such a file; JSON holds text and "
            "whole numbers, Tetrad's format text."
        )


def from_tetrad(text: str) -> dict[str, Any]:
    """The parts of the knowledge, or a sentence with the line that cannot be read.

    What `Knowledge` has no word for (groups, ``-``, tiers beside the main ones) becomes the edges
    that it forbids or requires.
    """
    numbered = [(number, line.strip()) for number, line in enumerate(text.split("\n"), start=1)]
    lines = [(number, line) for number, line in numbered if line and not line.startswith("//")]
    header = _HEADER.fullmatch(lines[0][1]) if lines else None
    if header is None:
        raise ValueError("the first line must be /knowledge (and the name of JSON end in .json).")
    comma = header[1] is not None
    edges: dict[str, list[Edge]] = {"forbidden": [], "required": []}
    main: list[Tier] = []
    for word, body in _sections(lines[1:]):
        if word in PAIRS:
            edges[PAIRS[word]] += [_edge(*line, comma) for line in body]
        elif word in GROUPS:
            edges[GROUPS[word]] += _group_edges(word, body, comma)
        elif word == "addtemporal":
            main += [_tier(*line, comma) for line in body]
        else:
            edges["forbidden"] += _aside([_tier(*line, comma) for line in body], body)
    edges["forbidden"] += _skipping(main)
    parts = {part: list(dict.fromkeys(found)) for part, found in edges.items()} | _ordered(main)
    refuse_patterns(parts)
    return parts


def _sections(lines: list[Line]) -> list[tuple[str, list[Line]]]:
    """Each section's word with the lines that follow it."""
    found: list[tuple[str, list[Line]]] = []
    for number, line in lines:
        word, *rest = line.lower().split()
        if word in SECTIONS and (not rest or word == "tierstructure"):
            found.append((word, []))
        elif found:
            found[-1][1].append((number, line))
        else:
            raise ValueError(
                f"line {number}, '{printable(line)}', is in no section; known are "
                f"{', '.join(SECTIONS)}."
            )
    return found


def _names_in(number: int, text: str, comma: bool) -> list[str]:
    matches = (_BY_COMMAS if comma else _BYBLANKS).finditer(text)
    names = [name for match in matches if (name := match[1] or (match[2] or "").strip())]
    blank = [name for name in names if not comma and BLANK.search(name)]
    if blank:
        raise ValueError(
            f"line {number} has {listing(blank)}, whose blanks Tetrad would turn into periods; "
            "such names need commas, and '/knowledge comma' as the first line."
        )
    return names


def _edge(number: int, line: str, comma: bool) -> Edge:
    names = _names_in(number, line, comma)
    if len(names) == 2:
        return names[0], names[1]
    raise ValueError(
        f"line {number}, '{printable(line)}', is neither a section ({', '.join(SECTIONS)}) nor an "
        f"edge 'cause effect' in one.{_about_commas(line)}"
    )


def _group_edges(word: str, body: list[Line], comma: bool) -> Iterator[Edge]:
    """All pairs of two lines each; a variable forbids itself nothing."""
    if len(body) % 2:
        raise ValueError(
            f"line {body[-1][0]} has the causes of a {word}, but no line of effects follows."
        )
    sides = [_names_in(*line, comma) for line in body]
    for causes, effects in zip(sides[::2], sides[1::2], strict=True):
        yield from ((cause, effect) for cause in causes for effect in effects if cause != effect)


def _tier(number: int, line: str, comma: bool) -> Tier:
    tier = _TIER.fullmatch(line)
    if tier is None:
        raise ValueError(
            f"line {number} must begin with the number of a tier, such as 1, 1* or 1-, not "
            f"'{printable(line.split()[0])}'.{_about_commas(line)}"
        )
    return int(tier[1]), tier[2], _names_in(number, tier[3] or "", comma)


def _about_commas(line: str) -> str:
    return (
        " If commas separate the names, the first line must be '/knowledge comma', and a blank "
        "follow the number of a tier."
        if "," in line
        else ""
    )


def _skipping(tiers: list[Tier]) -> Iterator[Edge]:
    """What ``-`` forbids: edges that leave out the tier with the next number."""
    marked = {place for place, marks, _ in tiers if "-" in marks}
    for place, _, causes in tiers:
        later = [name for other, _, names in tiers if other > place + 1 for name in names]
        if place in marked:
            yield from ((cause, effect) for cause in causes for effect in later)


def _aside(tiers: list[Tier], body: list[Line]) -> Iterator[Edge]:
    """What tiers beside the main ones forbid, edge by edge."""
    for (number, _), (_, marks, _) in zip(body, tiers, strict=True):
        if "-" in marks:
            raise ValueError(f"line {number} has '-', which Tetrad knows only under addtemporal.")
    within = {place for place, marks, _ in tiers if "*" in marks}
    for effect_tier, _, effects in tiers:
        for cause_tier, _, causes in tiers:
            if cause_tier > effect_tier or (cause_tier == effect_tier and effect_tier in within):
                yield from ((a, b) for a in causes for b in effects if a != b)


def _ordered(tiers: list[Tier]) -> dict[str, Any]:
    """The tiers in order, lines with the same number together and those without names left out."""
    joined: dict[int, list[str]] = {}
    for place, _, names in sorted(tiers, key=lambda tier: tier[0]):
        joined.setdefault(place, []).extend(names)
    places = [place for place, names in joined.items() if names]
    within = {place for place, marks, _ in tiers if "*" in marks}
    return {
        "tiers": [joined[place] for place in places],
        "forbid_within": [k for k, place in enumerate(places) if place in within],
    }


def refuse_patterns(parts: dict[str, Any]) -> None:
    """Tetrad takes ``*`` in a name for anything; here a name is a name."""
    groups = (*parts["forbidden"], *parts["required"], *parts["tiers"])
    patterns = [name for group in groups for name in group if "*" in name]
    if patterns:
        raise ValueError(f"{listing(patterns)} would be a pattern; write the names themselves.")
