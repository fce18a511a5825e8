# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A folder as a wheel has it: one program for both tools, libraries beside it. Building the wheel itself takes
minutes (python/README.md has the command); `--wheel=FILE` tries one where nothing of LLVM is installed."""

import functools
import os
import pathlib
import shutil
import subprocess
import sys

import fp8
import pytest

from small_programs import product

SOURCE = pathlib.Path(fp8.__file__).parent


@pytest.fixture
def installed(tmp_path, request):
    """A copy of the package with bin and lib inside; fp8-tools is a script that calls the build's tools."""
    build = pathlib.Path(request.config.getoption("--build")).resolve()
    package = tmp_path / "fp8"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__", "jax", "torch"))
    (package / "bin").mkdir()
    (package / "lib").mkdir()
    for name in ("libfp8rt.so", "libfp8emu.so"):
        shutil.copy(build / "lib" / name, package / "lib")
    # A script does not learn the name that it was called by, so it is told apart by its arguments.
    script = package / "bin" / "fp8-tools"
    script.write_text(f'#!/bin/sh\ncase "$*" in *--pass-pipeline*) exec {build}/bin/fp8-opt "$@";; *) exec {build}/bin/fp8-compile "$@";; esac\n')
    script.chmod(0o755)

    def run(code):
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), "FP8_TOOLS": "", "PATH": "/usr/bin:/bin"}
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=tmp_path)

    return run


def test_a_wheel_compiles_and_runs(installed):
    done = installed(f"""
import fp8, numpy as np
library = fp8.compile({product()!r}, recipe="none", cache=False)
print(library.entries["main"](np.ones((4, 16), np.float32), np.ones((16, 8), np.float32))[0].numpy()[0, 0])
print(fp8._tools.find("libfp8rt.so").parents[1].parent == __import__("pathlib").Path.cwd())
print("fp8.matmul" in fp8.opt({product()!r}, "builtin.module(fp8-ingest-pipeline)"))
""")
    assert done.stdout == "16.0\nTrue\nTrue\n", done.stderr


def test_an_editable_installation_has_its_tools_in_another_folder(tmp_path, monkeypatch):
    """As scikit-build-core installs one: the package's path has both folders."""
    program = tmp_path / "fp8" / "bin" / "fp8-tools"
    program.parent.mkdir(parents=True)
    program.touch()
    monkeypatch.setattr(fp8.config, "tool_dir", None)
    monkeypatch.setattr(fp8, "__path__", [str(tmp_path / "fp8"), *fp8.__path__])
    assert fp8._tools.find("fp8-compile") == program


TRY_WHEEL = """
import fp8, numpy as np, small_programs
library = fp8.compile(small_programs.PAIR, recipe="current", sites="all", pair=("forward", "backward", 1))
x, w, dy = np.ones((4, 16), np.float32), np.full((16, 8), 0.5, np.float32), np.ones((4, 8), np.float32)
y, *residuals = library.entries["forward"](x, w)
(dw,) = library.entries["backward"](*residuals, dy)
print(round(float(y.numpy()[0, 0]), 3), round(float(dw.numpy()[0, 0]), 3), repr(library.report))
print("fp8.matmul" in fp8.opt(small_programs.product(), "builtin.module(fp8-ingest-pipeline)"))
"""


@pytest.mark.slow
def test_a_wheel_in_a_bare_debian(request, tmp_path):
    """Python and pip are all that is there."""
    wheel = request.config.getoption("--wheel")
    if wheel is None or os.geteuid() or not shutil.which("debootstrap"):
        pytest.skip("needs --wheel=FILE, root and debootstrap")
    root = tmp_path / "root"
    run = functools.partial(subprocess.run, check=True, capture_output=True, text=True)
    run(["debootstrap", "--variant=minbase", "--include=python3,python3-venv", "bookworm", root])
    for file in (wheel, pathlib.Path(__file__).parents[1] / "small_programs.py"):
        shutil.copy(file, root / "tmp")
    (root / "tmp" / "try_wheel.py").write_text(TRY_WHEEL)
    # Outside: the bare system may not have the certificates of this one.
    run([sys.executable, "-m", "pip", "download", "-q", "--only-binary=:all:", "--python-version=3.11", "-d", root / "tmp", "numpy"])
    inside = "cd /tmp && python3 -m venv v && v/bin/pip install -q --no-index --find-links=. fp8-mlir && env -i v/bin/python try_wheel.py"
    # The commands, and the library for JAX, which is no part of the bare system.
    inside += " && env -i v/bin/fp8-compile --print-support | head -1 && env -i v/bin/fp8-opt --version | head -1"
    inside += " && env -i ldd v/lib/python3*/site-packages/fp8/lib/libfp8_jax.so | grep -c /libm.so"
    done = run(["unshare", "-m", "sh", "-c", f"mount -t proc none {root}/proc && chroot {root} sh -ec '{inside}'"])
    *lines, version, count = done.stdout.splitlines()
    assert lines == ["8.0 4.0 <fp8.Report: 2 products, 2 in FP8, 0 kept>", "True", "cpu"]
    assert "LLVM version" in version and count == "1"


def test_the_package_and_the_project_have_one_version():
    import re
    import tomllib

    root = SOURCE.parents[2]
    project = tomllib.loads((root / "python" / "pyproject.toml").read_text())["project"]
    cmake = re.search(r"project\(fp8-mlir VERSION ([\d.]+)", (root / "CMakeLists.txt").read_text())[1]
    assert fp8.__version__ == project["version"] == cmake
