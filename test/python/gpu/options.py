#!/usr/bin/env python3
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random training steps with random options of fp8-compile and fp8-run: the CPU and the emulator beside each other.

    build/venv/bin/python test/python/gpu/options.py --count 300

Both must give the same bits, or the same error. Options are drawn without regard to what they mean, so some contradict
others or the program: then both must say the same, and what the error names is dropped. Sums are in the order of the
program; a quarter of the programs has them in the order of kernels, as users do, and results that are close. Half of the
programs also go on from the other device's state; evaluations read it.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "test/python"))
from graphs.check import argument_keys, make_data  # noqa: E402
from graphs.emit import emit_module  # noqa: E402
from graphs.generate import generate  # noqa: E402
from graphs.training import build_program  # noqa: E402

from harness import load, save  # noqa: E402

CHIPS = ["sm_89", "sm_90a", "sm_100a", "sm_120a"]
RECIPES = ["none", "delayed", "delayed", "current", "row", "block", "mxfp8", "#fp8.block_scaling<block = 64>",
           "#fp8.block_scaling<block = 32>", "#fp8.delayed_scaling<amax_history_len = 3>",
           "#fp8.custom<base = #fp8.delayed_scaling, wgrad = #fp8.current_scaling>"]
ROLES = ["fp8", "e4m3", "e5m2", "bf16", "f16", "none", "current", "delayed", "row", "block"]
SITES = ["h0", "fc1", "[02468]$", ".", "stack"]
BOOLEAN, ACCUMULATION, DIMS = ["true", "false"], ["fast", "split"], ["1", "2"]

# An option, how often it is given, and its values.
OPTIONS = [
    ("--format", 0.3, ["hybrid", "e4m3"]),
    ("--fprop", 0.15, ROLES),
    ("--dgrad", 0.15, ROLES),
    ("--wgrad", 0.15, ROLES),
    ("--site-recipe", 0.25, [f"{site}={recipe}" for site in SITES for recipe in [*RECIPES, "bf16"]]),
    ("--sites", 0.3, ["linear", "all", *SITES]),
    ("--keep", 0.15, SITES),
    ("--first", 0.05, ["1"]),
    ("--last", 0.05, ["1"]),
    ("--fp8-attention", 0.2, [None]),
    ("--fp8-parameters", 0.2, [None]),
    ("--mixed-precision", 0.3, ["bf16", "f16", "tf32"]),
    ("--loss-scaling", 0.25, [None, "1024", "1e30"]),
    ("--loss", 0.1, ["0"]),
    ("--stochastic-rounding", 0.2, [None]),
    ("--measure-errors", 0.15, [None]),
    ("--calibrate", 0.1, [None]),
    ("--accumulation", 0.2, ACCUMULATION),
    ("--fprop-accumulation", 0.1, ACCUMULATION),
    ("--wgrad-accumulation", 0.1, ACCUMULATION),
    ("--amax-compute-algo", 0.1, ["max", "most_recent"]),
    ("--amax-history-len", 0.1, ["1", "2", "5"]),
    ("--margin", 0.1, ["-1", "2"]),
    ("--init", 0.1, ["one", "current"]),
    ("--ignore-non-finite", 0.1, BOOLEAN),
    ("--executed-mask", 0.1, BOOLEAN),
    ("--eps", 0.1, ["0.5"]),
    ("--power-2-scale", 0.1, BOOLEAN),
    ("--mx-rounding", 0.1, ["up", "floor", "even", "ceil"]),
    ("--x-block-scaling-dim", 0.1, DIMS),
    ("--w-block-scaling-dim", 0.1, DIMS),
    ("--grad-block-scaling-dim", 0.1, DIMS),
]


# How far results may be apart, as norms, where sums are in another order: a last bit may let a value round to its neighbour. In
# E5M2 that is a quarter away, in bf16 2^-7, and a step rounds up to four times in a row.
CLOSE, CLOSE_WITHOUT_FP8 = 0.25, 2.0**-5


class Differs(AssertionError):
    """A difference between the two devices."""


class Drawn:
    """A program, its data, and the options of all commands."""

    def __init__(self, seed):
        rng = np.random.default_rng([seed, 4])
        self.seed, self.chip = seed, str(rng.choice(CHIPS))
        self.options = [f"--recipe={rng.choice(RECIPES)}"]
        for name, chance, values in OPTIONS:
            value = values[rng.integers(len(values))]
            if rng.random() < chance:
                self.options.append(name if value is None else f"{name}={value}")
        if self.chip in ("sm_89", "sm_90a"):  # whose tensor cores have no MX: such sites stay as they are
            self.options = [option for option in self.options if "mxfp8" not in option]
        self.graph = bool(rng.random() < 0.7)  # else every kernel is launched
        self.resumes = bool(rng.random() < 0.5)
        self.checks = bool(rng.random() < 0.3)  # of every access: they compute nothing and take most of the time
        self.in_order = bool(rng.random() < 0.75)
        self.model = generate(seed)
        self.functions = build_program(self.model)
        main = self.functions[0]
        if self.model.update == "carry option" and main.carried:
            self.options.append("--carry=" + ",".join(f"{a}:{r}" for a, r in main.carried.items()))
        if main.parts:
            forward, backward = main.parts
            given = len(forward.body.results) - sum(name.startswith("r") for name in backward.names)
            self.options.append(f"--pair=forward:backward:{given}")

    @property
    def has_mx(self):
        return any("mxfp8" in option for option in self.options)

    def __str__(self):
        ways = [*([] if self.graph else ["no graph"]), *([] if self.in_order else ["kernels' order"])]
        return f"seed {self.seed} on {', '.join([self.chip, *ways])}: {' '.join(self.options)}"

    @property
    def closeness(self):
        """How close results must be; None for the same bits."""
        if self.in_order:
            return None
        return CLOSE_WITHOUT_FP8 if self.options == ["--recipe=none"] else CLOSE

    def write(self, folder):
        """The program and its tensors; the options of fp8-run that name them."""
        main = self.functions[0]
        (folder / "program.mlir").write_text(emit_module(self.functions, self.model.names))
        inputs, streams = make_data(self.model, main)
        key = argument_keys(main)
        save(folder / "inputs", {**{key[n]: v for n, v in inputs.items()}, **{f"{n}s": v for n, v in streams.items()}})
        entry = "--entry=" + ",".join(part.name for part in main.written())
        return [f"--inputs={folder / 'inputs'}", entry, *(f"--stream={key[n]}={n}s" for n in streams)]


class Place:
    """A device: how programs are compiled for it, and run."""

    def __init__(self, name, drawn, bin_dir, folder):
        self.name, self.bin, self.folder, self.library = name, bin_dir, folder, folder / f"{name}.so"
        target = [] if name == "cpu" else [f"--target={drawn.chip}", "--ptxas=none"]
        self.compile = [bin_dir / "fp8-compile", "program.mlir", "-o", self.library, f"--manifest={folder / name}.json",
                        *(["--order=program", "--strict-accumulation"] if drawn.in_order else []), *target]
        self.device = [f"--device={'cpu' if name == 'cpu' else 'emulator'}"]
        self.environment = {**os.environ, "FP8EMU_SUMS": "korder", "FP8RT_GRAPH": "1" if drawn.graph else "0",
                            **({} if drawn.checks else {"FP8EMU_CHECKS": "0"})}

    def call(self, command):
        """The exit code and what was said of it."""
        done = subprocess.run([*map(str, command)], cwd=self.folder, env=self.environment, capture_output=True, text=True)
        if done.returncode not in (0, 1, 2):
            raise Differs(f"{self.name}: {command[0].name} ends with {done.returncode}: {done.stderr[-2000:]}")
        return done.returncode, done.stderr

    @property
    def has_state(self):
        """Whether steps leave anything for the next: FP8 state or carried arguments."""
        manifest = json.loads((self.folder / f"{self.name}.json").read_text())
        return bool(manifest["state"]["tensors"]) or any("carry" in a for e in manifest["entries"] for a in e["arguments"])

    def run(self, part, *options, state=None):
        """Runs steps, which write files that are called after `part`; the tensors in them."""
        files = {"outputs": f"{self.name}_{part}.out", **({"save-state": f"{self.name}_{part}.state"} if self.has_state else {})}
        given = [f"--{option}={self.folder / file}" for option, file in files.items()]
        given += [f"--state={self.folder / state}"] if state and self.has_state else []
        code, error = self.call([self.bin / "fp8-run", self.library, *self.device, *options, *given])
        if code:
            return {"error": error.replace(str(self.library), "program.so")}
        return {f"{kind}: {name}": value for kind, file in files.items() for name, value in load(self.folder / file).items()}


def errors_of(text):
    """The errors of the compiler; remarks on what is copied for kernels, and warnings, do not count."""
    return "\n".join(line for line in text.splitlines() if "error:" in line)


def compare_close(actual, expected, closeness, what):
    """Compares tensors of sums in another order; integers and what is not finite may be anything then."""
    if expected.dtype.kind in "iub":
        return
    actual, expected = actual.astype(np.float64), expected.astype(np.float64)
    if not np.isfinite(expected).all():
        return
    apart, size = np.linalg.norm(actual - expected), np.linalg.norm(expected)
    if not apart <= closeness * size + 1e-6 * np.sqrt(expected.size):
        raise Differs(f"{what}: {apart:.3g} apart, of {size:.3g}")


def compare(actual, expected, what, drawn):
    if actual.keys() != expected.keys():
        raise Differs(f"{what}: {sorted(actual)} beside {sorted(expected)}: {actual.get('error', '')}{expected.get('error', '')}")
    for name, value in expected.items():
        other = actual[name]
        if isinstance(value, str):
            if value != other:
                raise Differs(f"{what}: {other!r} beside {value!r}")
            continue
        if (value.dtype, value.shape) != (other.dtype, other.shape):
            raise Differs(f"{what}, {name}: {other.dtype}{other.shape} beside {value.dtype}{value.shape}")
        if value.tobytes() == other.tobytes():
            continue
        if drawn.closeness is not None:
            compare_close(other, value, drawn.closeness, f"{what}, {name}")
            continue
        bits = np.dtype(f"u{value.dtype.itemsize}")
        value, other = np.atleast_1d(value), np.atleast_1d(other)  # a scalar too has a place
        differ = np.ascontiguousarray(value).view(bits) != np.ascontiguousarray(other).view(bits)
        if value.dtype.kind not in "iub":  # of NaNs only that they are
            differ &= ~(np.isnan(value.astype(np.float64)) & np.isnan(other.astype(np.float64)))
            if drawn.has_mx:  # an element beyond f32, which is Inf on the CPU, may be in a finite product of tensor cores
                differ &= np.isfinite(value.astype(np.float64))
        where = np.argwhere(differ)
        if len(where):
            some = [(tuple(map(int, i)), other[tuple(i)], value[tuple(i)]) for i in where[:3]]
            raise Differs(f"{what}, {name}: {len(where)} of {value.size} differ (place, emulator, CPU): {some}")


def compile_both(drawn, cpu, gpu):
    """Compiles for both. Where the options contradict each other, drops one that the error names, as it advises.
    Returns why there are no libraries, or an empty string."""
    while True:
        (status, said), (gpu_status, gpu_said) = (place.call([*place.compile, *drawn.options]) for place in (cpu, gpu))
        if (status, errors_of(said)) != (gpu_status, errors_of(gpu_said)):
            raise Differs(f"compiling: CPU {status} {said!r}\n{drawn.chip} {gpu_status} {gpu_said!r}")
        named = [option for option in drawn.options if re.search(re.escape(option.partition("=")[0]) + r"\b", errors_of(said))]
        if not status or not named:
            return errors_of(said)
        drawn.options.remove(named[-1])


def check(drawn, bin_dir, folder):
    """Compiles and runs on both; "ran", or why not. Raises Differs."""
    steps = drawn.write(folder)
    cpu, gpu = (Place(name, drawn, bin_dir, folder) for name in ("cpu", "gpu"))
    if refusal := compile_both(drawn, cpu, gpu):
        return refusal[:160]
    steps += ["--with-carry"] if cpu.has_state else []
    whole = cpu.run("whole", *steps, "--steps=3")
    compare(gpu.run("whole", *steps, "--steps=3"), whole, "three steps", drawn)
    if "error" in whole:
        return "failed: " + whole["error"][:160]
    if drawn.resumes and cpu.has_state:
        for first, second in ((cpu, gpu), (gpu, cpu)):
            first.run("half", *steps, "--steps=2")
            resumed = second.run("rest", *steps, "--steps=1", "--first-step=2", state=f"{first.name}_half.state")
            compare(resumed, whole, f"two steps on the {first.name}, one on the {second.name}", drawn)
    if len(drawn.functions) > 1:
        check_evaluation(drawn, cpu, gpu, folder)
    return "ran"


def check_evaluation(drawn, cpu, gpu, folder):
    """An evaluation reads the state that the other device's training has left, and leaves it."""
    function = drawn.functions[1]
    inputs, streams = make_data(drawn.model, drawn.functions[0])
    values = {**inputs, **{name: stream[0] for name, stream in streams.items()}}
    values = {n: values[n][0] if values[n].ndim > len(a.shape) else values[n] for n, a in zip(function.names, function.body.arguments)}
    save(folder / "evaluated", values)
    options = ["--entry=evaluate", f"--inputs={folder / 'evaluated'}"]
    expected = cpu.run("evaluation", *options, state="gpu_whole.state")
    compare(gpu.run("evaluation", *options, state="cpu_whole.state"), expected, "the evaluation", drawn)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100, help="how many programs (100)")
    parser.add_argument("--seed", type=int, default=1, help="of the first; the others follow (1)")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin", help="folder of the tools")
    parser.add_argument("--keep", type=pathlib.Path, help="leave files here, for one program")
    arguments = parser.parse_args()
    ends, failures = collections.Counter(), 0
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        with tempfile.TemporaryDirectory() as temporary:
            drawn = Drawn(seed)
            try:
                end = check(drawn, arguments.bin, arguments.keep or pathlib.Path(temporary))
            except Differs as differs:
                failures, end = failures + 1, "differs"
                print(f"{drawn}\n{differs}\n", flush=True)
        ends[re.sub(r"\d+", "", end)] += 1
    for end, count in ends.most_common():
        print(f"{count:5} {end}")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
