# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Wrong input of every kind to fp8-compile: one clear line, the right exit code, no file left.

Exit code 1 and `file:line:col: error:` for errors in the input, also with respect to the options;
2 and `fp8-compile: error:` for a wrong command line.
"""

import re
import subprocess

import pytest

# --- the input ---


def test_good_input_compiles(box):
    box.ok("good.mlir", "-o", "out.so")
    assert box.files()["out.so"].startswith(b"\x7fELF")


@pytest.mark.parametrize("stage", ["ingest", "recipe", "fusion", "batching", "bufferize", "kernels"])
def test_a_program_without_names_shows_its_sites(box, stage):
    """Where the program names nothing, the site's name stands at its place in every stage."""
    box.write("nameless.mlir", box.good.replace(' loc("x")', "").replace(' loc("w")', ""))
    text = box.ok("nameless.mlir", "-o", "-", f"--emit={stage}").stdout
    (name,) = re.findall(r'^(#loc\d*) = loc\("matmul0"\(', text, re.M)
    assert re.search(rf"^ .*loc\({name}\)$", text, re.M)


def test_missing_file(box):
    box.fails(1, r"^none\.mlir:1:1: error: .*No such file", "none.mlir", "-o", "out.so")
    box.fails(1, r"^\.:1:1: error: .*directory", ".", "-o", "out.so")


@pytest.mark.parametrize(
    "content",
    [b"\x00\x01\x02\xff" * 200, bytes(range(255, 127, -1)), b"ML\xefR\x0d\x01garbage", b"ML\xefR\x0d\x01", b"ML\xefR", b"\x7fELF" + bytes(64)],
    ids=["zeros", "high bytes", "bytecode", "bytecode that ends", "magic", "elf"],
)
def test_binary_garbage(box, content):
    box.write("bad.mlir", content)
    box.fails(1, r"^bad\.mlir:[1-9]\d*:[1-9]\d*: error: ", "bad.mlir", "-o", "out.so")


def test_truncated_bytecode(box, run, tmp_path):
    assert run("fp8-opt", "good.mlir", "-emit-bytecode", "-o", "good.mlirbc", cwd=tmp_path).returncode == 0
    box.ok("good.mlirbc", "-o", "out.so")
    (tmp_path / "out.so").unlink()
    whole = box.files()["good.mlirbc"]
    for size in range(5, len(whole), 97):
        box.write("bad.mlirbc", whole[:size])
        box.fails(1, r"^bad\.mlirbc:[1-9]\d*:[1-9]\d*: error: ", "bad.mlirbc", "-o", "out.so")


def test_modules_in_modules(box):
    box.rejects("module {\n  module {\n" + box.good + "  }\n}", "2:3", "a module inside a module cannot be compiled")


def test_standard_input(box):
    done = box.ok("-", "-o", "-", "--emit=ingest", stdin=box.good)
    assert "fp8.matmul" in done.stdout
    box.fails(1, r"^<stdin>:1:16: error: ", "-", "-o", "out.so", stdin="func.func @main(")
    box.fails(1, r"^-:1:1: error: there is no public function", "-", "-o", "out.so", stdin="")


def test_bytecode_from_standard_input(box, run, bin_dir, tmp_path):
    """Resources of bytecode say how they are aligned, here to 256 bytes, and are read where they lie."""
    blob = (256).to_bytes(4, "little") + bytes(8 * 16 * 4)
    weights = "  %w = arith.constant dense_resource<w> : tensor<8x16xf32>\n"
    text = box.good.replace(', %w: tensor<8x16xf32> loc("w")) -> tensor<4x16xf32> {\n', ") -> tensor<4x16xf32> {\n" + weights)
    box.write("weights.mlir", text + '{-# dialect_resources: { builtin: { w: "0x%s" } } #-}\n' % blob.hex().upper())
    assert run("fp8-opt", "weights.mlir", "-emit-bytecode", "-o", "weights.mlirbc", cwd=tmp_path).returncode == 0
    box.ok("weights.mlirbc", "-o", "file.so")
    with open(tmp_path / "weights.mlirbc", "rb") as bytecode:
        done = subprocess.run([bin_dir / "fp8-compile", "-", "-o", "stdin.so"], stdin=bytecode, cwd=tmp_path, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert box.files()["file.so"][:4] == box.files()["stdin.so"][:4] == b"\x7fELF"


@pytest.mark.parametrize("text", ["", "module {}", "func.func private @f(tensor<4xf32>)"])
def test_nothing_to_compile(box, text):
    box.rejects(text, "1:1", "there is no public function to compile")


def test_syntax_and_types(box):
    box.rejects("func.func @main(", "1:16", "expected")
    box.rejects("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %y : tensor<4xf32>\n}", "2:10", "undeclared")
    box.rejects(box.good.replace("outs(%f : tensor<4x16", "outs(%f : tensor<5x16"), r"5:\d+", "expects different type")
    box.rejects(box.good.replace("linalg.matmul", "linalg.matmool"), r"5:8", "matmool")
    box.rejects('func.func @main() {\n  "some.op"() : () -> ()\n  return\n}', "2:3", "'some.op' is not known here .fp8-compile takes")
    box.rejects("func.func @main() {\n  some.op %x\n  return\n}", r"2:\d+", "fp8-compile takes linalg on tensors")


@pytest.mark.parametrize("type", ["memref<4xf32>", "tensor<4xcomplex<f32>>", "tensor<*xf32>", "vector<4xf32>", "tensor<4xindex>"])
def test_argument_types_that_cannot_cross(box, type):
    box.rejects(f"func.func @main(%x: {type}) {{\n  return\n}}", "1:17", "argument 0 of 'main'")


def test_dynamic_shapes(box):
    box.write("dynamic.mlir", "func.func @main(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {\n  return %x : tensor<?x8xf32>\n}")
    for options in [[], ["--recipe=none"]]:
        box.ok("dynamic.mlir", "-o", "out.so", *options)


def test_places_of_arguments_that_only_have_names(box):
    box.rejects('func.func @main(%x: memref<4xf32> loc("x")) {\n  return\n}', "1:17", "argument 0 of 'main'")


def test_carried_results(box):
    text = "func.func @main(%x: tensor<4xf32> {tf.aliasing_output = RESULT : i32}) -> TYPE {\n  BODY\n}"
    same, body = "tensor<4xf32>", "return %x : tensor<4xf32>"
    box.rejects(text.replace("RESULT", "3").replace("TYPE", same).replace("BODY", body), "1:17", "carries result 3")
    other = "%c = arith.constant dense<0.0> : tensor<2xf32>\n  return %c : tensor<2xf32>"
    wrong = text.replace("RESULT", "0").replace("TYPE", "tensor<2xf32>").replace("BODY", other)
    box.rejects(wrong, "1:17", "its own type is 'tensor<4xf32>'")


def test_calls_of_functions_elsewhere(box):
    text = """func.func private @elsewhere(tensor<4xf32>) -> tensor<4xf32>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = call @elsewhere(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}"""
    box.rejects(text, "3:8", "need a body in this module")


# --- the command line ---


@pytest.mark.parametrize(
    "arguments, pattern",
    [
        ([], "positional"),
        (["good.mlir"], "-o is missing"),
        (["-o", "out.so"], "positional"),
        (["good.mlir", "good.mlir", "-o", "out.so"], "positional"),
        (["good.mlir", "-o"], "requires a value"),
        (["good.mlir", "-o", "out.so", "--bogus"], "--bogus"),
        (["good.mlir", "-o", "out.so", "-O3"], "-O3"),
        (["good.mlir", "-o", "-"], "--emit=lib writes a file"),
        (["good.mlir", "-o", "-", "--emit=obj"], "--emit=obj writes a file"),
        (["good.mlir", "-o", "out.so", "--report=json:./out.so"], "-o out.so and --report=json:./out.so both write"),
        (["good.mlir", "-o", "out.so", "--manifest=out.so"], "-o out.so and --manifest=out.so both write to out.so"),
        (["good.mlir", "-o", "out.so", "--report=json:a", "--manifest=a"], "both write to a; give one"),
        (["good.mlir", "-o", "out.so", "--report=json", "--report=text"], "both write to standard output"),
        (["good.mlir", "-o", "./good.mlir"], "-o ./good.mlir would overwrite the program good.mlir"),
        (["good.mlir", "-o", "out.so", "--report=json:good.mlir"], "--report=json:good.mlir would overwrite the program"),
        (["good.mlir", "-o", "-", "--emit=recipe", "--report=json"], "-o - and --report=json both write to standard output"),
    ],
)
def test_wrong_arguments(box, arguments, pattern):
    box.fails(2, rf"^fp8-compile: .*{pattern}", *arguments)


@pytest.mark.parametrize(
    "option",
    ["--target=tpu", "--emit=foo", "--recipe=foo", "--recipe=", "--recipe=42 : i32", "--recipe=#fp8.bogus", "--recipe=#fp8"]
    + ["--recipe=#fp8.delayed_scaling<margin = >", "--recipe=#fp8.delayed_scaling<margin = 1000>"]
    + ["--recipe=#fp8.delayed_scaling<amax_history_len = 0>", "--recipe=#fp8.role<fprop>", "--recipe=#builtin.int<3>"]
    + ["--keep=(", "--sites=[", "--require=*", "--format=e5m2", "--margin=x", "--margin=1000", "--margin="]
    + ["--amax-history-len=0", "--amax-history-len=-1", "--amax-history-len=1.5", "--amax-compute-algo=mean"]
    + ["--eps=x", "--eps=-1", "--eps=inf", "--power-2-scale=1", "--ignore-non-finite=", "--init=zero"]
    + ["--fprop=hybrid", "--dgrad=e3m4", "--wgrad=", "--recipe=#fp8.delayed_scaling<amax_history_len = 1, init = current>"]
    + ["--recipe=#fp8.custom<base = #fp8.current_scaling, amax = @f>"]
    + ["--first=x", "--first=", "--last=-1", "--calibrate=maybe", "--pair=", "--pair=f"]
    + ["--reduce-amax=maybe", "--report=xml", "--report=", "--carry=foo", "--carry=x:", "--carry=:0", "--carry=x:y"],
)
def test_wrong_values(box, option):
    name = option.split("=")[0]
    recipe = ["--recipe=current"] if name in ("--eps", "--power-2-scale") else []
    box.fails(2, rf"^fp8-compile: .*{name}", "good.mlir", "-o", "out.so", option, *recipe)


@pytest.mark.parametrize(
    "options",
    [
        ["--recipe=current", "--margin=1"],
        ["--recipe=current", "--amax-history-len=4"],
        ["--recipe=none", "--amax-compute-algo=max"],
        ["--recipe=none", "--format=e4m3"],
        ["--recipe=block", "--reduce-amax=false"],
        ["--recipe=delayed", "--eps=0.1"],
        ["--recipe=mxfp8", "--power-2-scale=true"],
        ["--recipe=current", "--ignore-non-finite=true"],
        ["--recipe=current", "--init=current"],
        ["--recipe=auto", "--margin=1"],
        ["--recipe=none", "--fprop=e4m3"],
        ["--recipe=#fp8.delayed_scaling", "--dgrad=e4m3"],
        ["--recipe=#fp8.delayed_scaling", "--margin=1"],
        ["--recipe=#fp8.current_scaling", "--format=e4m3"],
    ],
)
def test_contradictory_options(box, options):
    name = options[1].split("=")[0]
    box.fails(2, rf"^fp8-compile: error: {name}\S* belongs to .*; drop one of the two", "good.mlir", "-o", "out.so", *options)


def test_contradiction_of_length_and_init(box):
    box.fails(2, "--init=current needs an --amax-history-len of 2 or more", "good.mlir", "-o", "out.so", "--init=current", "--amax-history-len=1")


def test_help_and_version(box):
    assert "Examples:" in box.ok("--help").stdout
    assert re.match(r"fp8-compile \d+\.\d+", box.ok("--version").stdout)


COLUMN = '{format = f8E4M3FN, sites = ["q"], tensor = "input"}'


@pytest.mark.parametrize(
    "attributes",
    [
        "fp8.state_columns = [3], fp8.amax_history_len = 4 : i64",
        'fp8.state_columns = [{sites = ["a"]}], fp8.amax_history_len = 4 : i64',
        f"fp8.state_columns = [{COLUMN}], fp8.amax_history_len = 4 : i64",
    ],
)
@pytest.mark.parametrize("options", [[], ["--recipe=none"]])
def test_state_columns_of_the_input_are_not_believed(box, attributes, options):
    box.rejects(f"module attributes {{{attributes}}} {{\n{box.good}}}", "1:1", "'fp8.state_columns' is for the compiler", *options)


def test_state_arguments_of_the_input_are_not_believed(box):
    text = "func.func @main(%x: tensor<4xf32> {ARGUMENT}) -> (tensor<4xf32> {RESULT}) {\n  return %x : tensor<4xf32>\n}"
    state, result = 'fp8.state = "scale"', "fp8.result = 0 : i32"
    box.rejects(text.replace("ARGUMENT", state).replace("RESULT", ""), "1:17", "'fp8.state' is for the compiler")
    box.rejects(text.replace("ARGUMENT", result).replace("RESULT", ""), "1:17", "'fp8.result' is for the compiler")
    box.rejects(text.replace("ARGUMENT", "").replace("RESULT", state), "1:1", "'fp8.state' is for the compiler")


def test_evidence_of_the_input_is_not_believed(box):
    mark = '{fp8.matmuls = [{site = "w", role = "fprop", code = "tensor cores"}]}'
    box.rejects(box.good.replace("linalg.matmul ins", f"linalg.matmul {mark} ins"), "5:8", "'fp8.matmuls' is for the compiler")
