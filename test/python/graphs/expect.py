# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The findings that the compiler must have in a program: sites, decisions, formats, columns of the state.

All of it follows from how the program was built (which product is the gradient of which, which
layer has which name) and from the rules for users; nothing is read off the compiler's output.
"""
import math
import re

from .program import behind_views, contractions, is_dynamic, is_forward


class Plan:
    """Decisions about all products of a program."""

    def __init__(self, functions, options, named):
        self.functions, self.options = functions, options
        self.products = {function.name: list(contractions(function.body)) for function in functions}
        self.keys = TensorKeys()
        for products in self.products.values():
            name_sites(products, named)
        self.columns = self.find_columns() if options.recipe == "delayed" else []
        self.index = {key: i for i, (keys, *_) in enumerate(self.columns) for key in keys}

    # --- decisions ---

    def is_fp8(self, op):
        options = self.options
        role_stays = options.role(op["role"]) in ("f32", "bf16", "f16")
        if options.recipe == "none" or role_stays or (options.keep and re.search(options.keep, op["site"].name)):
            return False
        if options.sites == "linear":
            return op["role"] != "other"
        return options.sites == "all" or bool(re.search(options.sites, op["site"].name))

    def is_split(self, op):
        return any(kind == "grad_output" for kind, *_ in op["kinds"])

    def format(self, op, operand):
        if not self.is_fp8(op):
            return read_type(op.inputs[operand])
        word, gradient = self.options.role(op["role"]), op["kinds"][operand][0] == "grad_output"
        if word == "fp8":
            word = "e5m2" if gradient and self.options.format == "hybrid" else "e4m3"
        return word.upper() if gradient or op["role"] == "fprop" else "E4M3"

    # --- columns: one per quantized value and format, for all sites that read it ---

    def column_key(self, op, operand):
        return (op["site"].name, op["kinds"][operand], self.format(op, operand))

    def find_columns(self):
        """[(keys, sites, kind, format)] in the order in which the program first reads them."""
        groups, by_tensor = [], {}
        for name, products in self.products.items():
            for op in filter(self.is_fp8, products):
                for operand in (0, 1):
                    key = self.column_key(op, operand)
                    tensor = (name, self.keys.of(op.inputs[operand]), key[2])
                    same = [g for g in groups if key in g or by_tensor.get(tensor) in g]
                    merged = [*dict.fromkeys(k for g in same for k in g), *([] if any(key in g for g in same) else [key])]
                    place = groups.index(same[0]) if same else len(groups)
                    groups = [g for g in groups if g not in same]
                    groups.insert(place, merged)
                    by_tensor[tensor] = key
        return [(group, {k[0] for k in group}, group[0][1][0], group[0][2]) for group in groups]

    def column(self, op, operand):
        return self.index.get(self.column_key(op, operand))

    def updates(self, function):
        """Whether a function writes the state: without gradients it is evaluation."""
        trains = any(op["role"] in ("dgrad", "wgrad") for op in self.products[function.name])
        return trains or self.options.calibrate


def read_type(value):
    """The type that a product in high precision reads: widened by itself, but not behind a reshape of
    sizes that are known only at run time."""
    while value is not behind_views(value):
        source = value.op.inputs[0]
        if value.op.kind == "reshape" and is_dynamic([*value.shape, *source.shape]):
            break
        value = source
    return value.dtype


class TensorKeys:
    """Equal keys for values that hold the same elements because they are computed alike."""

    def __init__(self):
        self.known, self.numbers = {}, {}

    def of(self, value):
        """The key of the tensor behind views."""
        return self.exact(behind_views(value))

    def exact(self, value):
        if value not in self.known:
            self.known[value] = self.number(value)
        return self.known[value]

    def number(self, value):
        op = value.op
        if op is None or op.blocks:
            return id(value)
        if op.kind == "contract":
            key = self.product(op)
        else:
            # How a cast is written has no say; other arithmetic is another value if written otherwise.
            style = op.style if op.kind == "elementwise" else ""
            key = (op.kind, value.dtype, style, repr(sorted(op.attrs.items())), *map(self.exact, op.inputs))
        return self.numbers.setdefault(key, -1 - len(self.numbers))

    def product(self, op):
        """The computation of a product, however it is written."""
        operands = sorted(zip(map(self.exact, op.inputs[:2]), op["letters"]))
        order = list(dict.fromkeys("".join(text for _, text in operands)))
        letters = [tuple(map(order.index, text)) for text in (*(t for _, t in operands), op["letters"][2])]
        return (op.kind, op.results[0].dtype, *(k for k, _ in operands), *letters, *map(self.exact, op.inputs[2:]))


def name_sites(products, named):
    """One name for the products of one weight in one scope; others of the same name are numbered. Without scopes the
    weight has its argument's name."""
    known, used, nameless = {}, {}, 0
    for op in filter(is_forward, products):
        site = op["site"]
        scope = site.scope if named else ""
        key = (site.weight, scope, site.orientation) if site.weight else site.scope
        if key not in known:
            stem = scope or (not named and site.weight) or f"matmul{nameless}"
            nameless += stem == f"matmul{nameless}"
            used[stem] = used.get(stem, 0) + 1
            known[key] = stem if used[stem] == 1 else f"{stem}#{used[stem]}"
        site.name = known[key]


def expected_report(plan):
    """The entries of the report, in program order, as far as they are promised."""
    entries = []
    for function in plan.functions:
        for part in function.written():
            for op in contractions(part.body):
                entries.append(
                    {
                        "entry": part.name,
                        "site": op["site"].name,
                        "role": op["role"],
                        "decision": "fp8" if plan.is_fp8(op) else "high",
                        "formats": [plan.format(op, 0), plan.format(op, 1)],
                        "size": product_size(op),
                    }
                )
    return entries


def product_size(op):
    sizes = {l: n for text, value in zip(op["letters"], op.inputs) for l, n in zip(text, value.shape)}
    return None if is_dynamic(sizes.values()) else math.prod(sizes.values())
