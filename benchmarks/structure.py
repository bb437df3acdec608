"""How easy the source is to find one's way in: files, modules with one importer, names used twice.

A module has one importer if one other module of the package imports it or something in it; a name
is used twice if two modules have it as their last part.

    python benchmarks/structure.py [CHECKOUT] [--names]
"""

import argparse
import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path


def modules(package: Path) -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in package.rglob("*.py"):
        parts = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(path: Path, known: dict[str, Path]) -> Iterator[str]:
    """The modules of the package that a file imports, or imports something from."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in known else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def importers(known: dict[str, Path]) -> dict[str, set[str]]:
    """Who imports each module."""
    found: dict[str, set[str]] = defaultdict(set)
    for name, path in known.items():
        for target in imported(path, known):
            if target in known and target != name:
                found[target].add(name)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("checkout", nargs="?", default=Path(__file__).parents[1], type=Path)
    parser.add_argument("--names", action="store_true", help="say which modules they are")
    asked = parser.parse_args()
    known = modules(asked.checkout / "src" / "rescore")
    lone = {name: who for name, who in importers(known).items() if len(who) == 1}
    stems = Counter(path.stem for path in known.values() if path.stem != "__init__")
    twice = sorted(stem for stem, count in stems.items() if count > 1)
    lengths = sorted(len(path.read_text().splitlines()) for path in known.values())
    print(f"files                      {len(known)}")
    print(f"modules with one importer  {len(lone)}")
    print(f"names used twice           {len(twice)}")
    print(f"lines in the longest file  {lengths[-1]}")
    if asked.names:
        print(*(f"  {name} <- {min(who)}" for name, who in sorted(lone.items())), sep="\n")
        print("  twice:", *twice)


if __name__ == "__main__":
    main()
