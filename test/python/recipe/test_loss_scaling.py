# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""--loss-scaling: the backward pass is scaled, steps that overflow are skipped, the scale adapts."""

import json
import pathlib
import sys

import numpy as np
import pytest

import reference
from harness import F16, F32, Program, assert_same_bits, load, random_generator, save
from net import initial_tensors

ROOT = pathlib.Path(__file__).resolve().parents[3]
N, K, M = 12, 10, 6

# Least squares with momentum: loss = mean d², its gradient 2d/(N·M) folded into one constant.
STEP = f"""
#in = affine_map<(n, m) -> (n, m)>
#none = affine_map<(n, m) -> ()>
#kn = affine_map<(k, m, n) -> (n, k)>
#nm = affine_map<(k, m, n) -> (n, m)>
#km = affine_map<(k, m, n) -> (k, m)>
func.func @main(%w: tensor<{K}x{M}xf32> {{tf.aliasing_output = 0 : i32}} loc("w"), %v: tensor<{K}x{M}xf32> {{tf.aliasing_output = 1 : i32}} loc("v"),
                %steps: tensor<f32> {{tf.aliasing_output = 2 : i32}} loc("steps"), %x: tensor<{N}x{K}xf32> loc("x"), %t: tensor<{N}x{M}xf32> loc("t"))
    -> (tensor<{K}x{M}xf32>, tensor<{K}x{M}xf32>, tensor<f32>, tensor<f32>) {{
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : tensor<{N}x{M}xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<{N}x{M}xf32>) -> tensor<{N}x{M}xf32>
  %y = linalg.matmul ins(%x, %w : tensor<{N}x{K}xf32>, tensor<{K}x{M}xf32>) outs(%f0 : tensor<{N}x{M}xf32>) -> tensor<{N}x{M}xf32> loc("jvp(fc)/dot")
  %d = arith.subf %y, %t : tensor<{N}x{M}xf32>
  %e1 = tensor.empty() : tensor<f32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<f32>) -> tensor<f32>
  %sum = linalg.generic {{indexing_maps = [#in, #none], iterator_types = ["reduction", "reduction"]}}
      ins(%d : tensor<{N}x{M}xf32>) outs(%f1 : tensor<f32>) {{
    ^bb0(%p: f32, %r: f32):
      %sq = arith.mulf %p, %p : f32
      %s = arith.addf %r, %sq : f32
      linalg.yield %s : f32
  }} -> tensor<f32>
  %count = arith.constant dense<{N * M}.0> : tensor<f32>
  %loss = arith.divf %sum, %count : tensor<f32>
  %factor = arith.constant dense<{2 / (N * M)!r}> : tensor<{N}x{M}xf32>
  %dy = arith.mulf %factor, %d : tensor<{N}x{M}xf32>
  %e2 = tensor.empty() : tensor<{K}x{M}xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<{K}x{M}xf32>) -> tensor<{K}x{M}xf32>
  %g = linalg.generic {{indexing_maps = [#kn, #nm, #km], iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%x, %dy : tensor<{N}x{K}xf32>, tensor<{N}x{M}xf32>) outs(%f2 : tensor<{K}x{M}xf32>) {{
    ^bb0(%p: f32, %q: f32, %r: f32):
      %prod = arith.mulf %p, %q : f32
      %s = arith.addf %r, %prod : f32
      linalg.yield %s : f32
  }} -> tensor<{K}x{M}xf32> loc("transpose(jvp(fc))/dot")
  %decay = arith.constant dense<0.9> : tensor<{K}x{M}xf32>
  %old = arith.mulf %v, %decay : tensor<{K}x{M}xf32>
  %nv = arith.addf %old, %g : tensor<{K}x{M}xf32>
  %rate = arith.constant dense<0.1> : tensor<{K}x{M}xf32>
  %u = arith.mulf %nv, %rate : tensor<{K}x{M}xf32>
  %nw = arith.subf %w, %u : tensor<{K}x{M}xf32>
  %one = arith.constant dense<1.0> : tensor<f32>
  %ns = arith.addf %steps, %one : tensor<f32>
  return %nw, %nv, %ns, %loss : tensor<{K}x{M}xf32>, tensor<{K}x{M}xf32>, tensor<f32>, tensor<f32>
}}
"""


class Reference:
    """The step in f16 with GradScaler around it."""

    def __init__(self, w, scale, tracker=0):
        self.w, self.v, self.steps = w, np.zeros_like(w), np.float32(0)
        self.scale, self.tracker = np.float32(scale), tracker

    def step(self, x, t):
        low = lambda value: value.astype(F16).astype(F32)
        with np.errstate(all="ignore"):
            d = low(reference.dot(low(x), low(self.w).T)) - t
            dy = low((d * np.float32(2 / (N * M))) * self.scale)
            g = low(reference.dot(low(x).T, dy.T))
            v = self.v * np.float32(0.9) + g * (np.float32(1) / self.scale)
        if not np.isfinite(g).all():
            self.scale, self.tracker = self.scale * np.float32(0.5), 0
            return
        self.w, self.v, self.steps, self.tracker = self.w - v * np.float32(0.1), v, self.steps + np.float32(1), self.tracker + 1
        if self.tracker == 2000:
            self.scale, self.tracker = self.scale * np.float32(2), 0

    def check(self, state):
        expected = {"carry.w": self.w, "carry.v": self.v, "carry.steps": self.steps, "loss_scale": self.scale, "loss_scale_tracker": np.int32(self.tracker)}
        assert set(state) == set(expected)
        for name, wanted in expected.items():
            assert_same_bits(state[name], wanted)


def data(count=12):
    rng = random_generator(71)
    w, x, t = (rng.standard_normal(shape).astype(F32) for shape in ([K, M], [count, N, K], [count, N, M]))
    x[6, 3, 2] = np.inf  # a bad batch in the middle
    return {"w": w / 4, "xs": x, "ts": t}


def run(program, inputs, steps, *options):
    state = program.folder / f"state{steps}"
    program.run("main", inputs, f"--steps={steps}", "--stream=x=xs", "--stream=t=ts", "--zero-missing", "--with-carry", f"--save-state={state}", *options)
    return state


@pytest.fixture(scope="module")
def program(bin_dir, tmp_path_factory):
    return Program(bin_dir, tmp_path_factory.mktemp("scaling"), STEP, "--recipe=none", "--mixed-precision=f16", "--loss-scaling=4194304")


def test_overflows_back_off_and_change_nothing_else(program):
    inputs = data()
    expected, scales = Reference(inputs["w"], 2**22), []
    for i in range(12):
        expected.step(inputs["xs"][i], inputs["ts"][i])
        expected.check(load(run(program, inputs, i + 1)))
        scales.append(float(expected.scale))
    assert scales[0] < 2**22 and scales[6] < scales[5]  # the first step overflows, and the bad batch
    assert 5 <= expected.steps <= 10


@pytest.mark.parametrize("recipe", ["current", "delayed", "row", "block", "mxfp8"])
def test_overflows_are_seen_before_a_cast_saturates(bin_dir, tmp_path, recipe):
    program = Program(bin_dir, tmp_path, STEP, f"--recipe={recipe}", "--mixed-precision=f16", "--loss-scaling=4194304")
    inputs = data()
    state = load(run(program, inputs, 1))
    assert (state["loss_scale"], state["carry.steps"]) == (2**21, 0)
    assert_same_bits(state["carry.w"], inputs["w"])


def test_state_in_the_manifest(program):
    assert program.manifest["state"]["tensors"] == [
        {"name": "loss_scale", "type": "f32", "shape": [], "initial": 4194304.0},
        {"name": "loss_scale_tracker", "type": "i32", "shape": [], "initial": 0},
    ]
    kinds = [(a["name"], a["kind"], a["written"]) for a in program.manifest["entries"][0]["arguments"]]
    assert kinds[-2:] == [("loss_scale", "state", True), ("loss_scale_tracker", "state", True)]


def test_saved_and_restored(program):
    inputs = data()
    straight = load(run(program, inputs, 12))
    half = run(program, inputs, 5)
    rest = {"w": inputs["w"], "xs": inputs["xs"][5:], "ts": inputs["ts"][5:]}
    resumed = load(run(program, rest, 7, f"--state={half}"))
    for name, wanted in straight.items():
        assert_same_bits(resumed[name], wanted)


def divided(text, ranks):
    """The step with rows of w and v on each rank: w is gathered, and each rank gets the mean of its rows of the gradient."""
    part, whole, grid = f"tensor<{K // ranks}x{M}xf32>", f"tensor<{K}x{M}xf32>", "on @grid grid_axes = [0]"
    head, body = text.replace("func.func", f"shard.grid @grid(shape = {ranks})\nfunc.func").split("%zero =", 1)
    before, after = body.split("%decay =")
    before = before.replace("%x, %w :", "%x, %whole :").replace("%g =", "%all =")
    gather = f"%whole = shard.all_gather %w {grid} gather_axis = 0 : {part} -> {whole}\n"
    scatter = f"%g = shard.reduce_scatter %all {grid} reduction = average scatter_axis = 0 : {whole} -> {part}\n"
    return f"{head.replace(whole, part)}{gather}%zero ={before}{scatter}%decay ={after.replace(whole, part)}"


@pytest.mark.parametrize("recipe, axis", [("none", "dp:x,t"), ("row", "dp:x,t"), ("none", None)])
def test_ranks_skip_the_same_steps(bin_dir, tmp_path, recipe, axis):
    """One rank's gradients overflow: those of its rows of the batch, which a cast may saturate before they are averaged,
    or those of its rows of the weight."""
    text, option = (STEP, f"--data-parallel={axis}") if axis else (divided(STEP, 2), "--shard=0:w,v,x,t=0")
    program = Program(bin_dir, tmp_path, text, f"--recipe={recipe}", "--mixed-precision=f16", "--loss-scaling=4096", option)
    rng = random_generator(74)
    w, xs, ts = (rng.standard_normal(shape).astype(F32) for shape in ([K, M], [3, 2 * N, K], [3, 2 * N, M]))
    if axis:
        ts[0, N:] *= 1000  # the rows of rank 1, in the first step
    else:
        w[K // 2 :], xs[0, :, K // 2 :] = 0, 1000  # the gradient of the rows of w on rank 1, and nothing else
    options = ["--ranks=2", "--steps=3", "--stream=x=xs", "--stream=t=ts", "--zero-missing", "--with-carry"]
    program.run("main", {"w": w, "xs": xs, "ts": ts}, *options, f"--save-state={tmp_path / 'state{rank}'}")
    for state in (load(tmp_path / f"state{rank}") for rank in range(2)):
        assert (state["carry.steps"], state["loss_scale"], state["loss_scale_tracker"]) == (2, 2048, 2)


def test_growth_after_the_interval(program):
    inputs = {name: value[:5] if name != "w" else value for name, value in data().items()}
    state = program.folder / "late"
    # The state file of one step, with a tracker that is two steps before the interval.
    state.write_bytes(run(program, inputs, 1).read_bytes())
    patch(
        state,
        {
            "loss_scale": np.float32(256),
            "loss_scale_tracker": np.int32(1998),
            "carry.w": inputs["w"],
            "carry.v": np.zeros_like(inputs["w"]),
            "carry.steps": np.float32(0),
        },
    )
    expected = Reference(inputs["w"], 256, 1998)
    for i in range(3):
        expected.step(inputs["xs"][i], inputs["ts"][i])
    assert (expected.scale, expected.tracker) == (512, 1)
    expected.check(load(run(program, inputs, 3, f"--state={state}")))


def patch(path, tensors):
    """Replaces values in a safetensors file, and drops its checksum, which they make wrong."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8 : 8 + length]), bytearray(content[8 + length :])
    del header["__metadata__"]["fp8_checksum"]
    for name, value in tensors.items():
        begin, end = header[name]["data_offsets"]
        blob = np.ascontiguousarray(value).tobytes()
        assert len(blob) == end - begin
        data[begin:end] = blob
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def test_on_a_gpu(bin_dir, tmp_path, monkeypatch):
    """Overflow, back-off and skipped steps on the emulator, with the CPU's bits (sums in the order of K)."""
    monkeypatch.setenv("FP8EMU_SUMS", "korder")
    inputs = data()
    program = Program(bin_dir, tmp_path, STEP, "--recipe=none", "--mixed-precision=f16", "--loss-scaling=4194304", "--target=sm_89", "--order=program")
    expected = Reference(inputs["w"], 2**22)
    for x, t in zip(inputs["xs"], inputs["ts"]):
        expected.step(x, t)
    expected.check(load(run(program, inputs, 12, "--device=emulator")))


def same_without(bin_dir, folder, text, inputs, options, run_options):
    """Scaling by a power of two changes no bit of f32 or bf16, whose exponents have room for it."""
    states = []
    for name, more in (("without", []), ("with", ["--loss-scaling=65536"])):
        (folder / name).mkdir()
        program = Program(bin_dir, folder / name, text, *options, *more)
        program.run("main", inputs, "--with-carry", f"--save-state={folder / name / 'state'}", *run_options)
        states.append(load(folder / name / "state"))
    without, scaled = states
    assert scaled.pop("loss_scale") == 65536 and scaled.pop("loss_scale_tracker") > 0
    assert set(without) == set(scaled)
    for name, wanted in without.items():
        assert_same_bits(scaled[name], wanted)


@pytest.mark.parametrize("recipe", ["none", "current"])
def test_the_scale_leaves_no_trace(bin_dir, tmp_path, recipe):
    """A net whose gradient is the difference that the loss is computed from, with nothing in between."""
    text = (ROOT / "test/python/inputs/net.mlir").read_text()
    same_without(bin_dir, tmp_path, text, initial_tensors(), [f"--recipe={recipe}"], ["--steps=3"])


@pytest.mark.slow
def test_the_scale_leaves_no_trace_in_a_gpt(bin_dir, tmp_path):
    """The example: cross-entropy, norms, attention, biases, AdamW."""
    sys.path.insert(0, str(ROOT / "python/examples/gpt"))
    import parameters

    inputs = {f"params['{name}']": np.array(value[1], F32).reshape(value[0]) for name, value in parameters.initial().items()}
    inputs["tokens"] = random_generator(72).integers(0, 256, (parameters.BATCH, parameters.SEQUENCE + 1)).astype(np.int32)
    text = (ROOT / "python/examples/gpt/gpt.mlir").read_text()
    same_without(bin_dir, tmp_path, text, inputs, ["--recipe=none"], ["--steps=2", "--zero-missing"])


@pytest.mark.parametrize(
    "edit,options,message",
    [
        (
            (
                "%ns, %loss :",
                "%ns, %y :",
                "tensor<f32>, tensor<f32>) {",
                f"tensor<f32>, tensor<{N}x{M}xf32>) {{",
                "tensor<f32>, tensor<f32>\n}",
                f"tensor<f32>, tensor<{N}x{M}xf32>\n}}",
            ),
            [],
            "0 results that are a scalar of floating point; return the loss",
        ),
        (("tf.aliasing_output = 2 : i32", ""), [], "2 results that are a scalar of floating point; name it with --loss=R"),
        ((), ["--loss=1"], "--loss=1: 'main' has no scalar of floating point as result 1"),
    ],
)
def test_errors(bin_dir, run, tmp_path, edit, options, message):
    text = STEP
    for old, new in zip(edit[::2], edit[1::2]):
        assert old in text
        text = text.replace(old, new)
    done = run("fp8-compile", "-", "-o", tmp_path / "x.so", "--loss-scaling", *options, stdin=text)
    assert done.returncode == 1 and message in done.stderr, done.stderr
    assert done.stderr.startswith("<stdin>:")


def test_the_named_loss(bin_dir, tmp_path):
    text = STEP.replace("{tf.aliasing_output = 2 : i32} ", "")
    program = Program(bin_dir, tmp_path, text, "--recipe=none", "--loss-scaling", "--loss=3")
    assert program.manifest["options"]["loss"] == 3 and program.manifest["options"]["loss_scaling"] == 65536


def test_two_functions(run, tmp_path):
    text = """
func.func @forward(%w: tensor<4x4xf32>, %x: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %e = tensor.empty() : tensor<2x4xf32>
  %y = linalg.matmul ins(%x, %w : tensor<2x4xf32>, tensor<4x4xf32>) outs(%e : tensor<2x4xf32>) -> tensor<2x4xf32>
  return %y, %x : tensor<2x4xf32>, tensor<2x4xf32>
}
func.func @backward(%x: tensor<2x4xf32>, %dy: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %d = arith.mulf %x, %dy : tensor<2x4xf32>
  return %d : tensor<2x4xf32>
}"""
    done = run("fp8-compile", "-", "-o", tmp_path / "x.so", "--pair=forward:backward", "--loss-scaling", stdin=text)
    assert done.returncode == 1
    assert "is the caller's: multiply the gradient of the loss that backward receives" in done.stderr


@pytest.mark.parametrize("value", ["0", "-1", "inf", "x"])
def test_wrong_scales(run, tmp_path, value):
    done = run("fp8-compile", "-", "-o", tmp_path / "x.so", f"--loss-scaling={value}", stdin=STEP)
    assert done.returncode == 2 and f"--loss-scaling={value} " in done.stderr


# The two operations as a program may write them itself.
OPERATIONS = """
func.func @main(%g: tensor<5x7xf32>, %h: tensor<3xbf16>, %s: tensor<f32>, %t: tensor<i32>)
    -> (tensor<5x7xf32>, tensor<3xbf16>, tensor<f32>, tensor<f32>, tensor<i32>) {
  %e0 = tensor.empty() : tensor<5x7xf32>
  %e1 = tensor.empty() : tensor<3xbf16>
  %e2 = tensor.empty() : tensor<f32>
  %u:3 = fp8.unscale ins(%g, %h : tensor<5x7xf32>, tensor<3xbf16>) scale(%s : tensor<f32>)
      outs(%e0, %e1, %e2 : tensor<5x7xf32>, tensor<3xbf16>, tensor<f32>) -> tensor<5x7xf32>, tensor<3xbf16>, tensor<f32>
  %s1, %t1 = fp8.update_loss_scale ins(%u#2 : tensor<f32>) outs(%s, %t : tensor<f32>, tensor<i32>)
      {growth = 4.0 : f32, backoff = 0.25 : f32, interval = 3 : i64} -> tensor<f32>, tensor<i32>
  return %u#0, %u#1, %u#2, %s1, %t1 : tensor<5x7xf32>, tensor<3xbf16>, tensor<f32>, tensor<f32>, tensor<i32>
}
"""


@pytest.mark.parametrize("target", ["cpu", "sm_89"])
def test_the_operations(bin_dir, tmp_path, target):
    program = Program(bin_dir, tmp_path, OPERATIONS, "--recipe=none", f"--target={target}")
    rng = random_generator(73)
    for bad, tracker in ((None, 0), (None, 2), (np.inf, 2), (-np.inf, 1), (np.nan, 0)):
        for place in ((0, (4, 6)), (1, (0,))) if bad else ((0, None),):
            gradients = [rng.standard_normal((5, 7)).astype(F32), rng.standard_normal(3).astype(reference.ml_dtypes.bfloat16)]
            if bad:
                gradients[place[0]][place[1]] = bad
            scale = np.float32(3)
            save(tmp_path / "inputs", dict(zip("0123", [*gradients, np.array(scale), np.array(tracker, np.int32)])))
            options = [] if target == "cpu" else ["--device=emulator"]
            program.run("main", [*gradients, scale, np.int32(tracker)], f"--outputs={tmp_path / 'out'}", *options)
            results = load(tmp_path / "out")
            for index, gradient in enumerate(gradients):
                assert_same_bits(results[str(index)], (gradient.astype(F32) * (np.float32(1) / scale)).astype(gradient.dtype))
            expected = (1, 0.75, 0) if bad else (0, 12, 0) if tracker == 2 else (0, 3, tracker + 1)
            assert (results["2"], results["3"], results["4"]) == expected
