# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Generated code does not depend on the number of threads, on the cache of objects, or on what became
# of the files in the cache.

import os
import shutil
import subprocess

import pytest


@pytest.fixture
def compile_net(run, source_dir, tmp_path):
    """compile_net("--flag", …, cache=folder): the library's bytes."""

    def call(*flags, cache=tmp_path / "cache", model=source_dir / "test/python/inputs/net.mlir"):
        library = tmp_path / "net.so"
        environment = {**os.environ, "FP8_CACHE_DIR": str(cache)}
        result = run("fp8-compile", model, "-o", library, *flags, env=environment)
        assert (result.returncode, result.stderr) == (0, "")
        return library.read_bytes()

    return call


def read_cache(folder):
    """Inode and bytes of every object: a file that is written again has another inode."""
    return {file.name: (file.stat().st_ino, file.read_bytes()) for file in folder.glob("llvmcache-*") if file.suffix == ""}


def test_same_bytes_for_any_number_of_threads(compile_net):
    want = compile_net("--no-cache", "--threads=1")
    for threads in ("2", "3", "0", "2"):
        assert compile_net("--no-cache", f"--threads={threads}") == want


TARGETS = [[], ["--target=sm_90a", "--ptxas=none"],
           pytest.param(["--target=sm_90a"], marks=pytest.mark.skipif(not shutil.which("ptxas"), reason="ptxas is not installed"))]


@pytest.mark.parametrize("target", TARGETS)
def test_second_compilation_takes_objects_from_the_cache(compile_net, tmp_path, target):
    want = compile_net(*target)
    objects = read_cache(tmp_path / "cache")
    assert len(objects) >= 2  # the entry points, and at least one group of kernels, or the text of one
    assert compile_net(*target) == want
    assert read_cache(tmp_path / "cache") == objects
    assert compile_net("--no-cache", *target) == want


def test_texts_of_two_chips_are_kept_apart(compile_net):
    want = {chip: compile_net("--no-cache", f"--target={chip}", "--ptxas=none") for chip in ("sm_89", "sm_120a")}
    for chip in ("sm_89", "sm_120a", "sm_89"):
        assert compile_net(f"--target={chip}", "--ptxas=none") == want[chip]


def test_an_assembler_is_asked_once(run, source_dir, tmp_path):
    """Its warnings are given again; another assembler of the same name makes code of its own."""
    assembler, asked = tmp_path / "ptxas", tmp_path / "asked"

    def write_assembler(code):
        assembler.write_text(f"""#!/bin/sh
echo asked >> {asked}
echo "ptxas warning : this is slow"
while [ "$1" != -o ]; do shift; done
printf '{code}' > "$2"
""")
        assembler.chmod(0o755)

    def compile_once():
        result = run("fp8-compile", source_dir / "test/python/inputs/net.mlir", "-o", tmp_path / "net.so", "--target=sm_90a",
                     f"--ptxas={assembler}", env={**os.environ, "FP8_CACHE_DIR": str(tmp_path / "cache")})
        assert result.returncode == 0 and "warning: this is slow" in result.stderr
        return (tmp_path / "net.so").read_bytes()

    write_assembler("first\\0code")
    first = compile_once()
    assert b"first\0code" in first and compile_once() == first and asked.read_text() == "asked\n"
    write_assembler("another code")
    assert b"another code" in compile_once() and asked.read_text() == "asked\n" * 2


def test_other_processor_is_another_object(compile_net, tmp_path):
    compile_net("--cpu=x86-64-v3")
    first = set(read_cache(tmp_path / "cache"))
    compile_net("--cpu=x86-64-v2", "--recipe=none")
    assert set(read_cache(tmp_path / "cache")) > first


@pytest.mark.slow(one_of=4)
@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b"", lambda b: b[:200] + b"\0" + b[201:] + b"x", lambda b: b"llvm"])
@pytest.mark.parametrize("target", TARGETS[:2])
def test_damaged_files_are_written_again(compile_net, tmp_path, damage, target):
    want = compile_net(*target)
    objects = read_cache(tmp_path / "cache")
    for name, (_, content) in objects.items():
        (tmp_path / "cache" / name).write_bytes(damage(content))
    assert compile_net(*target) == want
    repaired = read_cache(tmp_path / "cache")
    assert {name: content for name, (_, content) in repaired.items()} == {name: content for name, (_, content) in objects.items()}


def test_folder_that_cannot_be_written(compile_net, tmp_path):
    want = compile_net("--no-cache")
    (tmp_path / "file").write_text("")
    assert compile_net(cache=tmp_path / "file" / "cache") == want
    assert compile_net(cache="/proc/fp8-mlir") == want


def test_no_cache_writes_nothing(compile_net, tmp_path):
    compile_net("--no-cache")
    assert not (tmp_path / "cache").exists()


def test_cache_folder_is_that_of_the_user(run, source_dir, tmp_path):
    environment = {key: value for key, value in os.environ.items() if key != "FP8_CACHE_DIR"}
    environment["XDG_CACHE_HOME"] = str(tmp_path / "xdg")
    model = source_dir / "test/python/inputs/net.mlir"
    assert run("fp8-compile", model, "-o", tmp_path / "net.so", env=environment).returncode == 0
    assert read_cache(tmp_path / "xdg" / "fp8-mlir")


def test_several_processes_at_once(bin_dir, source_dir, tmp_path):
    environment = {**os.environ, "FP8_CACHE_DIR": str(tmp_path / "cache")}
    model = str(source_dir / "test/python/inputs/net.mlir")
    command = [str(bin_dir / "fp8-compile"), model, "--threads=2", "-o"]
    running = [subprocess.Popen([*command, str(tmp_path / f"{i}.so")], env=environment) for i in range(4)]
    assert [process.wait() for process in running] == [0] * 4
    libraries = {(tmp_path / f"{i}.so").read_bytes() for i in range(4)}
    assert len(libraries) == 1
    assert not list((tmp_path / "cache").glob("*.tmp"))


def test_library_exports_the_c_abi_only(compile_net, tmp_path):
    compile_net()
    symbols = subprocess.run(
        ["/usr/lib/llvm-22/bin/llvm-nm", "-D", "--defined-only", "--format=just-symbols", tmp_path / "net.so"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert sorted(symbols) == ["fp8_call_evaluate", "fp8_call_main", "fp8_kernels", "fp8_manifest"]
