# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Attention on memrefs, forward and backward, as texts for the compiler's kernels, and the same in f64 with numpy.

import numpy
from compiled import TYPES

LETTERS = "bhgijde"  # batch, group of heads, head of the group, query, key, depth, width
OUTER = "bhgi"
F32 = numpy.float32

# Lines that compute %x from the scaled score %t: names of inputs are %n, their dimensions and type stand beside them.
MASKS = {
    "none": ("", ["%x = arith.addf %t, %zero : f32"], {}),
    "causal": ("(0, i + 1)", ["%later = arith.cmpi ugt, %j, %i : index", "%x = arith.select %later, %lowest, %t : f32"], {}),
    "offset": ("(0, i + 9)", ["%c8 = arith.constant 8 : index", "%end = arith.addi %i, %c8 : index", "%later = arith.cmpi sgt, %j, %end : index",
                           "%x = arith.select %later, %lowest, %t : f32"], {}),
    "window": ("(i - 19, i + 1)", ["%c20 = arith.constant 20 : index", "%end = arith.addi %j, %c20 : index", "%near = arith.cmpi slt, %i, %end : index",
                           "%seen = arith.cmpi sge, %i, %j : index", "%both = arith.andi %near, %seen : i1",
                           "%x = arith.select %both, %t, %lowest : f32"], {}),
    "near": ("(i - 30, i + 41)", ["%c30 = arith.constant 30 : index", "%c40 = arith.constant 40 : index", "%from = arith.addi %j, %c30 : index",
                                  "%old = arith.cmpi slt, %from, %i : index", "%to = arith.addi %i, %c40 : index", "%later = arith.cmpi sgt, %j, %to : index",
                                  "%hidden = arith.ori %old, %later : i1", "%x = arith.select %hidden, %lowest, %t : f32"], {}),
    "padding": ("", ["%x = arith.select %padding, %t, %low : f32"], {"padding": ("bj", "i1")}),
    "lengths": ("", ["%jn = arith.index_cast %j : index to i32", "%kept = arith.cmpi slt, %jn, %lengths : i32",
                     "%x = arith.select %kept, %t, %lowest : f32"], {"lengths": ("b", "i32")}),
    "segments": ("", ["%same = arith.cmpi eq, %mine, %other : i32", "%x = arith.select %same, %t, %lowest : f32"],
                 {"mine": ("bi", "i32"), "other": ("bj", "i32")}),
    "bias": ("", ["%wide = arith.extf %bias : bf16 to f32", "%x = arith.addf %t, %wide : f32"], {"bias": ("hgij", "bf16")}),
    "softcap": ("", ["%ratio = arith.mulf %t, %tenth : f32", "%curve = math.tanh %ratio : f32", "%x = arith.mulf %curve, %ten : f32"], {}),
}
GRADIENTS = {"softcap": ["%square = arith.mulf %curve, %curve : f32", "%slope = arith.subf %one, %square : f32", "%gx = arith.mulf %slope, %gm : f32"]}
CONSTANTS = {"zero": "0.0", "one": "1.0", "lowest": "0xFF800000", "low": "-3.40282347E+38", "ten": "10.0", "tenth": "0.1"}


class Case:
    """One attention. `sizes` of the letters; `layouts`: the letters of q, k, v and o in memory; `gaps`: operands in the middle
    of a wider buffer; `dropout`: probabilities have a factor; `further`: the letters and types of further results of the
    backward pass, gradients of scores; `sink`: the letters of one more score in each row, without a key;
    `condition`: whether the keys that the mask hides are left out, as an input.
    """

    def __init__(self, sizes, mask="none", element="bf16", layouts=("bihgd", "bjhd", "bjhe", "bihge"), dropout=False, scale=0.3,
                 out=None, keys=("bjhd", "bjhe"), further=(), sink=None, condition=None):
        self.sizes = dict(zip(LETTERS, sizes)) if not isinstance(sizes, dict) else sizes
        self.mask, self.element, self.dropout, self.scale = mask, element, dropout, scale
        self.q, self.k, self.v, self.o = layouts
        self.dk, self.dv = layouts[1:3] if keys is None else keys
        self.out = out or element
        self.further = {"f%d" % i: kind for i, kind in enumerate(further)}
        self.visible, self.lines, inputs = MASKS[mask]
        self.inputs = dict(inputs) | ({"factor": ("bhgij", "f32")} if dropout else {})
        self.sink = {"sink": (sink, "f32")} if sink else {}
        self.condition = condition
        if condition is not None:
            self.inputs["condition"] = ("", "i1")

    def shape(self, letters):
        return tuple(self.sizes[d] for d in letters)

    def memref(self, letters, element):
        return "memref<%s>" % "x".join([*map(str, self.shape(letters)), element])

    def operation(self, name, operands, outs, regions, attributes=""):
        maps = ["affine_map<(b, h, g, i, j, d, e) -> (%s)>" % ", ".join(letters) for _, letters, _ in [*operands, *self.row_inputs, *outs]]
        write = lambda list: "%s : %s" % (", ".join("%%%s_" % n for n, _, _ in list), ", ".join(self.memref(letters, t) for _, letters, t in list))
        rows = "row_ins(%s) " % write(self.row_inputs) if self.row_inputs else ""
        visible = ", visible_keys = affine_map<(b, h, g, i, j, d, e) -> %s>" % self.visible if self.visible else ""
        if self.condition is not None:
            visible += ", visible_if = %d : i64" % [*self.inputs].index("condition")
        parameters = ", ".join("%%%s_: %s" % (n, self.memref(letters, t)) for n, letters, t in [*operands, *self.row_inputs, *outs])
        constants = "\n".join("%%%s = arith.constant %s : f32" % item for item in CONSTANTS.items())
        return """module attributes {fp8.target = #fp8.chip<"ARCH">} {
  func.func @f(%s) {
    %s
    %%scale = arith.constant %.20e : f32
    fp8.%s ins(%s) %souts(%s) {indexing_maps = [%s]%s%s} %s
    return
  }
}""" % (parameters, constants, self.scale, name, write(operands), rows, write(outs), ", ".join(maps), visible, attributes, regions)

    def block(self, leading, lines, yielded):
        arguments = ["%%%s: index" % d for d in OUTER + "j"] + leading + ["%%%s: %s" % (n, t) for n, _, t in self.row_inputs]
        return "{\n^bb0(%s):\n%s\nfp8.yield %s\n}" % (", ".join(arguments), "\n".join(lines), yielded)

    def forward(self, arch, attributes=""):
        self.row_inputs = [(n, *kind) for n, kind in (self.inputs | self.sink).items()]
        if self.sink:
            attributes += ", sink = %d : i64" % len(self.inputs)
        lines = ["%t = arith.mulf %s, %scale : f32", *self.lines]
        score = self.block(["%s: f32"], lines, "%%x, %s : f32, f32" % ("%factor" if self.dropout else "%one"))
        indices = ", ".join("%%%s: index" % d for d in OUTER)
        region = "score %s statistics {\n^bb0(%s, %%m: f32, %%l: f32):\nfp8.yield %%m, %%l : f32, f32\n}" % (score, indices)
        return self.operation("online_attention", [("q", self.q, self.element), ("k", self.k, self.element), ("v", self.v, self.element)],
                              [("o", self.o, self.out), ("m", OUTER, "f32"), ("l", OUTER, "f32")], region, attributes).replace("ARCH", arch)

    def backward(self, arch):
        self.row_inputs = [(n, *kind) for n, kind in self.inputs.items()] + [(n, OUTER, "f32") for n in ("m", "l", "delta")]
        lines = ["%t = arith.mulf %s, %scale : f32", *self.lines, "%below = arith.subf %x, %m : f32", "%e = math.exp %below : f32",
                 "%p = arith.divf %e, %l : f32"]
        if self.dropout:
            lines += ["%pd = arith.mulf %p, %factor : f32", "%gp = arith.mulf %grad, %factor : f32"]
        p, g = ("%pd", "%gp") if self.dropout else ("%p", "%grad")
        lines += ["%%centered = arith.subf %s, %%delta : f32" % g, "%gm = arith.mulf %p, %centered : f32"]
        lines += GRADIENTS.get(self.mask, ["%gx = arith.addf %gm, %zero : f32"])
        lines += ["%ds = arith.mulf %gx, %scale : f32"]
        yielded = [p, "%ds", *["%ds" for _ in self.further]]
        region = "elements " + self.block(["%s: f32", "%grad: f32"], lines, "%s : %s" % (", ".join(yielded), ", ".join("f32" for _ in yielded)))
        operands = [("q", self.q, self.element), ("k", self.k, self.element), ("v", self.v, self.element), ("go", self.o, self.element)]
        outs = [("gq", self.q, self.out), ("gk", self.dk, self.out), ("gv", self.dv, self.out)]
        outs += [(n, *kind) for n, kind in self.further.items()]
        return self.operation("online_attention_grad", operands, outs, region).replace("ARCH", arch)

    def arrays(self, rng):
        """q, k, v, the gradient of the output, and the inputs."""
        made = {n: rng.standard_normal(self.shape(letters)).astype(TYPES[self.element])
                for n, letters in [("q", self.q), ("k", self.k), ("v", self.v), ("go", self.o)]}
        segments = lambda shape: numpy.sort(rng.integers(0, 3, shape, dtype=numpy.int32), -1)
        draw = {"padding": lambda shape: rng.random(shape) < 0.7, "mine": segments, "other": segments,
                "lengths": lambda shape: rng.integers(1, self.sizes["j"] + 1, shape, dtype=numpy.int32),
                "bias": lambda shape: rng.standard_normal(shape).astype(TYPES["bf16"]),
                "factor": lambda shape: (rng.random(shape) < 0.8).astype(F32) / F32(0.8),
                "condition": lambda shape: numpy.full(shape, self.condition),
                "sink": lambda shape: (3 * rng.standard_normal(shape)).astype(F32)}
        made |= {n: draw[n](self.shape(letters)) for n, (letters, _) in (self.inputs | self.sink).items()}
        if "padding" in made:
            made["padding"][..., 0] = True
        return made

    def expected(self, made):
        """All results in f64: a dict."""
        letters = dict(q=self.q, k=self.k, v=self.v, go=self.o) | {n: kind[0] for n, kind in (self.inputs | self.sink).items()}
        s = {n: a.astype(numpy.float64) for n, a in made.items() if n in "qkvgo"}
        with numpy.errstate(all="ignore"):
            score = numpy.einsum("%s,%s->bhgij" % (self.q, self.k), s["q"], s["k"]) * float(F32(self.scale))
            wide = lambda n: numpy.asarray(made[n], numpy.float64).reshape([self.sizes[d] if d in letters[n] else 1 for d in "bhgij"])
            sink = wide("sink") if self.sink else -numpy.inf
            i, j = numpy.arange(self.sizes["i"])[:, None], numpy.arange(self.sizes["j"])
            slope, lowest = 1.0, -numpy.inf
            x = {"none": lambda: score, "causal": lambda: numpy.where(j > i, lowest, score), "offset": lambda: numpy.where(j > i + 8, lowest, score),
                 "window": lambda: numpy.where((i >= j) & (i < j + 20), score, lowest),
                 "near": lambda: numpy.where((j >= i - 30) & (j <= i + 40), score, lowest),
                 "padding": lambda: numpy.where(wide("padding") != 0, score, float(numpy.finfo(F32).min)),
                 "lengths": lambda: numpy.where(j < wide("lengths"), score, lowest),
                 "segments": lambda: numpy.where(wide("mine") == wide("other"), score, lowest),
                 "bias": lambda: score + wide("bias"), "softcap": lambda: numpy.tanh(score * 0.1) * 10}[self.mask]()
            if self.mask == "softcap":
                slope = 1 - numpy.tanh(score * 0.1)**2
            m = numpy.maximum(x.max(-1, keepdims=True), sink)
            e = numpy.exp(x - m)
            l = e.sum(-1, keepdims=True) + numpy.exp(sink - m)
            p = e / l
            factor = wide("factor") if self.dropout else 1.0
            o = numpy.einsum("bhgij,%s->%s" % (self.v, self.o), p * factor, s["v"])
            g = numpy.einsum("%s,%s->bhgij" % (self.o, self.v), s["go"], s["v"])
            delta = numpy.einsum("%s,%s->bhgi" % (self.o, self.o), s["go"], o)[..., None]
            ds = p * (g * factor - delta) * slope * float(F32(self.scale))
            terms = p * (abs(g * factor) + abs(delta)) * slope * float(F32(self.scale))
            norm = lambda maps, a, c: numpy.sqrt(numpy.einsum(maps, a**2, c**2))
            self.largest = abs(score).max()
            # Errors of terms add up as squares: the size that those of a result are compared with.
            self.terms = {"gq": norm("bhgij,%s->%s" % (self.k, self.q), terms, s["k"]), "gk": norm("bhgij,%s->%s" % (self.q, self.dk), terms, s["q"])}
            self.terms |= {n: numpy.sqrt(numpy.einsum("bhgij->%s" % letters, terms**2)) for n, (letters, _) in self.further.items()}
            further = {n: numpy.einsum("bhgij->%s" % letters, ds) for n, (letters, _) in self.further.items()}
            return further | {"o": o, "m": m[..., 0], "l": l[..., 0], "delta": delta[..., 0],
                    "gq": numpy.einsum("bhgij,%s->%s" % (self.k, self.q), ds, s["k"]),
                    "gk": numpy.einsum("bhgij,%s->%s" % (self.q, self.dk), ds, s["q"]),
                    "gv": numpy.einsum("bhgij,%s->%s" % (self.o, self.dv), p * factor, s["go"])}

    def run(self, compile, arch, rng, attributes=""):
        """Runs both kernels; returns their results and those in f64."""
        made = self.arrays(rng)
        want = self.expected(made)
        result = lambda letters, element: numpy.full(self.shape(letters), numpy.nan, TYPES[element])
        inputs = [made[n] for n in self.inputs]
        forward = compile(self.forward(arch, attributes), arch)
        *_, o, m, l = forward(made["q"], made["k"], made["v"], *inputs, *(made[n] for n in self.sink), result(self.o, self.out), result(OUTER, "f32"), result(OUTER, "f32"))
        delta = numpy.einsum("%s,%s->bhgi" % (self.o, self.o), made["go"].astype(numpy.float64), o.astype(numpy.float64)).astype(F32)
        backward = compile(self.backward(arch), arch)
        outs = [result(letters, element) for letters, element in
                [(self.q, self.out), (self.dk, self.out), (self.dv, self.out), *self.further.values()]]
        gradients = backward(made["q"], made["k"], made["v"], made["go"], *inputs, m, l, delta, *outs)[-len(outs):]
        got = {"o": o, "m": m, "l": l} | dict(zip(["gq", "gk", "gv", *self.further], gradients))
        return {n: a.astype(numpy.float64) for n, a in got.items()}, want, (forward, backward)
