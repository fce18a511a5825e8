# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Libraries for GPUs, on the emulator: on arrays of the CPU, and in place on tensors in the device's memory."""

import ctypes
import functools
import gc
import pathlib
import threading

import fp8
import ml_dtypes
import numpy as np
import pytest
from fp8 import _device, _dlpack, _errors

#: y = x w, the gradient x^T y of its squares' half sum, and new weights.
STEP = """
func.func @main(%x: tensor<32x64xbf16>, %w: tensor<64x32xf32>) -> (tensor<32x32xf32>, tensor<64x32xf32>) {
  %wb = arith.truncf %w : tensor<64x32xf32> to tensor<64x32xbf16>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x32xf32>) -> tensor<32x32xf32>
  %y = linalg.matmul ins(%x, %wb : tensor<32x64xbf16>, tensor<64x32xbf16>) outs(%init : tensor<32x32xf32>) -> tensor<32x32xf32>
  %yb = arith.truncf %y : tensor<32x32xf32> to tensor<32x32xbf16>
  %xe = tensor.empty() : tensor<64x32xbf16>
  %xt = linalg.transpose ins(%x : tensor<32x64xbf16>) outs(%xe : tensor<64x32xbf16>) permutation = [1, 0]
  %dempty = tensor.empty() : tensor<64x32xf32>
  %dinit = linalg.fill ins(%zero : f32) outs(%dempty : tensor<64x32xf32>) -> tensor<64x32xf32>
  %dw = linalg.matmul ins(%xt, %yb : tensor<64x32xbf16>, tensor<32x32xbf16>) outs(%dinit : tensor<64x32xf32>) -> tensor<64x32xf32>
  %rate = arith.constant dense<0.001> : tensor<64x32xf32>
  %part = arith.mulf %dw, %rate : tensor<64x32xf32>
  %new = arith.subf %w, %part : tensor<64x32xf32>
  return %y, %new : tensor<32x32xf32>, tensor<64x32xf32>
}
"""
OPTIONS = {"recipe": "delayed", "sites": "all", "carry": {1: 1}}
CHIPS = ["sm_89", "sm_90a"]


def compile_for(chip, device="emulator"):
    return fp8.compile(STEP, device=device, target=chip, **OPTIONS)


def inputs():
    random = np.random.default_rng(0)
    return random.normal(size=(32, 64)).astype(ml_dtypes.bfloat16), random.normal(size=(64, 32)).astype(np.float32)


def steps(library, x, w, state, count=3):
    """The results of steps that pass on the weights."""
    losses = []
    for _ in range(count):
        y, w = library.entries["main"](x, w, state=state)
        losses.append(np.asarray(y).copy())
    return losses, np.asarray(w), {name: np.asarray(array) for name, array in state.items()}


def check_same(given, wanted):
    for a, b in zip(given[0], wanted[0]):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(given[1], wanted[1])
    for name in wanted[2]:
        np.testing.assert_array_equal(given[2][name], wanted[2][name], err_msg=name)


def check_near(given, wanted):
    """Tensor cores for FP8 keep 13 bits of the first step's sums; of them come new weights, of which one may be rounded to
    another number of E4M3 in later steps: 1/16 of a weight of 3 times a number of 3.5, of sums up to 20.
    """
    for step, (a, b) in enumerate(zip(given[0], wanted[0])):
        np.testing.assert_allclose(a, b, rtol=0, atol=2.0 ** (-5 if step else -9) * np.abs(b).max())
    for a, b in zip([given[1], *given[2].values()], [wanted[1], *wanted[2].values()]):
        np.testing.assert_allclose(a, b, rtol=0, atol=2.0**-9 * np.abs(b).max())


@pytest.fixture(scope="module")
def on_cpu():
    library = fp8.compile(STEP, **OPTIONS)
    assert (library.target, library.device, library.opened()) == ("cpu", "cpu", None)
    return steps(library, *inputs(), library.state())


@functools.cache
def on_chip(chip="sm_90a"):
    """By copies of arrays of the CPU."""
    library = compile_for(chip)
    return steps(library, *inputs(), library.state())


@pytest.mark.parametrize("chip", CHIPS)
def test_arrays_of_the_cpu(chip, on_cpu):
    library = compile_for(chip)
    assert (library.target, library.device) == (chip, "emulator")
    x, w = inputs()
    state = library.state()
    check_near(steps(library, x, w, state), on_cpu)
    np.testing.assert_array_equal(w, inputs()[1])
    # The same state goes on on the CPU.
    on, off = ({name: array.copy() for name, array in state.items()} for _ in range(2))
    check_near(steps(library, x, w, on), steps(fp8.compile(STEP, **OPTIONS), x, w, off))


@pytest.mark.parametrize("chip", CHIPS)
def test_tensors_in_the_devices_memory(chip):
    library = compile_for(chip)
    state = library.put(library.state())
    assert isinstance(state["scale"], fp8.DeviceBuffer) and isinstance(state["layout_hash"], np.ndarray)
    x, w = map(library.put, inputs())
    check_same(steps(library, x, w, state), on_chip(chip))
    np.testing.assert_array_equal(w.numpy(), inputs()[1])


class Foreign:
    """A tensor of another package, of those without DLPack."""

    def __init__(self, buffer, **interface):
        self.__cuda_array_interface__ = {**buffer.__cuda_array_interface__, **interface}


@pytest.mark.parametrize("stream", [0, None])
def test_the_cuda_array_interface(stream):
    """Of Numba and CuPy; it has no bf16."""
    library = compile_for("sm_90a")
    x, w = map(library.put, inputs())
    with pytest.raises(AttributeError, match="has no bf16: take the tensor by DLPack"):
        _ = x.__cuda_array_interface__
    interface = w.__cuda_array_interface__
    assert interface == {"shape": (64, 32), "typestr": "<f4", "data": (w.pointer, False), "stream": 1, "strides": None, "version": 3}
    foreign = Foreign(w, stream=1 if stream == 0 else None, strides=(128, 4))
    y, new = library.entries["main"](x, foreign, state=library.put(library.state()))
    np.testing.assert_array_equal(y.numpy(), on_chip()[0][0])
    assert np.abs(new.numpy() - inputs()[1]).max() > 0
    with pytest.raises(ValueError, match="main, argument arg1: it is not row-major without gaps: make it contiguous"):
        library.entries["main"](x, Foreign(w, strides=(4, 256)), state=library.put(library.state()))


def test_dlpack_both_ways():
    library = compile_for("sm_90a")
    x, w = inputs()
    there = library.put(w)
    assert there.__dlpack_device__() == library.opened().place == (2, there.__dlpack_device__()[1])
    view = _dlpack.DeviceView(there, 0)
    assert (view.pointer, view.type, view.shape) == (there.pointer, "f32", (64, 32))
    del view
    capsule = there.__dlpack__(stream=1)
    tensor = _dlpack.tensor_of_capsule(capsule)
    assert (tensor.data, tensor.device.type, tensor.device.id) == (there.pointer, *library.opened().place)
    pointer = there.pointer
    del there
    gc.collect()
    # The capsule has a share of the memory.
    read = np.empty((64, 32), np.float32)
    library.opened().read(read.ctypes.data, pointer, read.nbytes)
    np.testing.assert_array_equal(read, w)
    del capsule


def test_memory_is_given_back():
    """The emulator frees what is released, and finds what is used later."""
    library = compile_for("sm_90a")
    buffer = library.put(inputs()[1])
    pointer = buffer.pointer
    capsules = [buffer.__dlpack__() for _ in range(3)]
    del buffer, capsules
    gc.collect()
    read = np.empty(4, np.float32)
    with pytest.raises(fp8.RunError):
        library.opened().read(read.ctypes.data, pointer, 16)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda lib, x, w: (lib.put(x), w), "main, argument arg1: it lies on the CPU, and all tensors of a call lie on emulator "),
        (lambda lib, x, w: (x, lib.put(w)), r"main, argument arg1: it lies on cuda:\d+, and all tensors of a call lie on the CPU, as the first one does"),
        (lambda lib, x, w: (lib.put(x), lib.put(w)), "main, scale of the state: it lies on the CPU, and all tensors of a call lie on emulator "),
    ],
)
def test_tensors_on_two_devices(make, message):
    library = compile_for("sm_90a")
    with pytest.raises(ValueError, match=message):
        library.entries["main"](*make(library, *inputs()), state=library.state())


def test_tensors_of_a_device_for_a_library_of_the_cpu():
    x, w = map(compile_for("sm_90a").put, inputs())
    library = fp8.compile(STEP, **OPTIONS)
    with pytest.raises(ValueError, match=r"a tensor lies on the DLPack device \(2, \d+\); this library runs on the CPU: move it there first"):
        library.entries["main"](x, w, state=library.state())
    with pytest.raises(ValueError, match="the library runs on the CPU, which takes numpy's arrays"):
        library.put(inputs()[0])


@pytest.mark.parametrize(
    ("device", "target", "wanted"),
    [
        (None, "auto", (None, "cpu")),
        (None, "sm_100a", (None, "sm_100a")),
        ("cpu", "auto", (None, "cpu")),
        ("emulator", "auto", ("emulator", "sm_90a")),
        ("emulator", "sm_120a", ("emulator", "sm_120a")),
        ("cuda:1", "sm_89", ("cuda:1", "sm_89")),
    ],
)
def test_targets_of_devices(device, target, wanted):
    assert _device.resolve(device, target) == wanted


def test_the_environment_chooses(monkeypatch):
    monkeypatch.setattr(fp8.config, "device", "emulator")
    assert _device.resolve(None, "auto") == ("emulator", "sm_90a")
    monkeypatch.setattr(fp8.config, "target", "sm_89")
    assert _device.resolve(None, "auto") == ("emulator", "sm_89")
    assert _device.resolve(None, "sm_120a") == ("emulator", "sm_120a")
    assert _device.resolve(None, "cpu") == (None, "cpu")
    assert fp8.compile(STEP, **OPTIONS).device == "emulator"
    settings = fp8._config.Config.from_environment({"FP8_DEVICE": "emulator", "FP8_TARGET": "sm_100a", "HOME": "/"})
    assert (settings.device, settings.target) == ("emulator", "sm_100a")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "gpu"}, "device='gpu': a device is 'cpu', 'cuda', 'cuda:N' or 'emulator'"),
        ({"device": "cuda:x"}, "device='cuda:x': a device is"),
        ({"device": 0}, "device=0: a device is"),
        ({"device": "cpu", "target": "sm_89"}, "target='sm_89' is code for a GPU, and device='cpu'"),
        ({"device": "emulator", "target": "cpu"}, "target='cpu' is code for the CPU, and device='emulator'"),
    ],
)
def test_devices_that_there_are_not(options, message):
    with pytest.raises(ValueError, match=message):
        fp8.compile(STEP, **OPTIONS, **options)


def test_a_machine_without_a_driver(monkeypatch):
    monkeypatch.setenv("FP8RT_CUDA_DRIVER", "/nonexistent/libcuda.so.1")
    _device.chip_of.cache_clear()
    with pytest.raises(fp8.RunError, match="driver"):
        fp8.compile(STEP, **OPTIONS, device="cuda")
    library = fp8.compile(STEP, **OPTIONS, device="cuda", target="sm_90a")
    with pytest.raises(fp8.RunError, match="driver"):
        library.entries["main"](*inputs(), state={})


def test_loaded_libraries_say_where_they_run(tmp_path):
    compile_for("sm_89").save(tmp_path / "step.so")
    library = fp8.load(tmp_path / "step.so", device="emulator")
    check_same(steps(library, *inputs(), library.state()), on_chip(library.target))
    assert fp8.load(tmp_path / "step.so").device == "cuda"
    with pytest.raises(ValueError, match="device='cpu' cannot run .*step.so, which is compiled for sm_89"):
        fp8.load(tmp_path / "step.so", device="cpu")
    fp8.compile(STEP, **OPTIONS).save(tmp_path / "cpu.so")
    with pytest.raises(ValueError, match="device='emulator' cannot run .*cpu.so, which is compiled for cpu"):
        fp8.load(tmp_path / "cpu.so", device="emulator")


def test_chips_without_code():
    with pytest.raises(_errors.UnsupportedError, match=r"cuda:0 has the compute capability 8.0; there is code for 8.9, 9.0, 10.0, 12.0: choose"):
        _device.target_for((8, 0), "cuda:0")


def test_prepared_calls_take_both_memories():
    library = compile_for("sm_90a")
    x, w = inputs()
    prepared = library.prepare("main")
    state = library.state()
    y = np.empty((32, 32), np.float32)
    arrays = [x, w, *(state[a["name"]] for a in prepared.arguments[2:])]
    assert [r.get("alias") for r in prepared.results] == [None, 1, 2, 3]
    # The results in arguments' memory are there then.
    prepared.call([array.ctypes.data for array in arrays], [y.ctypes.data, 0, 0, 0])
    np.testing.assert_array_equal(y, on_chip()[0][0])
    # The next step, in place, in a workspace of the caller.
    there = [library.put(array) for array in arrays]
    out = library.put(np.zeros_like(y))
    workspace = library.put(np.zeros(library.entries["main"].description["workspace_bytes"], np.int8))
    prepared.enqueue([b.pointer for b in there], [out.pointer, 0, 0, 0], 0, workspace.pointer)
    np.testing.assert_array_equal(out.numpy(), on_chip()[0][1])
    # And the third one by copies again.
    arrays = [buffer.numpy() for buffer in there]
    prepared.call([array.ctypes.data for array in arrays], [y.ctypes.data, 0, 0, 0])
    check_same(
        ([y], arrays[1], {"scale": arrays[2], "amax_history": arrays[3]}),
        ([on_chip()[0][2]], on_chip()[1], {n: on_chip()[2][n] for n in ("scale", "amax_history")}),
    )


def test_threads_take_turns():
    library = compile_for("sm_90a")
    errors = []

    def work():
        try:
            check_same(steps(library, *inputs(), library.state()), on_chip(library.target))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert errors == []


@pytest.mark.parametrize("device", ["cpu", "emulator"])
def test_profiles(device):
    library = fp8.compile(STEP, device=device, **OPTIONS)
    state = library.state()
    with library.profile() as profile:
        steps(library, *inputs(), state, 2)
    steps(library, *inputs(), state, 1)
    products = [kernel for kernel in profile.kernels if kernel.kind == "products"]
    assert [(kernel.calls, kernel.sites) for kernel in products] == [(2, ("matmul0",))] * 2
    assert all(kernel.operations == 2 * 32 * 64 * 32 and kernel.milliseconds > 0 for kernel in products)
    assert profile.outside_milliseconds >= 0
    assert f"{products[0].milliseconds:10.3f}      2  {products[0].name} [products] matmul0\n" in str(profile)


def test_steps_on_a_gpu_allocate_and_wait_for_nothing(request, monkeypatch):
    """After the second; counted by a driver that does nothing else."""
    path = pathlib.Path(request.config.getoption("--build")).resolve() / "lib" / "libfp8rt_test_null_driver.so"
    monkeypatch.setenv("FP8RT_CUDA_DRIVER", str(path))
    library = fp8.compile(STEP, device="cuda", target="sm_90a", **OPTIONS)
    state = library.state()
    x, w = map(library.put, inputs())
    driver = ctypes.CDLL(str(path))
    driver.nullDriverTake.restype = ctypes.c_int64
    names = ("cuMemAlloc_v2", "cuMemFree_v2", "cuStreamSynchronize", "cuCtxSynchronize", "cuLaunchKernelEx")

    def take():
        return [driver.nullDriverTake(name.encode()) for name in names]

    def run(count, **options):
        nonlocal w
        for _ in range(count):
            _, w = library.entries["main"](x, w, state=state, **options)

    run(2)
    launches = take()[-1] // 2
    run(1000)
    assert take() == [0, 0, 0, 0, 1000 * launches]
    # Another stream waits once for the first one, for each tensor.
    run(1, stream=4096)
    assert take()[2:4] == [4, 0]
    run(1, stream=4096)
    take()
    run(1000, stream=4096)
    assert take() == [0, 0, 0, 0, 1000 * launches]


@pytest.fixture
def gpus(request, monkeypatch):
    """GPUs of all chips: the emulator is a driver of CUDA, and this machine has no other."""
    monkeypatch.setenv("FP8RT_CUDA_DRIVER", str(pathlib.Path(request.config.getoption("--build")).resolve() / "lib" / "fp8emu" / "libcuda.so.1"))
    _device.chip_of.cache_clear()
    yield {_device.chip_of(f"cuda:{number}"): f"cuda:{number}" for number in range(4)}
    _device.chip_of.cache_clear()


def test_gpus(gpus):
    assert sorted(gpus) == ["sm_100a", "sm_120a", "sm_89", "sm_90a"]
    library = fp8.compile(STEP, device=gpus["sm_89"], **OPTIONS)
    assert (library.target, library.device) == ("sm_89", gpus["sm_89"])
    state = library.state()
    assert isinstance(state["scale"], fp8.DeviceBuffer) and state["scale"].device == gpus["sm_89"]
    check_same(steps(library, *map(library.put, inputs()), state), on_chip("sm_89"))
    with library.profile() as profile:
        check_same(steps(library, *inputs(), {name: np.array(value) for name, value in library.state().items()}), on_chip("sm_89"))
        with pytest.raises(ValueError, match=r"main: its tensors lie on cuda:\d \(fp8emu sm_89\), and Library.profile measures calls on tensors of the CPU"):
            library.entries["main"](*map(library.put, inputs()), state=state)
    assert [kernel.calls for kernel in profile.kernels if kernel.kind == "products"] == [3, 3]
    with pytest.raises(ValueError, match=r"main, argument arg0: it lies on the CPU, and all tensors of a call lie on cuda:\d \(fp8emu sm_89\): move"):
        library.entries["main"](*inputs(), state=state)
    other = fp8.compile(STEP, device=gpus["sm_90a"], **OPTIONS)
    with pytest.raises(ValueError, match=r"main, argument arg0: it lies on cuda:\d, and all tensors of a call lie on cuda:\d \(fp8emu sm_89\)"):
        library.entries["main"](*map(other.put, inputs()), state=state)
    wrong = fp8.compile(STEP, device=gpus["sm_89"], target="sm_90a", **OPTIONS)
    with pytest.raises(fp8.StateError, match="the library's kernels are for sm_90a, fp8emu sm_89 is sm_89: compile the program with target=sm_89"):
        wrong.state()
    with pytest.raises(fp8.RunError, match="there is no GPU 4: this machine has 4, counted from 0"):
        fp8.compile(STEP, device="cuda:4", **OPTIONS)
