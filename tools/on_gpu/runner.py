# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command line of tools/on-gpu: parts, each a process with a time limit; the table; the JSON. Standard library only."""

import argparse
import contextlib
import datetime
import importlib.metadata
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
EXAMPLE = ROOT / "python/examples/gpt"
sys.path.append(str(EXAMPLE))

import gpu  # noqa: E402
from part import PARTS  # noqa: E402
from rows import FAILED, LEFT_OUT, OK, WRONG  # noqa: E402

#: The chip that the emulator stands for.
EMULATED = "sm_90a"
#: The part of the time that each part may take; what one leaves goes to those after it.
SHARES = {"kernels": 70, "tests": 45, "train_step": 35, "backend": 35, "jax": 35, "steps": 150, "products": 75, "casts": 35}

ABOUT = """usage: tools/on-gpu [--wheel=FILE.whl | --build=DIR] [--output=FILE.json] [OPTION…]

Shows what this project does on a GPU: whether values are right, and how long steps, products and casts take beside
PyTorch's. Needs a GPU, its driver and this checkout; PyTorch and JAX where they are installed for the python3 that runs
it. Takes 8 minutes at most, prints a table, and writes everything to a JSON file.

  kernels      results of small programs, bit for bit those of the emulator
  tests        with --build: the runtime's tests on the GPU, then those of kernels (test/python/gpu)
  train_step   losses of the example GPT by fp8.torch.train_step, beside the CPU's
  backend      the same by fp8.torch.backend
  jax          the same by fp8.jax.jit, and the time of a step beside jax.jit
  steps        the time of a GPT's training step beside PyTorch's: eager, torch.compile, both in bf16, torchao's float8
  products     a linear layer's three products beside cuBLASLt's: bf16, FP8 with scales per tensor, row, 1x128
  casts        casts to FP8 beside a copy

Each part is a process of its own with a time limit; the others go on where one fails, and the table says why.
"""
EPILOG = """
  tools/on-gpu --wheel=fp8_mlir-0.1.0-py3-none-linux_x86_64.whl --output=gpu.json    # on the machine with the GPU
  tools/on-gpu --build=build --parts=products,casts --minutes=2
  tools/on-gpu --build=build --device=emulator        # the same parts in small, without a GPU

Exit codes: 0 all values are right and nothing failed (what is left out, such as PyTorch where it is not installed, counts
as neither); 1 something is wrong or failed; 2 the command line is wrong, or there is no GPU.
"""


def read_options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="tools/on-gpu", usage=argparse.SUPPRESS, description=ABOUT, epilog=EPILOG, formatter_class=argparse.RawTextHelpFormatter
    )
    add = parser.add_argument
    add("--wheel", type=pathlib.Path, metavar="FILE.whl", help="this wheel of fp8-mlir; it is unpacked, not installed")
    add(
        "--build",
        type=pathlib.Path,
        metavar="DIR",
        help="this build folder, with the checkout's Python package\n(without either: the package that python3 has)",
    )
    add("--output", type=pathlib.Path, metavar="FILE.json", help="write everything to this file")
    add("--minutes", type=float, default=8, metavar="N", help="the time for all parts (default: 8)")
    add("--parts", metavar="LIST", help="these parts only, of those above")
    add("--device", default="cuda", help=f"cuda, the first GPU (CUDA_VISIBLE_DEVICES chooses);\nemulator, that of {EMULATED}, with --quick")
    add("--quick", action="store_true", help="tiny programs and few steps: times say nothing")
    options = parser.parse_args(arguments)
    if options.wheel and options.build:
        parser.error("--wheel and --build: expected one of them")
    if options.wheel and not zipfile.is_zipfile(options.wheel):
        parser.error(f"--wheel={options.wheel}: it is no wheel")
    if options.build and not (options.build / "bin").is_dir():
        parser.error(f"--build={options.build}: it is no build folder, for it has no bin")
    if options.device not in ("cuda", "emulator"):
        parser.error(f"--device={options.device}: expected cuda or emulator")
    if not 0 < options.minutes < 1e6:
        parser.error(f"--minutes={options.minutes}: expected a positive number")
    chosen = options.parts.split(",") if options.parts else list(PARTS)
    for name in chosen:
        if name not in PARTS:
            parser.error(f"--parts: '{name}' is none of {', '.join(PARTS)}")
    if options.output and not options.output.absolute().parent.is_dir():
        parser.error(f"--output={options.output}: there is no such folder")
    options.parts = [name for name in PARTS if name in chosen]
    options.quick |= options.device == "emulator"
    try:
        options.chip = EMULATED if options.device == "emulator" else gpu.find_chip(0)
    except gpu.NoGPU as reason:
        parser.error(f"{reason}; --device=emulator runs the parts in small without one")
    return options


@contextlib.contextmanager
def environment(options: argparse.Namespace) -> Iterator[dict[str, str]]:
    """The environment in which a part finds the package, the example and the other parts."""
    # Parts say themselves where their programs run.
    variables = {name: value for name, value in os.environ.items() if name not in ("FP8_DEVICE", "FP8_TARGET")}
    paths = [str(EXAMPLE), *filter(None, [os.environ.get("PYTHONPATH")])]
    with tempfile.TemporaryDirectory(prefix="on-gpu-") as folder:
        if options.wheel:
            zipfile.ZipFile(options.wheel).extractall(folder)
            for program in pathlib.Path(folder).glob("fp8/bin/*"):  # zipfile drops permissions.
                program.chmod(0o755)
            variables.pop("FP8_TOOLS", None)
            paths.insert(0, folder)
        elif options.build:
            variables["FP8_TOOLS"] = str(options.build.absolute())
            paths.insert(0, str(ROOT / "python/src"))
        yield {**variables, "PYTHONPATH": os.pathsep.join(paths)}


def run_part(name: str, place: dict[str, Any], variables: dict[str, str], limit: float) -> dict[str, Any]:
    """The rows of a part, also where it ends before its last one, and its seconds."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="on-gpu-") as folder:
        file, errors = pathlib.Path(folder, "rows"), pathlib.Path(folder, "errors")
        file.touch()
        with errors.open("w") as output:
            command = [sys.executable, HERE / "part.py", name, json.dumps(place), file]
            process = subprocess.Popen(command, env=variables, stdout=output, stderr=output, start_new_session=True)
            reason = ""
            try:
                if code := process.wait(limit):
                    reason = f"its process ended with {'signal ' + signal.Signals(-code).name if code < 0 else f'code {code}'}"
            except subprocess.TimeoutExpired:
                reason = f"its {limit:.0f} s were over"
            finally:
                # Compilers that it started are in its session.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        # A process that is killed may leave a part of a line.
        lines = file.read_text().split("\n")[:-1]
        rows = [json.loads(line) for line in lines]
        if reason:
            said = [line for line in errors.read_text(errors="replace").splitlines() if line.strip()]
            last = f": {said[-1].strip()}" if said and "over" not in reason else ""
            rows.append({"case": "(the rest)" if rows else "", "status": FAILED, "reason": reason + last, "values": {}})
    return {"seconds": round(time.monotonic() - start, 1), "rows": rows}


def run_parts(options: argparse.Namespace, parts: dict[str, Any], save: Callable[[], None]) -> None:
    """Fills in `parts`, and saves them after each: the machine may be taken away."""
    build = str(options.build.absolute()) if options.build else None
    place = {"device": options.device, "chip": options.chip, "quick": options.quick, "build": build}
    end = time.monotonic() + 60 * options.minutes
    with environment(options) as variables:
        for number, name in enumerate(options.parts):
            rest = sum(SHARES[later] for later in options.parts[number:])
            limit = max(0.0, end - time.monotonic()) * SHARES[name] / rest
            parts[name] = run_part(name, place, variables, limit)
            save()
            counts = {status: sum(row["status"] == status for row in parts[name]["rows"]) for status in (OK, WRONG, FAILED, LEFT_OUT)}
            found = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
            print(f"{name}: {found or 'nothing'} ({parts[name]['seconds']:.0f} s)", flush=True)


def versions() -> dict[str, str]:
    found = {"python": sys.version.split()[0]}
    for package in ("torch", "torchao", "jax", "numpy", "ml_dtypes"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[package] = importlib.metadata.version(package)
    return found


def gpu_name() -> str:
    """The names of all GPUs and the driver's version, where nvidia-smi is."""
    command = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        return "; ".join(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines())
    except (OSError, subprocess.CalledProcessError):
        return "not known (no nvidia-smi)"


def in_words(value: Any) -> str:
    if isinstance(value, list):  # Of losses the first and the last.
        return " … ".join(map(in_words, value if len(value) < 3 else [value[0], value[-1]]))
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def table(parts: dict[str, Any]) -> list[str]:
    """One line for each row; in Markdown."""
    cells = [["part", "case", "status", "values"]]
    for name, part in parts.items():
        for row in part["rows"]:
            values = row["reason"] or "; ".join(f"{key} {in_words(value)}" for key, value in row["values"].items())
            cells.append([name, row["case"], row["status"], values.replace("|", "\\|")])
    widths = [max(len(line[column]) for line in cells) for column in range(3)]
    lines = ["| " + " | ".join([*(text.ljust(width) for text, width in zip(line, widths)), line[3]]) + " |" for line in cells]
    return [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|---|", *lines[1:]]


def main(arguments: list[str] | None = None) -> int:
    options = read_options(arguments)
    about: dict[str, Any] = {
        "date": datetime.datetime.now().astimezone().isoformat(timespec="minutes"),
        "device": options.device,
        "chip": options.chip,
        "gpu": gpu_name() if options.device == "cuda" else f"none: the emulator of {EMULATED}",
        "quick": options.quick,
        "package": str(options.wheel or options.build or "installed"),
        "versions": versions(),
    }
    print(f"tools/on-gpu, {about['date'][:16]}, {about['chip']} ({about['gpu']}), " + ", ".join(f"{name} {text}" for name, text in about["versions"].items()))
    parts: dict[str, Any] = {}

    def save() -> None:
        if options.output:
            options.output.write_text(json.dumps({**about, "parts": parts}, indent=1) + "\n")

    try:
        run_parts(options, parts, save)
    except KeyboardInterrupt:
        print("\nInterrupted: the parts before", file=sys.stderr)
    print("", *table(parts), sep="\n")
    return int(len(parts) < len(options.parts) or any(row["status"] in (WRONG, FAILED) for part in parts.values() for row in part["rows"]))
