"""Knowledge in files: JSON, and the text format of Tetrad."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rescore.knowledge.tetrad import BLANK, PAIRS, SECTIONS, from_tetrad, refuse_patterns
from rescore.tables.textfile import read_text_bytes
from rescore.text import listing, printable

if TYPE_CHECKING:
    from rescore.knowledge import Knowledge

__all__ = ["from_file", "to_file"]

PARTS = ("forbidden", "required", "tiers", "forbid_within")


def from_file(path: Path) -> dict[str, Any]:
    """The parts of the knowledge in a file, or a sentence with the line that cannot be read."""
    text = read_text_bytes(path).decode()
    try:
        return _from_json(text) if _is_json(path) else from_tetrad(text)
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
    _check_names(data)
    return data


def _as_json(knowledge: "Knowledge") -> str:
    data = {part: getattr(knowledge, part) for part in PARTS}
    _check_names(data)
    return json.dumps({part: value for part, value in data.items() if value}, indent=1) + "\n"


def _as_tetrad(knowledge: "Knowledge") -> str:
    """The knowledge as text, with commas only where names have blanks."""
    parts = {part: getattr(knowledge, part) for part in PARTS}
    _refuse_unfit(parts)
    comma = any(BLANK.search(name) for name in _names(parts))
    tiers = [
        f"{k + 1}{'*' * (k in knowledge.forbid_within)} {_joined(names, comma)}"
        for k, names in enumerate(knowledge.tiers)
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
