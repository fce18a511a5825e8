# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8.jax on the emulator, and the custom call on GPUs, which XLA's side is played for."""

import os
import pathlib
import subprocess
import sys

import fp8
import fp8.jax
import numpy as np
import pytest
import xla_calls
from fp8 import _device

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402
from fp8.jax import _call, _target  # noqa: E402


def train_step(weights, x):
    def loss(weights):
        return jnp.mean((jnp.tanh(x @ weights[0]) @ weights[1]) ** 2)

    value, gradients = jax.value_and_grad(loss)(weights)
    return value, [w - 0.1 * g for w, g in zip(weights, gradients)]


def make_weights():
    return [jax.random.normal(jax.random.key(1), (64, 128)) / 8, jax.random.normal(jax.random.key(2), (128, 32)) / 8]


X = np.random.default_rng(0).normal(size=(32, 64)).astype(np.float32)


def losses(step, count=3):
    weights, values = make_weights(), []
    for _ in range(count):
        value, weights = step(weights, X)
        values.append(float(value))
    return values


#: FP8 has 3 or 2 bits after the leading one, and sums on tensor cores 13: roundings that fall otherwise move the loss by this part.
TOLERANCE = 2.0**-10


@pytest.mark.parametrize("recipe", ["none", "current", "delayed", "block"])
@pytest.mark.parametrize("chip", ["sm_89", "sm_90a"])
def test_a_step_on_the_emulator(recipe, chip):
    wanted = losses(fp8.jax.jit(train_step, recipe=recipe, donate_argnums=0))
    step = fp8.jax.jit(train_step, recipe=recipe, donate_argnums=0, device="emulator", target=chip)
    np.testing.assert_allclose(losses(step), wanted, rtol=TOLERANCE)
    assert len(step.report().sites) == 5
    assert recipe == "none" or "mma" in str(step.report())


def test_the_state_goes_on_on_the_cpu():
    on = fp8.jax.jit(train_step, recipe="delayed", device="emulator")
    off = fp8.jax.jit(train_step, recipe="delayed")
    losses(on)
    off.state = on.state
    assert losses(off, 1) == pytest.approx(losses(on, 1), rel=TOLERANCE)


def test_the_environment_is_enough(monkeypatch):
    monkeypatch.setattr(fp8.config, "device", "emulator")
    step = fp8.jax.jit(train_step, recipe="current")
    losses(step, 1)
    assert "wgmma" in str(step.report())
    monkeypatch.setattr(fp8.config, "target", "sm_89")
    step = fp8.jax.jit(train_step, recipe="current")
    losses(step, 1)
    assert "mma.sync" in str(step.report())


def test_within_jit_scan_and_vmap():
    def layer(x, w):
        return jnp.tanh(x @ w)

    function = fp8.jax.function(layer, recipe="current", device="emulator")
    other = fp8.jax.function(layer, recipe="current")
    w = jnp.asarray(np.random.default_rng(1).normal(size=(3, 64, 64)) / 8, jnp.float32)

    def loss(of):
        return jax.jit(jax.value_and_grad(lambda w: (jax.lax.scan(lambda x, w: (of(x, w), None), X, w)[0] ** 2).mean()))

    (value, gradient), (wanted, wanted_gradient) = loss(function)(w), loss(other)(w)
    assert float(value) == pytest.approx(float(wanted), rel=TOLERANCE)
    # Gradients in E5M2 have 2 bits after the leading one.
    assert float(jnp.linalg.norm(gradient - wanted_gradient)) <= 2**-5 * float(jnp.linalg.norm(wanted_gradient))
    mapped = jax.vmap(function, in_axes=(None, 0))(X, w)
    np.testing.assert_allclose(mapped, jnp.stack([function(X, each) for each in w]), rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "cuda"}, r"device='cuda', and the arguments lie on the CPU: put them on a GPU with jax.device_put, or pass device=\"emulator\""),
        ({"target": "sm_90a"}, "target='sm_90a', and the arguments lie on the CPU"),
        ({"device": "cpu", "target": "sm_90a"}, "device='cpu', and the arguments lie on the CPU"),
        ({"device": "emulator", "target": "cpu"}, "target='cpu' is code for the CPU, and device='emulator'"),
    ],
)
def test_devices_that_do_not_fit(options, message):
    with pytest.raises(ValueError, match=message):
        fp8.jax.jit(train_step, recipe="current", **options)(make_weights(), X)


def test_devices_that_there_are_not():
    with pytest.raises(ValueError, match="device='gpu': a device is 'cpu', 'cuda', 'cuda:N' or 'emulator'"):
        fp8.jax.jit(train_step, device="gpu")


def test_an_error_of_the_emulator_is_an_exception():
    """The emulator is not of that chip: the words of the runtime, at the call."""
    program = """
import fp8.jax, jax.numpy as jnp
try: print(fp8.jax.jit(lambda x, w: x @ w, recipe="current", device="emulator", sites="all")(jnp.ones((32, 64)), jnp.ones((64, 48))))
except Exception as error: print(error)
"""
    environment = {**os.environ, "FP8EMU_CHIP": "sm_120a", "PYTHONPATH": str(pathlib.Path(fp8.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert "the library's kernels are for sm_90a, which none of the emulator's devices runs: FP8EMU_CHIP chooses them" in done.stdout, done.stderr


# On GPUs: XLA lowers for them here as well, and the handlers are called as it would.


@pytest.fixture
def gpus(request, monkeypatch):
    """The numbers of GPUs by chip: the emulator is a driver of CUDA, and this machine has no other."""
    monkeypatch.setenv("FP8RT_CUDA_DRIVER", str(pathlib.Path(request.config.getoption("--build")).resolve() / "lib" / "fp8emu" / "libcuda.so.1"))
    _device.chip_of.cache_clear()
    yield {_device.chip_of(f"cuda:{number}"): number for number in range(4)}
    _device.chip_of.cache_clear()


@pytest.fixture
def on_sm_90a(monkeypatch):
    """JAX's default device is a GPU, for what is traced."""
    monkeypatch.setattr(_target, "has_gpus", lambda: True)
    with _target.at("sm_90a"):
        yield


def test_the_custom_call_for_gpus(on_sm_90a):
    step = fp8.jax.jit(train_step, recipe="current", donate_argnums=0)
    shapes = jax.eval_shape(make_weights)
    state = step.init(shapes, jax.ShapeDtypeStruct(X.shape, X.dtype))
    text = jax.jit(step.apply).trace(state, shapes, X).lower(lowering_platforms=("cuda",)).as_text()
    assert "custom_call @fp8_call_in_graphs" in text
    library = step.lower(shapes, jax.ShapeDtypeStruct(X.shape, X.dtype)).compile().library
    assert (library.target, library.device) == ("sm_90a", "cuda")
    # The workspace is memory of XLA's.
    assert f"tensor<{library.manifest['entries'][0]['workspace_bytes']}xi8>" in text


class Address:
    """Memory of a GPU for XLA's buffers."""

    def __init__(self, buffer):
        self.shape, self.pointer = buffer.shape, buffer.pointer


def test_calls_on_gpus(gpus, on_sm_90a):
    def step(w, x):
        return w - 0.5 * jnp.tanh(x).T @ x, jnp.sum(x @ w)

    program = fp8.jax.jit(step, recipe="current", sites="all", donate_argnums=0)
    w, x = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32), X
    library = program.lower(w, x).compile().library
    call = _call.Call(library, "main")
    handlers = _call._ffi_library()
    stages = {0: handlers.fp8_instantiate, 2: handlers.fp8_open_gpu, 3: handlers.fp8_call_gpu_capturable}
    assert (xla_calls.traits(handlers.fp8_call_gpu_capturable), xla_calls.traits(handlers.fp8_call_gpu)) == (xla_calls.CAPTURABLE, 0)
    xla = xla_calls.Call(stages, call._name, gpus["sm_90a"])
    library.run_on(f"cuda:{gpus['sm_90a']}")
    buffers = [library.put(w), library.put(x)]
    description = library.entries["main"].description
    results = [buffers[0] if r["alias"] == 0 else library.put(np.zeros(r["shape"], np.float32)) for r in description["results"]]
    workspace = library.put(np.zeros(description["workspace_bytes"], np.int8))
    xla.run(xla_calls.INSTANTIATE)
    xla.run(xla_calls.INITIALIZE)
    # The same library on the same tensors, called from the host: the bits are the same.
    wanted, total = w.copy(), np.zeros((), np.float32)
    prepared = library.prepare("main")
    for _ in range(2):
        xla.run(xla_calls.EXECUTE, [("f32", b) for b in buffers], [*(("f32", r) for r in results), ("i8", workspace)])
        prepared.call([wanted.ctypes.data, x.ctypes.data], [0, total.ctypes.data])
        np.testing.assert_array_equal(results[0].numpy(), wanted)
        np.testing.assert_array_equal(results[1].numpy(), total)
    assert np.abs(wanted - w).max() > 1
    # XLA's mistakes and ours are errors of the call.
    wrong = xla_calls.Call(stages, call._name, gpus["sm_89"])
    wrong.run(xla_calls.INSTANTIATE)
    with pytest.raises(xla_calls.Error, match="the library's kernels are for sm_90a, fp8emu sm_89 is sm_89"):
        wrong.run(xla_calls.INITIALIZE)
    unknown = xla_calls.Call(stages, "nothing/main", 0)
    with pytest.raises(xla_calls.Error, match="the compiled program nothing/main is not loaded in this process"):
        unknown.run(xla_calls.INSTANTIATE)


def test_code_for_the_cpu_on_a_gpu(gpus):
    library = fp8.jax.jit(lambda x, w: x @ w, recipe="current", sites="all").lower(X, X.T).compile().library
    call = _call.Call(library, "main")
    handlers = _call._ffi_library()
    xla = xla_calls.Call({0: handlers.fp8_instantiate, 2: handlers.fp8_open_gpu}, call._name, 0)
    xla.run(xla_calls.INSTANTIATE)
    with pytest.raises(xla_calls.Error, match="the function is compiled for the CPU, and its arguments lie on a GPU"):
        xla.run(xla_calls.INITIALIZE)


def test_code_for_a_gpu_on_the_cpu(on_sm_90a):
    library = fp8.jax.jit(lambda x, w: x @ w, recipe="current", sites="all").lower(X, X.T).compile().library
    call = _call.Call(library, "main")
    with pytest.raises(Exception, match="the function is compiled for a GPU, and its arguments lie on the CPU"):
        call([jnp.asarray(X), jnp.asarray(X.T)])
