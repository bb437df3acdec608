"""Knowledge as text: JSON, and the format of Tetrad.

Tetrad's begins with ``/knowledge``.  Then ``addtemporal`` is followed by tiers, each a number (with
a ``*`` if edges within are forbidden) and names; ``forbiddirect`` and ``requiredirect`` by edges,
each a cause and an effect.  Names are separated by blanks.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rescore.tables.textfile import read_text_bytes
from rescore.text import listing, printable

if TYPE_CHECKING:
    from rescore.knowledge import Knowledge

__all__ = ["from_file", "to_file"]

PARTS = ("forbidden", "required", "tiers", "forbid_within")
SECTIONS = {"addtemporal": "tiers", "forbiddirect": "forbidden", "requiredirect": "required"}


def from_file(path: Path) -> dict[str, Any]:
    """The parts of the knowledge in a file, or a sentence with the line that cannot be read."""
    text = read_text_bytes(path).decode()
    try:
        return _from_json(text) if _is_json(path) else _from_tetrad(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"'{printable(path, 200)}' is no knowledge file: {error}") from None


def to_file(knowledge: "Knowledge", path: Path) -> None:
    """Write the knowledge in the format that the file's name asks for."""
    text = _as_json(knowledge) if _is_json(path) else _as_tetrad(knowledge)
    path.write_text(text, encoding="utf-8", newline="\n")


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
    _check_names(data, str | int)
    return data


def _as_json(knowledge: "Knowledge") -> str:
    data = {part: getattr(knowledge, part) for part in PARTS}
    _check_names(data, str | int)
    return json.dumps({part: value for part, value in data.items() if value}, indent=1) + "\n"


def _from_tetrad(text: str) -> dict[str, Any]:
    lines = [(number, line.split()) for number, line in enumerate(text.split("\n"), start=1)]
    lines = [(number, words) for number, words in lines if words and words[0][:2] != "//"]
    if not lines or lines[0][1] != ["/knowledge"]:
        raise ValueError("the first line must be /knowledge (and the name of JSON end in .json).")
    parts: dict[str, Any] = {part: [] for part in PARTS}
    section = ""
    for number, words in lines[1:]:
        if words[0].lower() in SECTIONS and len(words) == 1:
            section = SECTIONS[words[0].lower()]
        else:
            item = _item(section, number, words)
            parts[section].append(item)
    tiers = sorted((tier for tier in parts["tiers"] if tier[1]), key=lambda tier: tier[0])
    parts["tiers"] = [names for _, names, _ in tiers]
    parts["forbid_within"] = [position for position, tier in enumerate(tiers) if tier[2]]
    _refuse_patterns(parts)
    return parts


def _item(section: str, number: int, words: list[str]) -> Any:
    """One line of a section: a tier, or an edge."""
    if section == "tiers":
        return _tier(number, words)
    if section and len(words) == 2:
        return tuple(words)
    raise ValueError(
        f"line {number}, '{printable(' '.join(words))}', is neither a section "
        f"({', '.join(SECTIONS)}) nor an edge 'cause effect' in one."
    )


def _tier(number: int, words: list[str]) -> tuple[int, list[str], bool]:
    """The tier's number, its names, and whether edges within are forbidden."""
    digits, mark = words[0].removesuffix("*"), words[0].endswith("*")
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError(
            f"line {number} must begin with the number of a tier, such as 1 or 1*, not "
            f"'{printable(words[0])}'."
        )
    return int(digits), words[1:], mark


def _as_tetrad(knowledge: "Knowledge") -> str:
    parts = {part: getattr(knowledge, part) for part in PARTS}
    _check_names(parts, str)
    _refuse_patterns(parts)
    unfit = [name for name in _names(parts) if name.split() != [name] or name.startswith("/")]
    if unfit:
        raise ValueError(
            f"Tetrad's format cannot hold the name(s) {listing(unfit)}, because of blanks or a "
            "slash. Write a file whose name ends in .json."
        )
    tiers = [
        " ".join((f"{k + 1}{'*' * (k in knowledge.forbid_within)}", *map(str, names)))
        for k, names in enumerate(knowledge.tiers)
    ]
    edges = {
        word: [" ".join(map(str, edge)) for edge in parts[part]] for word, part in SECTIONS.items()
    }
    blocks = ["\n".join((word, *lines)) for word, lines in (edges | {"addtemporal": tiers}).items()
              if lines]  # fmt: skip
    return "\n\n".join(["/knowledge", *blocks]) + "\n"


def _names(parts: dict[str, Any]) -> list[Any]:
    return [name for part in PARTS[:3] for each in parts.get(part, ()) for name in each]


def _check_names(parts: dict[str, Any], kinds: Any) -> None:
    wrong = [
        name for name in _names(parts) if not isinstance(name, kinds) or isinstance(name, bool)
    ]
    if wrong:
        raise ValueError(
            f"the name(s) {listing(wrong)} cannot be written to such a file; JSON holds text and "
            "whole numbers, Tetrad's format text."
        )


def _refuse_patterns(parts: dict[str, Any]) -> None:
    """Tetrad takes ``*`` in a name for anything; here a name is a name."""
    patterns = [name for name in _names(parts) if "*" in name]
    if patterns:
        raise ValueError(f"{listing(patterns)} would be a pattern; write the names themselves.")
