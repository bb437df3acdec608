"""A text file, possibly compressed, as UTF-8 with plain line ends, or a sentence why not."""

import codecs
import gzip
import io
import zlib
from pathlib import Path

from rescore.text import printable

__all__ = ["file_bytes", "read_text_bytes"]

MARKS = {  # the first bytes of a file that announce its encoding; longer marks first
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def read_text_bytes(path: Path, encoding: str = "utf-8") -> bytes:
    r"""The file's text as UTF-8 bytes without a byte order mark, its lines ended by \n.

    A name that ends in .gz is unpacked. Bytes that `encoding` does not know are an error that
    says on which line they are, and which encoding they look like.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "a.csv")
    ...     _ = file.write_bytes(b"\xef\xbb\xbfa,b\r\n1,2\r\n")
    ...     read_text_bytes(file)
    b'a,b\n1,2\n'
    """
    raw = file_bytes(path)
    raw = _unpacked(raw, path) if path.suffix.lower() == ".gz" else _not_packed(raw, path)
    raw = _as_utf8(raw, encoding, path)
    if b"\r" in raw:
        raw = raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return raw


def file_bytes(path: Path) -> bytes:
    """All bytes of a file; ValueError if there is no such file or it may not be read.

    Examples
    --------
    >>> file_bytes(Path("no_such_file.csv"))
    Traceback (most recent call last):
        ...
    ValueError: There is no file 'no_such_file.csv'...
    """
    shown = f"'{printable(path, 200)}'"
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise ValueError(f"There is no file {shown}. Check the path and the folder.") from error
    except IsADirectoryError as error:
        raise ValueError(f"{shown} is a directory. Name one file inside it.") from error
    except PermissionError as error:
        raise ValueError(f"No permission to read {shown}. Ask its owner, or copy it.") from error
    except OSError as error:
        raise ValueError(f"{shown} cannot be read: {error.strerror}.") from error


def _not_packed(raw: bytes, path: Path) -> bytes:
    """Refuse a compressed file whose name does not say so."""
    if raw.startswith(b"\x1f\x8b"):
        raise ValueError(
            f"'{printable(path, 200)}' is a gzip file. Rename it to end in .gz, or unpack it."
        )
    return raw


def _unpacked(raw: bytes, path: Path) -> bytes:
    """The content of a gzip file, read piece by piece to know where it breaks off."""
    pieces: list[bytes] = []
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as file:
            while piece := file.read(1 << 20):
                pieces.append(piece)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        line = sum(piece.count(b"\n") for piece in pieces) + 1
        what = "is truncated" if isinstance(error, EOFError) else "is damaged or no gzip file"
        raise ValueError(
            f"'{printable(path, 200)}' {what}: unpacking stopped at or after line {line}. "
            "Fetch or compress the file again."
        ) from error
    return b"".join(pieces)


def _as_utf8(raw: bytes, encoding: str, path: Path) -> bytes:
    """The same text in UTF-8, once it is certain that the encoding is right."""
    try:
        name = codecs.lookup(encoding).name
    except LookupError as error:
        raise ValueError(
            f"Python knows no encoding '{printable(encoding)}'. Try utf-8, utf-16 or latin-1."
        ) from error
    if name in ("utf-8", "utf-8-sig"):
        raw = raw.removeprefix(codecs.BOM_UTF8)
        if raw.isascii() and b"\0" not in raw[:1000]:
            return raw
    try:
        text = raw.decode(name)
    except UnicodeDecodeError as error:
        raise ValueError(_wrong_encoding(raw, error, encoding, path)) from error
    if text[:1000].count("\0") * 4 > len(text[:1000]):  # every other byte, for western letters
        raise ValueError(
            f"'{printable(path, 200)}' is full of NUL characters; it looks like UTF-16. "
            "Read it with encoding='utf-16-le', or save it as UTF-8."
        )
    return text.encode("utf-8")


def _wrong_encoding(raw: bytes, error: UnicodeDecodeError, encoding: str, path: Path) -> str:
    """The sentence on bytes that do not decode, with the line and a guess."""
    line = raw.count(b"\n", 0, error.start) + 1
    guess = next((name for mark, name in MARKS.items() if raw.startswith(mark)), "latin-1")
    return (
        f"Line {line} of '{printable(path, 200)}' is not {printable(encoding)}; it looks like "
        f"{guess}. Read it with encoding='{guess}', or save the file as UTF-8."
    )
