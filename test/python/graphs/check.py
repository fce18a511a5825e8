# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles and runs one random model and compares everything with the reference.

Report: every contraction, with site, role, decision, formats and size. Manifest: the columns
of the state. Then several steps: results and state bit for bit, sums within their rounding.
"""
import json
import math
import subprocess

import numpy as np

import reference
from harness import E4M3, E5M2, load, save

from .emit import emit_module
from .evaluate import DTYPES, Casts, evaluate
from .expect import Plan, expected_report
from .training import build_program


class Mismatch(AssertionError):
    """A difference, in words."""


def check_model(model, bin_dir, folder):
    """Raises Mismatch where compiler and reference disagree."""
    functions = build_program(model)
    plan = Plan(functions, model.options, model.names != "none")
    manifest, report = compile_program(model, functions, bin_dir, folder)
    compare_report(report["sites"], expected_report(plan))
    check_residuals(report["memory"], len(plan.columns))
    order = match_columns(manifest["state"]["columns"], plan.columns)
    run_and_compare(model, functions, plan, order, bin_dir, folder)


def call(command):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True)
    if done.returncode:
        raise Mismatch(f"{command[0].name} exits with {done.returncode}: {done.stderr.strip()}")
    return done.stderr


def compile_program(model, functions, bin_dir, folder):
    source, manifest, report = folder / "program.mlir", folder / "manifest.json", folder / "report.json"
    source.write_text(emit_module(functions, model.names))
    carry = []
    if model.update == "carry option":
        pairs = [f"{a}:{r}" for a, r in functions[0].carried.items()]
        carry = [f"--carry={','.join(pairs)}"] if pairs else []
    if functions[0].parts:
        forward, backward = functions[0].parts
        given = len(forward.body.results) - sum(name.startswith("r") for name in backward.names)
        carry = [f"--pair=forward:backward:{given}"]
    outputs = ["-o", folder / "program.so", f"--manifest={manifest}", f"--report=json:{report}"]
    call([bin_dir / "fp8-compile", source, *outputs, *carry, *model.options.command_line()])
    return json.loads(manifest.read_text()), json.loads(report.read_text())


# --- what the compiler says ---


def compare_report(sites, expected):
    actual = [
        {
            **{key: entry[key] for key in ("entry", "site", "role", "decision", "formats")},
            "size": product(entry[key] for key in ("batch", "m", "n", "k")),
        }
        for entry in sites
    ]
    if actual != expected:
        lines = [f"  {mark} {list(e.values())}" for e, mark in difference(actual, expected)]
        raise Mismatch("\n".join(["the report (- actual, + expected):", *lines]))
    for entry in sites:
        if (entry["decision"] == "high") != bool(entry["reason"]):
            raise Mismatch(f"decision {entry['decision']} with reason '{entry['reason']}'")


def check_residuals(memory, columns):
    """The residuals of a pair do not grow, but for scales of tensors that are cast again (and sizes, which
    are unknown here)."""
    before, after = memory.get("residual_bytes_before"), memory.get("residual_bytes_after")
    if before is not None and after is not None and after > before + 4 * columns:
        raise Mismatch(f"residuals grow from {before} to {after} bytes, with {columns} columns")


def product(sizes):
    """None where one of them is known only at run time."""
    sizes = list(sizes)
    return None if None in sizes else math.prod(sizes)


def difference(actual, expected):
    for i in range(max(len(actual), len(expected))):
        a, e = actual[i : i + 1], expected[i : i + 1]
        if a == e:
            yield a[0], " "
        else:
            yield from ((x, "-") for x in a)
            yield from ((x, "+") for x in e)


def match_columns(actual, expected):
    """For every column of the manifest, which expected one it is."""
    wanted = [(sorted(sites), kind, fmt) for _, sites, kind, fmt in expected]
    found = [(sorted(c["sites"]), c["tensor"], c["format"]) for c in actual]
    if sorted(wanted) != sorted(found):
        lines = [f"  - {c}" for c in found] + [f"  + {c}" for c in wanted]
        raise Mismatch("\n".join(["the columns (- actual, + expected):", *lines]))
    # Columns that are described alike come in the order in which the program reads them.
    places = {}
    for i, column in enumerate(wanted):
        places.setdefault(repr(column), []).append(i)
    return [places[repr(column)].pop(0) for column in found]


# --- what the program computes ---


def make_data(model, function):
    """Per argument: its first value, and a value per step where it is streamed."""
    rng = np.random.default_rng([model.seed, 2])
    inputs, streams = {}, {}
    for name, value in zip(function.names, function.body.arguments):
        dtype = DTYPES[value.dtype]
        if name in ("x", "t"):
            data = rng.standard_normal((model.steps, *value.shape)) * model.magnitude
            streams[name] = data.astype(np.float32).astype(dtype)
        elif name == "flag":
            streams[name] = np.where(rng.random(model.steps) < 0.5, -1, 1).astype(np.float32)
        else:
            rows = np.sqrt(max(value.shape[-2:][0], 1))
            inputs[name] = (rng.standard_normal(value.shape) / rows).astype(np.float32).astype(dtype)
    return inputs, streams


def run_and_compare(model, functions, plan, order, bin_dir, folder):
    main, path = functions[0], lambda name: folder / name
    inputs, streams = make_data(model, main)
    key = argument_keys(main)
    save(path("inputs"), {**{key[n]: v for n, v in inputs.items()}, **{f"{n}s": v for n, v in streams.items()}})
    state = [f"--save-state={path('state')}"] if order else []
    entry = [f"--entry={','.join(part.name for part in main.written())}"]
    call(
        [bin_dir / "fp8-run", path("program.so"), f"--inputs={path('inputs')}", f"--steps={model.steps}", *entry]
        + [f"--stream={key[name]}={name}s" for name in streams]
        + [f"--outputs={path('outputs')}", *state]
    )
    arguments, reference_state = train(model, main, plan, inputs, streams)
    compare_results(in_one_list(load(path("outputs"))), arguments.pop("results"), main)
    if order:
        compare_state(load(path("state")), reference_state, order, "after training")
    if len(functions) > 1:
        check_evaluation(functions[1], plan, order, arguments, streams, reference_state, bin_dir, folder)


def argument_keys(function):
    """The names of the arguments in fp8-run."""
    keys = {name: name for name in function.names}
    for part in function.parts:
        keys |= {name: f"{part.name}.{name}" for name in part.names if name in keys}
    return keys


def in_one_list(outputs):
    """Results of forward, then of backward, as if of one function."""
    place = lambda key: (key.startswith("backward"), int(key.split(".")[-1]))
    return {str(i): outputs[key] for i, key in enumerate(sorted(outputs, key=place))}


def new_state(plan):
    count = len(plan.columns)
    return np.ones(count, np.float32), np.zeros((plan.options.amax_history_len, count), np.float32)


def train(model, function, plan, inputs, streams):
    """The arguments after all steps, with the last results, and the state."""
    state, arguments = new_state(plan), dict(inputs)
    for step in range(model.steps):
        values = [streams[n][step] if n in streams else arguments[n] for n in function.names]
        results, state = one_step(function, plan, values, state)
        for argument, result in function.carried.items():
            arguments[function.names[argument]] = results[result]
    return {**arguments, "results": results}, state


def one_step(function, plan, values, state):
    casts = Casts(plan, state)
    results = evaluate(function, values, casts)
    if plan.updates(function) and casts.recorded:
        state = updated(plan, state, casts.recorded)
    return results, state


def updated(plan, state, recorded):
    formats = {"E4M3": E4M3, "E5M2": E5M2}
    entries = [(column, amax) for column, amaxes in recorded.items() for amax in amaxes]
    columns, amaxes = [c for c, _ in entries], [a for _, a in entries]
    formats = [formats[plan.columns[c][3]] for c in columns]
    options = plan.options
    parameters = (options.margin, options.amax_compute_algo, options.ignore_non_finite)
    return reference.update(*state, columns, amaxes, formats, *parameters)


def check_evaluation(function, plan, order, arguments, streams, state, bin_dir, folder):
    values = [streams[n][0] if n in streams else arguments[n] for n in function.names]
    values = [value[0] if value.ndim > len(a.shape) else value for value, a in zip(values, function.body.arguments)]
    save(folder / "inputs", dict(zip(function.names, values)))
    options = [f"--state={folder / 'state'}", f"--save-state={folder / 'after'}"] if order else []
    call(
        [bin_dir / "fp8-run", folder / "program.so", "--entry=evaluate", f"--inputs={folder / 'inputs'}"]
        + [f"--outputs={folder / 'outputs'}", *options]
    )
    results, state = one_step(function, plan, values, state)
    compare_results(load(folder / "outputs"), results, function)
    if order:
        compare_state(load(folder / "after"), state, order, "after evaluation")


def compare_state(actual, expected, order, when):
    for name, values in zip(("scale", "amax_history"), expected):
        compare_bits(actual[name], values[..., order], f"{name} {when}")


def compare_results(actual, expected, function):
    if len(actual) != len(expected):
        raise Mismatch(f"{len(actual)} results of {function.name}, expected {len(expected)}")
    for i, value in enumerate(expected):
        if i not in function.approximate:
            compare_bits(actual[str(i)], value, f"result {i} of {function.name}")
            continue
        total, bound = value
        off = np.abs(actual[str(i)].astype(np.float64) - total)
        overflows = np.abs(total) + bound >= np.finfo(np.float32).max
        if not np.all((off <= bound) | overflows | np.isnan(total)):
            raise Mismatch(f"sum {i} of {function.name} is off by {off.max()}, allowed are {bound.min()}")


def compare_bits(actual, expected, what):
    expected = np.ascontiguousarray(expected)
    if (actual.dtype, actual.shape) != (expected.dtype, expected.shape):
        raise Mismatch(f"{what} is {actual.dtype}{actual.shape}, expected {expected.dtype}{expected.shape}")
    unsigned = np.dtype(f"u{actual.dtype.itemsize}")
    differ = actual.view(unsigned) != expected.view(unsigned)
    differ &= ~(np.isnan(actual) & np.isnan(expected))
    where = np.argwhere(differ)
    if len(where):
        some = [(tuple(map(int, i)), actual[tuple(i)], expected[tuple(i)]) for i in where[:3]]
        raise Mismatch(f"{what}: {len(where)} of {actual.size} differ (place, actual, expected): {some}")
