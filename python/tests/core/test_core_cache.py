# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cache of compiled libraries: what its key is, damaged entries, folders that cannot be written, several processes."""

import errno
import logging
import os
import pathlib
import subprocess
import sys
import tempfile

import fp8
import numpy as np
import pytest

from small_programs import compile_product, fake_tool, product

SOURCE = pathlib.Path(fp8.__file__).parents[1]


def test_a_library_is_compiled_once(fresh_cache, caplog):
    caplog.set_level(logging.INFO, "fp8")
    first, second = compile_product(), compile_product()
    assert first.path == second.path and first.hash == second.hash
    assert [record.message.endswith("from the cache") for record in caplog.records] == [False, True]
    assert compile_product(margin=1).path != first.path
    assert str(first.report) == str(second.report) and first.manifest == second.manifest


def test_the_folder_of_the_source_is_not_part_of_the_key(fresh_cache):
    locations = [f' loc("fc/dot"("/home/{user}/model.py":5:50))' for user in ("one", "two")]
    one, two = (fp8.compile(product(locations=location), recipe="current") for location in locations)
    assert one.path == two.path
    assert [library.report.sites[0].place.file for library in (one, two)] == ["/home/one/model.py", "/home/two/model.py"]


def test_without_the_cache_nothing_is_kept(fresh_cache):
    library = compile_product(cache=False, recipe="none")
    assert library.entries["main"](np.ones((4, 16), np.float32), np.ones((16, 8), np.float32))[0].numpy()[0, 0] == 16
    assert not fresh_cache.exists()


@pytest.mark.parametrize("damage", ["truncate", "remove", "garbage"])
def test_a_damaged_entry_is_compiled_again(damage, fresh_cache):
    path = compile_product(recipe="current").path
    whole = path.read_bytes()
    if damage == "remove":
        path.unlink()
    elif damage == "truncate":
        path.write_bytes(whole[:100])
    else:
        (path.parent / "entry.json").write_text("{")
    assert compile_product(recipe="current").path.read_bytes()[:4] == b"\x7fELF"


def test_a_cache_that_cannot_be_written_is_a_warning(tmp_path, monkeypatch):
    # A file where the folder should be: root may write into any folder.
    (tmp_path / "cache").write_text("")
    monkeypatch.setattr(fp8.config, "cache_dir", tmp_path / "cache")
    with pytest.warns(fp8.Warning, match="compiled libraries are not kept: .*FP8_CACHE_DIR names another folder"):
        library = compile_product(recipe="current")
    assert library.path.exists()


@pytest.mark.parametrize("number", [errno.EPERM, errno.EROFS], ids=errno.errorcode.get)
def test_a_cache_that_can_only_be_read_is_read(number, fresh_cache, monkeypatch, recwarn):
    """As one that another user filled, or one on a disk that is mounted for reading."""

    def refuse(*_):
        raise OSError(number, os.strerror(number))

    path = compile_product(recipe="current").path
    for name in ("utime", "mkdir", "unlink", "rmdir"):
        monkeypatch.setattr(os, name, refuse)
    assert compile_product(recipe="current").path == path and path.exists()
    assert not recwarn.list


def test_a_full_disk_is_a_warning(tmp_path, monkeypatch, fresh_cache):
    real = fp8._tools.find("fp8-compile")
    full = f"""case $PWD in {fresh_cache}/*) echo "-:1:1: error: cannot write 'step.so': No space left on device" >&2; exit 1;; esac"""
    monkeypatch.setattr(fp8.config, "tool_dir", fake_tool(tmp_path / "tools", f'{full}\nexec {real} "$@"'))
    with pytest.warns(fp8.Warning, match="compiled libraries are not kept: No space left on device: .*FP8_CACHE_DIR names another folder"):
        library = compile_product(recipe="none")
    assert library.entries["main"](np.ones((4, 16), np.float32), np.ones((16, 8), np.float32))[0].numpy()[0, 0] == 16
    assert list((fresh_cache / "libraries").iterdir()) == []


def test_the_cache_is_in_the_home_folder_or_a_temporary_one(monkeypatch):
    folder = lambda **environment: fp8._config.Config.from_environment(environment).cache_dir
    home = pathlib.Path.home()
    assert folder() == home / ".cache" / "fp8-mlir" and folder(FP8_CACHE_DIR="~/mine") == home / "mine"
    assert folder(FP8_CACHE_DIR="mine") == pathlib.Path.cwd() / "mine"
    # As for a user without an entry in the list of users, where HOME is not set.
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert folder().is_dir() and str(folder()).startswith(tempfile.gettempdir())


def test_the_least_used_libraries_go_first(fresh_cache, monkeypatch):
    paths = []
    for margin in range(3):
        paths.append(compile_product(margin=margin).path)
        os.utime(paths[-1].parent, (margin, margin))
    compile_product(margin=0)  # used again
    monkeypatch.setattr("fp8._cache.LIMIT_BYTES", 7 / 2 * sum(file.stat().st_size for file in paths[0].parent.iterdir()))
    newest = compile_product(margin=3).path
    assert [path.exists() for path in [*paths, newest]] == [True, False, True, True]


def test_two_processes_compile_the_same_program(fresh_cache):
    code = f"import fp8; print(fp8.compile({product()!r}, recipe='current', sites='all').path)"
    command = [sys.executable, "-c", code]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "FP8_CACHE_DIR": str(fresh_cache)}
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) for _ in range(3)]
    paths = {process.communicate()[0] for process in processes}
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert len(paths) == 1
    assert len(list((fresh_cache / "libraries").iterdir())) == 1
