# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cache of compiled libraries: a folder per library, named by what went into it.

    <cache_dir>/libraries/<hash>/step.so, report.json, report.txt, manifest.json, source.mlir, entry.json

An entry is written beside its place and renamed, so that several processes may compile the same
program at once. One that is damaged is removed and compiled again. The ones that were not used
for longest go when all together take more than 2 GiB.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import json
import os
import pathlib
import platform
import re
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass

from ._config import config
from ._errors import warn

LIMIT_BYTES = 2 << 30
FORMAT = "1"
FILES = ("step.so", "report.json", "report.txt", "manifest.json", "source.mlir")
_INDEX = "entry.json"
_UNFINISHED = "unfinished-"
_DAY = 86400.0
# loc("/home/me/model.py":5:50): the folders are another's on another machine, the program is the same.
_LOCATION = re.compile(rb'"(/[^"\n]*/)([^"/\n]*)":[0-9]+:[0-9]+')


@dataclass(frozen=True)
class Key:
    """The sources of a library: the hash names it, `folders` are those in its locations, in order."""

    hash: str
    folders: tuple[str, ...]


def make_key(source: bytes, arguments: Sequence[str], compiler: pathlib.Path, place: str = "") -> Key:
    """The key of a program, compiled with these arguments by this compiler on this machine.

    `place` is the file that the program was read from.

    >>> one = make_key(b'loc("/a/model.py":1:2)', ["--recipe=current"], pathlib.Path("/bin/sh"))
    >>> two = make_key(b'loc("/b/c/model.py":1:2)', ["--recipe=current"], pathlib.Path("/bin/sh"))
    >>> one.hash == two.hash, one.folders, two.folders
    (True, ('/a/',), ('/b/c/',))
    """
    folders: dict[bytes, int] = {}

    def number(match: re.Match[bytes]) -> bytes:
        index = folders.setdefault(match[1], len(folders))
        return b'"<%d>%s' % (index, match[0][1 + len(match[1]) :])

    place_folder, slash, place_name = place.rpartition("/")
    if slash:
        folders[(place_folder + "/").encode()] = 0
    text = _LOCATION.sub(number, source)
    binary = compiler.resolve().stat()
    parts = [FORMAT, place_name, str(compiler.name), str(binary.st_size), str(binary.st_mtime_ns), _processor(), *arguments]
    digest = hashlib.sha256("\0".join(parts).encode() + b"\0\0" + text)
    return Key(digest.hexdigest(), tuple(folder.decode(errors="replace") for folder in folders))


def _processor() -> str:
    """The processor's name and features: a library is compiled for those of this machine."""
    with contextlib.suppress(OSError):
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        first = {line.split(":")[0].strip(): line.split(":", 1)[1] for line in reversed(lines) if ":" in line}
        return first.get("model name", "") + first.get("flags", "")
    return platform.machine() + platform.processor()


@dataclass(frozen=True)
class Entry:
    """A folder with a compiled library. `folders` are those of the program that it was compiled from."""

    path: pathlib.Path
    key: Key
    folders: tuple[str, ...]

    def read(self, name: str) -> str:
        """The text of one of its files, with the folders of this program in the locations."""
        text = (self.path / name).read_text()
        if self.folders != self.key.folders:
            for old, new in zip(self.folders, self.key.folders):
                text = re.sub(rf"(?<![\w./-]){re.escape(old)}(?=[^/]*:[0-9])", new.replace("\\", r"\\"), text)
        return text


def lookup(key: Key) -> Entry | None:
    """A whole entry, or None; what is damaged is removed."""
    path = _libraries() / key.hash
    if not path.exists():
        return None
    try:
        index = json.loads((path / _INDEX).read_text())
        if all(_digest(path / name) == index["files"][name] for name in FILES):
            with contextlib.suppress(OSError):  # A cache that can only be read.
                os.utime(path)
            return Entry(path, key, tuple(index["folders"]))
    except PermissionError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        pass  # damaged, or removed meanwhile
    shutil.rmtree(path, ignore_errors=True)
    return None


def workspace() -> pathlib.Path:
    """A new folder to compile in: in the cache, or in the system's temporary folder where that cannot be written."""
    libraries = _libraries()
    try:
        libraries.mkdir(parents=True, exist_ok=True)
        return pathlib.Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=libraries))
    except OSError as error:
        return not_kept(str(error.strerror))


def not_kept(reason: str) -> pathlib.Path:
    """Warns that the cache cannot be used; returns a temporary folder to compile in."""
    warn(f"compiled libraries are not kept: {reason}: {_libraries()} (FP8_CACHE_DIR names another folder)")
    return temporary_folder()


def temporary_folder() -> pathlib.Path:
    """A folder that is removed when the process ends."""
    path = tempfile.mkdtemp(prefix="fp8-")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return pathlib.Path(path)


def store(key: Key, path: pathlib.Path) -> Entry:
    """Makes the workspace `path`, which has all FILES, the entry of `key`; a workspace elsewhere stays where it is."""
    if path.parent == _libraries():
        index = {"folders": key.folders, "files": {name: _digest(path / name) for name in FILES}}
        (path / _INDEX).write_text(json.dumps(index))
        target = path.parent / key.hash
        try:
            path.rename(target)
        except OSError:
            # Another process was faster: its entry is the same.
            if (found := lookup(key)) is not None:
                shutil.rmtree(path, ignore_errors=True)
                return found
            return Entry(path, key, key.folders)
        path = target
        _evict()
    return Entry(path, key, key.folders)


def _libraries() -> pathlib.Path:
    return config.cache_dir / "libraries"


def _digest(path: pathlib.Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _evict() -> None:
    """Removes the entries that were not used for longest, down to the limit, and what killed processes left."""
    entries = []
    for path in _libraries().iterdir():
        with contextlib.suppress(OSError):
            used = path.stat().st_mtime
            if path.name.startswith(_UNFINISHED):
                if time.time() - used > _DAY:
                    shutil.rmtree(path, ignore_errors=True)
                continue
            entries.append((used, sum(file.stat().st_size for file in path.iterdir()), path))
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries)[:-1]:
        if total <= LIMIT_BYTES:
            return
        shutil.rmtree(path, ignore_errors=True)
        total -= size
