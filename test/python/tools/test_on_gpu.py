# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tools/on-gpu without a GPU: on the emulator, and on a GPU whose driver is the emulator. The parts that need PyTorch or JAX
are tested in python/tests/with_{torch,jax}."""

import json
import os
import subprocess
import sys
import zipfile

import pytest


@pytest.fixture
def on_gpu(source_dir, tmp_path):
    """on_gpu("--parts=kernels", …, VARIABLE=value): the finished process, and its rows by part."""

    def call(*arguments, **variables):
        command = [sys.executable, source_dir / "tools/on-gpu", *arguments, f"--output={tmp_path / 'out.json'}"]
        done = subprocess.run(list(map(str, command)), env={**os.environ, **variables}, capture_output=True, text=True)
        file = tmp_path / "out.json"
        content = json.loads(file.read_text()) if file.exists() else {"parts": {}}
        return done, {name: part["rows"] for name, part in content["parts"].items()}

    return call


@pytest.fixture
def wheel(source_dir, tmp_path):
    """wheel(files): a wheel of the package's sources, unless told otherwise, and of `files` (path inside -> text or file)."""

    def make(files, sources=True):
        path = tmp_path / "fp8.whl"
        with zipfile.ZipFile(path, "w") as file:
            for source in (source_dir / "python/src").rglob("*.py") if sources else ():
                file.write(source, source.relative_to(source_dir / "python/src"))
            for name, content in files.items():
                file.writestr(name, content) if isinstance(content, str) else file.write(content, name)
        return path

    return make


@pytest.fixture
def driver(build_dir):
    """The emulator in the place of a GPU's driver."""
    return {"FP8RT_CUDA_DRIVER": str(build_dir / "lib/fp8emu/libcuda.so.1"), "FP8EMU_CHIP": "sm_90a"}


@pytest.mark.slow(one_of=2)
def test_the_parts_without_frameworks(on_gpu, build_dir):
    done, parts = on_gpu(f"--build={build_dir}", "--device=emulator", "--minutes=30", "--parts=casts,products,kernels,tests")
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(parts) == ["kernels", "tests", "products", "casts"]  # In the order of their worth.
    assert len(parts["kernels"]) == 10
    assert all(row["status"] == "ok" and row["values"]["differ"] == 0 and row["values"]["elements"] >= 40 * 26 for row in parts["kernels"])
    assert all(row["status"] == "ok" and row["values"]["passed"] > 0 and row["values"]["failed"] == 0 for row in parts["tests"])
    own = {row["case"]: row for row in parts["products"] if row["status"] == "ok"}
    assert set(own) == {f"64x48x64 {recipe}" for recipe in ("none", "delayed", "current", "row", "block")}
    assert all(list(row["values"].values()) == [2 * 64 * 48 * 64] * 3 for row in own.values())
    peers = [row for name in ("products", "casts") for row in parts[name] if row["status"] != "ok"]
    assert len(peers) == 7 and all((row["status"], row["reason"], row["values"]) == ("left out", "needs a GPU", {}) for row in peers)
    # Each of three operands in bf16 is read and its bytes are written in two orders, or one where that is all that is needed.
    bytes_of = {row["case"]: row["values"]["bytes"] for row in parts["casts"] if row["status"] == "ok"}
    elements = 64 * 64 + 64 * 48 + 64 * 48
    assert set(bytes_of) == {"delayed", "current", "row", "block"} and all(3 * elements <= count <= 8 * elements for count in bytes_of.values())
    rows = [row for part in parts.values() for row in part]
    assert sum(line.startswith("| ") for line in done.stdout.splitlines()) == 1 + len(rows)


def test_a_wheel_on_a_gpu(on_gpu, wheel, build_dir, driver):
    """The driver's kernels give the emulator's bits. The wheel's compiler is a program, although zip files have no permissions."""
    files = {"fp8/bin/fp8-compile": f'#!/bin/sh\nexec "{build_dir}/bin/fp8-compile" "$@"\n'}
    files |= {f"fp8/lib/lib{name}.so": build_dir / "lib" / f"lib{name}.so" for name in ("fp8rt", "fp8emu")}
    done, parts = on_gpu(f"--wheel={wheel(files)}", "--quick", "--parts=casts,tests", **driver)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [(row["status"], row["reason"]) for row in parts["tests"]] == [("left out", "needs --build")]
    own = [row for row in parts["casts"] if row["status"] == "ok"]
    assert len(own) == 4 and all(row["values"]["GB/s"] > 0 for row in own)
    copy = parts["casts"][0]
    assert copy["status"] == "left out" and "PyTorch" in copy["reason"]


@pytest.mark.slow(one_of=2)
def test_bits_on_a_gpu(on_gpu, build_dir, driver):
    done, parts = on_gpu(f"--build={build_dir}", "--quick", "--minutes=30", "--parts=kernels", **driver)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(parts["kernels"]) == 10 and all(row["values"]["differ"] == 0 for row in parts["kernels"])


def test_a_part_that_ends_takes_nothing_from_the_others(on_gpu, wheel):
    package = wheel({"fp8/__init__.py": "import os, sys\nif 'kernels' in sys.argv: print('no memory', file=sys.stderr); os.abort()\nprint(2/0)"}, sources=False)
    done, parts = on_gpu(f"--wheel={package}", "--device=emulator", "--parts=kernels,casts")
    assert done.returncode == 1
    assert [(row["status"], row["reason"]) for row in parts["kernels"]] == [("failed", "its process ended with signal SIGABRT: no memory")]
    assert [(row["status"], row["reason"]) for row in parts["casts"]] == [("failed", "ZeroDivisionError: division by zero")]
    assert "kernels: 1 failed" in done.stdout and "ZeroDivisionError: division by zero |" in done.stdout


def test_a_part_that_hangs_is_ended(on_gpu, wheel):
    package = wheel({"fp8/__init__.py": "import time\ntime.sleep(1000)"}, sources=False)
    done, parts = on_gpu(f"--wheel={package}", "--device=emulator", "--parts=kernels,casts", "--minutes=0.05")
    assert done.returncode == 1
    assert [row["reason"] for row in parts["kernels"] + parts["casts"]] == ["its 2 s were over", "its 1 s were over"]


def test_a_framework_that_there_is_not(on_gpu, build_dir, tmp_path):
    for package in ("torch", "jax"):
        (tmp_path / f"{package}.py").write_text(f"raise ModuleNotFoundError('there is none', name='{package}')")
    done, parts = on_gpu(f"--build={build_dir}", "--device=emulator", "--parts=train_step,backend,jax,steps", PYTHONPATH=str(tmp_path))
    assert done.returncode == 0
    packages = {"train_step": "torch", "backend": "torch", "jax": "jax", "steps": "torch"}
    for name, package in packages.items():
        (row,) = parts[name]
        assert (row["status"], row["reason"]) == ("left out", f"needs the Python package {package}, which {sys.executable} lacks")


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--device=gpu"], "--device=gpu: expected cuda or emulator"),
        (["--parts=kernels,speed"], "--parts: 'speed' is none of kernels, tests, "),
        (["--minutes=0"], "--minutes=0.0: expected a positive number"),
        (["--wheel=none.whl"], "--wheel=none.whl: it is no wheel"),
        (["--build=nowhere"], "--build=nowhere: it is no build folder, for it has no bin"),
        ([], "no CUDA driver was found (none.so: cannot open shared object file: No such file or directory); --device=emulator runs the parts in small without one"),
    ],
)
def test_wrong_options_are_one_line(on_gpu, arguments, words):
    done, _ = on_gpu(*arguments, FP8RT_CUDA_DRIVER="none.so")
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("tools/on-gpu: error: " + words) and done.stderr.count("\n") == 1
