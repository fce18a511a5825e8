# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains the GPT of gpt.mlir on a text, in bf16 and in FP8 at the same time.

    python3 train.py [--bin DIR] [--text FILE] [--steps N] [--out DIR] [--device DEVICE | --jax]

Needs python3, gnuplot (for the picture), fp8-compile and fp8-run; no JAX, no pip. With --jax the model is traced
and trained by this Python's JAX, through the package fp8, instead of compiled from gpt.mlir and run by fp8-run.
"""

import argparse
import collections
import os
import pathlib
import re
import shutil
import statistics
import sys
import time

import display
import gpu
import parameters
import tensors
import text
from processes import Failure, Processes, threads_each

HERE = pathlib.Path(__file__).resolve().parent
TEXT = "/usr/share/doc/jargon-text/jargon.txt.gz"
# The layers at both ends are few, and what is lost there is lost for all others.
RECIPES = {"bf16": ["--recipe=none"], "fp8": ["--recipe=delayed", "--keep=embed|head"]}
LOSS = 3 * len(parameters.shapes()) + 1  # main's results: carried values first
HELD_OUT_BATCHES = 20
# The emulator takes some seconds for a step: enough of them to see that the second one depends on the first.
EMULATED_CHIP, EMULATED_STEPS = "sm_90a", 2

# One of the two trainings that run side by side: options of fp8-compile and of fp8-run.
Variant = collections.namedtuple("Variant", "compile run")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bin", default=HERE.parents[2] / "build/bin", type=pathlib.Path,
                        help="where fp8-compile and fp8-run are (default: build/bin)")
    parser.add_argument("--text", default=TEXT, type=pathlib.Path,
                        help="what to learn, plain or gzipped (default: the Jargon File)")
    parser.add_argument("--steps", type=int,
                        help=f"how long to train (default: 200; {EMULATED_STEPS} on the emulator)")
    parser.add_argument("--out", default="gpt-out", type=pathlib.Path,
                        help="folder for everything that is written (default: gpt-out)")
    parser.add_argument("--device", default="cpu",
                        help="cpu (default); cuda[:N] for GPU N; emulator: a few steps of the kernels for "
                             f"{EMULATED_CHIP} on this processor, in FP8, beside the CPU's own code")
    parser.add_argument("--jax", action="store_true",
                        help="train model.py from JAX by the package fp8 (default: its export gpt.mlir by fp8-run)")
    parser.add_argument("--check-arguments", action="store_true", help="check the other options, and train nothing")
    options = parser.parse_args()
    if not re.fullmatch(r"cpu|emulator|cuda(:\d+)?", options.device):
        parser.error(f"--device={options.device}: expected cpu, cuda, cuda:N or emulator")
    if options.jax and options.device != "cpu":
        parser.error("--jax trains on the CPU: leave out --device or --jax")
    if options.steps is None:
        options.steps = EMULATED_STEPS if options.device == "emulator" else 200
    if options.steps < 1:
        parser.error("--steps: expected at least 1")
    return options


def check_tools(options):
    for tool in ("fp8-compile", "fp8-run"):
        if not os.access(options.bin / tool, os.X_OK):
            raise Failure(f"{options.bin / tool} is missing: build it with 'cmake --preset release && "
                          "cmake --build build', or name its folder with --bin")
    if options.device != "emulator" and not shutil.which("gnuplot"):
        raise Failure("gnuplot is missing: install Debian's gnuplot-nox")


def find_variants(options):
    """name -> Variant: both recipes, or, on the emulator, FP8 on both devices."""
    if options.device == "cpu":
        return {name: Variant(recipe, []) for name, recipe in RECIPES.items()}
    run = [f"--device={options.device}"]
    if options.device == "emulator":
        profile = f"--profile={options.out / 'emulator.profile'}"
        return {"cpu": Variant(RECIPES["fp8"], []),
                "emulator": Variant([*RECIPES["fp8"], f"--target={EMULATED_CHIP}"], [*run, profile])}
    try:
        chip = gpu.find_chip(int(options.device.partition(":")[2] or 0))
    except gpu.NoGPU as reason:
        raise Failure(f"--device={options.device}: {reason}; --device=emulator needs no GPU") from None
    return {name: Variant([*recipe, f"--target={chip}"], run) for name, recipe in RECIPES.items()}


def write_inputs(options):
    """Initial parameters and a stream of batches; the bytes that are held out."""
    try:
        train, held_out = text.split(text.read(options.text))
    except (OSError, EOFError, ValueError) as error:
        hint = ": install Debian's jargon-text, or name another with --text=FILE" if str(options.text) == TEXT else ""
        raise Failure(f"text {options.text}: {getattr(error, 'strerror', None) or error}{hint}") from None
    inputs = {f"params['{name}']": ("F32", *value) for name, value in parameters.initial().items()}
    inputs["batches"] = token_stream(train, options.steps, seed=1)
    tensors.write(options.out / "inputs.safetensors", inputs)
    return held_out


def token_stream(data, count, seed):
    return "I32", (count, parameters.BATCH, text.WINDOW), text.batches(data, count, seed)


def compile_both(options, variants):
    progress = display.Progress("Compiling")
    commands = {name: [options.bin / "fp8-compile", HERE / "gpt.mlir", "-o", options.out / f"{name}.so", *variant.compile,
                       f"--report=json:{options.out / f'{name}.json'}"] for name, variant in variants.items()}
    with Processes(commands) as processes:
        for _ in processes.lines():
            done = len(commands) - len(processes.running)
            progress.draw(done, len(commands), f"libraries, {time.monotonic() - progress.start:.0f} s")
    progress.finish("Compiled gpt.mlir in bf16 and in FP8" if options.device != "emulator" else
                    f"Compiled gpt.mlir in FP8 for this processor and for {EMULATED_CHIP}")


def run_command(options, name, inputs, stream, steps, *more):
    return [options.bin / "fp8-run", options.out / f"{name}.so", f"--inputs={options.out / inputs}",
            f"--stream=tokens={stream}", f"--steps={steps}", *more]


def train_command(options, name, variant):
    if options.jax:
        return [sys.executable, HERE / "variant_jax.py", options.bin, options.text, str(options.steps),
                options.out / f"{name}.json", *variant.compile]
    return run_command(options, name, "inputs.safetensors", "batches", options.steps, f"--print={LOSS}",
                       "--zero-missing", "--with-carry", f"--save-state={options.out / f'{name}.state'}", *variant.run)


def train_both(options, variants):
    """name -> losses, one per step; name -> loss on held-out text, where the training prints it."""
    progress, losses, held_out = display.Progress("Training"), {name: [] for name in variants}, {}
    commands = {name: train_command(options, name, variant) for name, variant in variants.items()}
    shown, began, ended = 0, {}, {}
    first, second = variants
    every = 10 if options.steps > 20 else 1
    progress.row(f"{'step':>6} {first:>9} {second:>9} {'gap':>9}")
    with Processes(commands) as processes:
        for name, line in processes.lines():
            if name and line.startswith("held_out\t"):
                held_out[name] = float(line.split("\t")[1])
            elif name:
                losses[name].append(float(line.split("\t")[1]))
                ended[name] = time.monotonic()
                if options.jax:  # The first step compiles.
                    began.setdefault(name, (1, ended[name]))
            done = min(map(len, losses.values()))
            while shown < done:
                if shown % every == 0 or shown == options.steps - 1:
                    a, b = losses[first][shown], losses[second][shown]
                    progress.row(f"{shown:6} {a:9.4f} {b:9.4f} {b - a:+9.4f}")
                shown += 1
            note = f"{speed(done, progress.start):.0f} tokens/s each" if options.device != "emulator" else \
                f"{time.monotonic() - progress.start:.0f} s"
            progress.draw(done, options.steps, f"steps, {note}")
    if min(map(len, losses.values())) < options.steps:
        raise Failure(f"{'variant_jax.py' if options.jax else 'fp8-run'} ended without an error before step {options.steps}")
    if options.device == "emulator":
        progress.finish(f"Trained {options.steps} steps of FP8, on this processor and on an emulated {EMULATED_CHIP}")
        return losses, held_out
    bf16, fp8 = (speed_after(options.steps, *began.get(name, (0, progress.start)), ended[name]) for name in variants)
    where = "side by side on the GPU" if options.device != "cpu" else \
        f"each on {threads_each()} of {len(os.sched_getaffinity(0))} cores"
    progress.finish(f"Trained {options.steps} steps: bf16 {bf16:.0f} tokens/s, FP8 {fp8:.0f} tokens/s, {where}")
    return losses, held_out


def speed_after(steps, skipped, start, end):
    """Tokens per second of the steps after the first `skipped`, which ended at `start`; 0 if there are none."""
    return speed(steps - skipped, start, end) if steps > skipped else 0


def speed(steps, start, end=None):
    """Tokens per second."""
    return steps * parameters.BATCH * parameters.SEQUENCE / ((end or time.monotonic()) - start)


def evaluate_both(options, variants, held_out):
    """name -> mean loss on text that was not trained on."""
    commands = {}
    for name, variant in variants.items():
        state = tensors.read(options.out / f"{name}.state")
        inputs = {key.removeprefix("carry."): value for key, value in state.items() if key.startswith("carry.params")}
        inputs["held_out"] = token_stream(held_out, HELD_OUT_BATCHES, seed=2)
        tensors.write(options.out / f"{name}.trained", inputs)
        use_state = [f"--state={options.out / f'{name}.state'}"] if name == "fp8" else []
        commands[name] = run_command(options, name, f"{name}.trained", "held_out", HELD_OUT_BATCHES,
                                     "--entry=evaluate", "--print=0", *use_state, *variant.run)
    losses = {name: [] for name in variants}
    with Processes(commands) as processes:
        for name, line in processes.lines():
            if name:
                losses[name].append(float(line.split("\t")[1]))
    return {name: statistics.fmean(values) for name, values in losses.items()}


def write_curves(options, losses):
    table = options.out / "losses.tsv"
    rows = zip(losses["bf16"], losses["fp8"])
    table.write_text("# step\tbf16\tfp8\n" + "".join(f"{i}\t{a}\t{b}\n" for i, (a, b) in enumerate(rows)))
    display.picture(options.out / "curves.png", table)


def compare(what, bf16, fp8):
    print(f"{what}: bf16 {bf16:.4f}, FP8 {fp8:.4f}, gap {fp8 - bf16:+.4f} ({100 * (fp8 / bf16 - 1):+.2f} %)")


def main():
    options = arguments()
    if options.check_arguments:
        return
    check_tools(options)
    options.out.mkdir(parents=True, exist_ok=True)
    variants = find_variants(options)
    held_out = write_inputs(options)
    if not options.jax:
        compile_both(options, variants)
    losses, evaluated = train_both(options, variants)
    fp8 = list(variants)[-1]
    print()
    print(*display.summary(options.out / f"{fp8}.json"), sep="\n")
    if options.device != "cpu":
        print(*display.instructions(options.out / f"{fp8}.json"), sep="\n")
    print()
    if options.device == "emulator":
        print(*display.launches(options.out / "emulator.profile"), sep="\n")
        print("The emulator checked every access of memory for races, bounds and missing values: no fault")
        return
    last = {name: statistics.fmean(values[-10:]) for name, values in losses.items()}
    compare("Loss, mean of the last 10 steps", **last)
    compare("Loss on held-out text", **(evaluated or evaluate_both(options, variants, held_out)))
    write_curves(options, losses)
    print(f"Curves: {options.out / 'curves.png'}")


if __name__ == "__main__":
    try:
        main()
    except (Failure, OSError) as failure:
        sys.exit(("\n" if sys.stdout.isatty() else "") + f"train.py: {failure}")
    except KeyboardInterrupt:
        sys.exit(130)
