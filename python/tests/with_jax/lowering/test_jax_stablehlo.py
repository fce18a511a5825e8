# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs in StableHLO, text, bytecode and portable artifacts, as input of fp8.compile; values beside jax.jit's."""

import inspect
import subprocess
import sys

import pytest

jax = pytest.importorskip("jax")
import fp8  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402
from jax._src.interpreters import mlir  # noqa: E402
from jaxlib.mlir import ir  # noqa: E402

RNG = np.random.default_rng(0)
X, W = RNG.normal(size=(24, 16)).astype(np.float32), RNG.normal(size=(16, 8)).astype(np.float32)


def exported(fun, *args, **options):
    return jax.export.export(jax.jit(fun, keep_unused=True, **options))(*args)


def as_bytecode(text):
    """A module as MLIR's own bytecode, which is no portable artifact."""
    import io

    with mlir.make_ir_context():
        file = io.BytesIO()
        ir.Module.parse(text).operation.write_bytecode(file)
        return file.getvalue()


def forms(program, folder):
    """The same program in every form in which it may be given."""
    text = str(program.mlir_module())
    bytecode = as_bytecode(text)
    (folder / "step.stablehlo").write_text(text)
    (folder / "step.mlirbc").write_bytes(program.mlir_module_serialized)
    return [text, text.encode(), bytecode, program.mlir_module_serialized, folder / "step.stablehlo", str(folder / "step.mlirbc")]


def train_step(params, x, y):
    with jax.named_scope("h0"):
        loss = lambda p: ((jnp.tanh(x @ p["w"]) - y) ** 2).mean()
        value, gradients = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value


STEP = ({"w": W}, X, np.ones((24, 8), np.float32))


def test_every_form_is_the_same_program(tmp_path):
    program = exported(train_step, *STEP, donate_argnums=0)
    wanted = jax.tree.leaves(jax.jit(train_step)(*STEP))
    for source in forms(program, tmp_path):
        library = fp8.compile(source, recipe="none")
        entry = library.entries["main"]
        # Names of arguments, and donation: params['w'] is updated in place by the first result.
        assert [(a["name"], a["carry"]) for a in entry.arguments] == [("params['w']", 0), ("x", None), ("y", None)]
        for got, right in zip(entry(*jax.tree.leaves(STEP)), wanted):
            np.testing.assert_allclose(got, right, rtol=1e-5, atol=1e-6)


def test_in_fp8_it_is_the_program_of_fp8_jax():
    library = fp8.compile(exported(train_step, *STEP, donate_argnums=0).mlir_module_serialized, amax_history_len=4)
    step = fp8.jax.jit(train_step, donate_argnums=0, amax_history_len=4)
    state, (params, x, y) = library.state(), STEP
    ours = jax.tree.map(jnp.asarray, params)
    for _ in range(3):
        ours, value = step(ours, x, y)
        w, got = library.entries["main"](params["w"], x, y, state=state)
        params = {"w": w.numpy()}
        np.testing.assert_array_equal(got, value)
    np.testing.assert_array_equal(params["w"], ours["w"])
    assert [(s.site, s.role, s.decision) for s in library.report.sites] == [(s.site, s.role, s.decision) for s in step.report().sites]


def test_buffer_donors_are_carried_to_the_first_free_result_of_their_type():
    text = """func.func public @main(%arg0: tensor<4xf32> {jax.buffer_donor = true} loc("a"), %arg1: tensor<4xf32> {tf.aliasing_output = 1 : i32} loc("b"),
    %arg2: tensor<4xf32> {jax.buffer_donor = true} loc("c"), %arg3: tensor<2xi32> {jax.buffer_donor = true} loc("d"))
    -> (tensor<2xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.convert %arg3 : (tensor<2xi32>) -> tensor<2xf32>
  %1 = stablehlo.add %arg0, %arg1 : tensor<4xf32>
  %2 = stablehlo.subtract %arg0, %arg2 : tensor<4xf32>
  return %0, %1, %2 : tensor<2xf32>, tensor<4xf32>, tensor<4xf32>
}"""
    library = fp8.compile(text, recipe="none")
    assert [a["carry"] for a in library.entries["main"].arguments] == [2, 1, None, None]


def scans(x, w):
    return lax.scan(lambda c, row: (jnp.sin(c @ w[:8] / 8 + row[:8]), c), x[0, :8], x)


def ranks(x, w):
    order = jnp.argsort(x[:, 0], descending=True)
    return jnp.sort(x, 0), order, jnp.lexsort((x[:, 1] > 0, jnp.round(x[:, 0]))), lax.top_k(w, 3), jnp.median(x), jnp.unique(jnp.round(w), size=5)


def scatters(x, w):
    rows = jnp.array([3, 0, 3, 40, -1])
    u = w[:5, :].repeat(2, 1)
    added, multiplied = x.at[rows].add(u), x.at[rows].multiply(u)
    return added, multiplied, x.at[rows].min(u), x.at[rows, 2:4].max(u[:, :2]), x.at[rows].set(u[0]), x.at[rows].add(u, mode="clip")


def embeds(x, w):
    tokens = jnp.array([1, 5, 1, 9])
    loss = lambda w: (jax.nn.log_softmax(w[tokens] @ w.T)[jnp.arange(4), tokens]).sum()
    return jax.value_and_grad(loss)(w)


def draws(x, w):
    key = jax.random.key(3)
    return jax.random.normal(key, (5,)), jax.random.permutation(key, 9), jax.random.categorical(key, x), jax.random.bits(key, (4,), jnp.uint8).astype(jnp.int32)


def branches(x, w):
    pick = lax.cond(x[0, 0] > 0, lambda: w * 2, lambda: w - 1)
    return lax.switch(jnp.int32(x[1, 1] > 0) + 1, [jnp.sin, jnp.cos, jnp.tan], pick), lax.while_loop(lambda c: c.sum() < 50, lambda c: c * 1.5, jnp.abs(x))


def layers(x, w):
    images = x.reshape(1, 24, 16, 1)
    pooled = lax.reduce_window(images, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    convolved = lax.conv(images.transpose(0, 3, 1, 2), w.reshape(8, 1, 4, 4), (1, 1), "SAME")
    return convolved, pooled, jax.checkpoint(jax.nn.gelu)(x), jnp.cumsum(x, 1), jax.scipy.special.erfinv(jnp.tanh(w))


def orders(x, w):
    y = x.astype(jnp.bfloat16).at[0, 0].set(jnp.nan).at[1, 0].set(-0.0).at[2, 0].set(0.0)
    return jnp.sort(y, 0).astype(jnp.float32), jnp.argsort(y[:, 0]), jnp.sort((x * 9).astype(jnp.int8), 1).astype(jnp.int32)


@pytest.mark.parametrize("fun", [scans, ranks, scatters, embeds, draws, branches, layers, orders], ids=lambda f: f.__name__)
def test_values_are_those_of_jax(fun):
    library = fp8.compile(exported(fun, X, W).mlir_module_serialized, recipe="none")
    got, wanted = library.entries["main"](X, W), jax.tree.leaves(jax.jit(fun)(X, W))
    assert len(got) == len(wanted)
    for ours, right in zip(got, wanted):
        ours, right = np.asarray(ours), np.asarray(right)
        assert ours.shape == right.shape
        if right.dtype.kind == "f":
            # Sums in another order, and elementary functions within a few units in the last place.
            np.testing.assert_allclose(ours, right, rtol=1e-5, atol=1e-5 * max(1, np.abs(right[np.isfinite(right)]).max()))
        else:
            np.testing.assert_array_equal(ours, right)


SORT_BY_DISTANCE = """func.func public @main(%arg0: tensor<6xf32>, %arg1: tensor<6xi32>, %arg2: tensor<f32>) -> (tensor<6xf32>, tensor<6xi32>) {
  %0:2 = "stablehlo.sort"(%arg0, %arg1) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>):
    %1 = stablehlo.subtract %a, %arg2 : tensor<f32>
    %2 = stablehlo.subtract %b, %arg2 : tensor<f32>
    %3 = stablehlo.abs %1 : tensor<f32>
    %4 = stablehlo.abs %2 : tensor<f32>
    %5 = stablehlo.compare LT, %3, %4 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %5 : tensor<i1>
  }) {dimension = 0 : i64, is_stable = true} : (tensor<6xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xi32>)
  return %0#0, %0#1 : tensor<6xf32>, tensor<6xi32>
}"""


def test_a_sort_by_a_comparison_that_reads_values_from_outside():
    x = np.array([5, 1, 2.5, 4, 3.5, 2], np.float32)
    values, positions = fp8.compile(SORT_BY_DISTANCE, recipe="none").entries["main"](x, np.arange(6, dtype=np.int32), np.float32(3))
    # Distances 2, 2, 0.5, 1, 0.5, 1: equal ones stay in their order.
    assert positions.numpy().tolist() == [2, 4, 3, 5, 0, 1]
    assert values.numpy().tolist() == [2.5, 3.5, 4, 2, 5, 1]


def test_locations_of_the_front_end_are_those_of_errors():
    def forward(x, w):
        return x @ w

    line = inspect.getsourcelines(forward)[1] + 1
    program = exported(forward, X, W)
    for source in (str(program.mlir_module()), program.mlir_module_serialized):
        with pytest.raises(fp8.CompileError, match="require") as error:
            fp8.compile(source, require="w", keep="w")
        assert (error.value.location.file, error.value.location.line) == (__file__, line)
    program = exported(lambda x: jnp.linalg.cholesky(x @ x.T), X)
    with pytest.raises(fp8.UnsupportedError, match="cholesky|potrf") as error:
        fp8.compile(program.mlir_module_serialized)
    assert error.value.location.file == __file__ and "fp8.jax.function" not in str(error.value)


PLAIN = """func.func @main(%x: tensor<4x16xf32>, %w: tensor<16x8xf32>) -> tensor<4x8xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}"""


def test_without_locations_errors_are_at_the_line_of_the_text(tmp_path):
    path = tmp_path / "step.stablehlo"
    path.write_text(PLAIN)
    with pytest.raises(fp8.CompileError, match="require") as error:
        fp8.compile(path, sites="all", keep=".", require=".")
    assert (error.value.location.file, error.value.location.line) == (str(path), 2)
    with pytest.raises(fp8.CompileError, match="unknown") as error:
        fp8.compile(PLAIN.replace("dot_general", "dot_special"))
    assert (error.value.location.file, error.value.location.line) == ("<stdin>", 2)
    path.write_text(PLAIN.replace("dot_general %x, %w, contracting_dims = [1] x [0]", "custom_call @mine(%x, %w)"))
    with pytest.raises(fp8.UnsupportedError, match="the custom call .*mine") as error:
        fp8.compile(path)
    assert (error.value.location.file, error.value.location.line) == (str(path), 2)


def test_names_without_lines_are_at_the_files_begin_not_at_a_line_of_another_text(tmp_path):
    path = tmp_path / "step.stablehlo"
    path.write_text(PLAIN.replace("tensor<4x8xf32>\n  return", 'tensor<4x8xf32> loc("jit(f)/fc/dot")\n  return'))
    with pytest.raises(fp8.CompileError, match="require") as error:
        fp8.compile(path, sites="all", keep=".", require=".")
    assert error.value.location == fp8.Location(str(path), 1, 1)


def test_what_is_no_program():
    with pytest.raises(fp8.CompileError, match="not a program in StableHLO that jaxlib .* reads"):
        fp8.compile(b"ML\xefR\rStableHLO_v1.15.0\x00\x01%\x05\x01\x05\x15\x01")
    with pytest.raises(fp8.CompileError):
        fp8.compile(exported(train_step, *STEP).mlir_module_serialized[:200])


def test_compiled_once_and_shown(fresh_cache, tmp_path):
    program = exported(train_step, *STEP)
    first, second = (fp8.compile(source, recipe="current") for source in (program.mlir_module_serialized, program.mlir_module_serialized))
    assert first.path == second.path
    assert "fp8.scaled_matmul" in first.ir("recipe")


def test_without_jax_it_says_what_to_install(tmp_path):
    (tmp_path / "step.stablehlo").write_text(PLAIN)
    code = "import sys; sys.modules['jax'] = None; import fp8\n"
    code += f"try: fp8.compile({str(tmp_path / 'step.stablehlo')!r})\nexcept fp8.MissingToolError as e: print(e)"
    done = subprocess.run([sys.executable, "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{code}"], capture_output=True, text=True)
    assert done.stdout.startswith(str(tmp_path / "step.stablehlo")) and "pip install 'jax>=" in done.stdout, done.stderr


GENERIC = """func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.abs"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}"""


def test_the_compiler_alone_says_what_to_do(tmp_path):
    compiler = fp8._tools.find("fp8-compile")
    sources = {"custom": PLAIN.encode(), "generic": GENERIC.encode()}
    sources |= {"artifact": exported(train_step, *STEP).mlir_module_serialized, "bytecode": as_bytecode(PLAIN)}
    for name, source in sources.items():
        done = subprocess.run([compiler, "-", "-o", tmp_path / "x.so"], input=source, capture_output=True)
        assert done.returncode == 1, name
        assert b"compile it with fp8.compile of the Python package, which lowers it by jaxlib" in done.stderr, (name, done.stderr)


def test_quantized_types_are_named_at_their_line(tmp_path):
    path = tmp_path / "step.stablehlo"
    path.write_text("""func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %q = stablehlo.uniform_quantize %x : (tensor<2xf32>) -> tensor<2x!quant.uniform<i8:f32, 1.0:17>>
  %0 = stablehlo.uniform_dequantize %q : (tensor<2x!quant.uniform<i8:f32, 1.0:17>>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}""")
    with pytest.raises(fp8.CompileError, match=r"quantized types \(!quant.uniform\) are not supported: export the program without") as error:
        fp8.compile(path)
    assert (error.value.location.file, error.value.location.line) == (str(path), 2)


@pytest.mark.parametrize("kind", ["argument", "result"])
def test_complex_arguments_and_results_are_refused_in_plain_words(kind):
    other = "stablehlo.real %x : (tensor<2xcomplex<f32>>) -> tensor<2xf32>" if kind == "argument" else "stablehlo.complex %x, %x : tensor<2xcomplex<f32>>"
    types = ["tensor<2xcomplex<f32>>", "tensor<2xf32>"][:: 1 if kind == "argument" else -1]
    text = f"\nfunc.func @main(%x: {types[0]}) -> {types[1]} {{\n  %0 = {other}\n  return %0 : {types[1]}\n}}"
    with pytest.raises(fp8.UnsupportedError, match=f"{kind} 0 of 'main' is complex, .* real and imaginary parts as two tensors") as error:
        fp8.compile(text)
    assert error.value.location.line == 2


def test_an_operation_without_code_is_named_before_those_of_its_body():
    text = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.all_reduce"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) {replica_groups = dense<0> : tensor<1x1xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}"""
    with pytest.raises(fp8.UnsupportedError, match=r"stablehlo.all_reduce has no code(:| \(as have stablehlo.add\))") as error:
        fp8.compile(text)
    assert error.value.location.line == 2
