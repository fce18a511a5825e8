# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Wrong input of every kind to fp8-compile: one clear line, the right exit code, no file left.

Exit code 1 and `file:line:col: error:` for errors in the input, also with respect to the options;
2 and `fp8-compile: error:` for a wrong command line.
"""

import json
import os
import re
import stat
import subprocess

import pytest

GOOD = """\
func.func @main(%x: tensor<4x8xf32> loc("x"), %w: tensor<8x16xf32> loc("w")) -> tensor<4x16xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x16xf32>) -> tensor<4x16xf32>
  %y = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%f : tensor<4x16xf32>) -> tensor<4x16xf32>
  return %y : tensor<4x16xf32>
}
"""


@pytest.fixture
def box(tmp_path, run):
    class Box:
        def write(self, name, content):
            (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())

        def compile(self, *arguments, stdin=None):
            return run("fp8-compile", *arguments, stdin=stdin, cwd=tmp_path)

        def ok(self, *arguments, stdin=None):
            done = self.compile(*arguments, stdin=stdin)
            assert (done.returncode, done.stderr) == (0, ""), done
            return done

        def files(self):
            return {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path) if (tmp_path / name).is_file()}

        def fails(self, code, pattern, *arguments, stdin=None):
            before = self.files()
            done = self.compile(*arguments, stdin=stdin)
            assert (done.returncode, done.stdout) == (code, ""), done
            assert done.stderr.count("\n") == 1, done.stderr
            assert re.search(pattern, done.stderr), done.stderr
            assert self.files() == before

        def rejects(self, text, place, pattern, *options):
            """The program `text` is wrong at `place` (line:column)."""
            self.write("bad.mlir", text)
            self.fails(1, rf"^bad\.mlir:{place}: error: .*{pattern}", "bad.mlir", "-o", "out.so", *options)

    box = Box()
    box.write("good.mlir", GOOD)
    return box


# --- the input ---


def test_good_input_compiles(box):
    box.ok("good.mlir", "-o", "out.so")
    assert box.files()["out.so"].startswith(b"\x7fELF")


@pytest.mark.parametrize("stage", ["ingest", "recipe", "fusion", "batching", "bufferize", "kernels"])
def test_a_program_without_names_shows_its_sites(box, stage):
    """Where the program names nothing, the site's name stands at its place in every stage."""
    box.write("nameless.mlir", GOOD.replace(' loc("x")', "").replace(' loc("w")', ""))
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
    box.rejects("module {\n  module {\n" + GOOD + "  }\n}", "2:3", "a module inside a module cannot be compiled")


def test_standard_input(box):
    done = box.ok("-", "-o", "-", "--emit=ingest", stdin=GOOD)
    assert "fp8.matmul" in done.stdout
    box.fails(1, r"^<stdin>:1:16: error: ", "-", "-o", "out.so", stdin="func.func @main(")
    box.fails(1, r"^-:1:1: error: there is no public function", "-", "-o", "out.so", stdin="")


def test_bytecode_from_standard_input(box, run, bin_dir, tmp_path):
    """Resources of bytecode say how they are aligned, here to 256 bytes, and are read where they lie."""
    blob = (256).to_bytes(4, "little") + bytes(8 * 16 * 4)
    weights = "  %w = arith.constant dense_resource<w> : tensor<8x16xf32>\n"
    text = GOOD.replace(', %w: tensor<8x16xf32> loc("w")) -> tensor<4x16xf32> {\n', ") -> tensor<4x16xf32> {\n" + weights)
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
    box.rejects(GOOD.replace("outs(%f : tensor<4x16", "outs(%f : tensor<5x16"), r"5:\d+", "expects different type")
    box.rejects(GOOD.replace("linalg.matmul", "linalg.matmool"), r"5:8", "matmool")
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


# --- what it is asked to become ---


def test_an_output_of_another_target(box):
    pattern = r"--emit=ptx belongs to --target=sm_100a, sm_120a, sm_89, sm_90a, not to --target=cpu; drop one of the two"
    box.fails(2, pattern, "good.mlir", "-o", "out.so", "--emit=ptx")
    box.fails(2, r"--emit=gif is none of lib, obj, llvm, ", "good.mlir", "-o", "out.so", "--emit=gif")


@pytest.mark.parametrize("recipe", ["mxfp8", "#fp8.mx_scaling<format = hybrid>"])
@pytest.mark.parametrize("chip", ["sm_89", "sm_90a"])
def test_recipes_without_tensor_cores(box, recipe, chip):
    pattern = rf"^good\.mlir:5:8: error: site 'w': mxfp8 scales have no kernel on {chip}, which has no MX tensor cores; use --recipe=block"
    box.fails(1, pattern, "good.mlir", "-o", "out.so", f"--recipe={recipe}", f"--target={chip}")
    box.ok("good.mlir", "-o", "-", "--emit=recipe", f"--recipe={recipe}")


@pytest.mark.parametrize("recipe", ["block", "row", "mxfp8", "#fp8.block_scaling<block = 64>"])
def test_recipes_with_scales_per_row_or_block(box, recipe):
    box.ok("good.mlir", "-o", "out.so", f"--recipe={recipe}")


def test_remarks(box):
    """Operations that stay generic code on a GPU, and the reason."""
    options = ["--recipe=#fp8.block_scaling<block = 100>", "--target=sm_89", "--ptxas=none"]
    done = box.compile("good.mlir", "-o", "out.so", *options, "--remarks")
    reason = "kernels have an f32 scale for each multiple of 32 elements along K"
    assert re.search(rf"^good\.mlir:5:8: remark: .*'fp8\.scaled_matmul' stays generic code on the GPU: {reason}", done.stderr, re.M), done.stderr
    box.ok("good.mlir", "-o", "out.so", *options)


def test_user_functions_for_scales(box):
    """The error of a wrong function is at the function, of a missing one at the program."""
    recipe = "--recipe=#fp8.custom<base = #fp8.delayed_scaling, scale = @f>"
    missing = "the recipe's scale = @f names no function with a body in this module"
    box.fails(1, r"^good\.mlir:1:1: error: " + missing, "good.mlir", "-o", "out.so", recipe)
    box.rejects("func.func private @f(f32, f32, f32) -> f32\n" + GOOD, "1:1", missing, recipe)
    two = GOOD + "func.func @f(%a: f32, %b: f32) -> f32 {\n  return %a : f32\n}\n"
    box.rejects(two, "8:1", "must be .amax: f32, fp8_max: f32, old: f32. -> f32", recipe)
    printing = GOOD + "func.func @f(%a: f32, %b: f32, %c: f32) -> f32 {\n  vector.print %a : f32\n  return %a : f32\n}\n"
    box.rejects(printing, "9:3", "'vector.print' may have effects", recipe, "--calibrate")
    branches = GOOD + "func.func @f(%a: f32, %b: f32, %c: f32) -> f32 {\n  cf.br ^b\n^b:\n  return %a : f32\n}\n"
    box.write("branches.mlir", branches)  # become structured control flow at ingest
    box.ok("branches.mlir", "-o", "out.so", recipe, "--calibrate")
    recipe = "--recipe=#fp8.custom<base = #fp8.delayed_scaling, amax = @f>"
    other = GOOD + "func.func @f(%a: tensor<4xf32>) -> f32 {\n  %z = arith.constant 0.0 : f32\n  return %z : f32\n}\n"
    box.rejects(other, "8:1", r"must be .column: tensor<\?xf32>. -> f32", recipe)


def test_roles_in_a_type_the_program_does_not_have(box):
    pattern = r"^good\.mlir:5:8: error: site 'w': --fprop=%s keeps matmuls as they are, and the program has this one in f32; say --fprop=f32"
    box.fails(1, pattern % "f64", "good.mlir", "-o", "out.so", "--fprop=f64")
    # Wider than asked for is no error, and said.
    box.ok("good.mlir", "-o", "out.so", "--fprop=bf16", "--report=json:r")
    (site,) = json.loads(box.files()["r"])["sites"]
    assert site["reason"] == "--fprop=bf16; the program has it in f32, where it stays"
    # A site that is kept for another reason is not asked.
    box.ok("good.mlir", "-o", "out.so", "--fprop=f64", "--keep=w")
    narrow = GOOD.replace("f32", "bf16")
    box.rejects(narrow, "5:8", "--fprop=f32 keeps matmuls as they are, and the program has this one in bf16; say --fprop=bf16", "--fprop=f32")
    box.rejects(narrow, "5:8", "required to be FP8 .--require=all. but stays in high precision: --fprop=bf16", "--fprop=bf16", "--require=all")


def test_required_sites(box):
    box.ok("good.mlir", "-o", "out.so", "--require=all")
    pattern = r"^good\.mlir:5:8: error: site 'w' is required to be FP8 .* stays in high precision: "
    before = ["good.mlir", "-o", "again.so"]
    box.fails(1, pattern + "--recipe=none", *before, "--require=all", "--recipe=none")
    box.fails(1, pattern + "matches --keep=w", *before, "--require=^w", "--keep=w")
    # A pattern that matches nothing is an error; with --keep, which models share, only a warning.
    nothing = r"^good\.mlir:1:1: error: no site matches --%s=other; the report lists the sites"
    box.fails(1, nothing % "require", *before, "--require=other", "--keep=w")
    box.fails(1, nothing % "sites", *before, "--sites=other")
    done = box.compile(*before, "--require=w", "--keep=other", "--sites=w")
    assert done.returncode == 0 and "warning: no site matches --keep=other" in done.stderr


def test_report_lists_what_was_in_fp8_already(box):
    box.ok("good.mlir", "-o", "again.mlir", "--emit=recipe", "--recipe=current", "--report=json:first")
    box.ok("again.mlir", "-o", "again.so", "--require=w", "--report=json:second")
    (first,), (second,) = (json.loads(box.files()[name])["sites"] for name in ("first", "second"))
    same = ("entry", "site", "role", "m", "n", "k", "decision", "formats")
    assert first["decision"] == "fp8" and [first[key] for key in same] == [second[key] for key in same]
    # Only the second has become code.
    assert (first["code"], second["code"]) == (None, "packed f32 products of decoded FP8 (CPU)")


def test_products_without_names_are_no_layers(box):
    again = GOOD.replace("%y =", "%z =").replace("  return", GOOD.split("\n")[4] + "\n  return")
    assert again.count("linalg.matmul") == 2
    box.write("two.mlir", again)
    for number in (1, 2**63 - 1):
        box.fails(1, r"^two\.mlir:.*--first and --last need layers", "two.mlir", "-o", "out.so", f"--first={number}")


def test_carry_option(box):
    before = ["good.mlir", "-o", "out.so"]
    box.fails(1, r"^good\.mlir:1:1: error: --carry=x:0: .* differ in type", *before, "--carry=x:0")
    box.fails(1, r"^good\.mlir:1:1: error: --carry=9:0: no public function", *before, "--carry=9:0")
    box.fails(1, r"^good\.mlir:1:1: error: --carry=none:0: no public function", *before, "--carry=none:0")
    box.fails(1, r"^good\.mlir:1:1: error: --carry=x:7: no public function", *before, "--carry=x:7")


def test_carry_takes_the_names_of_the_manifest(box):
    """One rule: the outermost name of the location, also in a fused one; else arg and the index."""
    for location, name in (("", "arg0"), (' loc("w")', "w"), (' loc(fused["w"("inner"), "other"])', "w")):
        box.write("p.mlir", f"func.func @main(%a: tensor<4xf32>{location}) -> tensor<4xf32> {{ return %a : tensor<4xf32> }}")
        box.ok("p.mlir", "-o", "out.so", f"--carry={name}:0", "--manifest=m")
        (argument,) = json.loads(box.files()["m"])["entries"][0]["arguments"]
        assert (argument["name"], argument["carry"]) == (name, 0)


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
    box.rejects(f"module attributes {{{attributes}}} {{\n{GOOD}}}", "1:1", "'fp8.state_columns' is for the compiler", *options)


def test_state_arguments_of_the_input_are_not_believed(box):
    text = "func.func @main(%x: tensor<4xf32> {ARGUMENT}) -> (tensor<4xf32> {RESULT}) {\n  return %x : tensor<4xf32>\n}"
    state, result = 'fp8.state = "scale"', "fp8.result = 0 : i32"
    box.rejects(text.replace("ARGUMENT", state).replace("RESULT", ""), "1:17", "'fp8.state' is for the compiler")
    box.rejects(text.replace("ARGUMENT", result).replace("RESULT", ""), "1:17", "'fp8.result' is for the compiler")
    box.rejects(text.replace("ARGUMENT", "").replace("RESULT", state), "1:1", "'fp8.state' is for the compiler")


def test_evidence_of_the_input_is_not_believed(box):
    mark = '{fp8.matmuls = [{site = "w", role = "fprop", code = "tensor cores"}]}'
    box.rejects(GOOD.replace("linalg.matmul ins", f"linalg.matmul {mark} ins"), "5:8", "'fp8.matmuls' is for the compiler")
