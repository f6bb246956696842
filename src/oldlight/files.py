"""Files and texts from elsewhere, read so that nothing in them can harm: the one place where npz, JSON and TOML are parsed.

A file may be damaged, or made by somebody who means harm. Whatever is wrong with it, reading ends in one refusal, `UnreadableFile`,
which names the file, the cause and the way out.

**npz.** `arrays_in(path)` opens the archive; each array is asked for by name, and nothing else is read. Before a byte of an array is
unpacked, its zip entry and its npy header must agree with each other and with what is asked for: type, shape, and size in bytes.
Only stored and deflated members are read; deflate gains at most a factor of 1032, so an entry that promises more than that is a lie.
What is read of one file may fill half of this machine's memory, no more. Nothing is unpickled. Arrays come in C order and in
this machine's byte order, whatever the file has.

**JSON and TOML.** Texts are read up to a limit, and values nested deeper than `DEEPEST` are refused.

**Paths** that stand in a file (`inside`) stay in its folder.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import stat
import tomllib
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oldlight import machine

DEEPEST = 50  # levels of lists and tables in a text
LONGEST_TEXT = 64 * 2**20  # bytes of a text in JSON or TOML
LONGEST_TABLE = 2**30  # bytes of a table of measurements or transitions
PIECE = 2**20  # bytes that may be read of an archive at once; its directory is one piece
LONGEST_WORDS = PIECE // 4  # characters of a text in an npz file
MOST_DEFLATE_GAINS = 1032  # 258 bytes for two bits
UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # the first bytes of such a text

Shape = tuple[int | None, ...]


class UnreadableFile(ValueError):
    """A file that is damaged, of another kind, or too large; the message names it, the cause and the way out.

    Examples
    --------
    >>> import tempfile
    >>> import oldlight as ol
    >>> with tempfile.NamedTemporaryFile(suffix=".npz") as empty:
    ...     try:
    ...         ol.load_policy(empty.name)
    ...     except ol.UnreadableFile as error:
    ...         print(type(error).__name__)
    UnreadableFile
    """


@contextlib.contextmanager
def reading(path: str | os.PathLike[str], what: str = "file of this package") -> Iterator[None]:
    """Whatever the bytes of `path` make a library raise in here becomes the one refusal."""
    try:
        yield
    except UnreadableFile:
        raise
    except FileNotFoundError as error:
        if error.errno is None:  # said already
            raise
        raise FileNotFoundError(f"{path}: no such {what.partition(' of ')[0]}") from None
    except Exception as error:  # zipfile, numpy, json and tomllib raise a dozen kinds
        raise UnreadableFile(
            f"{path}: damaged, or not a {what} ({_cause(error)}); make it again, or give another file"
        ) from error


def _cause(error: Exception) -> str:
    said = (str(error).splitlines() or [""])[0]
    if isinstance(error, RecursionError):
        said = f"nested more than {DEEPEST} deep"
    elif isinstance(error, MemoryError):
        said = "not enough memory"
    elif isinstance(error, KeyError):
        said = f"{said} is missing"
    elif isinstance(error, OSError) and error.strerror:
        said = error.strerror
    return said[:300] or type(error).__name__


def _opened(path: str | os.PathLike[str]) -> int:
    """A handle of a regular file; a pipe is refused without waiting for it."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        raise ValueError(f"it is a {'folder' if stat.S_ISDIR(mode) else 'device or a pipe'}, expected a regular file")
    return handle


def inside(file: Path, key: str, name: str) -> Path:
    """The file that `file` calls `name` under `key`; refused if it leads out of its folder."""
    folder = Path(os.path.realpath(file.parent))
    with reading(file):
        target = Path(os.path.realpath(folder / name))
    if Path(name).is_absolute() or ".." in Path(name).parts or not target.is_relative_to(folder):
        raise UnreadableFile(
            f"{file}: {key} is {name!r}, which leads out of its folder; expected the name of a file beside it: copy it there"
        )
    return file.parent / name


# -- texts ------------------------------------------------------------------------------------------------------------


def json_of(text: str | bytes) -> Any:
    """The value of a JSON text; ValueError if it is none, or nested too deeply."""
    try:
        return _shallow(json.loads(text))
    except RecursionError as error:
        raise ValueError(_cause(error)) from None


def _shallow(value: Any) -> Any:
    """The value, if it is not nested too deeply: what walks through it later may be recursive."""
    level, depth = [value], 0
    while parts := [
        each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list)
    ]:
        depth += 1
        if depth > DEEPEST:
            raise ValueError(f"nested more than {DEEPEST} deep")
        level = [each for part in parts for each in part]
    return value


def read_text(
    path: str | os.PathLike[str],
    what: str = "file of text in UTF-8",
    *,
    most: int = LONGEST_TABLE,
    pipes: bool = True,
    other: Callable[[str], bool] | None = None,
) -> str:
    """A text in UTF-8, of at most so many bytes. `pipes`: what is not a regular file is read too. With `other` it may be in UTF-16 (by its
    mark), or, where other(text) says so, in a code of one byte for each letter, in which letters beyond ASCII may come out wrong."""
    with reading(path, what):
        with open(path if pipes else _opened(path), "rb") as stream:
            data = stream.read(most + 1)
        if len(data) > most:
            raise ValueError(f"it has more than {machine.format_bytes(most)}")
        try:
            return data.decode("utf-16" if other is not None and data[:2] in UTF_16 else "utf-8-sig")
        except UnicodeDecodeError:
            if other is None or data[:2] in UTF_16 or not other(data.decode("latin-1")):
                raise
            return data.decode("latin-1")


def read_json(path: str | os.PathLike[str], what: str) -> Any:
    """The value of a JSON file."""
    with reading(path, f"{what} in JSON"):
        return json_of(read_text(path, what, most=LONGEST_TEXT, pipes=False))


def read_toml(path: str | os.PathLike[str], what: str) -> dict[str, Any]:
    """The tables of a TOML file."""
    with reading(path, f"{what} in TOML"):
        found: dict[str, Any] = _shallow(tomllib.loads(read_text(path, what, most=LONGEST_TEXT, pipes=False)))
        return found


# -- arrays -----------------------------------------------------------------------------------------------------------


class Arrays:
    """An npz file that is open: what is asked for is looked at, then read."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._room = machine.default_limit()
        self._entries: dict[str, zipfile.ZipInfo] = {}
        for entry in archive.infolist():
            name = entry.filename.removesuffix(".npy")
            if name in self._entries:
                raise ValueError(f"{name!r} is in it twice")
            self._entries[name] = entry

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def beginning(self, prefix: str) -> list[str]:
        """The names that begin with this."""
        return [name for name in self._entries if name.startswith(prefix)]

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape that an array has by its header."""
        return self._header(name)[0]

    def array(self, name: str, kinds: str, *shapes: Shape) -> NDArray[Any]:
        """An array of numpy's kinds of numbers (any of "b", "i", "u", "f") in one of these shapes (None: any length)."""
        shape, dtype, begin = self._header(name)
        if dtype.kind not in kinds:
            raise ValueError(f"{name!r} is of type {dtype}, expected {_spoken(kinds)}")
        if shapes and not any(_fits(shape, wanted) for wanted in shapes):
            wanted = " or ".join(str(shape).replace("None", "any") for shape in shapes)
            raise ValueError(f"{name!r} has shape {shape}, expected {wanted}")
        size = math.prod(shape) * dtype.itemsize
        self._check(name, begin, size)
        with self._archive.open(self._entries[name]) as stream:
            found = np.lib.format.read_array(stream, allow_pickle=False)
            stream.read(1)  # at the end of a member its checksum is looked at
        return np.asarray(found, dtype=dtype.newbyteorder("="), order="C")

    def numbers(self, name: str, count: int) -> list[int]:
        """So many whole numbers."""
        return [int(number) for number in self.array(name, "iu", (count,))]

    def words(self, name: str, longest: int = LONGEST_WORDS) -> str:
        """A text."""
        _, dtype, _ = self._header(name)
        if dtype.itemsize > 4 * longest:
            raise ValueError(f"{name!r} has {dtype.itemsize // 4} characters, expected at most {longest}")
        return str(self.array(name, "U", ()))

    def table(self, name: str, **kinds: type | tuple[type, ...]) -> dict[str, Any]:
        """A JSON object with these keys and no others, each of its type."""
        found = json_of(self.words(name))
        if not isinstance(found, dict) or found.keys() != kinds.keys():
            raise ValueError(f"{name!r} does not have the keys {', '.join(kinds)}")
        for key, kind in kinds.items():
            if not isinstance(found[key], kind) or (isinstance(found[key], bool) and kind is not bool):
                raise ValueError(f"{key} in {name!r} is of type {type(found[key]).__name__}")
        return found

    def _header(self, name: str) -> tuple[tuple[int, ...], np.dtype[Any], int]:
        """The shape and the type that the npy header of a member declares, and where its numbers begin."""
        if name not in self._entries:
            raise ValueError(f"{name!r} is missing; it holds {sorted(self._entries)[:8]}")
        entry = self._entries[name]
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{name!r} is compressed by method {entry.compress_type}, expected 0 or 8 (deflate)")
        with self._archive.open(entry) as stream:
            version = np.lib.format.read_magic(stream)
            if version not in ((1, 0), (2, 0)):
                raise ValueError(f"{name!r} has an npy header of version {version}, expected (1, 0) or (2, 0)")
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, _, dtype = read(stream)
            begin = stream.tell()
        if dtype.kind not in "biufU":
            raise ValueError(f"{name!r} is of type {str(dtype)[:60]}, expected numbers or a text")
        if any(n < 0 for n in shape):
            raise ValueError(f"{name!r} has shape {shape}, expected lengths ≥ 0")
        if dtype.itemsize == 0 and shape:
            raise ValueError(f"{name!r} has shape {shape} of empty texts")
        return shape, dtype, begin

    def _check(self, name: str, begin: int, size: int) -> None:
        """Refuse a member whose sizes contradict each other, or that does not fit in memory."""
        entry = self._entries[name]
        if entry.file_size != begin + size:
            raise ValueError(f"{name!r} takes {size} bytes by its header, {entry.file_size - begin} by the archive")
        gain = MOST_DEFLATE_GAINS if entry.compress_type == zipfile.ZIP_DEFLATED else 1
        if entry.file_size > gain * entry.compress_size:
            raise ValueError(f"{name!r} cannot unpack to {entry.file_size} bytes, having {entry.compress_size}")
        if size > self._room:
            limit = machine.format_bytes(machine.default_limit())
            raise ValueError(
                f"{name!r} unpacks to {machine.format_bytes(size)}; at most {limit}, half of the memory, are read"
            )
        self._room -= size


def _fits(shape: Sequence[int], wanted: Shape) -> bool:
    return len(shape) == len(wanted) and all(b is None or a == b for a, b in zip(shape, wanted, strict=True))


def _spoken(kinds: str) -> str:
    names: Mapping[str, str] = {"b": "truth values", "i": "whole numbers", "f": "numbers", "U": "a text"}
    return " or ".join(names[kind] for kind in kinds if kind in names)


class _InPieces(io.BufferedReader):
    """A file that is read in small pieces only: the directory of an archive takes ten times its bytes in memory."""

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(PIECE + 1 if size is None or size < 0 else min(size, PIECE + 1))
        if len(data) > PIECE:
            raise ValueError(f"its directory takes more than {machine.format_bytes(PIECE)}")
        return data


@contextlib.contextmanager
def arrays_in(path: str | os.PathLike[str]) -> Iterator[Arrays]:
    """The arrays of an npz file, to be asked for one by one; what goes wrong on the way becomes the one refusal."""
    with reading(path), _InPieces(io.FileIO(_opened(path))) as stream:
        if not zipfile.is_zipfile(stream):
            raise ValueError("it is not an npz archive")
        with zipfile.ZipFile(stream) as archive:
            yield Arrays(archive)
