# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8-bench attention: training steps with causal attention beside eager PyTorch, by the number of tokens: milliseconds and
memory on this CPU. Two layers of width 768, 12 heads, batch 1, AdamW; PyTorch in f32 and in bf16 by autocast, fp8.torch in
bf16 by autocast, its attention written out or fused; with --window each token sees so many. Each variant is a process of
its own in every round. With --target the kernels for GPUs are counted instead, on the emulator: one head, without a mask and
with each one."""

import argparse
import json
import os
import pathlib
import shutil
import subprocess

import attention_kernels
import display
import machine
import package
import results
from failure import Failure
from readers import names, numbers, positive

HERE = pathlib.Path(__file__).resolve().parent
KINDS = ["written", "fused"]
PEERS = {"PyTorch f32": "f32", "PyTorch bf16": "bf16"}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--torch-python",
        type=pathlib.Path,
        default=package.environment("torch"),
        metavar="PYTHON",
        help="an interpreter that has PyTorch (default: that of the package's tests)",
    )
    parser.add_argument("--tokens", type=numbers, default=[512, 2048], metavar="LIST", help="tokens of the sequence (default: 512,2048)")
    parser.add_argument("--recipe", type=lambda text: text.split(","), default=["delayed"], metavar="LIST", help="recipes of fp8.torch (default: delayed)")
    parser.add_argument("--attention", type=names(KINDS), default=KINDS, metavar="LIST", help=f"how fp8.torch computes it (default: {','.join(KINDS)})")
    parser.add_argument("--steps", type=positive(int), default=4, metavar="N", help="steps after the first one; the least time counts (default: 4)")
    parser.add_argument("--rounds", type=positive(int), default=3, metavar="N", help="rounds; the least time counts (default: 3)")
    chips = "count the kernels for these chips, such as sm_89,sm_90a"
    parser.add_argument("--target", type=lambda text: text.split(","), default=[], metavar="LIST", help=chips)
    parser.add_argument("--depth", type=numbers, default=[64, 128], metavar="LIST", help="with --target: elements of a head (default: 64,128)")
    parser.add_argument("--window", type=positive(int), metavar="N", help="a token sees itself and N - 1 before it (default: all before it)")
    parser.add_argument("--bias", action="store_true", help="with --target: attention with a bias that has a gradient")
    parser.add_argument("--ptxas", default=shutil.which("ptxas") or "none", metavar="PATH", help="with --target: or none (default: that on $PATH)")
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/bin"), metavar="DIR", help="folder of fp8-compile (default: that of fp8-bench)")
    parser.add_argument("--host", default="", help=argparse.SUPPRESS)


def measure(options: argparse.Namespace, examples: pathlib.Path) -> list[str]:
    if options.target:
        return attention_kernels.measure(options.bin, options.ptxas, options.target, options.tokens, options.depth, options.bias, options.window)
    if options.torch_python is None:
        raise Failure("PyTorch is not here: give --torch-python=PYTHON, or run tools/check --torch, which makes an environment")
    ours = {f"{recipe}, {kind}": f"{kind}:{recipe}" for recipe in options.recipe for kind in options.attention}
    variants = PEERS | ours
    line, done = display.Progress("fp8-bench attention"), 0
    times = results.Results("Milliseconds of a training step", "tokens", list(ours), list(PEERS), decimals=1)
    memory: dict[str, dict[str, float]] = {}
    version = ""
    for tokens in options.tokens:
        seconds, mebibytes = times.rows.setdefault(str(tokens), {}), memory.setdefault(str(tokens), {})
        for _ in range(options.rounds):
            for column, variant in variants.items():
                line.draw(done, options.rounds * len(variants) * len(options.tokens), f"{tokens} tokens, {column}")
                done += 1
                found = ask(options, variant, tokens)
                seconds[column] = min(seconds.get(column, float("inf")), 1e3 * found["seconds"])
                mebibytes[column] = min(mebibytes.get(column, float("inf")), found["bytes"] / 2**20)
                version = found["version"]
    processor = machine.describe(options.host or "unknown", package.read("/proc/cpuinfo"))
    title = f"{processor['name']}, {processor['cores']} cores, {processor['vectors']}; PyTorch {version}; least of {options.rounds} interleaved rounds"
    return [
        title,
        "",
        *results.show(times),
        "",
        "Most MiB of the process during a step, beyond those before the model",
        "",
        *results.table("tokens", memory, 0),
    ]


def ask(options: argparse.Namespace, variant: str, tokens: int) -> dict:
    variables = {**os.environ, "FP8_TOOLS": str(options.bin)}
    if (sources := HERE.parents[1] / "python/src").is_dir():
        variables["PYTHONPATH"] = str(sources)
    command = [str(options.torch_python), str(HERE / "peer/torch_attention.py"), variant, str(tokens), str(options.steps), str(options.window or 0)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=variables)
    except OSError as error:
        raise Failure(f"--torch-python={options.torch_python}: {error.strerror}") from None
    if done.returncode:
        raise Failure(f"{variant} of {tokens} tokens: {(done.stderr.strip().splitlines() or ['the interpreter failed'])[-1]}")
    return json.loads(done.stdout.splitlines()[-1])
