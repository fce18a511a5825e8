#!/usr/bin/env python3
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles and runs random training steps and compares them with the reference.

    python test/python/graphs/run.py --count 3000 --seed 1
    python test/python/graphs/run.py --seed 1234 --count 1 --show
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

from graphs.check import Mismatch, check_model  # noqa: E402
from graphs.generate import generate  # noqa: E402
from graphs.model import to_text  # noqa: E402
from graphs.shrink import follow, places, shrink  # noqa: E402


def find_problem(model, bin_dir):
    """The problem of a model; empty if there is none."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            check_model(model, bin_dir, pathlib.Path(folder))
        except Mismatch as mismatch:
            return str(mismatch)
    return ""


def check_seed(seed, bin_dir):
    return find_problem(generate(seed), bin_dir)


def run(seeds, bin_dir, jobs, report=lambda done, seed, problem: None):
    """Problems by seed; report is called after every model."""
    problems = {}
    with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
        running = {pool.submit(check_seed, seed, bin_dir): seed for seed in seeds}
        for done, future in enumerate(concurrent.futures.as_completed(running), 1):
            seed, problem = running[future], future.result()
            if problem:
                problems[seed] = problem
            report(done, seed, problem)
    return dict(sorted(problems.items()))


def explain(seed, problem, bin_dir, limit=60):
    """A failure in words, with a model made as small as can be within `limit` seconds."""
    start, end = problem.split("\n")[0].split(":")[0], time.time() + limit
    found = [problem]

    def fails(model):
        if time.time() > end:
            return False
        problem = find_problem(model, bin_dir)
        if problem.startswith(start):
            found.append(problem)
        return problem.startswith(start)

    model = shrink(generate(seed), fails)
    return f"seed {seed} fails; smaller:\n{to_text(model)}\n{found[-1]}"


def has_zero(model):
    return 0 in (*model.lead, model.features) or any(getattr(l, "out", 1) == 0 for l in model.layers)


def coverage(models):
    """How many models have what, a line per kind of thing."""
    kinds = collections.defaultdict(collections.Counter)
    for model in models:
        for name in ("dtype", "names", "update", "microbatches", "pair"):
            kinds[name][getattr(model, name) or "none"] += 1
        options = model.options
        for name in ("recipe", "sites", "fprop", "dgrad", "wgrad"):
            kinds[name][getattr(options, name)] += 1
        nodes = {type(follow(model, path)).__name__ for path in places(model)} - {"Model", "Options"}
        kinds["layers"].update(nodes)
        flags = ("evaluate", "input_gradient", "looped")
        kinds["flags"].update([n for n in flags if getattr(model, n)] + ["keep"] * bool(options.keep))
        kinds["flags"].update(["dynamic"] * (model.dynamic >= 0) + ["zero"] * has_zero(model))
    lines = [", ".join(f"{word} {count}" for word, count in c.most_common()) for c in kinds.values()]
    return "\n".join(f"{name}: {line}" for name, line in zip(kinds, lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100, help="how many models (100)")
    parser.add_argument("--seed", type=int, default=1, help="of the first; the others follow (1)")
    parser.add_argument("--bin", type=pathlib.Path, default=HERE.parents[2] / "build/bin", help="folder of the tools")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="models at a time (all processors)")
    parser.add_argument("--shrink", action="store_true", help="make failing models small")
    parser.add_argument("--show", action="store_true", help="print the models and do nothing else")
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.count)
    if options.show:
        for seed in seeds:
            print(to_text(generate(seed)))
        return 0

    start, count = time.time(), 0

    def report(done, seed, problem):
        nonlocal count
        count += bool(problem)
        if problem:
            print(f"\nseed {seed}: {problem}", flush=True)
        bar = "#" * (40 * done // options.count)
        text = f"\r[{bar:40}] {done}/{options.count}, {count} failed, {time.time() - start:.0f} s"
        print(text, end="", file=sys.stderr, flush=True)

    problems = run(seeds, options.bin, options.jobs, report)
    print(file=sys.stderr)
    print(f"{options.count - len(problems)} of {options.count} agree, {time.time() - start:.0f} s")
    print(coverage(generate(seed) for seed in seeds))
    if options.shrink:
        for seed, problem in problems.items():
            print(explain(seed, problem, options.bin), flush=True)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
