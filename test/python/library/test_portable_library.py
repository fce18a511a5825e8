# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Libraries for other machines than the one that compiles: the processor they need, and what they link with."""
import ctypes
import platform
import subprocess

import numpy as np
import pytest

from harness import BF16, F16, F32, Program, assert_same_bits, random_generator

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="names x86-64's processors")

# Products, conversions of f16, functions of libm, enough work for several threads.
PROGRAM = """
#map = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<256x192xf32>, %h: tensor<192x256xf16>) -> (tensor<256x256xf32>, tensor<256x192xf16>, tensor<256x192xf32>) {
  %wide = arith.extf %h : tensor<192x256xf16> to tensor<192x256xf32>
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<256x256xf32>
  %fill = linalg.fill ins(%zero : f32) outs(%empty : tensor<256x256xf32>) -> tensor<256x256xf32>
  %product = linalg.matmul ins(%x, %wide : tensor<256x192xf32>, tensor<192x256xf32>) outs(%fill : tensor<256x256xf32>) -> tensor<256x256xf32>
  %narrow = arith.truncf %x : tensor<256x192xf32> to tensor<256x192xf16>
  %fused = math.fma %x, %x, %x : tensor<256x192xf32>
  return %product, %narrow, %fused : tensor<256x256xf32>, tensor<256x192xf16>, tensor<256x192xf32>
}
"""
F32_ONLY = """
func.func @main(%x: tensor<4096xf32>) -> (tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>) {
  %a = math.exp %x : tensor<4096xf32>
  %b = math.log %x : tensor<4096xf32>
  %c = math.powf %x, %x : tensor<4096xf32>
  return %a, %b, %c : tensor<4096xf32>, tensor<4096xf32>, tensor<4096xf32>
}
"""


def make(bin_dir, folder, text, *options):
    folder.mkdir()
    return Program(bin_dir, folder, text, "--recipe=none", *options)


def test_other_processors_have_the_same_values(bin_dir, tmp_path):
    rng = random_generator(42)
    x = (rng.standard_normal((256, 192)) * np.exp2(rng.integers(-24, 4, (256, 192)))).astype(F32)
    h = rng.standard_normal((192, 256)).astype(F16)
    results = {}
    for name in ["native", "x86-64-v3"]:
        program = make(bin_dir, tmp_path / name, PROGRAM, f"--cpu={name}")
        assert program.manifest["options"]["cpu"] == name
        results[name] = program.call("main", x, h)
    for native, portable in zip(*results.values()):
        assert_same_bits(portable, native)
    assert_same_bits(results["native"][1], x.astype(F16))
    np.testing.assert_allclose(results["native"][0], x @ h.astype(F32), rtol=0, atol=1e-4)  # sums of 192 products


# Comparisons that LLVM narrows to bf16, whose constants it would round by a call: clipping by a norm, and a
# softmax.
COMPARED = {
    "scalar": ("arith.extf %b : bf16 to f64", lambda x, s: np.full(x.shape, s)),
    "element": ("arith.extf %a : bf16 to f64", lambda x, s: x),
    "product": ("arith.extf %m : bf16 to f64", lambda x, s: x * s),
}
LIMITS = ["0.0", "1.0", "0.1"]  # the last one is no bf16


def compared_in_f64(name, size, code, limit):
    return f"""
func.func @{name}(%x: tensor<{size}xbf16>, %s: tensor<bf16>) -> tensor<{size}xbf16> {{
  %e = tensor.empty() : tensor<{size}xbf16>
  %y = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}}
      ins(%x, %s : tensor<{size}xbf16>, tensor<bf16>) outs(%e : tensor<{size}xbf16>) {{
  ^bb0(%a: bf16, %b: bf16, %out: bf16):
    %m = arith.mulf %a, %b : bf16
    %wide = {code}
    %limit = arith.constant {limit} : f64
    %over = arith.cmpf ogt, %wide, %limit : f64
    %v = arith.select %over, %m, %a : bf16
    linalg.yield %v : bf16
  }} -> tensor<{size}xbf16>
  return %y : tensor<{size}xbf16>
}}
"""


@pytest.mark.parametrize("cpu", ["native", "x86-64-v3"])
@pytest.mark.parametrize("size", [1, 31, 32, 1000])
@pytest.mark.filterwarnings("ignore:invalid value")  # of numpy: 0 · Inf
def test_bf16_is_compared_in_f64(bin_dir, tmp_path, cpu, size):
    cases = {f"{name}{i}": (code, limit, value) for name, (code, value) in COMPARED.items() for i, limit in enumerate(LIMITS)}
    text = "".join(compared_in_f64(name, size, code, limit) for name, (code, limit, _) in cases.items())
    program = make(bin_dir, tmp_path / "program", text, f"--cpu={cpu}")
    x = random_generator(43, size).choice([0.0, -0.0, 1.0, 0.1, 2.5, -3.0, np.inf, np.nan], size).astype(BF16)
    for name, (_, limit, value) in cases.items():
        for s in [0.0, 0.1, 1.0, 1.5, np.nan]:
            s = np.array(s, BF16)
            over = value(x, s).astype(np.float64) > float(limit)
            (y,) = program.call(name, x, s)
            assert_same_bits(y, np.where(over, x * s, x))


def test_a_softmax_of_bf16_in_f64(bin_dir, tmp_path):
    text = """
#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
func.func @main(%x: tensor<5x64xbf16>) -> tensor<5x64xf64> {
  %e = tensor.empty() : tensor<5xf64>
  %e2 = tensor.empty() : tensor<5x64xf64>
  %low = arith.constant 0xFFF0000000000000 : f64
  %zero = arith.constant 0.0 : f64
  %w = arith.extf %x : tensor<5x64xbf16> to tensor<5x64xf64>
  %lowest = linalg.fill ins(%low : f64) outs(%e : tensor<5xf64>) -> tensor<5xf64>
  %most = linalg.reduce { arith.maximumf } ins(%w : tensor<5x64xf64>) outs(%lowest : tensor<5xf64>) dimensions = [1]
  %p = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%w, %most : tensor<5x64xf64>, tensor<5xf64>) outs(%e2 : tensor<5x64xf64>) {
  ^bb0(%a: f64, %b: f64, %out: f64):
    %d = arith.subf %a, %b : f64
    %v = math.exp %d : f64
    linalg.yield %v : f64
  } -> tensor<5x64xf64>
  %none = linalg.fill ins(%zero : f64) outs(%e : tensor<5xf64>) -> tensor<5xf64>
  %sum = linalg.reduce { arith.addf } ins(%p : tensor<5x64xf64>) outs(%none : tensor<5xf64>) dimensions = [1]
  %y = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%p, %sum : tensor<5x64xf64>, tensor<5xf64>) outs(%e2 : tensor<5x64xf64>) {
  ^bb0(%a: f64, %b: f64, %out: f64):
    %v = arith.divf %a, %b : f64
    linalg.yield %v : f64
  } -> tensor<5x64xf64>
  return %y : tensor<5x64xf64>
}
"""
    x = random_generator(44).standard_normal((5, 64)).astype(BF16)
    p = np.exp(x.astype(np.float64) - x.astype(np.float64).max(1, keepdims=True))
    for cpu in ["native", "x86-64-v3"]:
        (y,) = make(bin_dir, tmp_path / cpu, text, f"--cpu={cpu}").call("main", x)
        np.testing.assert_allclose(y, p / p.sum(1, keepdims=True), rtol=1e-14, atol=0)  # exp and 64 additions: some ulps


def test_the_manifest_names_processor_and_features(bin_dir, tmp_path):
    cpu = make(bin_dir, tmp_path / "v3", F32_ONLY, "--cpu=x86-64-v3").manifest["cpu"]
    assert cpu["name"] == "x86-64-v3"
    expected = {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse4.2"}
    assert expected <= set(cpu["features"])
    assert not any(feature.startswith(("avx512", "xsave", "64")) for feature in cpu["features"])
    native = make(bin_dir, tmp_path / "native", F32_ONLY).manifest["cpu"]
    assert "avx512bf16" not in native["features"]  # its conversions flush denormals


NEW_AND_OLD = ["diamondrapids", "graniterapids-d", "sapphirerapids", "clearwaterforest", "novalake", "sierraforest",
               "knl", "znver4", "znver5", "bdver4", "amdfam10", "x86-64", "x86-64-v4"]


@pytest.mark.parametrize("name", NEW_AND_OLD)
def test_a_machine_without_the_features_refuses(name, bin_dir, tmp_path):
    """bdver4's XOP and diamondrapids's AVX10.2 are never on one machine."""
    program = make(bin_dir, tmp_path / name, F32_ONLY, f"--cpu={name}")
    flags = set(open("/proc/cpuinfo").read().split("flags")[1].split("\n")[0].split())
    done = subprocess.run([bin_dir / "fp8-run", program.library, "--zero-missing", f"--outputs={tmp_path / 'out'}"],
                          capture_output=True, text=True)
    lacking = f"it was compiled for the processor '{name}', and this machine lacks its "
    if lacking not in done.stderr:
        assert (done.returncode, done.stderr) == (0, "")
        assert {"amdfam10": "sse4a", "bdver4": "xop", "sapphirerapids": "avx512_fp16"}.get(name, "sse2") in flags
        return
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    missing = done.stderr.split(lacking)[1].split(":")[0].split(", ")
    assert set(missing) <= set(program.manifest["cpu"]["features"])
    # Linux writes the names a little differently.
    known = {name.replace("_", "") for name in flags} | {"bmi" if "bmi1" in flags else "", "lzcnt" if "abm" in flags else ""}
    assert not {feature.replace(".", "").replace("-", "") for feature in missing} & known
    assert not (tmp_path / "out").exists()


def test_unknown_processors(run, tmp_path):
    for name, close in [("znver44", "znver4"), ("x86-64-v5", "x86-64-v4"), ("pentium", "penryn"), ("", "")]:
        done = run("fp8-compile", "-", "-o", tmp_path / "x.so", f"--cpu={name}", stdin=F32_ONLY)
        assert done.returncode == 2
        start = f"fp8-compile: error: --cpu={name} is no processor of this machine's kind that LLVM knows; the closest names are "
        assert done.stderr.startswith(start)
        assert close in done.stderr[len(start):] and done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_what_a_processor_cannot_do_is_an_error(run, tmp_path):
    """LLVM would call a function of the C compiler's own library, which no library of ours needs."""
    done = run("fp8-compile", "-", "-o", tmp_path / "x.so", "--cpu=x86-64", "--recipe=none", stdin=PROGRAM)
    assert done.returncode == 1
    assert "the processor has no instruction for what '__" in done.stderr and "--cpu" in done.stderr
    assert not list(tmp_path.iterdir())


def test_compiling_needs_no_other_program(run, bin_dir, tmp_path):
    """Neither a linker nor the libraries that compiled code calls are looked for."""
    done = run("fp8-compile", "-", "-o", "x.so", "--recipe=none", stdin=F32_ONLY, env={"PATH": ""}, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert [path.name for path in tmp_path.iterdir()] == ["x.so"]
    listed = subprocess.run(["readelf", "-d", tmp_path / "x.so"], capture_output=True, text=True, check=True).stdout
    assert [line.split("[")[1][:-1] for line in listed.splitlines() if "NEEDED" in line] == ["libm.so.6"]
    done = run("fp8-compile", "-", "-o", "y.so", "--recipe=none", stdin=PROGRAM, env={"PATH": ""}, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    listed = subprocess.run(["readelf", "-d", tmp_path / "y.so"], capture_output=True, text=True, check=True).stdout
    assert [line.split("[")[1][:-1] for line in listed.splitlines() if "NEEDED" in line] == ["libm.so.6", "libomp.so.5"]
    traced = (bin_dir / "fp8-compile").read_bytes()
    assert b"libomp.so.5" in traced and b"/libomp.so.5" not in traced and b"/libm.so.6" not in traced


def test_no_space_for_the_linker(bin_dir, tmp_path):
    (tmp_path / "small").mkdir()
    (tmp_path / "step.mlir").write_text(F32_ONLY)
    script = f"mount -t tmpfs -o size=16k tmpfs small && echo mounted && TMPDIR=$PWD/small exec {bin_dir}/fp8-compile step.mlir -o step.so --recipe=none"
    done = subprocess.run(["unshare", "--mount", "--map-root-user", "sh", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    if "mounted" not in done.stdout:
        pytest.skip("mounting is not allowed here")
    assert done.returncode == 1
    assert done.stderr.startswith("step.mlir:1:1: error: cannot link in '") and done.stderr.endswith(": No space left on device\n")
    assert not (tmp_path / "step.so").exists()


def test_functions_of_libm_are_the_newest_of_their_name(bin_dir, tmp_path):
    """Without versions at link time the loader may take older ones: values must not differ."""
    rng = random_generator(43)
    x = np.frombuffer(rng.bytes(4096 * 4), F32).copy()
    x[:12] = [0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 88.8, -104, 1e-45, 3.4e38, -3]
    results = make(bin_dir, tmp_path / "libm", F32_ONLY, "--math=libm").call("main", x)
    libm = ctypes.CDLL("libm.so.6")
    for name, result, operands in zip(["expf", "logf", "powf"], results, [1, 1, 2]):
        function = getattr(libm, name)
        function.restype, function.argtypes = ctypes.c_float, [ctypes.c_float] * operands
        assert_same_bits(result, np.array([function(*[value] * operands) for value in x], F32))
