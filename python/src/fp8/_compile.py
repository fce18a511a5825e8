# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiling: runs fp8-compile and fp8-opt as processes, and makes exceptions of their errors."""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from . import _cache, _options, _stablehlo, _tools
from ._config import config
from ._errors import CompileError, Location, UnsupportedError, warn
from ._library import Library
from ._report import Report, Site

Source: TypeAlias = "str | bytes | os.PathLike[str]"

log = logging.getLogger("fp8")

_DIAGNOSTIC = re.compile(r"^(.*?):(\d+):(\d+): (error|warning|remark|note): (.*)$")
_UNSUPPORTED = re.compile(r"has no lowering|have no lowering|not found for custom op|is not known here|is not supported")


def compile(  # noqa: A001 - users write fp8.compile
    source: Source,
    *,
    recipe: Any = "delayed",
    sites: _options.Regex = "linear",
    keep: _options.Regex | Callable[[Site], bool] | None = None,
    require: _options.Regex | None = None,
    first: int = 0,
    last: int = 0,
    fprop: str = "fp8",
    dgrad: str = "fp8",
    wgrad: str = "fp8",
    calibrate: bool = False,
    pair: _options.Pair | None = None,
    carry: Any = None,
    target: str = "cpu",
    cache: bool = True,
    name: str | None = None,
    **options: Any,
) -> Library:
    """Compiles a program in MLIR: text, bytecode, or the path of a file.

    The program is in linalg on tensors, or in StableHLO, as jax.export and torch_xla write it (also
    as a portable artifact); this is lowered by jaxlib's passes and needs JAX.

    The options are fp8-compile's, with _ for -. `pair` is (forward, backward) or (forward,
    backward, K); `carry` is {argument: result}; `keep` may be a function of a Site, which is then
    asked about every product. `cache=False` neither reads nor fills the cache. `name` is what the
    log calls the program.

    Raises ValueError for an option, CompileError or UnsupportedError for the program,
    MissingToolError without a compiler.

    >>> text = '''func.func @main(%x: tensor<2x4xf32>, %w: tensor<4x3xf32>, %o: tensor<2x3xf32>) -> tensor<2x3xf32> {
    ...   %y = linalg.matmul ins(%x, %w : tensor<2x4xf32>, tensor<4x3xf32>) outs(%o : tensor<2x3xf32>) -> tensor<2x3xf32>
    ...   return %y : tensor<2x3xf32> }'''
    >>> compile(text, recipe="current", sites="all").report
    <fp8.Report: 1 products, 1 in FP8, 0 kept>
    """
    named = dict(recipe=recipe, sites=sites, keep=keep, require=require, first=first or None, last=last or None)
    named |= dict(fprop=fprop, dgrad=dgrad, wgrad=wgrad, calibrate=calibrate, pair=pair, carry=carry, target=target)
    options = {**named, **options}
    program = Program(source, name).lowered()
    if callable(keep):
        options["keep"] = _keep_regex(program, options, keep)
    defaults = {"fprop": "fp8", "dgrad": "fp8", "wgrad": "fp8", "target": "cpu"}
    options = {name: value for name, value in options.items() if name not in defaults or value != defaults[name]}
    arguments = _options.to_arguments(options)
    return _compile_cached(program, arguments) if cache else _compile_to(program, arguments, _cache.temporary_folder(), None)


class Program:
    """A program as it is given to the compiler: its bytes, and the file that it lies in, if any."""

    def __init__(self, source: Source, name: str | None = None) -> None:
        self.path: str | None = None
        if isinstance(source, os.PathLike):
            self.path = os.path.abspath(source)
            self.bytes = pathlib.Path(self.path).read_bytes()
        elif isinstance(source, bytes):
            self.bytes = source
        elif isinstance(source, str):
            self.bytes = source.encode()
            if "\n" not in source and os.path.isfile(source):
                self.path = os.path.abspath(source)
                self.bytes = pathlib.Path(source).read_bytes()
            elif re.fullmatch(r"\S*[./]\S*", source):
                # No program is one word.
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), source)
        else:
            raise TypeError(f"source is of type {type(source).__name__}: give text, bytes or a path")
        self.name = name or (os.path.basename(self.path) if self.path else "program")

    def lowered(self) -> Program:
        """This program, or if it is in StableHLO the same in linalg, of which no file is known."""
        if not _stablehlo.is_stablehlo(self.bytes):
            return self
        return Program(_stablehlo.to_linalg(self.bytes, self.path or "<stdin>"), self.name)


def _compile_cached(program: Program, arguments: Sequence[str]) -> Library:
    key = _cache.make_key(program.bytes, arguments, _tools.find("fp8-compile"), program.path or "")
    start = time.perf_counter()
    if (entry := _cache.lookup(key)) is not None:
        library = Library.from_entry(entry, arguments)
        _log_compilation(program, library, time.perf_counter() - start, hit=True)
        return library
    return _compile_to(program, arguments, _cache.workspace(), key)


def _compile_to(program: Program, arguments: Sequence[str], folder: pathlib.Path, key: _cache.Key | None) -> Library:
    """Compiles in `folder`, which becomes the entry of `key`; removes it where that fails."""
    start = time.perf_counter()
    (folder / "source.mlir").write_bytes(program.bytes)
    extra = [] if key else ["--no-cache"]
    files = ["-o", "step.so", "--report=json:report.json", "--report=text:report.txt", "--manifest=manifest.json"]
    try:
        _run_compiler(program, [*files, *arguments, *extra], folder)
    except BaseException as error:
        if not (isinstance(error, CompileError) and error.source_path == str(folder / "source.mlir")):
            shutil.rmtree(folder, ignore_errors=True)
        raise
    if key is None:
        key = _cache.make_key(program.bytes, arguments, _tools.find("fp8-compile"), program.path or "")
    library = Library.from_entry(_cache.store(key, folder), arguments)
    _log_compilation(program, library, time.perf_counter() - start, hit=False)
    return library


def _log_compilation(program: Program, library: Library, seconds: float, hit: bool) -> None:
    line = f"{program.name}: {library.report.summary()}, {seconds:.2f} s{', from the cache' if hit else ''}"
    log.info(line)
    if config.verbose:
        print("fp8: " + line, file=sys.stderr)


def _keep_regex(program: Program, options: dict[str, Any], keep: Callable[[Site], bool]) -> str | None:
    """A regular expression of the sites that `keep` answers True for."""
    folder = _cache.temporary_folder()
    (folder / "source.mlir").write_bytes(program.bytes)
    arguments = _options.to_arguments({**options, "keep": None, "require": None})
    _run_compiler(program, ["-o", "ir.mlir", "--emit=recipe", "--report=json:report.json", *arguments], folder)
    report = Report(json.loads((folder / "report.json").read_text()))
    shutil.rmtree(folder, ignore_errors=True)
    names = sorted({site.site for site in report.sites if keep(site)})
    literal = [re.sub(r"([][.^$*+?{}()|\\])", r"\\\1", name) for name in names]
    return f"^({'|'.join(literal)})$" if literal else None


def _run_compiler(program: Program, arguments: Sequence[str], folder: pathlib.Path) -> str:
    """Runs fp8-compile on a program in `folder`, which has it as source.mlir; returns what it printed."""
    source = program.path if program.path else "-"
    command = ["fp8-compile", source, *arguments]
    done = _run(command, program.bytes, folder)
    if done.returncode < 0:
        kept = folder / "source.mlir"
        raise CompileError(
            f"fp8-compile was ended by signal {-done.returncode} ({signal.strsignal(-done.returncode)}); the input is kept in {kept}; please report it",
            notes=tuple(_decode(done.stderr).splitlines()[-20:]),
            source_path=str(kept),
        )
    if done.returncode == 2:
        raise ValueError(_in_python_words(_decode(done.stderr)))
    _raise_or_warn(_decode(done.stderr), failed=done.returncode != 0, source_path=program.path)
    return _decode(done.stdout)


def _run(command: Sequence[str], text: bytes, folder: pathlib.Path | None) -> subprocess.CompletedProcess[bytes]:
    tool = _tools.find(command[0])
    log.debug("%s", " ".join([str(tool), *command[1:]]))
    environment = {**os.environ, "FP8_CACHE_DIR": str(config.cache_dir)}
    with _interrupts_held() as deliver:
        process = subprocess.Popen(command, executable=tool, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder, env=environment)
    try:
        deliver()
        output, errors = process.communicate(text, timeout=config.compile_timeout)
        return subprocess.CompletedProcess(command, process.returncode, output, errors)
    except subprocess.TimeoutExpired:
        raise CompileError(f"{os.path.basename(command[0])} took more than {config.compile_timeout} s (fp8.config.compile_timeout)") from None
    finally:
        # After Ctrl-C or the time limit it still runs.
        if process.poll() is None:
            process.kill()
            process.communicate()


@contextlib.contextmanager
def _interrupts_held() -> Iterator[Callable[[], None]]:
    """Keeps Ctrl-C back within the block: an interrupt while a process starts would leave it running.

    Yields the function that handles, afterwards, what was kept back.
    """
    held: list[tuple[int, Any]] = []
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield lambda: None
        return

    def deliver() -> None:
        for number, frame in held[:1]:
            handler(number, frame)

    signal.signal(signal.SIGINT, lambda number, frame: held.append((number, frame)))
    try:
        yield deliver
    finally:
        signal.signal(signal.SIGINT, handler)


def _decode(output: bytes) -> str:
    return output.decode(errors="replace").strip()


def _in_python_words(error: str) -> str:
    """An error of the command line, with the names that options have in Python."""
    line = error.splitlines()[0] if error else "fp8-compile refused its command line"
    line = re.sub(r"^[\w./-]*fp8-\w+: (error: )?", "", line)
    line = re.sub(r"Unknown command line argument '(--[^'=]*)[^']*'\.\s+Try: '.*?'\s*", r"there is no option \1. ", line)
    return _python_names(line).strip()


def _python_names(text: str) -> str:
    """--amax-history-len=4 as amax_history_len=4."""
    return re.sub(r"(?<![\w-])--([a-z0-9][a-z0-9-]*)", lambda match: match[1].replace("-", "_"), text)


def _raise_or_warn(output: str, failed: bool, source_path: str | None) -> None:
    """Warns about the compiler's warnings; raises its first error, with the others as notes."""
    errors: list[tuple[Location, str]] = []
    notes: list[str] = []
    for line in output.splitlines():
        if not (match := _DIAGNOSTIC.match(line)):
            notes.append(line)
            continue
        place, text = Location(match[1], int(match[2]), int(match[3])), _python_names(match[5])
        if match[4] == "error":
            errors.append((place, text))
        elif failed:
            notes.append(f"{place}: {match[4]}: {text}")
        elif match[4] == "warning":
            warn(f"{place}: {text}")
        else:
            log.info("%s: %s", place, text)
    if not failed:
        return
    if not errors:
        raise CompileError(output or "fp8-compile failed without a word", source_path=source_path)
    location, message = errors[0]
    notes = [f"{place}: {text}" for place, text in errors[1:]] + notes
    kind = UnsupportedError if _UNSUPPORTED.search(message) else CompileError
    raise kind(message, location, tuple(notes), source_path)


def opt(source: Source, pipeline: str) -> str:
    """Runs passes on IR and returns the IR: fp8-opt with --pass-pipeline.

    Raises CompileError for the IR, ValueError for the pipeline.

    >>> print(opt("func.func @f() { return }", "builtin.module(cse)").strip())
    module {
      func.func @f() {
        return
      }
    }
    """
    program = Program(source)
    done = _run(["fp8-opt", "-", f"--pass-pipeline={pipeline}", "--mlir-print-debuginfo=false"], program.bytes, None)
    if done.returncode < 0:
        raise CompileError(f"fp8-opt was ended by signal {-done.returncode} ({signal.strsignal(-done.returncode)}); please report it")
    output = _decode(done.stderr)
    first = output.partition("\n")[0]
    if done.returncode and ("PassPipeline Parser" in first or not _DIAGNOSTIC.match(first)):
        raise ValueError(first.rpartition("PassPipeline Parser:1: ")[2])
    _raise_or_warn(output, failed=done.returncode != 0, source_path=program.path)
    return done.stdout.decode()


def emit_stage(source: pathlib.Path, arguments: Sequence[str], stage: str) -> str:
    """The IR of a program after a stage."""
    folder = _cache.temporary_folder()
    try:
        program = Program(source.read_bytes())
        (folder / "source.mlir").write_bytes(program.bytes)
        return _run_compiler(program, ["-o", "-", f"--emit={stage}", *arguments], folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
