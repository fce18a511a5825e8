# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The files that fp8-compile writes, where they cannot be written, and what its tools need to start."""

import os
import re
import stat
import subprocess

import pytest


def test_unwritable_outputs(box, tmp_path):
    place = r"^good\.mlir:1:1: error: .*"
    for emit in ("lib", "obj", "llvm", "recipe", "kernels"):
        box.fails(1, place + "none/out", "good.mlir", "-o", "none/out", f"--emit={emit}")
        box.fails(1, place, "good.mlir", "-o", ".", f"--emit={emit}")
    for option in ("--report=json:none/r", "--report=text:none/r", "--manifest=none/m"):
        box.fails(1, place + "none/", "good.mlir", "-o", "out.so", option)
    # Files that were written before the failure go, too.
    box.fails(1, place + "none/", "good.mlir", "-o", "none/out.so", "--report=json:r", "--manifest=m")
    box.fails(1, place + "none/", "good.mlir", "-o", "out.so", "--report=json:r", "--manifest=none/m")
    # A file that was there before the failure stays.
    box.write("r", "of an earlier run")
    box.fails(1, place + "none/", "good.mlir", "-o", "none/out.so", "--report=json:r")


def test_links_are_written_through(box, tmp_path):
    box.write("file", "of an earlier run")
    (tmp_path / "link").symlink_to("file")
    box.ok("good.mlir", "-o", "link")
    assert (tmp_path / "link").is_symlink() and box.files()["file"].startswith(b"\x7fELF")
    box.fails(2, "both write to link", "good.mlir", "-o", "file", "--manifest=link")


def test_links_to_files_that_are_not_there_yet(box, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder/next")
    (tmp_path / "folder/next").symlink_to("file")
    box.ok("good.mlir", "-o", "link")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "folder/next").is_symlink()
    assert (tmp_path / "folder/file").read_bytes().startswith(b"\x7fELF")
    (tmp_path / "circle").symlink_to("circle")
    box.fails(1, "cannot write 'circle': Too many levels of symbolic links", "good.mlir", "-o", "circle")
    assert (tmp_path / "circle").is_symlink()


def test_full_disk(box):
    if not (os.path.exists("/dev/full") and stat.S_ISCHR(os.stat("/dev/full").st_mode)):
        pytest.skip("there is no /dev/full here")
    box.fails(1, r"^good\.mlir:1:1: error: .*", "good.mlir", "-o", "out.so", "--report=text:/dev/full")


@pytest.mark.parametrize("tool", ["fp8-compile", "fp8-run", "fp8-ptx"])
@pytest.mark.parametrize("option", ["--help", "--version"])
def test_standard_output_that_is_full(tool, option, bin_dir):
    with open("/dev/full", "w") as full:
        done = subprocess.run([bin_dir / tool, option], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (1, f"{tool}: error: cannot write to standard output: No space left on device\n")


def test_a_table_that_standard_output_has_no_place_for(bin_dir):
    with open("/dev/full", "w") as full:
        done = subprocess.run([bin_dir / "fp8-compile", "--print-support"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (1, "fp8-compile: error: cannot write to standard output: No space left on device\n")


def test_tools_that_start_often_load_no_shared_llvm(bin_dir, build_dir):
    """The dynamic loader takes longer for it than fp8-run for a small step."""
    if "FP8_ENABLE_SANITIZERS:STRING=\n" not in (build_dir / "CMakeCache.txt").read_text():
        pytest.skip("a build with sanitizers uses the shared libraries")
    for tool in ["fp8-compile", "fp8-run", "fp8-ptx", "fp8-bench"]:
        loaded = subprocess.run(["ldd", bin_dir / tool], capture_output=True, text=True, check=True).stdout
        assert "libc.so" in loaded and not re.search("libLLVM|libMLIR", loaded), tool
