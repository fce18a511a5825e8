# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# fp8-bench compile, step, products and kernels: command lines, tables, files, and runs on tiny programs beside
# peers that answer at once. No test looks at how fast anything is.

import importlib.util
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path += [str(ROOT / "tools/fp8-bench"), str(ROOT / "python/examples/gpt")]

import kernels  # noqa: E402
import machine  # noqa: E402
import product_speed  # noqa: E402
import results  # noqa: E402
import step_time  # noqa: E402
import tensors  # noqa: E402
from compiler import values  # noqa: E402
from failure import Failure  # noqa: E402

PEER = """#!%s
import json, pathlib, sys
PROGRAM = '''
func.func @main(%%x: tensor<4x8xf32>, %%w: tensor<8x16xf32>) -> tensor<4x16xf32> {
  %%zero = arith.constant 0.0 : f32
  %%empty = tensor.empty() : tensor<4x16xf32>
  %%init = linalg.fill ins(%%zero : f32) outs(%%empty : tensor<4x16xf32>) -> tensor<4x16xf32>
  %%y = linalg.matmul ins(%%x, %%w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%%init : tensor<4x16xf32>) -> tensor<4x16xf32>
  return %%y : tensor<4x16xf32>
}
'''
ANSWERS = {"version": {"version": "9.9", "kinds": ["f32", "bf16"]}, "step": {"seconds": 2.0}, "product": {"seconds": 2.0}, "compile": {"wall": 1000.0, "user": 3.0}}
for line in sys.stdin:
    request = json.loads(line)
    task = request["task"]
    if task == "export":
        pathlib.Path(request["file"]).write_text(PROGRAM)
    answer = ANSWERS.get(task, {})
    %s
    print(json.dumps(answer), flush=True)
"""


@pytest.fixture
def peer(tmp_path):
    """peer("statement"): an interpreter that answers as a peer would, after running the statement."""

    def make(statement="pass"):
        path = tmp_path / "peer"
        path.write_text(PEER % (sys.executable, statement))
        path.chmod(0o755)
        return path

    return make


@pytest.fixture
def bench(run, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))  # no peer is installed there
    return lambda *arguments: run("fp8-bench", *arguments)


def test_table_is_aligned():
    lines = results.table("case", {"a": {"x": 1.0}, "long": {"x": 12.5, "column": 3.0}}, 1, "s")
    assert lines == [
        "| case |     x | column |",
        "| ---- | ----: | -----: |",
        "| a    |  1.0s |      - |",
        "| long | 12.5s |   3.0s |",
    ]


def some_results(**options):
    rows = {"a": {"ours": 2.0, "ours, user": 4.0, "peer": 8.0}, "b": {"ours": 3.0, "peer": 3.0}}
    return results.Results("Seconds", "case", ["ours"], ["peer", "absent"], rows=rows, **options)


def test_ratios_say_how_many_times_as_fast():
    assert some_results().ratios("peer") == {"a": {"ours": 4.0}, "b": {"ours": 1.0}}
    assert some_results(larger_is_better=True).ratios("peer") == {"a": {"ours": 0.25}, "b": {"ours": 1.0}}
    assert some_results().ratios("absent") == {}
    assert results.summary(some_results().ratios("peer")) == {"geometric mean": {"ours": 2.0}, "least": {"ours": 1.0}}


def test_results_are_shown_with_mean_and_least():
    lines = results.show(some_results())
    assert lines[0] == "Seconds" and "Times as fast as peer" in lines and "Times as fast as absent" not in lines
    assert lines[-2:] == ["| geometric mean | 2.00x |", "| least          | 1.00x |"]


def test_json_has_numbers_and_ratios(tmp_path):
    results.write_json(tmp_path / "r.json", some_results(), {"benchmark": "step"})
    read = json.loads((tmp_path / "r.json").read_text())
    assert read["benchmark"] == "step" and read["rows"] == some_results().rows
    assert read["times_as_fast"]["peer"]["rows"]["a"] == {"ours": 4.0} and read["times_as_fast"]["peer"]["least"] == {"ours": 1.0}


def test_rounds_are_interleaved():
    order, times = [], {"a": iter([3.0, 1.0]), "b": iter([2.0, 5.0])}
    best = results.least({name: (lambda name=name: next(times[name])) for name in times}, 2, order.append)
    assert order == ["a", "b", "a", "b"] and best == {"a": 1.0, "b": 2.0}
    pairs = iter([(2.0, 1.0), (1.0, 9.0)])
    assert results.least({"p": lambda: next(pairs)}, 2, order.append) == {"p": (1.0, 9.0)}


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="matplotlib is not installed")
def test_picture_is_drawn(tmp_path):
    results.check_plot()
    results.draw(tmp_path / "p.png", some_results(), "a caption")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is not None, reason="matplotlib is installed")
def test_picture_needs_matplotlib():
    with pytest.raises(Failure, match="matplotlib"):
        results.check_plot()


def test_processor_is_described():
    text = "processor\t: 0\nmodel name\t: Some CPU\nflags\t\t: fpu avx avx2 avx512f avx512_bf16\n"
    found = machine.describe("znver5", text)
    assert (found["name"], found["llvm_name"], found["vectors"]) == ("Some CPU", "znver5", "AVX-512 (BF16)")
    assert machine.describe("", "flags : avx2\n")["vectors"] == "AVX2"
    assert machine.describe("", "")["vectors"] == "unknown vectors"


def test_peers_are_held_to_the_instructions_of_the_processor(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--other")
    limited = machine.environment("x86-64-v3")
    assert limited["XLA_FLAGS"] == "--other --xla_cpu_max_isa=AVX2"
    assert (limited["ONEDNN_MAX_CPU_ISA"], limited["ATEN_CPU_CAPABILITY"]) == ("AVX2", "avx2")
    assert machine.environment("native")["XLA_FLAGS"] == "--other"


@pytest.mark.parametrize("network", step_time.NETWORKS)
def test_inputs_have_the_names_and_shapes_of_the_program(network):
    path = ROOT / ("python/examples/gpt/gpt.mlir" if network == "gpt" else f"tools/fp8-bench/networks/{network}.mlir")
    line = next(l for l in path.open() if "func.func public @main(" in l)
    found = dict(re.findall(r'loc\("([^"]*)"\)', line) and [(name, kind) for kind, name in re.findall(r'%arg\d+: tensor<([^>]*)>[^%]*?loc\("([^"]*)"\)', line)])
    inputs = step_time.inputs(network)
    kinds = {name: "x".join([*map(str, shape), {"F32": "f32", "I32": "i32"}[kind]]) for name, (kind, shape, _) in inputs.items()}
    assert kinds == {name: kind for name, kind in found.items() if not name.startswith("moment") and name != "steps"}
    assert all(memoryview(data).nbytes == 4 * len_of(shape) for _, shape, data in inputs.values())


@pytest.mark.parametrize("network", ["mlp", "mixer"])
def test_exported_networks_are_current(network, tmp_path):
    jax = pytest.importorskip("jax")
    if jax.__version__ != "0.10.2":
        pytest.skip(f"the files were made with jax 0.10.2, this is {jax.__version__}")
    script = "import pathlib, sys, jax_networks; jax_networks.write(sys.argv[1], pathlib.Path(sys.argv[2]))"
    path = f"{ROOT}/tools/fp8-bench/peer:{ROOT}/python/examples/gpt"
    subprocess.run([sys.executable, "-c", script, network, tmp_path / "n.mlir"], check=True, env=dict(os.environ, PYTHONPATH=path))
    assert (tmp_path / "n.mlir").read_bytes() == (ROOT / f"tools/fp8-bench/networks/{network}.mlir").read_bytes()


def len_of(shape):
    count = 1
    for size in shape:
        count *= size
    return count


def test_bf16_values_are_the_upper_halves_of_f32(tmp_path):
    tensors.write(tmp_path / "t", {"x": values((300, 300), 1.0, "BF16")})
    _, shape, data = tensors.read(tmp_path / "t")["x"]
    assert (list(shape), len(data)) == ([300, 300], 2 * 300 * 300)
    f32 = values((300, 300), 1.0)[2].tobytes()
    assert bytes(data[:2]) == f32[2:4] and bytes(data[2:4]) == f32[6:8]


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (["compile", "--layers=0"], "argument --layers: '0' is no list of numbers such as 1,4,16; see fp8-bench compile --help"),
        (["compile", "--with=torch"], "argument --with: 'torch' is none of jax; see fp8-bench compile --help"),
        (["step", "--networks=gpt,cnn"], "argument --networks: 'cnn' is none of gpt, mlp, mixer; see fp8-bench step --help"),
        (["step", "--rounds=0"], "argument --rounds: '0' is no number above 0; see fp8-bench step --help"),
        (["step", "--seconds=inf"], "argument --seconds: 'inf' is no number above 0; see fp8-bench step --help"),
        (["products", "--shapes=4x4"], "argument --shapes: '4x4' is no shape MxNxK; see fp8-bench products --help"),
        (["products", "--fast"], "unrecognized arguments: --fast; see fp8-bench products --help"),
        (["products", "--json=/nowhere/at/all.json"], "argument --json: there is no folder /nowhere/at; see fp8-bench products --help"),
        (["step", "--jax-python=/nowhere/python"], "--jax-python=/nowhere/python: there is no such file"),
        (["step", "--bin=/nowhere"], "fp8-compile does not run: No such file or directory: /nowhere/fp8-compile"),
        ([], "say what to measure: fp8-bench compile, step, products, recipes, collectives, checkpoint, kernels, predict, python, attention or emulator; see --help"),
    ],
)
def test_wrong_command_line_is_one_sentence(bench, arguments, sentence):
    done = bench(*arguments)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"fp8-bench: error: {sentence}\n")


@pytest.mark.parametrize("benchmark", ["compile", "step", "products", "kernels", "predict", "checkpoint", "python", "attention"])
def test_help_teaches(bench, benchmark):
    done = bench(benchmark, "--help")
    assert done.returncode == 0 and done.stdout.startswith(f"usage: fp8-bench {benchmark}") and "examples:" in done.stdout


def test_products_beside_a_peer(bench, peer, tmp_path):
    file = tmp_path / "r.json"
    done = bench("products", "--shapes=8x16x32", "--rounds=1", "--seconds=0.001", f"--jax-python={peer()}", f"--json={file}")
    assert done.returncode == 0, done.stderr
    assert "fp8-mlir 0.1.0, JAX 9.9" in done.stdout and "Left out: PyTorch" in done.stdout
    read = json.loads(file.read_text())
    row = read["rows"]["8 x 16 x 32"]
    assert set(row) == {"f32", "bf16", "FP8", "FP8, subnormal", "XLA f32", "XLA bf16"}
    assert row["XLA f32"] == pytest.approx(8 * 16 * 32 * 1e-9)  # 2 M N K in the 2 seconds that the peer says
    assert read["times_as_fast"]["XLA bf16"]["rows"]["8 x 16 x 32"]["FP8"] == pytest.approx(row["FP8"] / row["XLA bf16"])
    assert read["left_out"] == ["PyTorch, which is not here (--install=torch, or --torch-python=PYTHON)"]


def test_python_shows_the_frameworks_that_are_here(bench, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    python = tmp_path / "python"
    python.write_text("""#!/bin/sh\necho '{"version": "9.9", "calls": {"10": {"eager": 1.5}}, "steps": {"mlp": {"eager": 2.5}}}'\n""")
    python.chmod(0o755)
    done = bench("python", f"--torch-python={python}")
    assert done.returncode == 0, done.stderr
    assert "Left out: JAX, which is not here (--jax-python=PYTHON)" in done.stdout
    assert "PyTorch 9.9: microseconds" in done.stdout and "| 10     |   1.5 |" in done.stdout and "| mlp     |   2.5 |" in done.stdout
    done = bench("python")
    assert (done.returncode, done.stdout) == (1, "") and "there is neither JAX nor PyTorch" in done.stderr
    done = bench("python", "--with=numpy")
    assert done.returncode == 1 and "argument --with: 'numpy' is none of jax, torch" in done.stderr


def test_attention_counts_the_kernels_of_a_chip(bench):
    """Three kernels by two masks: all tensors once and the streamed ones once per tile, 4, 6 and 8 products, no conflict."""
    done = bench("attention", "--target=sm_89", "--tokens=256", "--depth=64", "--ptxas=none")
    assert done.returncode == 0, done.stderr
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines() if "256 tokens" in line]
    assert [row[0] for row in rows] == [f"{kernel}, {mask}, 256 tokens, 64" for mask in ("full", "causal") for kernel in ("output", "dQ", "dK, dV")]
    for row, products in zip(rows, (4, 6, 8, 6, 9, 12), strict=True):  # three of four tiles are half of the scores and a half more
        sectors, counted, instructions, conflicts = map(float, row[1:])
        assert (counted, conflicts) == (products, 0)
        assert 1 <= sectors < 1.15 and 5 < instructions < 40
    done = bench("attention", "--target=sm_120a", "--tokens=128", "--depth=64", "--ptxas=none", "--bias")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines() if "full, 128 tokens" in line]
    assert [(row[0].partition(",")[0], float(row[2]), float(row[4])) for row in rows] == [("output", 4, 0), ("dQ", 6, 0), ("dK", 8, 0), ("dB", 4, 0)]
    done = bench("attention", "--target=sm_90a", "--tokens=512", "--depth=64", "--ptxas=none", "--window=64")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines() if "window 64, 512 tokens" in line]
    # Of 64 x 512 - 64 x 63 / 2 scores, tiles of 128 rows and at most 192 keys are multiplied; the first one has 128.
    share = (128 * 128 + 3 * 128 * 192) / (64 * 512 - 32 * 63)
    assert [round(float(row[2]) / share, 2) for row in rows] == [4, 6, 8]
    done = bench("attention", "--target=sm_70")
    assert done.returncode == 1 and "argument --target: 'sm_70' is none of sm_89" in done.stderr


def test_attention_takes_the_least_of_its_rounds(bench, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    python, calls = tmp_path / "python", tmp_path / "calls"
    # The second round takes half the time and twice the memory of the first.
    python.write_text(f"""#!/bin/sh
echo "$2 $3 $4" >> {calls}
case $(grep -c "^$2 $3 " {calls}) in 1) echo '{{"version": "9.9", "seconds": 0.5, "bytes": 1048576}}';;
*) echo '{{"version": "9.9", "seconds": 0.25, "bytes": 2097152}}';; esac
""")
    python.chmod(0o755)
    done = bench("attention", f"--torch-python={python}", "--tokens=64", "--recipe=none", "--rounds=2", "--steps=3")
    assert done.returncode == 0, done.stderr
    assert calls.read_text().splitlines() == [f"{variant} 64 3" for variant in ("f32", "bf16", "written:none", "fused:none")] * 2
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith("| 64 ")]
    assert [row[3::2] for row in rows] == [["250.0"] * 4, ["1.00x"] * 2, ["1.00x"] * 2, ["1"] * 4], done.stdout
    assert "PyTorch 9.9; least of 2 interleaved rounds" in done.stdout
    done = bench("attention", "--tokens=64")
    assert (done.returncode, done.stdout) == (1, "") and "PyTorch is not here: give --torch-python=PYTHON" in done.stderr
    done = bench("attention", "--attention=fast")
    assert done.returncode == 1 and "argument --attention: 'fast' is none of written, fused" in done.stderr
    done = bench("attention", "--rounds=0")
    assert done.returncode == 1 and "argument --rounds: '0' is no number above 0" in done.stderr
    done = bench("attention", "--tokens=0")
    assert done.returncode == 1 and "argument --tokens: '0' is no list of numbers such as 1,4,16" in done.stderr


def test_compile_beside_a_peer(bench, peer, tmp_path):
    file = tmp_path / "r.json"
    done = bench("compile", "--layers=1,2", "--recipe=none,current", "--rounds=1", f"--jax-python={peer()}", f"--json={file}")
    assert done.returncode == 0, done.stderr
    rows = json.loads(file.read_text())["rows"]
    assert set(rows) == {"1", "2"} and set(rows["1"]) == {"none", "none, user", "current", "current, user", "XLA", "XLA, user"}
    assert (rows["2"]["XLA"], rows["2"]["XLA, user"]) == (1000.0, 3.0)
    assert "Times as fast as XLA" in done.stdout


def test_step_without_peers(bench, tmp_path):
    file = tmp_path / "r.json"
    done = bench("step", "--networks=mlp", "--rounds=1", "--seconds=0.001", "--cpu=x86-64-v3", f"--json={file}")
    assert done.returncode == 0, done.stderr
    read = json.loads(file.read_text())
    assert set(read["rows"]["mlp"]) == {"none", "current", "delayed"} and read["cpu"] == "x86-64-v3"
    assert len(read["left_out"]) == 2 and "code for x86-64-v3" in done.stdout and "Times as fast" not in done.stdout


@pytest.mark.parametrize(
    "statement, reason",
    [
        ("answer = {'error': 'ValueError: no memory'} if task == 'product' else answer", "ValueError: no memory"),
        ("task == 'product' and sys.exit('the last words')", "the last words"),
        ("task == 'product' and sys.exit(3)", "it ended without an answer"),
        ("answer = answer if task != 'product' else 7", "it ended without an answer"),
        ("sys.exit('No module named jax')", "No module named jax"),
    ],
)
def test_failing_peer_is_one_sentence(bench, peer, statement, reason):
    path = peer(statement)
    done = bench("products", "--shapes=4x4x4", "--rounds=1", "--seconds=0.001", "--with=jax", f"--jax-python={path}")
    assert (done.returncode, done.stderr) == (1, f"fp8-bench: error: JAX ({path}) failed: {reason}\n")


def test_interpreter_that_does_not_run(bench, tmp_path):
    (tmp_path / "python").write_text("")
    done = bench("step", f"--jax-python={tmp_path / 'python'}")
    assert (done.returncode, done.stderr) == (1, f"fp8-bench: error: JAX's interpreter {tmp_path / 'python'} does not run: Permission denied\n")


def test_processor_without_a_limit_for_peers_is_said(bench, peer):
    done = bench("products", "--shapes=4x4x4", "--rounds=1", "--seconds=0.001", "--with=jax", f"--jax-python={peer()}", "--cpu=haswell")
    assert done.returncode == 0, done.stderr
    assert "Left out: a limit for JAX: they use all of this processor" in done.stdout


def test_type_without_fast_code_is_left_out(bench, peer, tmp_path):
    path, file = peer("task == 'version' and answer.update(kinds=['f32'])"), tmp_path / "r.json"
    done = bench("products", "--shapes=4x4x4", "--rounds=1", "--seconds=0.001", "--with=torch", f"--torch-python={path}", f"--json={file}")
    assert done.returncode == 0, done.stderr
    read = json.loads(file.read_text())
    assert set(read["rows"]["4 x 4 x 4"]) == {"f32", "bf16", "FP8", "FP8, subnormal", "PyTorch f32"}
    assert read["left_out"] == ["PyTorch bf16, which has no fast code for the instructions of this processor"]


def test_what_no_limit_reaches_is_said(bench, peer):
    done = bench("products", "--shapes=4x4x4", "--rounds=1", "--seconds=0.001", "--with=jax", f"--jax-python={peer()}", "--cpu=x86-64-v3")
    assert done.returncode == 0, done.stderr
    assert "Left out: a limit for the library of products in XLA" in done.stdout


@pytest.mark.slow
def test_failing_installation_is_one_sentence(bench, monkeypatch, tmp_path):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    done = bench("step", "--install=torch-cpu")
    assert done.returncode == 1 and done.stderr.startswith("fp8-bench: error: PyTorch was not installed: ERROR: No matching distribution")
    assert done.stdout == f"Installing PyTorch in {tmp_path}/cache/fp8-mlir/peers/torch: about 1 GB, from download.pytorch.org\n"


PTXAS = """\
ptxas info    : Compiling entry function 'kernel_a' for 'sm_89'
ptxas info    : Function properties for kernel_a
    16 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 16 bytes cumulative stack size, 2048 bytes smem, 428 bytes cmem[0]
ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized in 'kernel_b'
ptxas info    : Compiling entry function 'kernel_b' for 'sm_89'
ptxas info    : Function properties for kernel_b
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers, used 0 barriers
"""


def test_what_ptxas_says_is_read():
    found, warnings = kernels.read_ptxas(PTXAS)
    assert found == {"kernel_a": kernels.Assembled(registers=40, stack=16, spills=12, shared=2048), "kernel_b": kernels.Assembled(registers=12)}
    assert len(warnings) == 1 and "C7510" in warnings[0]


def test_kernels_of_a_program(bench, tmp_path):
    (tmp_path / "p.mlir").write_text(product_speed.PROGRAM.format(m=64, n=32, k=64, t="bf16"))
    done = bench("kernels", tmp_path / "p.mlir", "--target=sm_89", "--ptxas=none", "--recipe=none", "--kernels=.")
    assert done.returncode == 0, done.stderr
    assert "Left out: registers" in done.stdout
    row = next(line for line in done.stdout.splitlines() if line.startswith("| product_"))
    assert f" {2 * 64 * 64 * 64} |" in row  # a tile has 64 columns
    assert f"{2 * 64 * 64 * 64} operations of tensor cores, 0 in FP8; the FP8 products of the program have 0" in done.stdout
    done = bench("kernels", tmp_path / "p.mlir", "--target=sm_10")
    assert (done.returncode, done.stderr) == (
        1,
        "fp8-bench: error: argument --target: 'sm_10' is none of sm_89, sm_90a, sm_100a, sm_120a; see fp8-bench kernels --help\n",
    )


def test_checkpoint(bench, tmp_path):
    done = bench("checkpoint", "--mib=4", "--tensors=8", "--rounds=2", f"--folder={tmp_path}", f"--json={tmp_path / 'out.json'}")
    assert done.returncode == 0, done.stderr
    times = json.loads((tmp_path / "out.json").read_text())["seconds"]
    assert set(times) == {"save", "copy to disk", "load", "copy to memory", "wait of a step"}
    assert all(len(values) == 2 and min(values) > 0 for values in times.values())
    save = statistics.median(times["copy to disk"]) / statistics.median(times["save"])
    assert re.fullmatch(rf"save {save:.2f}x, load [\d.]+x as fast as the copy", done.stdout.splitlines()[-1])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.json"]
    assert "a tensor has at least 64 KiB" in bench("checkpoint", "--mib=1", "--tensors=99").stderr
    assert "there is no folder /nowhere" in bench("checkpoint", "--folder=/nowhere").stderr
