# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checkpoints of fp8-run survive kills, full disks and other writers; states of other programs are taken over
by the names of their sites. Runs the runtime's hand-written library (runtime/test/fixture.c)."""

import json
import os
import random
import shutil
import subprocess
import tempfile
import time

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from test_fp8_run import box, fixture, reference  # noqa: F401

from harness import SEED


def expect_whole(path):
    """All tensors of the file are of the same step. Returns its number."""
    with open(path, "rb") as file, tempfile.NamedTemporaryFile() as copy:  # a writer may replace it
        copy.write(file.read())
        copy.flush()
        tensors = load_file(copy.name)
    m = tensors["carry.m"].view(np.uint16)  # the fixture adds one to each per step
    steps = int(m[0]) - 10
    np.testing.assert_array_equal(m - m[0], [0, 10, 20, 30])
    w, _, scale, history = reference(steps)
    np.testing.assert_allclose(tensors["carry.w"], w, rtol=1e-5)
    np.testing.assert_allclose(tensors["scale"], scale, rtol=1e-5)
    np.testing.assert_allclose(tensors["amax_history"], history, rtol=1e-5)
    return steps


def start(box, bin_dir, fixture, *args):
    return subprocess.Popen(
        [bin_dir / "fp8-run", fixture, "--inputs=in", "--with-carry", *args], cwd=box.path(""), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def wait_for_save(path, limit=60):
    """Returns when the file at `path` is another than now."""

    def identify():
        try:
            return os.stat(path).st_ino, os.stat(path).st_mtime_ns
        except FileNotFoundError:
            return None

    before, start = identify(), time.monotonic()
    while identify() == before:
        assert time.monotonic() - start < limit, "nothing is saved"
        time.sleep(0.001)


def kill_while_saving(box, bin_dir, fixture, times):
    rng = random.Random(SEED)
    print(f"FP8_TEST_SEED={SEED}")
    saved = 0
    for _ in range(times):
        run = start(box, bin_dir, fixture, "--steps=60000", "--save-every=1", "--save-state=s", "--keep-last=2")
        wait_for_save(box.path("s"))
        time.sleep(0.02 * rng.random())
        run.kill()
        run.communicate()
        for name in box.files():
            if name == "s" or name.startswith("s."):
                expect_whole(box.path(name))
                saved += 1
    assert saved >= times
    box.ok("--save-state=s", "--with-carry")
    assert [name for name in box.files() if name.startswith(".")] == []


def test_a_kill_leaves_whole_checkpoints(box, bin_dir, fixture):
    kill_while_saving(box, bin_dir, fixture, 20)


@pytest.mark.slow
def test_many_kills_leave_whole_checkpoints(box, bin_dir, fixture):
    kill_while_saving(box, bin_dir, fixture, 200)


def test_the_last_checkpoints_are_kept(box):
    box.ok("--steps=10", "--save-every=2", "--keep-last=3", "--save-state=s.safetensors", "--with-carry")
    assert {name: expect_whole(box.path(name)) for name in box.files() if name != "in"} == {"s.6.safetensors": 6, "s.8.safetensors": 8, "s.safetensors": 10}
    box.ok("--steps=3", "--first-step=10", "--save-every=2", "--keep-last=3", "--state=s.safetensors", "--save-state=s.safetensors", "--with-carry")
    assert {name: expect_whole(box.path(name)) for name in box.files() if name != "in"} == {"s.10.safetensors": 10, "s.12.safetensors": 12, "s.safetensors": 13}


@pytest.fixture
def small_disk(tmp_path):
    """A folder with 16 KiB of space."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", folder], capture_output=True).returncode:
        pytest.skip("a small file system needs the right to mount one")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_keeps_the_old_checkpoint(box, small_disk, bin_dir, fixture):
    box.ok("--steps=4", "--save-state=disk/s", "--with-carry")
    before = (small_disk / "s").read_bytes()
    with pytest.raises(OSError):  # fills the disk
        (small_disk / "rest").write_bytes(bytes(16384))
    done = box.run("--steps=9", "--save-every=2", "--save-state=disk/s", "--with-carry")
    assert done.returncode == 1 and "disk/s: cannot write: No space left on device" in done.stderr
    assert done.stderr.count("\n") == 1
    assert (small_disk / "s").read_bytes() == before
    assert [name for name in os.listdir(small_disk) if name.startswith(".")] == []


def test_two_processes_save_to_one_file(box, bin_dir, fixture):
    runs = [start(box, bin_dir, fixture, f"--steps={steps}", "--save-every=1", "--save-state=s") for steps in (80, 81)]
    while any(run.poll() is None for run in runs):
        if "s" in box.files():
            expect_whole(box.path("s"))
    for run in runs:
        assert (run.wait(), run.stderr.read()) == (0, "")
    assert expect_whole(box.path("s")) in (80, 81) and box.files() == ["in", "s"]


def test_a_reader_during_saves_sees_whole_files(box, bin_dir, fixture):
    run = start(box, bin_dir, fixture, "--steps=150", "--save-every=1", "--save-state=s")
    seen, reads = [0], 0
    while run.poll() is None:
        if "s" in box.files():
            seen.append(expect_whole(box.path("s")))
            assert box.run("--state=s", "--with-carry", "--strict").returncode == 0
            reads += 1
    assert run.wait() == 0 and seen == sorted(seen) and reads > 1


def flip(path, bit):
    data = bytearray(open(path, "rb").read())
    data[bit // 8] ^= 1 << bit % 8
    open(path, "wb").write(data)


def test_damaged_checkpoints(box):
    box.ok("--save-state=good", "--with-carry")
    bits = 8 * os.path.getsize(box.path("good"))
    rng = random.Random(SEED)
    print(f"FP8_TEST_SEED={SEED}")
    for bit in [bits - 1, *(rng.randrange(bits) for _ in range(20))]:
        shutil.copy(box.path("good"), box.path("bad"))
        flip(box.path("bad"), bit)
        box.fails(1, "bad: not a valid safetensors file: ", "--state=bad", "--with-carry", "--save-state=other")
    shutil.copy(box.path("good"), box.path("bad"))
    flip(box.path("bad"), bits - 1)
    box.fails(1, "its checksum is wrong: it is damaged", "--state=bad")


def change_columns(box, change):
    """Writes `other`: the state `good` with other columns, and so another hash."""
    with safe_open(box.path("good"), "np") as file:
        metadata = file.metadata()
    columns = json.loads(metadata["columns"])
    change(columns)
    del metadata["fp8_checksum"]
    save_file(load_file(box.path("good")), box.path("other"), {**metadata, "columns": json.dumps(columns), "layout_hash": "x"})


def test_renamed_sites(box):
    box.ok("--steps=3", "--save-state=good", "--with-carry")

    def rename(columns):
        for column in columns:
            column["sites"] = ["old/fc"]

    change_columns(box, rename)
    box.fails(1, "other: its layout hash 'x' is not the program's 'abc123': .*--rename", "--state=other", "--save-state=s")
    box.fails(1, "--rename: other: there is no site 'olf' to rename", "--state=other", "--rename=olf=fc")
    done = box.ok("--steps=2", "--state=other", "--with-carry", "--rename=old/fc=fc", "--strict", "--save-state=a")
    assert done.stderr == ""
    box.ok("--steps=2", "--state=good", "--with-carry", "--save-state=b")
    assert open(box.path("a"), "rb").read() == open(box.path("b"), "rb").read()


def test_missing_and_extra_sites_are_reported(box):
    box.ok("--steps=3", "--save-state=good", "--with-carry")
    change_columns(box, lambda columns: columns[1].update(sites=["head"]))
    box.write("in2", {"x": np.zeros(3, np.float32)})
    done = box.ok("--state=other", "--entry=evaluate", "--save-state=s", inputs="in2")
    assert done.stderr == (
        "fp8-run: warning: other: column 'fc' weight: not in the file, it starts anew\n"
        "fp8-run: warning: other: column 'head' weight E4M3 of the file: not in the program, it is left out\n"
    )
    good, taken = load_file(box.path("good")), load_file(box.path("s"))
    np.testing.assert_array_equal(taken["scale"], [good["scale"][0], 1])
    np.testing.assert_array_equal(taken["amax_history"], good["amax_history"] * [1, 0])
    box.fails(1, "column 'fc' weight: not in the file", "--state=other", "--strict")


def test_strange_tensors_are_reported(box):
    box.ok("--save-state=good", "--with-carry")
    with safe_open(box.path("good"), "np") as file:
        metadata = file.metadata()
    del metadata["fp8_checksum"]
    more = {"extra": np.zeros(1), "carry.other": np.zeros(1)}
    save_file({**load_file(box.path("good")), **more}, box.path("other"), metadata)
    assert box.ok("--state=other", "--with-carry").stderr == (
        "fp8-run: warning: other: tensor 'extra' is not part of the program's state\n"
        "fp8-run: warning: other: tensor 'carry.other' is no carried argument of the program\n"
    )
    box.fails(1, "tensor 'extra' is not part of the program's state", "--state=other", "--strict")


def test_a_file_that_another_program_changed(box):
    """The message says what to do: drop the checksum with the change."""
    box.ok("--save-state=good")
    with safe_open(box.path("good"), "np") as file:
        metadata = file.metadata()
    save_file({**load_file(box.path("good")), "scale": np.ones(2, np.float32)}, box.path("bad"), metadata)
    box.fails(1, "another program changed it and left its metadata 'fp8_checksum'", "--state=bad")
