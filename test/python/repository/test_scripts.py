# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The scripts tools/quickstart and tools/check print their help, reject unknown options, and
# count tests correctly.

import re
import shutil
import subprocess
import sys

import pytest


def call(*command):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True)


@pytest.mark.parametrize("script", ["quickstart", "check", "lint", "fuzz", "on-gpu"])
def test_help_teaches(script, source_dir):
    done = call(source_dir / "tools" / script, "--help")
    assert done.returncode == 0 and done.stdout.startswith("usage: tools/" + script)


def test_unknown_option_is_one_line(source_dir):
    done = call(source_dir / "tools/check", "--fast")
    assert done.returncode == 2 and done.stderr == "check: unknown option '--fast'; see tools/check --help\n"


@pytest.mark.parametrize("option", ["--nonsense", "--device=gpu", "--steps=0"])
def test_quickstart_names_a_wrong_option_before_it_builds(option, source_dir):
    done = call(source_dir / "tools/quickstart", option)
    assert done.returncode == 2 and option.partition("=")[0] in done.stderr.splitlines()[-1]
    assert "Building" not in done.stdout


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="shellcheck is not installed")
def test_scripts_are_sound(source_dir):
    scripts = [source_dir / "tools" / name for name in ("quickstart", "check", "lint", "fuzz", "setup.sh")]
    done = call("shellcheck", "-x", "-P", source_dir, *scripts, source_dir / ".ci/run")
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(not shutil.which("shellcheck"), reason="shellcheck is not installed")
def test_lint_finds(source_dir, tmp_path):
    """Each kind of file by its own tool; files that are in order pass."""
    script, python = tmp_path / "script", tmp_path / "module.py"
    script.write_text("#!/usr/bin/env bash\necho $1\n")
    python.write_text("import os\n")
    lint = source_dir / "tools/lint"
    done = call(lint, script)
    assert done.returncode == 1 and "SC2086" in done.stdout
    done = call(lint, python)
    assert done.returncode == 1 and "F401" in done.stdout
    script.write_text('#!/usr/bin/env bash\necho "$1"\n')
    python.write_text("import os\n\nprint(os.sep)\n")
    assert call(lint, script, python).returncode == 0


CASES = {
    "good.xml": "<testsuite><testcase/><testcase><skipped/></testcase></testsuite>",
    "bad.xml": "<testsuites><testsuite><testcase/><testcase><failure/></testcase></testsuite></testsuites>",
    "empty.xml": "<testsuite/>",
    "part.xml": '<testsuite><properties><property name="left_out" value="12"/></properties><testcase/></testsuite>',
}


@pytest.mark.parametrize(
    "files, last, code",
    [
        (["good.xml"], "1 passed, 0 failed", 0),
        (["good.xml", "bad.xml"], "2 passed, 1 failed", 1),
        (["good.xml", "empty.xml"], "1 passed, 1 failed", 1),
        (["good.xml", "missing.xml"], "1 passed, 1 failed", 1),
    ],
)
def test_summary_counts(files, last, code, source_dir, tmp_path):
    for name, text in CASES.items():
        (tmp_path / name).write_text(text)
    done = call(sys.executable, source_dir / "test/summarize.py", *(tmp_path / name for name in files))
    assert (done.stdout.splitlines()[-1], done.returncode) == (last, code)


def test_summary_says_what_was_left_out(source_dir, tmp_path):
    (tmp_path / "part.xml").write_text(CASES["part.xml"])
    done = call(sys.executable, source_dir / "test/summarize.py", tmp_path / "part.xml")
    assert done.stdout.split("\n")[1].split() == "part 1 passed 0 failed 0 skipped 12 slow ones left out".split()


def test_slow_tests_that_are_left_out_are_counted(source_dir, tmp_path):
    """In one process, and in several, of which each collects all tests."""
    (tmp_path / "conftest.py").write_text(
        f"import sys\nsys.path.insert(0, {str(source_dir / 'test')!r})\nimport slow_tests\n"
        "pytest_addoption = slow_tests.add_options\npytest_configure = slow_tests.add_marker\npytest_collection_modifyitems = slow_tests.select\n"
    )
    (tmp_path / "test_some.py").write_text(
        "import pytest\n\ndef test_a(): pass\n\n@pytest.mark.slow(one_of=1)\ndef test_b(): pass\n\n"
        "@pytest.mark.slow\n@pytest.mark.parametrize('n', range(64))\ndef test_c(n): pass\n"
    )

    def left_out(*options):
        done = call(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tmp_path, f"--junitxml={tmp_path / 'x.xml'}", *options)
        passed = int(re.search(r"(\d+) passed", done.stdout)[1])
        text = (tmp_path / "x.xml").read_text()
        count = int(re.search('name="left_out" value="(\\d+)"', text)[1])
        assert passed + count == 66 and done.stdout.count(f"{count} slow tests left out") == (count > 0)
        return count

    for several in ([], ["-n", "2"]):
        assert left_out(*several) == 65
        assert left_out("--slow", *several) == 0
        assert 48 <= left_out("--slow-sample=word", *several) < 64  # Seven eighths of 64 are 56; test_b always runs.
