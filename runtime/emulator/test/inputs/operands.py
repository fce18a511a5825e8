#!/usr/bin/env python3
# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Asks ptxas which types, operands and modifiers it accepts in the forms of operands.txt, and
# writes that into it. PTXAS is the program, ptxas of the PATH without it.

import os
import pathlib
import re
import subprocess

FOLDER = pathlib.Path(__file__).parent
FILE = FOLDER / "operands.txt"
HEAD = (FOLDER / "operands.head").read_text()
PTXAS = os.environ.get("PTXAS", "ptxas")
TARGETS = ["sm_89", "sm_90a", "sm_100a", "sm_120a"]
TYPES = ("pred b8 u8 s8 b16 u16 s16 f16 bf16 b32 u32 s32 f32 f16x2 bf16x2 u16x2 s16x2 b64 u64 s64 f64 f32x2 b128 tf32 "
         "e4m3x2 e5m2x2").split()
# Of types that no register is declared as: the type of registers that hold them.
HELD_BY = {"bf16": "b16", "bf16x2": "b32", "u16x2": "b32", "s16x2": "b32", "f32x2": "b64", "tf32": "b32", "e4m3x2": "b16",
           "e5m2x2": "b16"}
REGISTERS = {t: f"%{t}_7" for t in "b8 u8 s8 b16 u16 s16 f16 b32 u32 s32 f32 b64 u64 s64 f64".split()}
OTHERS = {"pred": "%pred_7", "!pred": "!%pred_7", "-s32": "-%s32_7", "int": "1", "1.5": "1.5", "0f": "0f3F800000",
          "0d": "0d3FF0000000000000", "special": "%tid.x", "variable": "global"}
KINDS = {**REGISTERS, **OTHERS}
# The kinds that stand in place of an operand, by the mark before it: of an address, in braces, elsewhere.
KINDS_OF = {"a:": ["f16", "f32", "f64", "b64", "u64", "s64"], "v:": list(REGISTERS), "": list(KINDS)}
MARK = re.compile("<(a:|v:|)([^>]*)>")


def of_type(form, name):
    """The form of a line of types with one of them."""
    return re.sub(r"\bT\b", name, form.replace("%T_", "%" + HELD_BY.get(name, name) + "_"))


def plain(form):
    return MARK.sub(r"\2", form)


def with_kinds(form):
    """All variants as (slot, kind, form)."""
    return [(slot, kind, plain(form[:mark.start()]) + KINDS[kind] + plain(form[mark.end():]))
            for slot, mark in enumerate(MARK.finditer(form)) for kind in KINDS_OF[mark[1]]]


def without_modifiers(form):
    opcode, space, rest = plain(form).rstrip(";").partition(" ")
    parts = opcode.split(".")
    return [(parts[i], ".".join(parts[:i] + parts[i + 1:]) + space + rest + ";") for i in range(1, len(parts))]


def asked(target, forms):
    """For each form whether ptxas accepts it: one a line, refused ones are taken out until it accepts the rest."""
    left, first = set(range(len(forms))), HEAD.count("\n") + 1
    while left:
        order = sorted(left)
        text = HEAD.replace("TARGET", target) + "\n".join(forms[i] for i in order) + "\nret; }\n"
        run = subprocess.run([PTXAS, "-arch=" + target, "-O0", "-o", "/dev/null", "-"], input=text, capture_output=True, text=True,
                             timeout=60)
        if run.returncode == 0:
            break
        output = run.stderr + run.stdout
        lines = re.findall(r"line (\d+); (?:error|fatal)", output) or re.findall(r"32-bit address on line '(\d+)'", output)
        refused = {order[int(line) - first] for line in lines if 0 <= int(line) - first < len(order)}
        if not refused:
            raise SystemExit(output)
        left -= refused
    return [i in left for i in range(len(forms))]


def accepted(target, forms):
    return [yes for at in range(0, len(forms), 400) for yes in asked(target, forms[at:at + 400])]


def first_target(forms):
    """Of each form the first target that accepts it."""
    out = [None] * len(forms)
    for target in TARGETS:
        waiting = [i for i in range(len(forms)) if out[i] is None]
        for i, yes in zip(waiting, accepted(target, [forms[i] for i in waiting])):
            out[i] = target if yes else None
    return out


def judge_types(forms):
    all_forms = [of_type(form, name) for form in forms for name in TYPES]
    answers = iter(accepted("sm_100a", all_forms))
    return ["types | %s | %s" % (form, " ".join(name for name in TYPES if next(answers))) for form in forms]


def judge_operands(forms):
    rows = {}
    targets = first_target([plain(form) for form in forms])
    if None in targets:
        raise SystemExit("refused: " + forms[targets.index(None)])
    for target in TARGETS:
        own = [form for form, its in zip(forms, targets) if its == target]
        kinds = [(form, *variant) for form in own for variant in with_kinds(form)]
        drops = [(form, *variant) for form in own for variant in without_modifiers(form)]
        answers = accepted(target, [variant[-1] for variant in kinds + drops])
        for form in own:
            rows[form] = (target, [[] for _ in MARK.findall(form)], [])
        for (form, slot, kind, _), yes in zip(kinds, answers):
            if yes:
                rows[form][1][slot].append(kind)
        for (form, modifier, _), yes in zip(drops, answers[len(kinds):]):
            if yes:
                rows[form][2].append(modifier)
    return ["%s | %s | %s | %s" % (rows[form][0], form, "; ".join(" ".join(s) for s in rows[form][1]), " ".join(rows[form][2]))
            for form in forms]


def main():
    text = FILE.read_text().splitlines()
    kept = [line for line in text if line.startswith(("#", "except"))]
    forms = [line.split(" | ") for line in text if line and not line.startswith(("#", "except"))]
    rows = judge_types([form[1] for form in forms if form[0] == "types"])
    rows += judge_operands([form[1] for form in forms if form[0] != "types"])
    FILE.write_text("\n".join(kept + rows) + "\n")


if __name__ == "__main__":
    main()
