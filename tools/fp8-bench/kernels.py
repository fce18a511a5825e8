# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8-bench kernels: what the kernels of a program need of a GPU, counted without one.

ptxas says how many registers and how much memory a kernel takes; the emulator counts what one step does. Its
arguments are zeros: the counts do not depend on their values.
"""

import argparse
import collections
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import results
from failure import Failure

CHIPS = ["sm_89", "sm_90a", "sm_100a", "sm_120a"]
ENTRY = re.compile(r"Compiling entry function '(\w+)'")
FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
THREADS = re.compile(r"\.entry (\w+)\([^{]*?\.reqntid (\d+)")
USED = re.compile(r"Used (\d+) registers(?:.*?, (\d+) bytes smem)?")
TENSOR = re.compile(r"(mma|wgmma|tcgen05|ldmatrix)\b")  # instructions of tensor cores, and loads of their operands
FORMATS = {"e4m3", "e5m2", "f8f6f4"}  # in the names of instructions that multiply FP8
COLUMNS = ["threads", "registers", "stack", "spills", "shared", "launches", "read", "written", "sectors", "conflicts",
           "operations", "instructions"]
ABOUT = """\
threads of a block; registers of a thread, bytes of its stack and of registers spilled to it, and bytes of static shared memory, by ptxas;
for one step by the emulator: launches, bytes that threads read and wrote in global memory, bytes of the sectors
of 32 that these accesses touch, bank conflicts, operations of tensor cores (2 M N K), and instructions of warps
for each of the tensor core (in kernels of products)."""


@dataclasses.dataclass
class Assembled:
    """The resources of a kernel, by ptxas."""

    threads: int = 0  # of a block
    registers: int = 0
    stack: int = 0
    spills: int = 0  # bytes stored and loaded
    shared: int = 0


def read_ptxas(text: str) -> tuple[dict[str, Assembled], list[str]]:
    """The kernels in the output of `ptxas -v`, and its warnings."""
    kernels: dict[str, Assembled] = {}
    kernel, warnings = Assembled(), []
    for line in text.splitlines():
        if found := ENTRY.search(line):
            kernel = kernels.setdefault(found[1], Assembled())
        elif found := FRAME.search(line):
            kernel.stack, kernel.spills = int(found[1]), int(found[2]) + int(found[3])
        elif found := USED.search(line):
            kernel.registers, kernel.shared = int(found[1]), int(found[2] or 0)
        elif "warning" in line or re.search(r"\bC7\d\d\d\b", line):
            warnings.append(line)
    return kernels, warnings


def call(*command: object, **environment: str) -> str:
    """The standard error of a command that succeeds."""
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env={**os.environ, **environment})
    except OSError as error:
        raise Failure(f"{command[0]} does not run: {error.strerror}") from None
    if done.returncode:
        reason = next((line for line in done.stderr.splitlines() if "error" in line), f"exit code {done.returncode}")
        raise Failure(f"{pathlib.Path(str(command[0])).name} failed: {reason}")
    return done.stderr


def assemble(tools: pathlib.Path, ptxas: str, program: pathlib.Path, chip: str, *options: str) -> tuple[dict[str, Assembled], list[str]]:
    """The resources of the kernels of `program` and the warnings, by ptxas."""
    with tempfile.NamedTemporaryFile(suffix=".ptx") as ptx:
        call(tools / "fp8-compile", program, "-o", ptx.name, "--emit=ptx", f"--target={chip}", *options)
        done = subprocess.run([ptxas, "-v", f"-arch={chip}", ptx.name, "-o", os.devnull], capture_output=True, text=True)
        threads = dict(THREADS.findall(pathlib.Path(ptx.name).read_text()))
    if done.returncode:
        raise Failure(f"{ptxas} failed: {done.stderr.strip()}")
    kernels, warnings = read_ptxas(done.stderr)
    for name, kernel in kernels.items():
        kernel.threads = int(threads[name])
    return kernels, warnings


@dataclasses.dataclass
class Counted:
    """The counts of one step, by the emulator."""

    kernels: dict[str, dict[str, int]]  # the totals of the emulator, and `launches`
    products: collections.Counter[str]  # tensor-core instructions of a warp, per kernel
    fp8_operations: int
    fp8_needed: int  # 2 M N K of all sites of the step that the report calls FP8
    others: collections.Counter[str]  # instructions of threads besides those of tensor cores and their loads, per kernel


def count(tools: pathlib.Path, program: pathlib.Path, chip: str, *options: str) -> Counted:
    """Runs one step of `program` on the emulator."""
    with tempfile.TemporaryDirectory(prefix="fp8-bench-") as scratch:
        library, manifest, counts = (f"{scratch}/{name}" for name in ("library.so", "manifest", "counts"))
        call(tools / "fp8-compile", program, "-o", library, f"--manifest={manifest}", f"--target={chip}", "--ptxas=none", *options)
        call(tools / "fp8-run", library, "--device=emulator", "--zero-missing", "--steps=1", FP8EMU_CHECKS="0", FP8EMU_PROFILE=counts)
        sites = json.loads(pathlib.Path(manifest).read_text())["sites"]
        launched = json.loads(pathlib.Path(counts).read_text())["kernels"]
    found = Counted({}, collections.Counter(), 0, 0, collections.Counter())
    found.fp8_needed = sum(2 * s["batch"] * s["m"] * s["n"] * s["k"] for s in sites
                           if s["decision"] == "fp8" and s["entry"] == "main")
    for kernel in launched:
        found.kernels[kernel["kernel"]] = {"launches": kernel["launches"], **kernel["total"]}
        for instruction in kernel["instructions"]:
            operations = instruction.get("tensor_operations", 0)
            if not TENSOR.match(instruction["instruction"]):
                found.others[kernel["kernel"]] += instruction.get("thread_instructions", 0)
            found.products[kernel["kernel"]] += instruction["warp_instructions"] if operations else 0
            found.fp8_operations += operations if FORMATS & set(re.split(r"[.:]", instruction["instruction"])) else 0
    return found


def row(name: str, assembled: Assembled | None, counted: Counted | None) -> dict[str, float]:
    cells: dict[str, float] = {}
    if assembled:
        cells |= dataclasses.asdict(assembled)
    if counted and name in counted.kernels:
        total = counted.kernels[name]
        cells |= {"launches": total["launches"], "read": total["global_read_bytes"], "written": total["global_written_bytes"],
                  "sectors": 32 * total["global_sectors"], "conflicts": total["bank_conflicts"], "operations": total["tensor_operations"]}
        if products := counted.products[name]:
            cells["instructions"] = total["warp_instructions"] / products
    return {column: cells[column] for column in COLUMNS if column in cells}


def show(chip: str, assembled: dict[str, Assembled], warnings: list[str], counted: Counted | None, pattern: str) -> list[str]:
    names = sorted(set(assembled) | set(counted.kernels if counted else {}))
    rows = {name.removeprefix("kernel_"): row(name, assembled.get(name), counted) for name in names if re.search(pattern, name)}
    lines = [chip, "", *results.table("kernel", rows, 0), ""] if rows else [chip, ""]
    if assembled:
        lines.append(f"{len(assembled)} kernels, {sum(k.spills > 0 for k in assembled.values())} with spills, {len(warnings)} warnings of ptxas")
        lines += warnings
    if counted:
        total = {key: sum(k[key] for k in counted.kernels.values()) for key in ("launches", "bank_conflicts", "tensor_operations")}
        lines.append(f"{total['launches']} launches of {len(counted.kernels)} kernels, {total['bank_conflicts']} bank conflicts")
        lines.append(f"{total['tensor_operations']} operations of tensor cores, {counted.fp8_operations} in FP8;"
                     f" the FP8 products of the program have {counted.fp8_needed}")
    return [*lines, ""]


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("program", type=pathlib.Path, metavar="MODEL.mlir", help="a program for fp8-compile")
    parser.add_argument("--target", default="sm_89", metavar="LIST", help="chips: " + ",".join(CHIPS) + " (default: sm_89)")
    parser.add_argument("--kernels", default="product|quantize|amax|transpose|history", metavar="REGEX",
                        help="the kernels in the table (default: products, casts, amaxes, histories)")
    parser.add_argument("--recipe", default="delayed", help="recipe of fp8-compile (default: delayed)")
    parser.add_argument("--ptxas", default=shutil.which("ptxas") or "none", metavar="PATH", help="or none (default: that on $PATH)")
    parser.add_argument("--no-run", action="store_true", help="do not run a step on the emulator")
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/bin"), metavar="DIR", help="folder of fp8-compile and fp8-run")
    parser.add_argument("--host", default="", help=argparse.SUPPRESS)


def measure(options: argparse.Namespace, examples: pathlib.Path) -> list[str]:
    """The lines to print."""
    lines = [ABOUT, ""]
    if options.ptxas == "none":
        lines += ["Left out: registers, stack, spills and shared memory, for which there is no ptxas (--ptxas=PATH)", ""]
    for chip in options.target.split(","):
        if chip not in CHIPS:
            raise Failure(f"argument --target: '{chip}' is none of {', '.join(CHIPS)}; see fp8-bench kernels --help")
        recipe = f"--recipe={options.recipe}"
        assembled, warnings = assemble(options.bin, options.ptxas, options.program, chip, recipe) if options.ptxas != "none" else ({}, [])
        counted = None if options.no_run else count(options.bin, options.program, chip, recipe)
        lines += show(chip, assembled, warnings, counted, options.kernels)
    return lines
