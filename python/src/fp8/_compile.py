# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiling: from a program to its library, by fp8-compile or from the cache; passes by fp8-opt."""

from __future__ import annotations

import errno
import json
import logging
import os
import pathlib
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

from . import _cache, _device, _options, _process, _tools
from ._compiler import Program, Source, run_compiler
from ._config import config
from ._errors import CompileError, hiding_frames
from ._library import Library
from ._report import Report, Site

log = logging.getLogger("fp8")

#: A full disk, in errors of Python and of the compiler.
_FULL = re.compile(f"{os.strerror(errno.ENOSPC)}|{os.strerror(errno.EDQUOT)}")


@hiding_frames
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
    target: str = "auto",
    device: str | None = None,
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

    `device` is where the library will run: "cpu", "cuda", "cuda:N", or "emulator", which runs the code for a GPU on the
    CPU and checks every access. `target` is the chip to compile for; "auto" is the device's, sm_90a for the emulator.
    `fp8.config` (or FP8_DEVICE and FP8_TARGET) says both for programs that do not.

    Raises ValueError for an option, CompileError or UnsupportedError for the program,
    MissingToolError without a compiler.

    >>> text = '''func.func @main(%x: tensor<2x4xf32>, %w: tensor<4x3xf32>, %o: tensor<2x3xf32>) -> tensor<2x3xf32> {
    ...   %y = linalg.matmul ins(%x, %w : tensor<2x4xf32>, tensor<4x3xf32>) outs(%o : tensor<2x3xf32>) -> tensor<2x3xf32>
    ...   return %y : tensor<2x3xf32> }'''
    >>> compile(text, recipe="current", sites="all").report
    <fp8.Report: 1 products, 1 in FP8, 0 kept>
    """
    named = dict(recipe=recipe, sites=sites, keep=keep, require=require, first=first or None, last=last or None)
    named |= dict(fprop=fprop, dgrad=dgrad, wgrad=wgrad, calibrate=calibrate, pair=pair, carry=carry)
    device, named["target"] = _device.resolve(device, target)
    options = {**named, **options}
    program = Program(source, name).lowered()
    if callable(keep):
        options["keep"] = _keep_regex(program, options, keep)
    defaults = {"fprop": "fp8", "dgrad": "fp8", "wgrad": "fp8", "target": "cpu"}
    options = {name: value for name, value in options.items() if name not in defaults or value != defaults[name]}
    arguments = _options.to_arguments(options)
    library = _compile_cached(program, arguments) if cache else _compile_to(program, arguments, _cache.temporary_folder(), None)
    library.run_on(device)
    return library


def _compile_cached(program: Program, arguments: Sequence[str]) -> Library:
    key = _cache.make_key(program.bytes, arguments, _tools.find("fp8-compile"), program.path or "")
    start = time.perf_counter()
    if (entry := _cache.lookup(key)) is not None:
        library = Library.from_entry(entry, arguments)
        _log_compilation(program, library, time.perf_counter() - start, hit=True)
        return library
    try:
        return _compile_to(program, arguments, _cache.workspace(), key)
    except (OSError, CompileError) as error:
        if not (full := _FULL.search(str(error))):
            raise
    return _compile_to(program, arguments, _cache.not_kept(full[0]), key)


def _compile_to(program: Program, arguments: Sequence[str], folder: pathlib.Path, key: _cache.Key | None) -> Library:
    """Compiles in `folder`, which becomes the entry of `key`; removes it where that fails."""
    start = time.perf_counter()
    extra = [] if key else ["--no-cache"]
    files = ["-o", "step.so", "--report=json:report.json", "--report=text:report.txt", "--manifest=manifest.json"]
    try:
        (folder / "source.mlir").write_bytes(program.bytes)
        run_compiler(program, [*files, *arguments, *extra], folder)
        if key is None:
            key = _cache.make_key(program.bytes, arguments, _tools.find("fp8-compile"), program.path or "")
        entry = _cache.store(key, folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    library = Library.from_entry(entry, arguments)
    _log_compilation(program, library, time.perf_counter() - start, hit=False)
    return library


def _log_compilation(program: Program, library: Library, seconds: float, hit: bool) -> None:
    line = f"{program.name}: {library.report.summary()}, {seconds:.2f} s{', from the cache' if hit else ''}"
    log.info(line)
    if config.verbose:
        print("fp8: " + line, file=sys.stderr)


def _keep_regex(program: Program, options: dict[str, Any], keep: Callable[[Site], bool]) -> str | None:
    """A regular expression of the sites that `keep` answers True for."""
    arguments = _options.to_arguments({**options, "keep": None, "require": None})
    with tempfile.TemporaryDirectory(prefix="fp8-") as folder:
        run_compiler(program, ["-o", "ir.mlir", "--emit=recipe", "--report=json:report.json", *arguments], pathlib.Path(folder))
        report = Report(json.loads(pathlib.Path(folder, "report.json").read_text()))
    names = sorted({site.site for site in report.sites if keep(site)})
    literal = [re.sub(r"([][.^$*+?{}()|\\])", r"\\\1", name) for name in names]
    return f"^({'|'.join(literal)})$" if literal else None


@hiding_frames
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
    done = _process.run(["fp8-opt", "-", f"--pass-pipeline={pipeline}", "--mlir-print-debuginfo=false"], program.bytes, None)
    _process.raise_if_killed(done, program.bytes)
    output = _process.decode(done.stderr)
    first = output.partition("\n")[0]
    if done.returncode and ("PassPipeline Parser" in first or not _process.DIAGNOSTIC.match(first)):
        raise ValueError(re.sub(r"^[^']*: error: ", "", first))
    _process.raise_or_warn(output, failed=done.returncode != 0, source_path=program.path)
    return done.stdout.decode()
