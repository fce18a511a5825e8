# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Runs the examples of the documentation. An operation's example must verify; a pass's
# example starts with the command, `// fp8-opt --flag`, and a second block holds the
# output of the command, all of it or with `...` for omitted parts. test/README.md
# shows the form.

import json
import pathlib
import re
import shlex
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
LLVM = pathlib.Path("/usr/lib/llvm-22")
BLOCK = re.compile(r"```mlir\n(.*?)```", re.DOTALL)
VALUE = re.compile(r"%[A-Za-z_][\w]*")


def records(path):
    """The definitions of one TableGen file, by name."""
    command = [LLVM / "bin/llvm-tblgen", "--dump-json", "-I", ROOT / "include", "-I", LLVM / "include", path]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def definitions(table, kind):
    return [table[name] for name in table["!instanceof"].get(kind, [])]


def dedent(text):
    lines = text.split("\n")
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[indent:] for line in lines)


def blocks(record):
    return [dedent(text) for text in BLOCK.findall(record["description"])]


OPS = definitions(records(ROOT / "include/fp8/Dialect/FP8/IR/FP8Ops.td"), "Op")
ATTRIBUTES = definitions(records(ROOT / "include/fp8/Dialect/FP8/IR/FP8Ops.td"), "AttrDef")
PASSES = [p for path in sorted(ROOT.glob("include/fp8/**/Passes.td")) for p in definitions(records(path), "PassBase")]


def split_types(text):
    """Splits at commas outside of brackets: "f32, tensor<2xf32>" has two parts."""
    parts, depth = [""], 0
    for previous, char in zip(" " + text, text):
        depth += (char in "<([{") - (char in ")]}" or char == ">" and previous != "-")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts]


def free_values(example):
    """Names that the example uses and does not define, with the types it states for them."""
    defined = set()
    for results in re.findall(r"^\s*((?:%\w+(?:, )?)+) = ", example, re.MULTILINE):
        defined.update(VALUE.findall(results))
    for arguments in re.findall(r"\^\w+\(([^)]*)\)", example):
        defined.update(VALUE.findall(arguments))
    types = {}
    for names, stated in re.findall(r"\(((?:%\w+(?:,\s*)?)+) : ([^()]*(?:\([^()]*\)[^()]*)*)\)", example):
        types.update(zip(VALUE.findall(names), split_types(stated)))
    return {name: types[name] for name in VALUE.findall(example) if name not in defined}


def verifies(run, ir):
    done = run("fp8-opt", "--verify-roundtrip", "-", stdin=ir)
    assert done.returncode == 0, done.stderr + "\n" + ir


@pytest.mark.parametrize("op", OPS, ids=lambda op: op["opName"])
def test_operation_example_verifies(op, run):
    examples = blocks(op)
    assert examples, "the description of fp8.%s has no ```mlir example" % op["opName"]
    for example in examples:
        arguments = ", ".join("%s: %s" % item for item in free_values(example).items())
        verifies(run, "func.func @example(%s) {\n%s\nreturn\n}\n" % (arguments, example))


@pytest.mark.parametrize("op", OPS, ids=lambda op: op["opName"])
def test_operation_says_what_it_becomes(op):
    if op["opName"] != "yield":
        assert "Becomes:" in op["description"] and "Preconditions:" in op["description"]


@pytest.mark.parametrize("attribute", [a for a in ATTRIBUTES if a["description"]], ids=lambda a: a["cppClassName"])
def test_attribute_example_parses(attribute, run):
    example = re.search(r"Example: `([^`]*)`", attribute["description"])
    assert example, "the description has no Example: `#fp8…`"
    verifies(run, "module attributes {fp8.config = %s} {}\n" % example[1])


def canonical(run, ir):
    done = run("fp8-opt", "-", stdin=ir)
    assert done.returncode == 0, done.stderr + "\n" + ir
    return done.stdout


def excerpt_pattern(excerpt):
    """A regex for IR in which `...` stands for anything and value names are free but consistent."""
    seen = set()

    def value(match):
        name = "v" + match[0][1:]
        return "(?P=%s)" % name if name in seen else seen.add(name) or r"(?P<%s>%%\w+)" % name

    lines = []
    for line in excerpt.strip().split("\n"):
        if line.strip() == "...":
            lines.append(r"(?:.*\n)*?")
        else:
            literal = re.escape(line.strip()).replace(r"\.\.\.", ".*").replace("\\%", "%")
            lines.append(r"\s*" + re.sub(r"%\w+", value, literal) + r"\s*\n")
    return "".join(lines)


def matches(run, actual, after):
    if "..." in after:
        return re.search(excerpt_pattern(after), actual)
    return canonical(run, actual) == canonical(run, after)


@pytest.mark.parametrize("record", PASSES, ids=lambda p: p["argument"])
def test_pass_example(record, run):
    examples, pairs = blocks(record), 0
    for before, after in zip(examples, examples[1:]):
        command = re.match(r"// (fp8-opt .*)\n", before)
        if not command:
            continue
        pairs += 1
        assert record["argument"] in command[1]
        done = run(*shlex.split(command[1]), "-", stdin=before)
        assert done.returncode == 0, done.stderr
        assert matches(run, done.stdout, after), "the command printed\n" + done.stdout
    assert pairs, "the description needs two ```mlir blocks: `// fp8-opt --%s` and IR, then the IR after" % record["argument"]
