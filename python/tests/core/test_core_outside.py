# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Passes of others in processes of their own: whatever happens there is an exception here, and no process is left."""

import concurrent.futures
import contextlib
import functools
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

import fp8
import numpy
import outside_programs
import pytest
from fp8 import _outside
from outside_programs import ASKED, ECHO, HALF_AN_ANSWER, KILLED

HELP = ": please report it, and compile parts of the program alone to find what to leave out"


@pytest.fixture
def package(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    return outside_programs.package(tmp_path)


@pytest.fixture
def passes(tmp_path, monkeypatch, package):
    """Runs a stand-in's passes on a program: passes(body, program)."""
    with outside_programs.in_place(monkeypatch, tmp_path, ECHO):

        def run(body, program=b"program"):
            outside_programs.write(tmp_path, body)
            return _outside.run(package, "pipeline", program)

        yield run


def wait_until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert condition()


def is_running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def number_in(file):
    wait_until(lambda: file.exists() and file.read_text())
    return int(file.read_text())


# Answers


def test_a_process_stays_for_the_next_program(passes):
    first, second = passes(ECHO, b"one"), passes(ECHO, b"two")
    assert first.split()[1:] == [b"one"] and second.split()[1:] == [b"two"]
    assert first.split()[0] == second.split()[0]
    assert outside_programs.children() == [int(first.split()[0])]


@pytest.mark.parametrize("size", [0, 1, 2**20 - 1, 2**20, 5 * 2**20 + 3])
def test_programs_of_any_size(passes, size):
    program = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    assert passes(ECHO, program).partition(b" ")[2] == program


def test_a_process_that_grew_large_is_not_kept(passes):
    body = ECHO.replace("{}", "{'kilobytes': 2**20}")
    assert passes(body).split()[0] != passes(body).split()[0]
    assert outside_programs.children() == []


def test_refusals_have_places_and_notes(passes):
    refused = [{"message": "m", "location": 'loc("a.py":3:4)', "place": ["a.py", 3, 4], "notes": ["n"]}, {"message": "other"}]
    with pytest.raises(_outside.Refused) as info:
        passes(ASKED + f"send_message(channel, {{'refused': {refused}, 'is_parsed': True}}); time.sleep(60)")
    assert info.value.is_parsed
    assert info.value.diagnostics == [("m", 'loc("a.py":3:4)', fp8.Location("a.py", 3, 4), ("n",)), ("other", "", None, ())]


def test_passes_see_neither_standard_input_nor_standard_output(passes, capfd):
    body = "os.write(1, b'printed\\n'); os.system('echo printed by a child')\n" + ECHO.replace("program)", "sys.stdin.buffer.read() + os.read(0, 9) + program)")
    assert passes(body).split()[1:] == [b"program"]
    assert capfd.readouterr() == ("", "")


# Deaths


STAND_IN = f"the passes of stand-in of numpy {numpy.__version__}"
DEATHS = {
    "were ended by signal 6 (Aborted)": KILLED.format("ABRT"),
    "were ended by signal 11 (Segmentation fault)": KILLED.format("SEGV"),
    "were ended by signal 9 (Killed)": KILLED.format("KILL"),
    "were ended with exit code 3": ASKED + "sys.exit(3)",
    "were ended with exit code 0": ASKED + "sys.exit(0)",
    "were ended with exit code 0 ": HALF_AN_ANSWER,
    "gave an answer that cannot be read": ASKED + "os.write(channel, b'LLVM ERROR: ' * 1000); time.sleep(60)",
    "gave an answer that cannot be read ": ASKED + "os.write(channel, MESSAGE.pack(WORD, 3, 0) + b'{,}'); time.sleep(60)",
    "gave an answer that cannot be read  ": ASKED + "os.write(channel, MESSAGE.pack(WORD, 3, 0) + b'\\xff\\xff\\xff'); time.sleep(60)",
    "gave an answer that cannot be read   ": ASKED + "os.write(channel, MESSAGE.pack(WORD, 2, 0) + b'[]'); time.sleep(60)",
}


@pytest.mark.parametrize("reason", DEATHS)
def test_a_death_is_an_exception_that_names_the_kept_input(passes, reason, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(fp8.CompileError) as info:
        passes(DEATHS[reason], b"func.func @f()")
    kept = info.value.source_path
    assert info.value.message == f"{STAND_IN} {reason.strip()}; the input is kept in {kept}{HELP}"
    assert info.value.notes == ("assertion",)
    assert pathlib.Path(kept).read_bytes() == b"func.func @f()"
    assert outside_programs.children() == []
    assert passes(ECHO, b"next").split()[1:] == [b"next"]


def test_a_death_before_anything_is_asked(passes):
    with pytest.raises(fp8.CompileError, match=r"were ended with exit code 1; .*\nTraceback[^$]*ZeroDivisionError"):
        passes("1 / 0", b"p" * 10**7)


def test_a_death_while_nothing_is_asked_does_no_harm(passes):
    pid = int(passes(ECHO).split()[0])
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not is_running(pid))
    assert int(passes(ECHO).split()[0]) != pid
    assert pid not in outside_programs.children()


def test_a_process_that_closes_the_socket_and_lives_is_ended(passes, monkeypatch):
    monkeypatch.setattr(_outside, "_PATIENCE", 0.1)
    with pytest.raises(fp8.CompileError, match="stopped in the middle of an answer"):
        passes(ASKED + "os.close(channel); time.sleep(300)")
    assert outside_programs.children() == []


def test_without_a_place_for_the_input_a_death_is_still_an_exception(passes, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/nonexistent")
    with pytest.raises(fp8.CompileError) as info:
        passes(KILLED.format("ABRT"))
    assert (info.value.message, info.value.source_path) == (f"{STAND_IN} were ended by signal 6 (Aborted)", None)


@pytest.mark.parametrize(
    "body", [ASKED + "ctypes.PyDLL(None).sleep(300)", "time.sleep(300)", ASKED + "os.write(channel, WORD); time.sleep(300)"]
)
def test_passes_have_a_time_limit(passes, body, monkeypatch):
    assert (fp8.config.compile_timeout, _outside.LIMIT) == (None, 600)
    monkeypatch.setattr(_outside, "LIMIT", 1.5)
    with pytest.raises(fp8.CompileError, match=r"took more than 1.5 s \(fp8.config.compile_timeout\); the input is kept in"):
        passes(body, b"p" * 10**7)
    assert outside_programs.children() == []
    monkeypatch.setattr(fp8.config, "compile_timeout", 0.5)
    with pytest.raises(fp8.CompileError, match=r"took more than 0.5 s \(fp8.config.compile_timeout\); the input is kept in"):
        passes(body)


# Processes of users


@pytest.fixture
def start(tmp_path):
    """Starts a process of a user's that runs passes: start(body, code)."""
    processes = []

    def start(body, code):
        # A shell starts background jobs with SIGINT ignored, which the child would inherit from this process.
        heed = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
        options = {"env": outside_programs.environment(), "preexec_fn": heed, "start_new_session": True}
        command = [sys.executable, "-c", outside_programs.script(tmp_path, body, code)]
        processes.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options))
        return processes[-1]

    yield start
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def output_of(process, given=""):
    """The output of a process that prints no error."""
    output, errors = process.communicate(given, timeout=120)
    assert (errors, process.returncode) == ("", 0)
    return output


def test_a_death_is_no_sigpipe(start):
    code = """
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
_outside.start(PACKAGE)
time.sleep(0.5)
try: run("p" * 10**7)
except fp8.CompileError: print("exception")
"""
    assert output_of(start("os.close(channel)", code)) == "exception\n"


def test_no_process_is_left_at_the_end(start):
    pid = int(output_of(start(ECHO, "print(run())")))
    assert not pathlib.Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize(
    "code", ["run('hang PID')", "keep(run())", "_outside.end_all(); _outside.start(PACKAGE); keep(*set(outside_programs.children()) - {child})"]
)
@pytest.mark.parametrize("has_child", [False, True])
def test_passes_end_with_a_parent_that_is_killed(start, tmp_path, code, has_child):
    """While a pass computes, and while a process waits or starts; also where a child of the parent's lives on."""
    code = f"""
def keep(pid): pathlib.Path("PID").write_text(str(pid)); time.sleep(300)
_outside.start(PACKAGE)
child = os.fork() if {has_child} else None
if child == 0: time.sleep(300)
{code}
"""
    process = start(ECHO, code.replace("PID", str(tmp_path / "pid")))
    pid = number_in(tmp_path / "pid")
    others = [child for child in outside_programs.children(process.pid) if child != pid]
    assert is_running(pid) and len(others) == has_child
    process.kill()
    wait_until(lambda: not is_running(pid), 10)
    for child in others:
        assert is_running(child)
        os.kill(child, signal.SIGKILL)


def test_ctrl_c_is_prompt_and_leaves_all_usable(start, tmp_path):
    code = f"""
before = run()
try: run("hang {tmp_path}/pid")
except KeyboardInterrupt: print("interrupted", outside_programs.children())
print(run() != before, len(outside_programs.children()))
"""
    process = start(ECHO, code)
    pid = number_in(tmp_path / "pid")
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert output_of(process) == "interrupted []\nTrue 1\n"
    assert time.monotonic() - began < 20 and not is_running(pid)


def test_ctrl_c_of_a_terminal_does_not_reach_the_passes(start, tmp_path):
    """It goes to all processes of the group."""
    code = f"""
signal.signal(signal.SIGINT, lambda *_: print("heard", flush=True))
before = run()
pathlib.Path("{tmp_path}/pid").write_text(str(before))
while not pathlib.Path("{tmp_path}/sent").exists(): time.sleep(0.02)
print(run() == before)
"""
    process = start(ECHO, code)
    number_in(tmp_path / "pid")
    os.killpg(process.pid, signal.SIGINT)
    (tmp_path / "sent").touch()
    assert output_of(process) == "heard\nTrue\n"


def test_threads_that_compile_at_once(passes):
    """Each has its own answer; one process is kept."""
    programs = [b"%d" % i * 1000 for i in range(80)]
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda program: passes(ECHO, program), programs))
    assert [answer.partition(b" ")[2] for answer in answers] == programs
    assert len(outside_programs.children()) == 1


def test_a_pass_that_hangs_holds_no_other_thread_up(passes, tmp_path, monkeypatch):
    monkeypatch.setattr(fp8.config, "compile_timeout", 300)
    errors = []

    def hang():
        try:
            passes(ECHO, b"hang %s" % str(tmp_path / "pid").encode())
        except fp8.CompileError as error:
            errors.append(str(error))

    thread = threading.Thread(target=hang)
    thread.start()
    pid = number_in(tmp_path / "pid")
    assert int(passes(ECHO).split()[0]) != pid and thread.is_alive()
    os.kill(pid, signal.SIGKILL)
    thread.join(60)
    assert len(errors) == 1 and "were ended by signal 9" in errors[0]


FORKED = """
before = run()
child = os.fork()
if not child:
    other = run()
    print(other not in (before, os.getppid()), run() == other, flush=True)
    _outside.end_all()
    os._exit(0)
os.waitpid(child, 0)
print(run() == before, len(outside_programs.children()))
"""
MULTIPROCESSING = """
if __name__ != "__main__": print("run again")
before = run()
with multiprocessing.get_context("METHOD").Pool(2) as pool:
    numbers = pool.map(work, range(4))
print(before not in numbers, run() == before)
"""


def test_a_forked_process_has_processes_of_its_own(start):
    assert output_of(start(ECHO, FORKED)) == "True True\nTrue 1\n"


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(start, tmp_path, method):
    (tmp_path / "work.py").write_text(outside_programs.script(tmp_path, ECHO, "def work(_): return run()"))
    code = "from work import work, run\n" + MULTIPROCESSING.replace("METHOD", method)
    process = start(ECHO, code)
    assert output_of(process) == "True True\n"


def test_a_user_s_program_is_never_run_again(start, tmp_path):
    """Neither a script without `if __name__ == "__main__"` nor one that comes on standard input, as in a folder that is gone and without HOME."""
    folder = tmp_path / "gone"
    folder.mkdir()
    code = outside_programs.script(tmp_path, ECHO, f"print('ran'); os.rmdir({str(folder)!r}); print(run() == run())")
    (tmp_path / "script.py").write_text(code.replace("os.rmdir", "str"))
    environment = {name: value for name, value in outside_programs.environment().items() if name != "HOME"}
    options = {"env": environment, "capture_output": True, "text": True, "timeout": 120}
    done = subprocess.run([sys.executable, str(tmp_path / "script.py")], **options)
    assert (done.stdout, done.stderr) == ("ran\nTrue\n", "")
    done = subprocess.run([sys.executable, "-"], input=code, cwd=folder, **options)
    assert (done.stdout, done.stderr) == ("ran\nTrue\n", "")


@pytest.mark.parametrize("executable", [None, "", "/bin/true", "/nonexistent/python3"])
def test_a_python_within_another_program_is_a_plain_sentence(passes, monkeypatch, executable):
    monkeypatch.setattr(sys, "executable", executable)
    with pytest.raises(fp8.MissingToolError) as info:
        passes(ECHO)
    assert str(info.value) == (
        f"{STAND_IN} run in a process of their own, and sys.executable, {executable or ''!r}, is no Python interpreter: "
        f"set it to that of Python {sys.version.split()[0]} before the first compilation"
    )


def test_the_python_of_another_version_is_refused(passes, monkeypatch):
    monkeypatch.setattr(sys, "hexversion", sys.hexversion + 1)
    program = "try: load(*sys.argv[1:4])\nexcept ImportError as error: problem = str(error)\n"
    program += "receive_message(channel); send_message(channel, {'broken': problem}); time.sleep(60)"
    with pytest.raises(
        fp8.MissingToolError, match=rf"cannot run in .*python.* \(sys.executable\): it is Python {sys.version.split()[0]}, and the package is an"
    ):
        passes(program)
    assert outside_programs.children() == []


def test_a_process_that_cannot_be_started(passes, monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: (_ for _ in ()).throw(BlockingIOError("Resource temporarily unavailable")))
    with pytest.raises(fp8.MissingToolError, match="no process can be started for the passes of stand-in .*: Resource temporarily unavailable"):
        passes(ECHO)
