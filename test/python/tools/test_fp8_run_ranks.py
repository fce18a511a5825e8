# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8-run with several ranks, on the runtime's hand-written library (runtime/test/collectives/ranks_fixture.c): one step is
w = w - mean over the ranks of the column sums of x; the loss is the mean of the sums of x."""

import os
import random
import re
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from test_checkpoints import small_disk  # noqa: F401 (a fixture)

from harness import SEED

W = np.array([1, -2], np.float32)
X = np.arange(16, dtype=np.float32).reshape(8, 2) - 5


@pytest.fixture
def box(tmp_path, bin_dir, build_dir):
    """A folder with inputs, and fp8-run in it."""

    class Box:
        library = str(build_dir / "lib" / "libfp8rt_test_ranks_fixture.so")

        def path(self, name):
            return str(tmp_path / name)

        def command(self, *args, inputs="in"):
            return [bin_dir / "fp8-run", self.library, f"--inputs={inputs}", *args]

        def run(self, *args, timeout=60, preexec_fn=None, **kwargs):
            command = self.command(*args, **kwargs)
            return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=timeout, preexec_fn=preexec_fn)

        def ok(self, *args, **kwargs):
            done = self.run(*args, **kwargs)
            assert done.returncode == 0 and done.stderr == "", done.stderr
            return done

        def fails(self, *args, code=1, **kwargs):
            """Returns the lines of standard error; nothing was written."""
            before = sorted(os.listdir(tmp_path))
            done = self.run(*args, **kwargs)
            assert done.returncode == code, done
            assert sorted(os.listdir(tmp_path)) == before
            return done.stderr.splitlines()

        def start(self, *args):
            return subprocess.Popen(self.command(*args), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    save_file({"w": W, "x": X}, tmp_path / "in")
    return Box()


def reference(ranks, steps, x=X):
    w, losses = W.copy(), []
    for _ in range(steps):
        sums = [part.sum(0, dtype=np.float32) for part in np.split(x, ranks)]
        w = w - sum(sums) * np.float32(1 / ranks)
        losses.append(sum(s.sum() for s in sums) * np.float32(1 / ranks))
    return w, losses


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_ranks_share_the_rows(box, ranks):
    done = box.ok(f"--ranks={ranks}", "--steps=3", "--print=loss", "--outputs=out", "--save-state=state", "--with-carry")
    w, losses = reference(ranks, 3)
    assert [float(line.split("\t")[1]) for line in done.stdout.splitlines()] == losses
    out, state = load_file(box.path("out")), load_file(box.path("state"))
    np.testing.assert_array_equal(out["0"], w)
    np.testing.assert_array_equal(out["2"].reshape(-1, 2), [part.sum(0) for part in np.split(X, ranks)])  # gathered
    np.testing.assert_array_equal(state["carry.w"], w)
    np.testing.assert_array_equal(state["amax"], [10])


def test_the_run_goes_on_from_a_state(box):
    box.ok("--ranks=2", "--steps=2", "--save-state=state", "--with-carry")
    box.ok("--ranks=4", "--steps=1", "--state=state", "--with-carry", "--outputs=out")  # on another number of ranks
    np.testing.assert_allclose(load_file(box.path("out"))["0"], reference(2, 2)[0] - (X.sum(0) / 4))


def test_one_rank_warns_of_a_state(box):
    box.ok("--ranks=2", "--steps=2", "--save-state=state", "--with-carry")
    done = box.run("--ranks=4", "--state=state")
    assert (done.returncode, done.stderr) == (0, "fp8-run: warning: state: its carried arguments are left out: --with-carry takes them\n")


def test_streams_are_cut_after_the_dimension_of_steps(box):
    stream = np.stack([X, 2 * X, -X])
    save_file({"w": W, "data": stream}, box.path("in"))
    done = box.ok("--ranks=2", "--steps=4", "--stream=x=data", "--print=loss")
    losses = [reference(2, 1, stream[i % 3])[1][0] for i in range(4)]
    assert [float(line.split("\t")[1]) for line in done.stdout.splitlines()] == losses


def test_files_of_each_rank(box):
    for rank in range(2):
        save_file({"w": W, "x": X[4 * rank : 4 * rank + 4]}, box.path(f"in{rank}"))
    box.ok("--ranks=2", "--outputs=out{rank}", inputs="in{rank}")
    for rank in range(2):
        np.testing.assert_array_equal(load_file(box.path(f"out{rank}"))["0"], reference(2, 1)[0])


def test_rows_that_cannot_be_divided(box):
    errors = box.fails("--ranks=3")
    assert any("dimension 0 is 8, which is not divisible by 3 ranks" in line for line in errors)
    assert len(errors) == 3 and {line.split(":")[2].strip() for line in errors} == {"rank 0", "rank 1", "rank 2"}


def test_a_missing_file_of_one_rank_ends_all(box):
    save_file({"w": W, "x": X}, box.path("in0"))
    errors = box.fails("--ranks=2", "--outputs=out", inputs="in{rank}")
    assert len(errors) == 2
    assert any(line.startswith("fp8-run: error: rank 1: in1:") for line in errors)
    assert any(line.startswith("fp8-run: error: rank 0: rank 1 failed: in1:") for line in errors)


def test_different_inputs_of_ranks_are_found_before_the_first_step(box):
    for rank in range(2):
        save_file({"w": W + rank, "x": X}, box.path(f"in{rank}"))
    errors = box.fails("--ranks=2", "--print=loss", inputs="in{rank}")
    assert len(errors) == 2 and all("the ranks have different values: tensor 'w'" in line for line in errors)


def test_values_that_drift_apart_are_not_saved(box):
    save_file({"w": W}, box.path("in"))
    errors = box.fails("--ranks=2", "--entry=drifting", "--save-state=state", "--with-carry")
    assert len(errors) == 2 and all("the ranks have different values: tensor 'w'" in line for line in errors)


def test_a_rank_that_fails_tells_the_others(box):
    """Another rank hears of it in its own step, or before, where it still waits for what all ranks check before the first step."""
    save_file({}, box.path("in"))
    errors = sorted(line.split("fp8-run: error: ")[1] for line in box.fails("--ranks=3", "--entry=failing"))
    assert len(errors) == 3 and errors[1] == "rank 1: step 0: entry 'failing' failed: it fails"
    for rank in (0, 2):
        assert re.fullmatch(rf"rank {rank}: (step 0: entry 'failing' failed: )?rank 1 failed: entry 'failing' failed: it fails", errors[rank])


def test_a_launcher_that_ignores_its_children(box):
    """SIGCHLD is ignored in the programs that it starts, too."""
    done = box.run("--ranks=2", "--steps=2", "--print=loss", preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    assert (done.returncode, len(done.stdout.splitlines()), done.stderr) == (0, 2, "")


def children(process, count=4):
    """The processes of the ranks, in order."""
    path = f"/proc/{process.pid}/task/{process.pid}/children"
    while len(found := open(path).read().split()) < count:
        assert process.poll() is None
        time.sleep(0.01)
    return [int(number) for number in found]


def is_running(process):
    """Whether there is such a process, beside a zombie that init has not collected yet."""
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rsplit(") ")[1][0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for_the_end(ranks):
    deadline = time.monotonic() + 10
    while any(map(is_running, ranks)):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def wait_for_a_step(process):
    assert process.stdout.readline().startswith("0\t")


def test_a_killed_rank(box):
    process = box.start("--ranks=4", "--steps=100000000", "--print=loss")
    ranks = children(process)
    wait_for_a_step(process)
    os.kill(ranks[2], signal.SIGKILL)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 1
    lines = errors.splitlines()
    assert len(lines) == 4 and all("rank 2" in line for line in lines), errors
    assert "fp8-run: error: rank 2 was killed by signal 9 (Killed)" in lines


def test_a_stopped_rank(box):
    process = box.start("--ranks=4", "--steps=100000000", "--print=loss", "--deadline=1")
    ranks = children(process)
    wait_for_a_step(process)
    os.kill(ranks[1], signal.SIGSTOP)
    _, errors = process.communicate(timeout=30)  # and the parent ends the stopped one
    assert process.returncode == 1
    lines = errors.splitlines()
    assert len(lines) == 3 and all("rank 1 did not arrive at" in line and "within 1 s" in line for line in lines), errors


def test_ranks_end_with_their_parent(box):
    process = box.start("--ranks=4", "--steps=100000000", "--print=loss")
    ranks = children(process)
    wait_for_a_step(process)
    process.kill()
    process.communicate(timeout=30)
    wait_for_the_end(ranks)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_to_the_parent_ends_the_ranks_first(box, number):
    process = box.start("--ranks=4", "--steps=100000000", "--print=loss")
    ranks = children(process)
    wait_for_a_step(process)
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (-number, "")
    # The parent has waited for them: they are no zombies either.
    assert not any(os.path.exists(f"/proc/{rank}") for rank in ranks)


def expect_whole(path):
    """The file is of one step: both elements of w are as many gradients away."""
    state = load_file(path)
    steps = (W - state["carry.w"]) / (W - reference(2, 1)[0])
    assert steps[0] == steps[1] == int(steps[0]) >= 1 and state["amax"] == [10]


def temporaries(box):
    """Files of saves that did not end: `.NAME.PROCESS.ATTEMPT.tmp`."""
    return [name for name in os.listdir(box.path("")) if name.startswith(".")]


def kill_while_saving(box, times):
    rng = random.Random(SEED)
    print(f"FP8_TEST_SEED={SEED}")
    for _ in range(times):
        process = box.start("--ranks=2", "--steps=100000", "--print=loss", "--save-every=1", "--save-state=s", "--with-carry")
        ranks = children(process, 2)
        wait_for_a_step(process)
        time.sleep(0.1 * rng.random())
        os.kill(rng.choice([process.pid, *ranks]), signal.SIGKILL)
        process.communicate(timeout=60)  # others wait 30 s at most
        wait_for_the_end(ranks)
        if os.path.exists(box.path("s")):
            expect_whole(box.path("s"))
    # The next save removes what killed processes left, once init has collected them.
    there = {name for name in temporaries(box) if os.path.exists(f"/proc/{name.split('.')[2]}")}
    box.ok("--ranks=2", "--steps=2", "--save-every=1", "--save-state=s", "--with-carry")
    expect_whole(box.path("s"))
    assert set(temporaries(box)) <= there


def test_a_kill_of_any_process_leaves_whole_checkpoints(box):
    kill_while_saving(box, 5)


@pytest.mark.slow
def test_many_kills_leave_whole_checkpoints(box):
    kill_while_saving(box, 40)


def test_a_full_disk_ends_all_ranks(box, small_disk):
    box.ok("--ranks=2", "--save-state=disk/s", "--with-carry")
    before = (small_disk / "s").read_bytes()
    with pytest.raises(OSError):  # fills the disk
        (small_disk / "rest").write_bytes(bytes(16384))
    done = box.run("--ranks=2", "--steps=100000000", "--save-every=2", "--save-state=disk/s", "--with-carry")
    lines = sorted(done.stderr.splitlines())
    assert done.returncode == 1 and len(lines) == 2 and all("disk/s: cannot write: No space left on device" in line for line in lines), lines
    assert lines[0].startswith("fp8-run: error: rank 0: ") and "rank 0 failed: " in lines[1]
    assert (small_disk / "s").read_bytes() == before and sorted(os.listdir(small_disk)) == ["rest", "s"]


@pytest.mark.parametrize(
    "args, message",
    [
        (["--ranks=0"], "expected 1 to 1024"),
        (["--comm=pigeons"], "--comm=pigeons: expected"),
        (["--ranks=2", "--comm=none"], "needs --comm=local"),
        (["--ranks=2", "--comm=mpi"], "mpirun -n says how many ranks"),
        (["--deadline=0"], "--deadline: expected a number of seconds above 0"),
    ],
)
def test_wrong_command_lines(box, args, message):
    (error,) = box.fails(*args, code=2)
    assert message in error


@pytest.fixture
def mpirun(tmp_path):
    """Runs a command as several ranks of Open MPI."""
    if not shutil.which("mpirun"):
        pytest.skip("Open MPI is not installed")

    def run(ranks, *command):
        launcher = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks)]
        return subprocess.run([*launcher, *command], cwd=tmp_path, capture_output=True, text=True, timeout=60)

    return run


@pytest.mark.parametrize("ranks", [2, 4])
def test_collectives_have_the_same_bits_through_mpi(mpirun, bin_dir, tmp_path, ranks):
    trace = bin_dir / "fp8rt-rank-trace"
    local = subprocess.run([trace, "local", str(ranks)], capture_output=True, text=True, timeout=60, check=True)
    through_mpi = mpirun(ranks, trace, "mpi")
    assert through_mpi.returncode == 0, through_mpi.stderr
    assert "".join((tmp_path / f"trace.{rank}").read_text() for rank in range(ranks)) == local.stdout
    # A sum over all ranks has the same bits on each.
    sums = re.findall(r"rank \d: 0 0 4 12000: (\w+)", local.stdout)
    assert len(sums) == ranks and len(set(sums)) == 1


@pytest.mark.parametrize(
    "fault, reason",
    [
        ("fail", "rank 1 failed: of its own will"),
        ("fail-first", "rank 1 failed: of its own will"),
        ("sleep", "rank 1 did not arrive at all_reduce sum of 12 f32 'x' within 2 s"),
        ("other", "rank 1 in all_reduce sum of 6 f32 'x'"),
    ],
)
def test_failures_through_mpi(mpirun, bin_dir, tmp_path, fault, reason):
    mpirun(3, bin_dir / "fp8rt-rank-trace", "mpi", fault)
    for rank in (0, 2):
        assert reason in (tmp_path / f"trace.{rank}").read_text().splitlines()[-1]


def test_the_command_under_mpirun(box, mpirun):
    done = mpirun(2, *box.command("--comm=mpi", "--steps=3", "--print=loss", "--outputs=out"))
    w, losses = reference(2, 3)
    assert done.returncode == 0, done.stderr
    assert [float(line.split("\t")[1]) for line in done.stdout.splitlines()] == losses
    np.testing.assert_array_equal(load_file(box.path("out"))["0"], w)


def test_a_failing_rank_under_mpirun(box, mpirun):
    save_file({}, box.path("in"))
    done = mpirun(2, *box.command("--comm=mpi", "--entry=failing"))
    assert done.returncode == 1
    assert "fp8-run: error: rank 1: step 0: entry 'failing' failed: it fails" in done.stderr
    assert "fp8-run: error: rank 0: step 0: entry 'failing' failed: rank 1 failed: entry 'failing' failed" in done.stderr
