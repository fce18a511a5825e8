# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mistakes of a user's first hour: wrong options, programs that cannot be compiled, a compiler that dies or
is missing, a cache that cannot be written, several processes, Ctrl-C."""

import functools
import os
import pathlib
import re
import shlex
import signal
import stat
import subprocess
import sys
import time
import tomllib
import warnings

import fp8
import numpy as np
import pytest

from small_programs import PAIR, compile_product, fake_tool, product

SOURCE = pathlib.Path(fp8.__file__).parents[1]


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(recipe="fp9"), "recipe=fp9 is none of delayed, current, "),
        (dict(recipe=7), "recipe=7: a recipe is a word"),
        (dict(keep="(a"), "keep=.a is not a regular expression: parentheses not balanced"),
        (dict(keep=r"h\d+"), r"\\d is Python's; the compiler reads POSIX extended regular expressions: write \[0-9\]"),
        (dict(sites="(?:a|b)"), r"\(\?: is Python's; .*: write \(…\)"),
        (dict(amax_history_len=0), "amax_history_len=0"),
        (dict(recipe=None), "recipe=None: a recipe is a word such as 'delayed' or 'none', an attribute "),
        (dict(amax_history_length=4), "^there is no option amax_history_length. Did you mean 'amax_history_len=4'.$"),
        (dict(foo=3), "^there is no option foo$"),
        (dict(print_options=True), "^there is no option print_options$"),
        (dict(help=True), "^there is no option help: it is one of the command line alone$"),
        (dict(version=True), "^there is no option version: it is one of the command line alone$"),
        (dict(emit="llvm"), "^there is no option emit: it is one of the command line alone$"),
        (dict(target="sm_42"), "target=sm_42"),
        (dict(pair=("forward",)), "a program has one pair"),
        (dict(carry={0: "x"}), "carry=0:x must be ARGUMENT:RESULT"),
    ],
    ids=str,
)
def test_a_wrong_option_is_one_line(options, message):
    with pytest.raises((ValueError, TypeError), match=message) as info:
        compile_product(**options)
    assert "\n" not in str(info.value) and "--" not in str(info.value)


def test_patterns_have_no_flags():
    import re

    assert "no site matches" not in str(compile_product(keep=re.compile("^w$")).report)
    with pytest.raises(ValueError, match="flags of regular expressions are not passed on"):
        compile_product(keep=re.compile("w", re.I))


def test_options_that_fit_no_product_can_be_reported():
    options = dict(sites="nope", site_recipe=["w=row", "w=none"], recipe="current")
    assert compile_product(**options, unused_options="report").report.unused_options == {
        "sites": "no site matches sites=nope",
        "site_recipe[1]": "site_recipe=w=none is for no site: earlier site_recipe options match the same ones",
    }
    assert compile_product().report.unused_options == {}
    with pytest.raises(fp8.CompileError, match="no site matches sites=nope"):
        compile_product(sites="nope", unused_options="error")


def test_keep_may_be_a_function():
    seen = []
    report = compile_product(keep=lambda site: seen.append(site) or site.k == 16).report
    assert [(site.site, site.role, site.m, site.n, site.k) for site in seen] == [("w", "fprop", 4, 8, 16)]
    assert [site.decision for site in report.sites] == ["high"]
    assert [site.decision for site in compile_product(keep=lambda site: False).report.sites] == ["fp8"]


def test_errors_are_at_the_users_line():
    text = product(locations=' loc("jit(step)/h0/fc/dot_general"(callsite("f"("/home/me/model.py":5:50) at "/home/me/train.py":9:1)))')
    with pytest.raises(fp8.CompileError) as info:
        fp8.compile(text, sites="linear", recipe="delayed", require="all", keep="fc")
    assert info.value.location == fp8.Location("/home/me/model.py", 5, 50)
    assert str(info.value).startswith("/home/me/model.py:5: ")
    assert info.value.__cause__ is None


def test_the_same_error_of_several_products_is_given_once():
    text = PAIR.replace("\n  return", ' loc("model.py":5:50)\n  return')
    with pytest.raises(fp8.CompileError) as info:
        fp8.compile(text, pair=("forward", "backward", 1), require="all", keep="w")
    message = "site 'w' is required to be FP8 (require=all) but stays in high precision: matches keep=w"
    assert str(info.value) == f"model.py:5: {message}" and info.value.notes == ()


def test_an_operation_without_a_lowering():
    text = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = "torch.aten.cholesky"(%x) : (tensor<4xf32>) -> tensor<4xf32> loc("model.py":3:7)
  return %y : tensor<4xf32>
}"""
    with pytest.raises(fp8.UnsupportedError, match="torch.aten.cholesky") as info:
        fp8.compile(text)
    assert isinstance(info.value, NotImplementedError) and info.value.location == fp8.Location("model.py", 3, 7)


def test_a_source_that_is_no_program(tmp_path):
    with pytest.raises(fp8.CompileError):
        fp8.compile("this is no MLIR")
    with pytest.raises(TypeError, match="source is of type int: give text, bytes or a path"):
        fp8.compile(7)
    with pytest.raises(FileNotFoundError):
        fp8.compile(tmp_path / "missing.mlir")


def test_a_path_is_named_in_errors(tmp_path):
    path = tmp_path / "step.mlir"
    path.write_text(product().replace("linalg.matmul", "linalg.mutmal"))
    with pytest.raises(fp8.CompileError) as info:
        fp8.compile(path)
    assert (info.value.location.file, info.value.source_path) == (str(path), str(path))


KILLED = {
    "in the cache": "fp8.compile(text)",
    "without the cache": "fp8.compile(text, cache=False)",
    "keep is a function": "fp8.compile(text, keep=lambda site: True)",
    "passes": "fp8.opt(text, 'builtin.module(cse)')",
}


@pytest.mark.parametrize("call", KILLED.values(), ids=KILLED)
def test_a_compiler_that_is_killed_keeps_the_input(call, tmp_path):
    tools = fake_tool(tmp_path / "tools", "echo assertion >&2; kill -ABRT $$")
    (tools / "bin" / "fp8-opt").symlink_to("fp8-compile")
    (tmp_path / "tmp").mkdir()
    code = f"import fp8\ntext = {product()!r}\ntry: {call}\nexcept fp8.CompileError as e: print(e.source_path, e, sep='\\n')"
    done = run_python(code, FP8_TOOLS=str(tools), FP8_CACHE_DIR=str(tmp_path / "cache"), TMPDIR=str(tmp_path / "tmp"))
    # Read when that process has ended: nothing else stays.
    (folder,) = (tmp_path / "tmp").iterdir()
    assert (folder / "source.mlir").read_text() == product()
    tool = "fp8-opt" if "opt" in call else "fp8-compile"
    message = f"{tool} was ended by signal 6 (Aborted); the input is kept in {folder}/source.mlir; please report it"
    assert done.stdout.splitlines() == [f"{folder}/source.mlir", message, "assertion"], done.stderr
    assert not list((tmp_path / "cache").glob("libraries/*"))


def test_a_compilation_has_a_time_limit(tmp_path, monkeypatch, fresh_cache):
    monkeypatch.setattr(fp8.config, "tool_dir", fake_tool(tmp_path / "tools", "exec sleep 60"))
    monkeypatch.setattr(fp8.config, "compile_timeout", 0.2)
    with pytest.raises(fp8.CompileError, match=r"fp8-compile took more than 0.2 s \(fp8.config.compile_timeout\)"):
        fp8.compile(product())
    assert list((fresh_cache / "libraries").iterdir()) == []


def test_without_tools(tmp_path):
    code = "import fp8\ntry: fp8.compile('x')\nexcept fp8.MissingToolError as e: print(e)"
    package = tmp_path / "site-packages"
    package.mkdir()
    (package / "fp8").symlink_to(SOURCE / "fp8")
    # Copied: a link would lead back to the checkout.
    (package / "fp8").unlink()
    subprocess.run(["cp", "-r", SOURCE / "fp8", package / "fp8"], check=True)
    done = run_python(code, PYTHONPATH=str(package), FP8_TOOLS="", PATH="/nowhere")
    assert "fp8-compile is in none of " in done.stdout and "set FP8_TOOLS to its build folder" in done.stdout


def run_python(code, **environment):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(SOURCE), **environment})


def test_import_takes_numpy_only():
    done = run_python("import sys, fp8; print(sorted({'jax', 'torch', 'ml_dtypes'} & set(sys.modules)))")
    assert done.stdout == "[]\n", done.stderr


def test_a_framework_that_is_missing_says_what_to_install():
    code = "import sys; sys.modules['torch'] = None; sys.modules['jax'] = None; import fp8\n"
    for name in ("jax", "torch"):
        if not (SOURCE / "fp8" / name).is_dir():
            continue
        done = run_python(code + f"fp8.{name}")
        extra = tomllib.loads((SOURCE.parent / "pyproject.toml").read_text())["project"]["optional-dependencies"][name]
        assert shlex.split(re.search(r"(?<=: pip install ).*", done.stderr)[0]) == extra


@pytest.mark.parametrize("source", ["step.mlir", "models/step.stablehlo"])
def test_a_file_that_is_not_there_is_no_program(source):
    with pytest.raises(FileNotFoundError, match=re.escape(source)):
        fp8.compile(source)


@pytest.mark.parametrize("kind", [str, pathlib.Path])
def test_a_folder_is_no_program(kind, tmp_path):
    with pytest.raises(IsADirectoryError, match=f"^.Errno 21. Is a directory: '{tmp_path}'$"):
        fp8.compile(kind(tmp_path))


def test_a_folder_without_the_compiler_is_named(tmp_path, monkeypatch):
    for wrong in (tmp_path / "nowhere", tmp_path):
        monkeypatch.setattr(fp8.config, "tool_dir", wrong)
        with pytest.raises(fp8.MissingToolError, match=f"{wrong} has no fp8-compile .FP8_TOOLS, fp8.config.tool_dir.: give a build or installation folder"):
            compile_product()


def test_folders_with_spaces_and_other_letters(tmp_path):
    folder = tmp_path / "mein Ordner ü"
    folder.mkdir()
    (folder / "prüfung.mlir").write_text(product())
    code = """import fp8
library = fp8.compile("prüfung.mlir", recipe="none", sites="all")
library.save("schritt ß.so")
print(library.path, fp8.load("schritt ß.so").report)"""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "FP8_CACHE_DIR": str(folder / "der Cache"), "LC_ALL": "C", "PYTHONUTF8": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=folder)
    assert done.stdout.startswith(str(folder / "der Cache" / "libraries")) and "1 products, 0 in FP8" in done.stdout, done.stderr


def is_running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_ctrl_c_ends_the_compiler(tmp_path, fresh_cache):
    marker = tmp_path / "pid"
    tools = fake_tool(tmp_path / "tools", f"echo $$ > {marker}; exec sleep 60")
    code = f"import fp8\ntry: fp8.compile({product()!r})\nexcept KeyboardInterrupt: print('interrupted')"
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "FP8_TOOLS": str(tools), "FP8_CACHE_DIR": str(fresh_cache)}
    # A shell starts background jobs with SIGINT ignored, which the child would inherit from this process.
    heed = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True, preexec_fn=heed)
    deadline = time.monotonic() + 30
    while not (marker.exists() and marker.read_text()) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=30)[0] == "interrupted\n"
    assert not is_running(int(marker.read_text()))
    assert list((fresh_cache / "libraries").iterdir()) == []


def test_the_folder_of_the_tools_may_be_relative(fresh_cache, monkeypatch):
    tools = fp8._tools.find("fp8-compile").parent
    monkeypatch.chdir(tools.parent)
    monkeypatch.setattr(fp8.config, "tool_dir", pathlib.Path(tools.name))
    assert repr(compile_product(recipe="current").report) == "<fp8.Report: 1 products, 1 in FP8, 0 kept>"


def test_a_notebook_cell_runs_again(fresh_cache):
    """Running a cell again makes the same library anew; the first one stays usable."""
    x, w = np.ones((4, 16), np.float32), np.ones((16, 8), np.float32)
    libraries = [compile_product(recipe="current") for _ in range(3)]
    results = [library.entries["main"](x, w)[0].numpy() for library in libraries]
    np.testing.assert_array_equal(results[0], results[2])


def test_warnings_of_the_compiler_are_warnings_at_the_call(fresh_cache, tmp_path, monkeypatch):
    real = fp8._tools.find("fp8-compile")
    tools = fake_tool(tmp_path / "tools", f'echo "model.py:3:4: warning: watch --first" >&2; exec {real} "$@"')
    monkeypatch.setattr(fp8.config, "tool_dir", tools)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fp8.compile(product(), recipe="current", sites="all")
    assert [(str(w.message), w.category) for w in caught] == [("model.py:3: watch first", fp8.Warning)]
    assert caught[0].filename == __file__


def test_settings_come_from_the_environment(capfd):
    done = run_python(
        "import fp8; print(fp8.config.cache_dir, fp8.config.compile_timeout, fp8.config.verbose)",
        FP8_CACHE_DIR="/somewhere", FP8_COMPILE_TIMEOUT="1.5", FP8_VERBOSE="1",
    )  # fmt: skip
    assert done.stdout == "/somewhere 1.5 True\n", done.stderr
    assert "FP8_COMPILE_TIMEOUT=soon is no number of seconds" in run_python("import fp8", FP8_COMPILE_TIMEOUT="soon").stderr


def test_passes_on_ir():
    assert "arith.constant 3" in fp8.opt(
        "func.func @f() -> i32 { %a = arith.constant 1 : i32 %b = arith.constant 2 : i32 %c = arith.addi %a, %b : i32 return %c : i32 }",
        "builtin.module(canonicalize)",
    )
    for pipeline, message in {
        "builtin.module(no-such-pass)": "'no-such-pass' does not refer to a registered pass or pass pipeline",
        "cse": "expected pass pipeline to be wrapped with the anchor operation type, e.g. 'builtin.module(...)'",
        "builtin.module(canonicalize{foo=1})": "<Pass-Options-Parser>: no such option foo",
    }.items():
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            fp8.opt("module {}", pipeline)
    with pytest.raises(fp8.CompileError):
        fp8.opt("nonsense", "builtin.module(cse)")
    assert "fp8.matmul" in fp8.opt(product(), "builtin.module(fp8-ingest-pipeline)")


def test_saved_files_are_executable_libraries(tmp_path):
    compile_product(recipe="current").save(tmp_path / "step.so")
    assert stat.S_IMODE((tmp_path / "step.so").stat().st_mode) == 0o755
    assert [path.name for path in tmp_path.iterdir()] == ["step.so"]
