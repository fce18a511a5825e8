# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A step as one function and as a pair of functions, and its steps on a stream of inputs."""

import numpy as np

from harness import BF16, F32, load, random_generator

M, K, H, N = 12, 16, 24, 8

FORWARD = f"""
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0.0 : bf16
  %b1 = arith.truncf %w1 : tensor<{K}x{H}xf32> to tensor<{K}x{H}xbf16>
  %eh = tensor.empty() : tensor<{M}x{H}xf32>
  %fh = linalg.fill ins(%zero : f32) outs(%eh : tensor<{M}x{H}xf32>) -> tensor<{M}x{H}xf32>
  %h32 = linalg.matmul ins(%x, %b1 : tensor<{M}x{K}xbf16>, tensor<{K}x{H}xbf16>) outs(%fh : tensor<{M}x{H}xf32>)
      -> tensor<{M}x{H}xf32>
  %h = arith.truncf %h32 : tensor<{M}x{H}xf32> to tensor<{M}x{H}xbf16>
  %none = tensor.splat %low : tensor<{M}x{H}xbf16>
  %mask = arith.cmpf ogt, %h, %none : tensor<{M}x{H}xbf16>
  %a = arith.maximumf %h, %none : tensor<{M}x{H}xbf16>
  %b2 = arith.truncf %w2 : tensor<{N}x{H}xf32> to tensor<{N}x{H}xbf16>
  %et = tensor.empty() : tensor<{H}x{N}xbf16>
  %t2 = linalg.transpose ins(%b2 : tensor<{N}x{H}xbf16>) outs(%et : tensor<{H}x{N}xbf16>) permutation = [1, 0]
  %ey = tensor.empty() : tensor<{M}x{N}xf32>
  %fy = linalg.fill ins(%zero : f32) outs(%ey : tensor<{M}x{N}xf32>) -> tensor<{M}x{N}xf32>
  %y = linalg.matmul ins(%a, %t2 : tensor<{M}x{H}xbf16>, tensor<{H}x{N}xbf16>) outs(%fy : tensor<{M}x{N}xf32>)
      -> tensor<{M}x{N}xf32>
"""

BACKWARD = f"""
  %czero = arith.constant 0.0 : f32
  %clow = arith.constant 0.0 : bf16
  %difference = arith.subf %r_y, %target : tensor<{M}x{N}xf32>
  %dy = arith.truncf %difference : tensor<{M}x{N}xf32> to tensor<{M}x{N}xbf16>
  %c1 = arith.truncf %r_w1 : tensor<{K}x{H}xf32> to tensor<{K}x{H}xbf16>
  %ew2 = tensor.empty() : tensor<{N}x{H}xf32>
  %fw2 = linalg.fill ins(%czero : f32) outs(%ew2 : tensor<{N}x{H}xf32>) -> tensor<{N}x{H}xf32>
  %dw2 = linalg.matmul indexing_maps = [affine_map<(n, h, m) -> (m, n)>, affine_map<(n, h, m) -> (m, h)>,
      affine_map<(n, h, m) -> (n, h)>]
      ins(%dy, %ra : tensor<{M}x{N}xbf16>, tensor<{M}x{H}xbf16>) outs(%fw2 : tensor<{N}x{H}xf32>) -> tensor<{N}x{H}xf32>
  %ea = tensor.empty() : tensor<{M}x{H}xf32>
  %fa = linalg.fill ins(%czero : f32) outs(%ea : tensor<{M}x{H}xf32>) -> tensor<{M}x{H}xf32>
  %da32 = linalg.matmul indexing_maps = [affine_map<(m, h, n) -> (m, n)>, affine_map<(m, h, n) -> (h, n)>,
      affine_map<(m, h, n) -> (m, h)>]
      ins(%dy, %r_t2 : tensor<{M}x{N}xbf16>, tensor<{H}x{N}xbf16>) outs(%fa : tensor<{M}x{H}xf32>) -> tensor<{M}x{H}xf32>
  %da = arith.truncf %da32 : tensor<{M}x{H}xf32> to tensor<{M}x{H}xbf16>
  %cnone = tensor.splat %clow : tensor<{M}x{H}xbf16>
  %dh = arith.select %r_mask, %da, %cnone : tensor<{M}x{H}xi1>, tensor<{M}x{H}xbf16>
  %ew1 = tensor.empty() : tensor<{K}x{H}xf32>
  %fw1 = linalg.fill ins(%czero : f32) outs(%ew1 : tensor<{K}x{H}xf32>) -> tensor<{K}x{H}xf32>
  %dw1 = linalg.matmul indexing_maps = [affine_map<(k, h, m) -> (m, k)>, affine_map<(k, h, m) -> (m, h)>,
      affine_map<(k, h, m) -> (k, h)>]
      ins(%r_x, %dh : tensor<{M}x{K}xbf16>, tensor<{M}x{H}xbf16>) outs(%fw1 : tensor<{K}x{H}xf32>) -> tensor<{K}x{H}xf32>
  %ex = tensor.empty() : tensor<{M}x{K}xf32>
  %fx = linalg.fill ins(%czero : f32) outs(%ex : tensor<{M}x{K}xf32>) -> tensor<{M}x{K}xf32>
  %dx = linalg.matmul indexing_maps = [affine_map<(m, k, h) -> (m, h)>, affine_map<(m, k, h) -> (k, h)>,
      affine_map<(m, k, h) -> (m, k)>]
      ins(%dh, %c1 : tensor<{M}x{H}xbf16>, tensor<{K}x{H}xbf16>) outs(%fx : tensor<{M}x{K}xf32>) -> tensor<{M}x{K}xf32>
"""

TYPES = {
    **dict(w1=f"{K}x{H}xf32", w2=f"{N}x{H}xf32", x=f"{M}x{K}xbf16", y=f"{M}x{N}xf32", target=f"{M}x{N}xf32"),
    **dict(t2=f"{H}x{N}xbf16", a=f"{M}x{H}xbf16", h=f"{M}x{H}xbf16", mask=f"{M}x{H}xi1"),
    **dict(dw1=f"{K}x{H}xf32", dw2=f"{N}x{H}xf32", dx=f"{M}x{K}xf32", da=f"{M}x{H}xbf16", twice=f"{M}x{H}xbf16"),
}

# The use that backward makes of its residuals: it takes the activation a that forward made for products
# alone; for something else too; or computes it again from h.
KINDS = {
    "saved": (["a"], "", "dx", "a"),
    "shared": (["a"], f"  %twice = arith.addf %r_a, %da : tensor<{M}x{H}xbf16>\n", "twice", "a"),
    "repeated": (["h"], "", "dx", None),
}


def type_of(name):
    return f"tensor<{TYPES[name]}>"


def shape_of(name):
    return [int(size) for size in TYPES[name].split("x")[:-1]]


def listed(names, prefix=""):
    return ", ".join(f'%{prefix}{name}: {type_of(name)} loc("{prefix}{name}")' for name in names)


def returned(names):
    values = ", ".join(f"%{name}" for name in names)
    return f"  return {values} : {', '.join(map(type_of, names))}\n"


def results(names):
    return f"({', '.join(map(type_of, names))})"


def backward_body(kind):
    saved, extra, last, activation = KINDS[kind]
    body = BACKWARD + extra
    if activation:
        return body.replace("%ra", "%r_" + activation)
    again = f"  %rzero = arith.constant 0.0 : bf16\n  %rnone = tensor.splat %rzero : tensor<{M}x{H}xbf16>\n"
    return again + f"  %ra = arith.maximumf %r_h, %rnone : tensor<{M}x{H}xbf16>\n" + body


def make_pair(kind, first_results=("y",)):
    saved, _, last, _ = KINDS[kind]
    residuals = ["w1", "t2", "x", *saved, "mask", "y"]
    outputs = [*first_results, *residuals]
    return (
        f"func.func @forward({listed(['w1', 'w2', 'x'])}) -> {results(outputs)} {{\n{FORWARD}{returned(outputs)}}}\n"
        f"func.func @backward({listed(residuals, 'r_')}, {listed(['target'])}) -> {results(['dw1', 'dw2', last])} {{\n"
        f"{backward_body(kind)}{returned(['dw1', 'dw2', last])}}}\n"
    )


def make_step(kind):
    last = KINDS[kind][2]
    body = (FORWARD + backward_body(kind)).replace("%r_", "%")
    outputs = ["y", "dw1", "dw2", last]
    arguments = listed(["w1", "w2", "x", "target"])
    return f"func.func @step({arguments}) -> {results(outputs)} {{\n{body}{returned(outputs)}}}\n"


RECIPES = {
    "none": ["--recipe=none"],
    "current": ["--recipe=current"],
    "delayed": ["--recipe=delayed", "--amax-history-len=3"],
    "gradients": ["--recipe=delayed", "--amax-history-len=3", "--fprop=bf16"],
    "forward": ["--recipe=delayed", "--amax-history-len=3", "--dgrad=bf16", "--wgrad=bf16"],
    "stochastic": ["--recipe=delayed", "--amax-history-len=3", "--stochastic-rounding=true"],
    "stochastic blocks": ["--recipe=block", "--stochastic-rounding=true"],
    "own amaxes": ["--recipe=delayed", "--amax-history-len=3", "--init=current"],
    "delayed e4m3": ["--recipe=delayed", "--amax-history-len=3", "--format=e4m3", "--amax-compute-algo=most_recent"],
}

STEPS = 3


def make_inputs(rng):
    """Weights, and a stream of inputs and targets whose magnitudes differ from step to step."""

    def tensor(name, *lead, spread=1.0):
        dtype = BF16 if TYPES[name].endswith("bf16") else F32
        return (rng.standard_normal([*lead, *shape_of(name)]) * spread).astype(dtype)

    growth = np.array([1.0, 7.0, 0.3]).reshape(STEPS, 1, 1)
    return tensor("w1"), tensor("w2"), tensor("x", STEPS, spread=growth), tensor("target", STEPS, spread=growth)


def run_steps(program, entry, names, steps, *more):
    """Results by key and state after `steps` steps; `names` are the keys of w1, w2, x and target."""
    w1, w2, x, target = make_inputs(random_generator(91))
    inputs = {names[0]: w1, names[1]: w2, "x_stream": x, "target_stream": target}
    outputs, state = program.folder / "outputs", program.folder / "state"
    streams = [f"--stream={names[2]}=x_stream", f"--stream={names[3]}=target_stream"]
    program.run(entry, inputs, *streams, f"--steps={steps}", f"--outputs={outputs}", f"--save-state={state}", *more)
    return load(outputs), load(state)


def assert_equal_bits(actual, expected):
    assert actual.keys() == expected.keys()
    for key in expected:
        assert actual[key].dtype == expected[key].dtype
        assert actual[key].tobytes() == expected[key].tobytes(), key


def residuals(program, entry, side):
    values = next(e for e in program.manifest["entries"] if e["name"] == entry)[side]
    return [(v["type"], v["shape"]) for v in values if v["kind"] == "residual"]


def sites(program):
    keys = ["site", "role", "m", "n", "k", "decision", "formats", "recipe"]
    return [[site[key] for key in keys] for site in program.report["sites"]]
