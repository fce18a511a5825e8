# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8-bench recipes: trains the example GPT under every recipe and compares the losses on text that is held out.

Every variant starts from the same parameters and sees the same batches. No recipe is tuned: options of
fp8-compile are as in the table.
"""

import argparse
import dataclasses
import json
import pathlib
import re
import statistics
import struct
import subprocess
import tempfile

import results
from compiler import TIMING
from failure import Failure

TEXT = "/usr/share/doc/jargon-text/jargon.txt.gz"
KEEP = "--keep=embed|head"  # the example's own choice, for every recipe
VARIANTS = {
    "bf16": ["--recipe=none"],
    "delayed": ["--recipe=delayed"],
    "delayed, init=current": ["--recipe=#fp8.delayed_scaling<init = current>"],
    "current": ["--recipe=current"],
    "row": ["--recipe=row"],
    "block": ["--recipe=block"],
    "mxfp8": ["--recipe=mxfp8"],
}
# Of an export in f32 (--f32-model): the references without FP8, and the op policy of mixed precision.
F32_VARIANTS = {
    "f32": ["--recipe=none"],
    "f16, loss scaling": ["--recipe=none", "--mixed-precision=f16", "--loss-scaling"],
}
HELD_OUT_BATCHES = 40
LIMIT = 1.0  # percent above bf16 that a recipe may lose


@dataclasses.dataclass
class Trained:
    losses: list[float]
    held_out: list[float]  # a mean per seed
    milliseconds: float
    errors: dict[str, float]  # site and tensor -> root mean square error of the cast over that of the tensor, in %


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--steps", type=int, default=500, metavar="N", help="steps of each training (default: 500)")
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="trainings of each variant, on other batches (default: 1)")
    parser.add_argument("--variants", metavar="REGEX", default="", help="only these; bf16 is always there")
    parser.add_argument("--variant", metavar="NAME=OPTIONS", action="append", default=[],
                        help="one more, with these options of fp8-compile, separated by spaces")
    parser.add_argument("--model", type=pathlib.Path, metavar="FILE", help="another export of the GPT (default: gpt.mlir)")
    parser.add_argument("--f32-model", type=pathlib.Path, metavar="FILE",
                        help="an export in f32 (export.py --f32): also f32, and f16 with loss scaling")
    parser.add_argument("--text", type=pathlib.Path, default=pathlib.Path(TEXT), metavar="FILE",
                        help="what to learn, plain or gzipped (default: the Jargon File of Debian's jargon-text)")
    parser.add_argument("--errors", action="store_true", help="also a table of the quantization error of every site")
    parser.add_argument("--plot", type=pathlib.Path, metavar="FILE.png", help="draw the curves (needs matplotlib)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="also write everything to FILE")
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/bin"), metavar="DIR",
                        help="folder of fp8-compile and fp8-run (default: that of fp8-bench)")
    parser.add_argument("--host", default="", help=argparse.SUPPRESS)


def call(*command: object) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        reason = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[0]
        raise Failure(f"{pathlib.Path(str(command[0])).name} failed: {reason}")
    return done


def read_losses(text: str) -> list[float]:
    return [float(line.split("\t")[1]) for line in text.splitlines() if "\t" in line]


class Study:
    """The trainings, from one start on the same batches."""

    def __init__(self, options: argparse.Namespace, folder: pathlib.Path):
        import parameters
        import tensors
        import text

        self.options, self.folder = options, folder
        self.tensors, self.loss = tensors, 3 * len(parameters.shapes()) + 1
        train, held_out = text.split(text.read(options.text))
        initial = {f"params['{name}']": ("F32", *value) for name, value in parameters.initial().items()}

        def stream(data: bytes, count: int, seed: int) -> tuple[str, tuple[int, ...], object]:
            return "I32", (count, parameters.BATCH, text.WINDOW), text.batches(data, count, seed)

        for seed in range(options.seeds):
            tensors.write(folder / f"inputs{seed}", initial | {"batches": stream(train, options.steps, 1 + seed)})
        self.held_out = stream(held_out, HELD_OUT_BATCHES, seed=1000)

    def train(self, model: pathlib.Path, compile_options: list[str]) -> Trained:
        library, state = self.folder / "step.so", self.folder / "state"
        call(self.options.bin / "fp8-compile", model, "-o", library, KEEP, *compile_options)
        found = Trained([], [], float("inf"), {})
        for seed in range(self.options.seeds):
            done = call(self.options.bin / "fp8-run", library, f"--inputs={self.folder / f'inputs{seed}'}",
                        "--stream=tokens=batches", f"--steps={self.options.steps}", f"--print={self.loss}", "--zero-missing",
                        "--with-carry", f"--save-state={state}", "--timing")
            found.losses = found.losses or read_losses(done.stdout)
            if timing := TIMING.search(done.stderr + done.stdout):
                found.milliseconds = min(found.milliseconds, float(timing[1]))
            found.held_out.append(self.evaluate(library, state))
        if self.options.errors and compile_options[0] != "--recipe=none":
            found.errors = self.measure_errors(model, compile_options, state)
        return found

    def measure_errors(self, model: pathlib.Path, compile_options: list[str], state: pathlib.Path) -> dict[str, float]:
        """One more step of the trained model, whose library reports the error of every cast."""
        library, manifest, outputs = (self.folder / name for name in ("errors.so", "errors.json", "errors"))
        call(self.options.bin / "fp8-compile", model, "-o", library, KEEP, "--measure-errors", f"--manifest={manifest}", *compile_options)
        call(self.options.bin / "fp8-run", library, f"--inputs={self.folder / 'inputs0'}", "--stream=tokens=batches",
             "--zero-missing", f"--state={state}", "--with-carry", f"--outputs={outputs}")
        entry = next(one for one in json.loads(manifest.read_text())["entries"] if one["name"] == "main")
        values = self.tensors.read(outputs)
        return {result["name"].removeprefix("error."): 100 * struct.unpack("<f", bytes(values[str(i)][2]))[0]
                for i, result in enumerate(entry["results"]) if result["name"].startswith("error.")}

    def evaluate(self, library: pathlib.Path, state: pathlib.Path) -> float:
        saved = self.tensors.read(state)
        inputs = {key.removeprefix("carry."): value for key, value in saved.items() if key.startswith("carry.params")}
        self.tensors.write(self.folder / "trained", inputs | {"held_out": self.held_out})
        own = [f"--state={state}"] if "scale" in saved else []
        done = call(self.options.bin / "fp8-run", library, f"--inputs={self.folder / 'trained'}", "--entry=evaluate",
                    "--stream=tokens=held_out", f"--steps={HELD_OUT_BATCHES}", "--print=0", *own)
        return statistics.fmean(read_losses(done.stdout))


def choose(options: argparse.Namespace) -> dict[str, list[str]]:
    known = VARIANTS | (F32_VARIANTS if options.f32_model else {})
    chosen = {name: words for name, words in known.items() if name == "bf16" or re.search(options.variants, name)}
    for text in options.variant:
        name, found, words = text.partition("=")
        if not found or not name:
            raise Failure(f"--variant={text}: expected NAME=OPTIONS")
        chosen[name] = words.split()
    return chosen


def show(found: dict[str, Trained]) -> list[str]:
    base = statistics.fmean(found["bf16"].held_out)
    lines = ["| variant | held-out loss | over bf16 | last 50 steps | ms per step |", "| --- | ---: | ---: | ---: | ---: |"]
    for name, one in found.items():
        mean, worse = statistics.fmean(one.held_out), 100 * (statistics.fmean(one.held_out) / base - 1)
        spread = f" ± {statistics.stdev(one.held_out):.4f}" if len(one.held_out) > 1 else ""
        missed = " (missed)" if worse > LIMIT else ""
        lines.append(f"| {name} | {mean:.4f}{spread} | {worse:+.2f} %{missed} | {statistics.fmean(one.losses[-50:]):.4f} | {one.milliseconds:.1f} |")
    return lines


def show_errors(found: dict[str, Trained]) -> list[str]:
    """A row per kind of cast: the least, the mean and the largest error over its layers, per variant."""
    kinds: dict[str, dict[str, list[float]]] = {}
    for name, one in found.items():
        for cast, error in one.errors.items():
            kinds.setdefault(re.sub(r"^h\d+/", "", cast), {}).setdefault(name, []).append(error)
    names = [name for name, one in found.items() if one.errors]
    lines = [f"| error of the cast, % | {' | '.join(names)} |", "| --- |" + " ---: |" * len(names)]
    for kind, errors in kinds.items():
        cells = [f"{min(errors[n]):.2f} … {max(errors[n]):.2f}" if n in errors else "-" for n in names]
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    return lines


def draw(path: pathlib.Path, found: dict[str, Trained]) -> None:
    """Each loss, smoothed, and how far above bf16's it is."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    def smooth(values: list[float]) -> list[float]:
        window = max(1, len(values) // 25)
        return [statistics.fmean(values[max(0, i - window) : i + 1]) for i in range(len(values))]

    figure, (above, below) = plt.subplots(2, 1, figsize=(9, 8), sharex=True, layout="constrained", height_ratios=[2, 1])
    base = smooth(found["bf16"].losses)
    for i, (name, one) in enumerate(found.items()):
        curve = smooth(one.losses)
        above.plot(curve, label=name, linewidth=1, color=f"C{i}")
        if name != "bf16":
            below.plot([100 * (a / b - 1) for a, b in zip(curve, base)], label=name, linewidth=1, color=f"C{i}")
    above.set_ylabel("loss (nats per byte)")
    above.legend()
    below.set_ylabel("over bf16 (%)")
    below.set_xlabel("step")
    for axes in (above, below):
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=110)


def measure(options: argparse.Namespace, examples: pathlib.Path) -> list[str]:
    if options.steps < 1 or options.seeds < 1:
        raise Failure("--steps and --seeds: expected at least 1")
    if options.plot:
        results.check_plot()
    import display

    chosen, found, failures = choose(options), {}, []
    line = display.Progress("fp8-bench recipes")
    with tempfile.TemporaryDirectory(prefix="fp8-bench-") as scratch:
        study = Study(options, pathlib.Path(scratch))
        for i, (name, words) in enumerate(chosen.items()):
            line.draw(i, len(chosen), name)
            try:
                model = options.f32_model if name in F32_VARIANTS else options.model or examples / "gpt.mlir"
                found[name] = study.train(model, words)
            except Failure as failure:
                if name == "bf16":
                    raise
                failures.append(f"{name}: {failure}")
    line.finish(f"Trained {options.steps} steps under {len(found)} variants")
    if options.plot:
        draw(options.plot, found)
    if options.json:
        options.json.write_text(json.dumps({name: dataclasses.asdict(one) for name, one in found.items()}, indent=1) + "\n")
    errors = ["", *show_errors(found)] if options.errors else []
    return [*show(found), *errors, "", *(f"{name}: `fp8-compile {KEEP!r} {' '.join(words)}`" for name, words in chosen.items()), *failures]
