# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains the GPT of gpt.mlir on a text, in bf16 and in FP8 at the same time.

    python3 train.py [--bin DIR] [--text FILE] [--steps N] [--out DIR]

Needs python3, gnuplot (for the picture), fp8-compile and fp8-run; no JAX, no pip.
"""

import argparse
import os
import pathlib
import selectors
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import display
import parameters
import tensors
import text

HERE = pathlib.Path(__file__).resolve().parent
TEXT = "/usr/share/doc/jargon-text/jargon.txt.gz"
# The layers at both ends are few, and what is lost there is lost for all others.
RECIPES = {"bf16": ["--recipe=none"], "fp8": ["--recipe=delayed", "--keep=embed|head"]}
LOSS = 3 * len(parameters.shapes()) + 1  # main's results: carried values first
HELD_OUT_BATCHES = 20


class Failure(Exception):
    """What went wrong and what to do about it, in one line."""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bin", default=HERE.parents[2] / "build/bin", type=pathlib.Path,
                        help="where fp8-compile and fp8-run are (default: build/bin)")
    parser.add_argument("--text", default=TEXT, type=pathlib.Path,
                        help="what to learn, plain or gzipped (default: the Jargon File)")
    parser.add_argument("--steps", default=200, type=int, help="how long to train (default: 200)")
    parser.add_argument("--out", default="gpt-out", type=pathlib.Path,
                        help="folder for everything that is written (default: gpt-out)")
    options = parser.parse_args()
    if options.steps < 1:
        parser.error("--steps: expected at least 1")
    return options


def check_tools(options):
    for tool in ("fp8-compile", "fp8-run"):
        if not os.access(options.bin / tool, os.X_OK):
            raise Failure(f"{options.bin / tool} is missing: build it with 'cmake --preset release && "
                          "cmake --build build', or name its folder with --bin")
    if not shutil.which("gnuplot"):
        raise Failure("gnuplot is missing: install Debian's gnuplot-nox")


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


def threads_each():
    return max(1, len(os.sched_getaffinity(0)) // len(RECIPES))


class Processes:
    """One process for each recipe, side by side; what they print comes line by line."""

    def __init__(self, commands):
        self.running, self.selector = {}, selectors.DefaultSelector()
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads_each())}
        for name, command in commands.items():
            errors = tempfile.TemporaryFile()  # a pipe that no one empties would stop the process
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=environment, bufsize=0)
            self.running[name] = process, errors
            self.selector.register(process.stdout, selectors.EVENT_READ, [name, b""])

    def lines(self, timeout=0.2):
        """(name, line) as they come; (None, None) where nothing came for `timeout` seconds."""
        while self.selector.get_map():
            ready = self.selector.select(timeout)
            if not ready:
                yield None, None
            for key, _ in ready:
                name, rest = key.data
                data = os.read(key.fd, 65536)
                *whole, key.data[1] = (rest + data).split(b"\n")
                yield from ((name, line.decode()) for line in whole)
                if not data:
                    self.selector.unregister(key.fileobj)
                    self.finish(name)

    def finish(self, name):
        process, errors = self.running.pop(name)
        if process.wait() == 0:
            return
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip().splitlines()
        tool = pathlib.Path(process.args[0]).name
        raise Failure(f"{name}: {said[0] if said else f'{tool} ended with code {process.returncode}'}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process, _ in self.running.values():
            process.kill()
            process.wait()


def compile_both(options):
    progress = display.Progress("Compiling")
    commands = {name: [options.bin / "fp8-compile", HERE / "gpt.mlir", "-o", options.out / f"{name}.so", *recipe,
                       f"--report=json:{options.out / f'{name}.json'}"] for name, recipe in RECIPES.items()}
    with Processes(commands) as processes:
        for _ in processes.lines():
            done = len(commands) - len(processes.running)
            progress.draw(done, len(commands), f"libraries, {time.monotonic() - progress.start:.0f} s")
    progress.finish("Compiled gpt.mlir in bf16 and in FP8")


def run_command(options, name, inputs, stream, steps, *more):
    return [options.bin / "fp8-run", options.out / f"{name}.so", f"--inputs={options.out / inputs}",
            f"--stream=tokens={stream}", f"--steps={steps}", *more]


def train_both(options):
    """name -> losses, one per step."""
    progress, losses = display.Progress("Training"), {name: [] for name in RECIPES}
    commands = {name: run_command(options, name, "inputs.safetensors", "batches", options.steps, f"--print={LOSS}",
                                  "--zero-missing", "--with-carry", f"--save-state={options.out / f'{name}.state'}")
                for name in RECIPES}
    shown, ended = 0, {}
    progress.row(f"{'step':>6} {'bf16':>9} {'fp8':>9} {'gap':>9}")
    with Processes(commands) as processes:
        for name, line in processes.lines():
            if name:
                losses[name].append(float(line.split("\t")[1]))
                ended[name] = time.monotonic()
            done = min(map(len, losses.values()))
            while shown < done:
                if shown % 10 == 0 or shown == options.steps - 1:
                    bf16, fp8 = losses["bf16"][shown], losses["fp8"][shown]
                    progress.row(f"{shown:6} {bf16:9.4f} {fp8:9.4f} {fp8 - bf16:+9.4f}")
                shown += 1
            progress.draw(done, options.steps, f"steps, {speed(done, progress.start):.0f} tokens/s each")
    if min(map(len, losses.values())) < options.steps:
        raise Failure(f"fp8-run ended without an error before step {options.steps}")
    bf16, fp8 = (speed(options.steps, progress.start, ended[name]) for name in RECIPES)
    progress.finish(f"Trained {options.steps} steps: bf16 {bf16:.0f} tokens/s, FP8 {fp8:.0f} tokens/s, "
                    f"each on {threads_each()} of {len(os.sched_getaffinity(0))} cores")
    return losses


def speed(steps, start, end=None):
    """Tokens per second."""
    return steps * parameters.BATCH * parameters.SEQUENCE / ((end or time.monotonic()) - start)


def evaluate_both(options, held_out):
    """name -> mean loss on text that was not trained on."""
    commands = {}
    for name in RECIPES:
        state = tensors.read(options.out / f"{name}.state")
        inputs = {key.removeprefix("carry."): value for key, value in state.items() if key.startswith("carry.params")}
        inputs["held_out"] = token_stream(held_out, HELD_OUT_BATCHES, seed=2)
        tensors.write(options.out / f"{name}.trained", inputs)
        use_state = [f"--state={options.out / f'{name}.state'}"] if name == "fp8" else []
        commands[name] = run_command(options, name, f"{name}.trained", "held_out", HELD_OUT_BATCHES,
                                     "--entry=evaluate", "--print=0", *use_state)
    losses = {name: [] for name in RECIPES}
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
    check_tools(options)
    options.out.mkdir(parents=True, exist_ok=True)
    held_out = write_inputs(options)
    compile_both(options)
    losses = train_both(options)
    print()
    print(*display.summary(options.out / "fp8.json"), sep="\n")
    print()
    last = {name: statistics.fmean(values[-10:]) for name, values in losses.items()}
    compare("Loss, mean of the last 10 steps", **last)
    compare("Loss on held-out text", **evaluate_both(options, held_out))
    write_curves(options, losses)
    print(f"Curves: {options.out / 'curves.png'}")


if __name__ == "__main__":
    try:
        main()
    except (Failure, OSError) as failure:
        sys.exit(("\n" if sys.stdout.isatty() else "") + f"train.py: {failure}")
    except KeyboardInterrupt:
        sys.exit(130)
