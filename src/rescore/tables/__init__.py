"""Tables of others, read strictly: containers, files, and what is odd about them."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import overload

__all__ = ["BLOCK", "LargeText", "Raw", "large_text"]

BLOCK = 1 << 22  # bytes of lines that are looked at and read at once
LARGE = 1 << 25  # bytes of a file, from which its text is not held in memory


class LargeText:
    r"""The bytes of a file, read where they are looked at: a large one takes too much room.

    It answers as bytes would, as far as readers of tables ask.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "a.csv")
    ...     _ = file.write_bytes(b"a,b\n1,2\n")
    ...     text = LargeText(file)
    ...     len(text), text[4:7], text[0], text.find(b"\n", 4)
    (8, b'1,2', 97, 7)
    """

    def __init__(self, path: Path) -> None:
        self.path, self._size = path, os.stat(path).st_size

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, at: int) -> int: ...

    @overload
    def __getitem__(self, at: slice) -> bytes: ...

    def __getitem__(self, at: int | slice) -> int | bytes:
        if isinstance(at, int):
            return self[at : at + 1][0]
        start, end, _ = at.indices(self._size)
        with self.path.open("rb") as file:
            file.seek(start)
            return file.read(max(end - start, 0))

    def find(self, what: bytes, start: int = 0, end: int | None = None) -> int:
        """Where it is first within these bounds, or -1."""
        last = self._size if end is None else min(end, self._size)
        for at in range(start, last, BLOCK):
            found = self[at : min(at + BLOCK + len(what) - 1, last)].find(what)
            if found >= 0:
                return at + found
        return -1

    def blocks(self) -> Iterator[bytes]:
        """All of it, piece by piece."""
        for at in range(0, self._size, BLOCK):
            yield self[at : at + BLOCK]


Raw = bytes | LargeText  # the text of a file as UTF-8, its lines ended by \n


def large_text(path: Path, encoding: str = "utf-8") -> LargeText | None:
    """The text of a large file as it is written, if that is how tables are read; otherwise None.

    Nothing but ASCII, no quotes, which may hide the end of a line, and lines that are not too long.
    """
    if encoding != "utf-8" or not path.is_file() or path.stat().st_size < LARGE:
        return None
    text = LargeText(path)
    if text.find(b"\n", text.find(b"\n") + 1, BLOCK) < 0:
        return None
    plain = all(
        block.isascii() and not any(mark in block for mark in (b'"', b"\r", b"\0"))
        for block in text.blocks()
    )
    return text if plain else None
