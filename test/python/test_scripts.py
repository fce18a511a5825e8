# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# The scripts tools/quickstart and tools/check print their help, reject unknown options, and
# count tests correctly.

import shutil
import subprocess
import sys

import pytest


def call(*command):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True)


@pytest.mark.parametrize("script", ["quickstart", "check", "lint", "fuzz"])
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
