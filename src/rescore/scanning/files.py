"""The row groups of Parquet files, looked at before they are read; text files made such."""

import glob
import hashlib
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rescore.tables.csv import header_names, sniffed
from rescore.text import listing, printable

BATCH = 2**18  # rows read at a time, fewer where there are many columns
CELLS = 2**23  # read at a time at most
BUFFER = 2**25  # bytes of all columns read ahead
HEAD = 2**18  # bytes of a text file that tell how it is written
CHUNK = 2**23  # bytes of text read at a time
ENDINGS = (".parquet", ".pq")
MOST_FOOTERS = 64  # remembered, because a file is opened once for every row group
_FOOTERS: dict[tuple[Any, ...], Any] = {}  # by path, size and time


@dataclass(frozen=True)
class FilePart:
    """One row group of a Parquet file, and the size and time that the file had when seen first."""

    path: str
    group: int
    rows: int
    stamp: tuple[Any, ...]
    filesystem: Any
    label: str

    def columns(self, names: Sequence[str], keys: Sequence[str] = ()) -> Iterator[list[Any]]:
        """A few rows at a time, a numpy array for each column."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.refuse_changed()
        wanted = [*names, *keys]
        try:
            with self.filesystem.open_input_file(self.path) as source:
                known = _FOOTERS.get(self.stamp)
                ahead = max(BUFFER // len(wanted), 2**14)
                file = pq.ParquetFile(source, metadata=known, buffer_size=ahead)
                _FOOTERS[self.stamp] = file.metadata
                if len(_FOOTERS) > MOST_FOOTERS:
                    _FOOTERS.pop(next(iter(_FOOTERS)), None)
                rows = max(min(BATCH, CELLS // len(wanted)), 2**10)
                batches = file.iter_batches(
                    rows, row_groups=[self.group], columns=wanted, use_threads=False
                )
                for batch in batches:
                    yield [batch.column(name).to_numpy(zero_copy_only=False) for name in wanted]
        except (pa.ArrowException, OSError) as error:
            self.refuse_changed()
            raise ValueError(
                f"{self.label} cannot be read: {printable(error, 200)}. Write or fetch the file "
                "again."
            ) from error
        self.refuse_changed()

    def refuse_changed(self) -> None:
        """Raise if the file is not what it was."""
        if stamp_of(self.filesystem, self.path) != self.stamp:
            raise ValueError(
                f"{self.label}: the file changed after the scan had begun. Wait until nobody "
                "writes to it, and begin again."
            )


def stamp_of(filesystem: Any, path: str) -> tuple[Any, ...]:
    """Size and time of a file, by which a change is seen."""
    info = filesystem.get_file_info(path)
    return path, info.size, info.mtime_ns


def is_remote(source: Any) -> bool:
    """Whether a path is an address.

    Examples
    --------
    >>> is_remote("s3://bucket/data/*.parquet"), is_remote("data/a.parquet")
    (True, False)
    """
    return "://" in str(source)


def parts_of(
    source: Any, drop: Sequence[str], keys: Sequence[str]
) -> tuple[tuple[str, ...], tuple[FilePart, ...]]:
    """The columns to learn from, and all row groups of all files, in the order of their names."""
    _require_pyarrow()
    filesystem, paths = _found(source)
    first: Any = None
    parts: list[FilePart] = []
    names: tuple[str, ...] = ()
    for path in paths:
        metadata, schema = _footer(filesystem, path)
        if first is None:
            names, first = _kept(schema, drop, keys, path), (path, schema)
        _refuse_other_schema(path, schema, first, (*names, *keys), drop)
        stamp, shown = stamp_of(filesystem, path), f"'{printable(path, 200)}'"
        for group in range(metadata.num_row_groups):
            rows = metadata.row_group(group).num_rows
            if rows:
                label = f"{shown}, row group {group}"
                parts.append(FilePart(path, group, rows, stamp, filesystem, label))
    return names, tuple(parts)


def _require_pyarrow() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ImportError('Scanning files needs pyarrow: pip install "rescore[parquet]"') from error


def _found(source: Any) -> tuple[Any, list[str]]:
    """The file system, and the paths on it."""
    from pyarrow import fs

    if hasattr(source, "get_fragments"):
        files = getattr(source, "files", None)
        if not files or type(source.format).__name__ != "ParquetFileFormat":
            raise ValueError(
                "Of pyarrow datasets those of Parquet files are read. Write it with "
                "pyarrow.dataset.write_dataset(..., format='parquet') first."
            )
        return source.filesystem, list(files)
    if isinstance(source, list | tuple):
        found = [_found(each) for each in source]
        return found[0][0], [path for _, paths in found for path in paths]
    if is_remote(source):
        return _remote(str(source))
    return fs.LocalFileSystem(), _local(Path(source))


def _local(path: Path) -> list[str]:
    """The files of a folder, a glob or a single file, sorted by name."""
    shown = f"'{printable(path, 200)}'"
    if path.is_dir():
        inside = [each for each in sorted(path.rglob("*")) if each.suffix.lower() in ENDINGS]
        hidden = [any(part[0] in "._" for part in each.relative_to(path).parts) for each in inside]
        files = [str(each) for each, skip in zip(inside, hidden, strict=True) if not skip]
        if not files:
            raise ValueError(f"The folder {shown} holds no .parquet file.")
        return files
    if path.is_file():
        return [str(path)]
    files = sorted(glob.glob(str(path), recursive=True))
    if not files:
        raise ValueError(f"There is no file {shown}. Check the path and the folder.")
    return files


def _remote(address: str) -> tuple[Any, list[str]]:
    """Files behind an address, through fsspec."""
    try:
        import fsspec
    except ImportError as error:
        raise ImportError(f"'{printable(address)}' needs fsspec: pip install fsspec") from error
    from pyarrow.fs import FSSpecHandler, PyFileSystem

    there, path = fsspec.core.url_to_fs(address)
    if any(mark in path for mark in "*?["):
        files = sorted(there.glob(path))
    elif there.isdir(path):
        files = sorted(each for each in there.find(path) if each.lower().endswith(ENDINGS))
    else:
        files = [path]
    if not files:
        raise ValueError(f"There is no Parquet file at '{printable(address, 200)}'.")
    return PyFileSystem(FSSpecHandler(there)), files


def _footer(filesystem: Any, path: str) -> tuple[Any, Any]:
    """What a Parquet file says of itself at its end."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    shown = f"'{printable(path, 200)}'"
    try:
        with filesystem.open_input_file(path) as source:
            file = pq.ParquetFile(source)
            return file.metadata, file.schema_arrow
    except PermissionError as error:
        raise ValueError(f"No permission to read {shown}. Ask its owner, or copy it.") from error
    except FileNotFoundError as error:
        raise ValueError(f"There is no file {shown}. Check the path and the folder.") from error
    except (pa.ArrowException, OSError) as error:
        raise ValueError(
            f"{shown} is not a whole Parquet file: {printable(error, 200)}. Write or fetch it "
            "again, or take it out of the folder."
        ) from error


def _kept(schema: Any, drop: Sequence[str], keys: Sequence[str], path: str) -> tuple[str, ...]:
    """The columns to learn from, in the order of the first file."""
    unknown = [name for name in (*drop, *keys) if name not in schema.names]
    if unknown:
        raise ValueError(
            f"There is no column {listing(unknown)} in '{printable(path, 200)}', only "
            f"{listing(schema.names)}."
        )
    names = tuple(name for name in schema.names if name not in {*drop, *keys})
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ValueError(f"Column names must differ, but {listing(set(twice))} occur(s) twice.")
    wrong = [name for name in names if not _is_number(schema.field(name).type)]
    if wrong:
        raise ValueError(
            f"Column(s) {listing(wrong)} of '{printable(path, 200)}' hold no numbers "
            f"({schema.field(wrong[0]).type}). Leave them out with drop=[...], or name them as "
            "keys=[...]."
        )
    return names


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _refuse_other_schema(
    path: str, schema: Any, first: tuple[str, Any], wanted: Sequence[str], drop: Sequence[str]
) -> None:
    """Columns are matched by name, and are numbers in every file, or in none."""
    shown, model = f"'{printable(path, 200)}'", f"'{printable(first[0], 200)}'"
    missing = [name for name in wanted if name not in schema.names]
    further = [name for name in schema.names if name not in {*first[1].names, *drop}]
    if missing or further:
        parts = [f"{listing(missing)} missing"] if missing else []
        parts += [f"{listing(further)} besides"] if further else []
        raise ValueError(
            f"The columns of {shown} are not those of {model}: {', '.join(parts)}. Give files of "
            "one table, or leave columns out with drop=[...]."
        )
    for name in wanted:
        here, there = schema.field(name).type, first[1].field(name).type
        if here != there and _is_number(there) and not _is_number(here):
            raise ValueError(
                f"Column '{printable(name)}' of {shown} holds {here}, which is no number; in "
                f"{model} it holds {there}. Write the file again."
            )


def text_parts(
    path: Path, drop: Sequence[str], keys: Sequence[str], folder: Path | None
) -> tuple[tuple[str, ...], tuple[FilePart, ...], Path | None]:
    """A text file, read once in chunks and kept as Parquet for the passes that follow."""
    _require_pyarrow()
    if not path.is_file():
        raise ValueError(f"There is no file '{printable(path, 200)}'. Check the path.")
    home = Path(tempfile.mkdtemp(prefix="rescore-")) if folder is None else folder
    home.mkdir(parents=True, exist_ok=True)
    stat = path.stat()
    known = f"{path.resolve()}|{stat.st_size}|{stat.st_mtime_ns}|{list(drop)}|{list(keys)}"
    made = home / f"rows-{hashlib.sha256(known.encode()).hexdigest()[:16]}.parquet"
    if not made.exists():
        _converted(path, made, drop, keys)
    names, parts = parts_of(made, (), keys)
    source = f"'{printable(path, 200)}'"
    shown = tuple(
        FilePart(p.path, p.group, p.rows, p.stamp, p.filesystem, f"{source}, chunk {p.group}")
        for p in parts
    )
    return names, shown, home if folder is None else None


def _converted(path: Path, made: Path, drop: Sequence[str], keys: Sequence[str]) -> None:
    """Numbers as float64, keys as they are; a cell that is neither is an error with its row."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import csv

    names, delimiter = _text_header(path)
    unknown = [name for name in (*drop, *keys) if name not in names]
    if unknown:
        raise ValueError(f"There is no column {listing(unknown)}, only {listing(names)}.")
    wanted = [name for name in names if name not in drop]
    types = {name: pa.float64() for name in wanted if name not in keys}
    options = {
        "read_options": csv.ReadOptions(block_size=CHUNK),
        "parse_options": csv.ParseOptions(delimiter=delimiter),
        "convert_options": csv.ConvertOptions(include_columns=wanted, column_types=types),
    }
    unfinished = made.with_suffix(".unfinished")
    try:
        with (
            csv.open_csv(path, **options) as reader,
            pq.ParquetWriter(unfinished, reader.schema, use_dictionary=False) as writer,
        ):
            for batch in reader:
                writer.write_batch(batch)
        unfinished.rename(made)
    except pa.ArrowException as error:
        raise ValueError(f"'{printable(path, 200)}': {printable(error, 200)}.") from error
    except OSError as error:
        raise OSError(
            f"'{printable(path, 200)}' is read once and kept as Parquet meanwhile, which could not "
            f"be written ({error}). Make room in '{printable(made.parent, 200)}', and do the same "
            "again."
        ) from error
    finally:
        unfinished.unlink(missing_ok=True)


def _text_header(path: Path) -> tuple[list[str], str]:
    """The names of the columns and what separates them, from the beginning of the file."""
    import gzip

    usual = "\t" if ".tsv" in path.name.lower() else ","
    with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
        head = file.read(HEAD)
    head = head[: head.rfind(b"\n") + 1] or head
    delimiter = sniffed(head, usual)
    return header_names(head.removeprefix(b"\xef\xbb\xbf"), delimiter, True)[0], delimiter
