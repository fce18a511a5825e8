# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that are nearly right: whatever is wrong with one is an error, never a crash.

The seeds are half_complete.mlir and the programs of the lit tests, as fp8-opt prints them: one
operation in a line. A mutant is a seed with a few lines left out, repeated, moved or changed.

    python3 test/python/mutants/mutants.py [--bin=build/bin] [--seconds=60] [--seed=1]
"""
import argparse
import functools
import pathlib
import random
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
SEPARATOR = "\n// -----\n"
STAGES = ["fp8-ingest-pipeline", "fp8-recipe-pipeline", "fp8-fusion-pipeline", "fp8-batching-pipeline",
          "fp8-bufferize-pipeline", "fp8-cpu-kernels-pipeline", "fp8-cpu-code-pipeline"]
LIMIT = 120  # seconds for a batch of programs that take milliseconds each


def pipelines():
    """From each stage to the end; and recipes that a lit test's program may not have seen."""
    for first in range(len(STAGES)):
        yield ",".join(STAGES[first:])
    for recipe in ("current", "block", "row", "none"):
        yield ",".join([STAGES[0], f"fp8-recipe-pipeline{{recipe={recipe} sites=all}}", *STAGES[2:]])
    yield "fp8-join-pair,fp8-stack-casts,fp8-split-pair"
    yield "fp8-split-pair"
    yield "fp8-apply-recipe{recipe=#fp8.delayed_scaling<>}"


def crashes(bin_dir, pipeline, programs):
    """The programs on which fp8-opt ends in another way than with or without errors."""
    command = [bin_dir / "fp8-opt", "--split-input-file", f"--pass-pipeline=builtin.module({pipeline})", "-o", "/dev/null", "-"]
    try:
        done = subprocess.run(command, input=SEPARATOR.join(programs), capture_output=True, text=True, timeout=LIMIT)
        if done.returncode in (0, 1):
            return []
    except subprocess.TimeoutExpired:
        pass
    if len(programs) == 1:
        return programs
    half = len(programs) // 2
    return crashes(bin_dir, pipeline, programs[:half]) + crashes(bin_dir, pipeline, programs[half:])


@functools.cache  # a hundred runs of fp8-opt, longer than those of a batch of mutants
def read_seeds(bin_dir):
    files = [ROOT / "test/python/mutants/half_complete.mlir", *sorted((ROOT / "test/Dialect").rglob("*.mlir"))]
    seeds = []
    for file in files:
        done = subprocess.run([bin_dir / "fp8-opt", "--split-input-file", file], capture_output=True, text=True)
        seeds += [text.strip() + "\n" for text in done.stdout.split("// -----") if text.strip()]
    return tuple(seeds)


def leave_out(rng, lines):
    del lines[rng.randrange(len(lines))]


def repeat(rng, lines):
    place = rng.randrange(len(lines))
    lines.insert(place, re.sub(r"%(\w+)( =|:\d+ =|, )", r"%\1_again\2", lines[place], count=1))


def move(rng, lines):
    line = lines.pop(rng.randrange(len(lines)))
    lines.insert(rng.randrange(len(lines) + 1), line)


def poison(rng, lines):
    """A value that nothing computes, of the type that the operation states last. Not an index:
    upstream's canonicalization crashes on a slice at a poisoned place."""
    choices = [i for i, line in enumerate(lines) if re.match(r"\s*%\w+ = .*[:>] (tensor<[^ ]*>|(?!index)[a-z]\w*)$", line)]
    if choices:
        i = rng.choice(choices)
        name, kind = re.match(r"\s*(%\w+) = .* (tensor<[^ ]*>|(?!index)[a-z]\w*)$", lines[i]).groups()
        lines[i] = f"    {name} = ub.poison : {kind}"


def change(pattern, values):
    """Replaces one match of `pattern` by one of `values`, or by another match."""

    def apply(rng, lines):
        text = "\n".join(lines)
        found = [m.span() for m in re.finditer(pattern, text)]
        if found:
            start, end = rng.choice(found)
            other = rng.choice(values + [text[slice(*rng.choice(found))]] * 2)
            lines[:] = (text[:start] + other + text[end:]).split("\n")

    return apply


MUTATIONS = [
    leave_out, leave_out, repeat, move, poison, poison,
    change(r"%\w+", []),
    change(r"@\w+", ["@nobody"]),
    change(r"(?<=[\[< x])\d+(?=[\]>, x])", ["0", "1", "-1", "?", "9223372036854775807"]),
    change(r"\b(?:f32|bf16|f16|f8E4M3FN|f8E5M2|f8E8M0FNU|i32|i64|i1|index)\b", ["f64", "i8", "f8E4M3"]),
    change(r"\{?(?:fp8|tf)\.\w+(?: = [^,}]*)?", ["fp8.residual", 'fp8.state = "scale"', "tf.aliasing_output = 1 : i32"]),
    change(r"\brecord_amax ", [""]),
    change(r" (?:site|role|kinds|column|group)\([^)]*\)", ["", " column(9)"]),
    change(r"d\d(?=[,)])", ["d0", "d1", "0"]),
]


def mutate(rng, seed):
    lines = seed.rstrip("\n").split("\n")
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        rng.choice(MUTATIONS)(rng, lines)
    # Upstream crashes on an unknown place in these lists, and on array<index: …>:
    # stock mlir-opt 22 does so, too.
    text = re.sub(r"((?:permutation|dimensions) = \[[^]]*)\?", r"\g<1>0", "\n".join(lines))
    return re.sub(r"array<index", "array<i64", text) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/bin")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    seeds, start, count, found = read_seeds(options.bin), time.monotonic(), 0, []
    number = options.seed
    while time.monotonic() - start < options.seconds:
        rng = random.Random(number)
        programs = [mutate(rng, rng.choice(seeds)) for _ in range(200)]
        pipeline = rng.choice(list(pipelines()))
        for program in crashes(options.bin, pipeline, programs):
            found.append(program)
            print(f"--- seed {number}, {pipeline}\n{program}", flush=True)
        number, count = number + 1, count + len(programs)
    print(f"{count} programs from {len(seeds)} seeds, {len(found)} crashes", file=sys.stderr)
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
