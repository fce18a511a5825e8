# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random attention programs, each as two texts with one meaning: matmuls and linalg operations on whole
tensors of scores, and `fp8.attention` or `fp8.attention_grad` with the same code in its region.
"""
import numpy as np

from harness import BF16, F16, F32, MLIR_NAMES, tensor_type

I32 = np.dtype(np.int32)

OUTER = "bhgi"  # batch, group, head of the group, query
DIMS = "bhgijde"  # and key, depth, width


def affine(dims, results):
    return f"affine_map<({', '.join(dims)}) -> ({', '.join(results)})>"


class Whole:
    """Writes code of rows as operations on tensors of all rows."""

    def __init__(self, sizes):
        self.sizes, self.lines, self.kinds = sizes, [], {}

    def declare(self, name, dtype, dims):
        self.kinds[name] = (dtype, dims)
        return name

    def type(self, dtype, dims):
        return tensor_type([self.sizes[d] for d in dims], dtype)

    def generic(self, name, dtype, dims, body, inputs, reduces=False, init=None):
        loops = [*OUTER, "j"] if reduces or "j" in dims else [*OUTER]
        iterators = ", ".join('"reduction"' if reduces and d == "j" else '"parallel"' for d in loops)
        types = [self.type(*self.kinds[x]) for x in inputs]
        maps = ", ".join([*(affine(loops, self.kinds[x][1]) for x in inputs), affine(loops, dims)])
        out = self.type(dtype, dims)
        self.lines.append(f"{name}_e = tensor.empty() : {out}")
        if init:
            self.lines.append(f"{name}_f = linalg.fill ins({init} : {MLIR_NAMES[dtype]}) outs({name}_e : {out}) -> {out}")
        given = f"ins({', '.join(inputs)} : {', '.join(types)}) " if inputs else ""
        self.lines.append(f"{name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}} "
                          f"{given}outs({name}{'_f' if init else '_e'} : {out}) {{")
        arguments = [*(f"%a{n}: {MLIR_NAMES[self.kinds[x][0]]}" for n, x in enumerate(inputs)), f"%out: {MLIR_NAMES[dtype]}"]
        self.lines.append(f"^bb0({', '.join(arguments)}):")
        text = "\n".join(body)
        for d in loops:
            if f"%{d}x" in text:
                self.lines.append(f"  %{d}x = linalg.index {loops.index(d)} : index")
        self.lines += ["  " + line for line in body]
        self.lines += [f"  linalg.yield %v : {MLIR_NAMES[dtype]}", f"}} -> {out}"]
        return self.declare(name, dtype, dims)

    def elements(self, name, dtype, body, *inputs):
        return self.generic(name, dtype, [*OUTER, "j"], body, inputs)

    def scalar(self, name, dtype, body, *inputs):
        return self.generic(name, dtype, [*OUTER], body, inputs)

    def reduce(self, name, body, init, *inputs):
        return self.generic(name, F32, [*OUTER], body, inputs, reduces=True, init=init)


class Region(Whole):
    """Writes code of rows as the region of an attention."""

    def __init__(self, sizes, parts):
        super().__init__(sizes)
        self.parts = parts  # what the region calls its inputs

    def generic(self, name, dtype, dims, body, inputs, reduces=False, init=None):
        inputs = [self.parts.get(x, x) for x in inputs]
        text = "\n".join(body)
        rows = [x for x in inputs if "j" in self.kinds[x][1]]
        for n, x in enumerate(inputs):  # a scalar is captured
            if x not in rows:
                text = text.replace(f"%a{n}", x)
        if not reduces and "j" not in dims:
            prefix = name + "_"
            for n in range(len(body)):
                text = text.replace(f"%t{n}", f"{prefix}t{n}")
            self.lines += text.replace("%v", name).split("\n")
            return self.declare(name, dtype, dims)
        maps = ", ".join([*(affine("j", "j") for _ in rows), affine("j", [] if reduces else "j")])
        out = f"tensor<{MLIR_NAMES[dtype]}>" if reduces else self.type(dtype, "j")
        self.lines.append(f"{name}_e = tensor.empty() : {out}")
        if init:
            self.lines.append(f"{name}_f = linalg.fill ins({init} : {MLIR_NAMES[dtype]}) outs({name}_e : {out}) -> {out}")
        given = f"ins({', '.join(rows)} : {', '.join(self.type(self.kinds[x][0], 'j') for x in rows)}) " if rows else ""
        result = f"{name}_t" if reduces else name
        self.lines.append(f"{result} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [\"{'reduction' if reduces else 'parallel'}\"]}} "
                          f"{given}outs({name}{'_f' if init else '_e'} : {out}) {{")
        arguments = [*(f"%a{n}: {MLIR_NAMES[self.kinds[x][0]]}" for n, x in enumerate(inputs) if x in rows), f"%out: {MLIR_NAMES[dtype]}"]
        self.lines.append(f"^bb0({', '.join(arguments)}):")
        if "%jx" in text:
            self.lines.append("  %jx = linalg.index 0 : index")
        self.lines += ["  " + line for line in text.split("\n")]
        self.lines += [f"  linalg.yield %v : {MLIR_NAMES[dtype]}", f"}} -> {out}"]
        if reduces:
            self.lines.append(f"{name} = tensor.extract {result}[] : {out}")
        return self.declare(name, dtype, dims)


def widen(argument, name, dtype):
    """Lines that give `name`, an f32, from an argument; and the name to use."""
    if dtype == F32:
        return [], argument
    return [f"{name} = arith.extf {argument} : {MLIR_NAMES[dtype]} to f32"], name


def narrow(name, dtype):
    """Lines that give %v from `name`, an f32."""
    return [f"%v = arith.{'addf ' + name + ', %zero' if dtype == F32 else 'truncf ' + name} : f32{'' if dtype == F32 else ' to ' + MLIR_NAMES[dtype]}"]


HIDES_LATER = ["%hidden = arith.cmpi ugt, %jx, %ix : index"]


class Attention:
    """A random program: sizes, layouts, types, mask, softmax. `size`: small; large, with more scores than one block
    has; long, with rows too long for a loop over rows.
    """

    def __init__(self, rng, size):
        choose = lambda *options: options[rng.integers(len(options))]
        between = lambda low, high: int(rng.integers(low, high))
        grouped = bool(rng.integers(2))
        self.sizes = {"b": between(1, 3), "h": between(1, 4), "g": between(2, 4) if grouped else 1, "i": between(1, 40),
                      "j": between(1, 40), "d": between(1, 24), "e": between(1, 24)}
        if size == "long":
            self.sizes |= {"b": 2, "h": 2, "i": between(5, 12), "j": 30000}
        if size == "large":
            self.sizes |= {"b": 1, "i": between(1100, 1400), "j": between(1100, 1400), "d": between(8, 24), "e": between(8, 24)}
        self.operand, self.score, self.probability = choose(BF16, F32, F16), choose(F32, F32, BF16), choose(F32, BF16)
        self.result = choose(F32, BF16)
        order = lambda dims: [str(d) for d in rng.permutation(list(dims))]
        keys_of_group = grouped and bool(rng.integers(2))
        outer_of_keys = "bhg" if not grouped or not keys_of_group else "bh"
        self.maps = {"query": order("bhgid"), "key": order(outer_of_keys + "jd"), "value": order(outer_of_keys + "je"),
                     "output": order("bhgie")}
        self.mask = choose("none", "causal", "bias", "causal_bias", "lengths", "window", "causal_window", "causal_lengths")
        self.bias_dims = choose("hgij", "bij", "bhgij", "j")
        self.has_bias_gradient = True  # in `step`
        self.divides, self.scale = bool(rng.integers(2)), choose(0.25, 8.0, 1.7)
        self.inverts, self.guards = bool(rng.integers(2)), bool(rng.integers(2))
        self.keeps_statistics = bool(rng.integers(2))
        # A gradient may have the dimension of the group although its tensor has not.
        own = lambda name: self.maps[name] if keys_of_group and rng.integers(2) else order(dict.fromkeys([*self.maps[name], "g"]))
        self.grads = {"query": self.maps["query"], "key": own("key"), "value": own("value")}
        self.sink_dims = choose(None, None, "h", "gh")  # of one more score in each row, without a key

    def shape(self, dims):
        return [self.sizes[d] for d in dims]

    def has_bias(self):
        return self.mask in ("bias", "causal_bias")

    def inputs(self):
        """Name, type and dimensions of the inputs of the rows."""
        sink = [("%sink", F32, self.sink_dims)] if self.sink_dims else []
        bias = [("%bias", F32, self.bias_dims)] if self.has_bias() else []
        return [*bias, *([("%lengths", I32, "b")] if "lengths" in self.mask else []), *sink]

    def write_scores(self, code):
        """From the row of scores to the scores that softmax sees."""
        lines, x = widen("%a0", "%w", self.score)
        body = [*lines, f"%t = arith.{'divf' if self.divides else 'mulf'} {x}, %scale : f32"]
        given = ["%s"]
        if self.mask == "none":
            body.append("%v = arith.addf %t, %zero : f32")
        elif self.mask == "bias":
            body, given = [*body, "%v = arith.addf %t, %a1 : f32"], ["%s", "%bias"]
        elif self.mask == "causal_bias":
            body += ["%y = arith.addf %t, %a1 : f32", *HIDES_LATER, "%v = arith.select %hidden, %lowest, %y : f32"]
            given.append("%bias")
        else:
            test = {"causal": HIDES_LATER,
                    "causal_window": ["%later = arith.cmpi ugt, %jx, %ix : index", "%end = arith.addi %jx, %window : index",
                                      "%old = arith.cmpi ult, %end, %ix : index", "%hidden = arith.ori %later, %old : i1"],
                    "window": ["%end = arith.addi %jx, %window : index", "%hidden = arith.cmpi ult, %end, %ix : index"],
                    "lengths": ["%at = arith.index_cast %jx : index to i32", "%hidden = arith.cmpi sge, %at, %a1 : i32"],
                    "causal_lengths": ["%at = arith.index_cast %jx : index to i32", "%behind = arith.cmpi sge, %at, %a1 : i32",
                                       "%later = arith.cmpi ugt, %jx, %ix : index", "%hidden = arith.ori %later, %behind : i1"]}[self.mask]
            body += [*test, "%v = arith.select %hidden, %lowest, %t : f32"]
            given += ["%lengths"] if "lengths" in self.mask else []
        return code.elements("%masked", F32, body, *given)

    def write_softmax(self, code, masked):
        """Returns the exponentials, the maximum and the sum."""
        top = code.reduce("%top", ["%v = arith.maximumf %out, %a0 : f32"], "%lowest", masked)
        if self.sink_dims:
            top = code.scalar("%topmost", F32, ["%v = arith.maximumf %a0, %a1 : f32"], top, "%sink")
        if self.guards:  # rows that see nothing
            top = code.scalar("%guarded", F32, ["%t0 = arith.cmpf oeq, %a0, %lowest : f32", "%v = arith.select %t0, %zero, %a0 : f32"], top)
        exps = code.elements("%exps", F32, ["%t = arith.subf %a0, %a1 : f32", "%v = math.exp %t : f32"], masked, top)
        total = code.reduce("%total", ["%v = arith.addf %out, %a0 : f32"], "%zero", exps)
        if self.sink_dims:
            body = ["%t0 = arith.subf %a1, %a2 : f32", "%t1 = math.exp %t0 : f32", "%v = arith.addf %a0, %t1 : f32"]
            total = code.scalar("%total_of_all", F32, body, total, "%sink", top)
        return exps, top, total

    def write_probabilities(self, code, name, dtype, exps, total):
        if self.inverts:
            inverse = code.scalar(name + "_inverse", F32, ["%v = arith.divf %one, %a0 : f32"], total)
            return code.elements(name, dtype, ["%t = arith.mulf %a0, %a1 : f32", *narrow("%t", dtype)], exps, inverse)
        return code.elements(name, dtype, ["%t = arith.divf %a0, %a1 : f32", *narrow("%t", dtype)], exps, total)

    def write_forward(self, code):
        """Returns the rows that are multiplied, and the statistics."""
        masked = self.write_scores(code)
        exps, top, total = self.write_softmax(code, masked)
        return self.write_probabilities(code, "%p", self.probability, exps, total), top, total

    def write_backward(self, code):
        """Returns the rows P and D. The gradient of the probabilities is %g, of type `score`."""
        masked = self.write_scores(code)
        if self.keeps_statistics:
            exps = code.elements("%exps", F32, ["%t = arith.subf %a0, %a1 : f32", "%v = math.exp %t : f32"], masked, "%max")
            total = "%sum"
        else:
            exps, _, total = self.write_softmax(code, masked)
        p = self.write_probabilities(code, "%p", self.probability, exps, total)
        return p, self.write_score_gradients(code, self.write_probabilities(code, "%pw", F32, exps, total))

    def write_score_gradients(self, code, wide):
        """The row D from the probabilities in f32 and their gradients %g."""
        lines, g = widen("%a1", "%w", self.score)
        # Two operations: a sum of products would be a contraction of the program.
        products = code.elements("%pg", F32, [*lines, f"%v = arith.mulf %a0, {g} : f32"], wide, "%g")
        dot = code.reduce("%dot", ["%v = arith.addf %out, %a0 : f32"], "%zero", products)
        body = [*lines, f"%t = arith.subf {g}, %a2 : f32", "%u = arith.mulf %t, %a0 : f32",
                f"%x = arith.{'divf' if self.divides else 'mulf'} %u, %scale : f32", *narrow("%x", self.probability)]
        return code.elements("%ds", self.probability, body, wide, "%g", dot)

    def write_bias_gradient(self, code, wide):
        """The gradient of the bias: the rows before the scale, summed over the dimensions that the bias lacks."""
        lines, g = widen("%a1", "%w", self.score)
        body = [*lines, f"%t = arith.subf {g}, %a2 : f32", "%u = arith.mulf %t, %a0 : f32"]
        hides = [*HIDES_LATER, "%v = arith.select %hidden, %zero, %u : f32"]
        body += hides if self.mask == "causal_bias" else ["%v = arith.addf %u, %zero : f32"]
        rows, scores = code.elements("%db", F32, body, wide, "%g", "%dot"), [*OUTER, "j"]
        return self.sum(code, "%dbias", rows, scores, [*self.bias_dims])

    def sum(self, code, name, rows, all, dims):
        """The sum of `rows`, of dimensions `all`, over those that are not `dims`."""
        if set(dims) == set(all):
            return rows
        out = self.type(F32, dims)
        kinds = ", ".join('"parallel"' if d in dims else '"reduction"' for d in all)
        code.lines += [f"{name}_d = tensor.empty() : {out}", f"{name}_z = linalg.fill ins(%zero : f32) outs({name}_d : {out}) -> {out}",
                       f"{name} = linalg.generic {{indexing_maps = [{affine(all, all)}, {affine(all, dims)}], iterator_types = [{kinds}]}} "
                       f"ins({rows} : {self.type(F32, all)}) outs({name}_z : {out}) {{",
                       "^bb0(%a: f32, %out: f32):", "%v = arith.addf %a, %out : f32", "linalg.yield %v : f32", f"}} -> {out}"]  # fmt: skip
        return name

    def write_sink_gradient(self, code, top, total):
        """The gradient of the sink: its probability, times the sum that is subtracted from all gradients, of all rows."""
        body = ["%t0 = arith.subf %a0, %a1 : f32", "%t1 = math.exp %t0 : f32", "%t2 = arith.divf %t1, %a2 : f32",
                "%t3 = arith.mulf %t2, %a3 : f32", "%v = arith.negf %t3 : f32"]
        rows = code.scalar("%dsinks", F32, body, "%sink", top, total, "%dot")
        return self.sum(code, "%dsink", rows, [*OUTER], [*self.sink_dims])

    # The texts

    def constants(self):
        return ["%zero = arith.constant 0.0 : f32", "%one = arith.constant 1.0 : f32", "%lowest = arith.constant 0xFF800000 : f32",
                f"%scale = arith.constant {self.scale} : f32", f"%window = arith.constant {max(self.sizes['j'] // 3, 1)} : index"]

    def type(self, dtype, dims):
        return tensor_type(self.shape(dims), dtype)

    def matmul(self, lines, name, lhs, rhs, dtype, dims):
        """The product of two (name, dtype, dims), of the dimensions `dims`."""
        kinds = ", ".join("grad_output" if operand[0] in ("%do", "%ds") else "input" for operand in (lhs, rhs))
        used = [d for d in DIMS if d in [*lhs[2], *rhs[2]]]
        out = self.type(dtype, dims)
        maps = ", ".join(affine(used, x) for x in (lhs[2], rhs[2], dims))
        lines.append(f"{name}_d = tensor.empty() : {out}")
        lines.append(f'{name} = fp8.matmul site("{name[1:]}") role(other) kinds({kinds}) ins({lhs[0]}, {rhs[0]} : '
                     f"{self.type(*lhs[1:])}, {self.type(*rhs[1:])}) outs({name}_d : {out}) {{indexing_maps = [{maps}], fp8.role = \"other\"}} -> {out}")

    def operands(self, grad):
        """Name, type and dimensions of all arguments."""
        first = [("%q", self.operand, self.maps["query"]), ("%k", self.operand, self.maps["key"]), ("%values", self.operand, self.maps["value"])]
        if not grad:
            return [*first, *self.inputs()]
        statistics = [("%max", F32, OUTER), ("%sum", F32, OUTER)] if self.keeps_statistics else []
        return [*first, ("%do", self.operand, self.maps["output"]), *self.inputs(), *statistics]

    def function(self, arguments, lines, results):
        arguments = ", ".join(f"{name}: {self.type(dtype, dims)}" for name, dtype, dims in arguments)
        types = ", ".join(self.type(dtype, dims) for _, dtype, dims in results)
        body = "".join(f"\n  {line}" for line in [*self.constants(), *lines])
        return f"func.func @main({arguments}) -> ({types}) {{{body}\n  return {', '.join(r[0] for r in results)} : {types}\n}}\n"

    def written(self, grad):
        q, k, values = self.operands(grad)[:3]
        scores, code = [*OUTER, "j"], Whole(self.sizes)
        for name, dtype, dims in self.operands(grad):
            code.declare(name, dtype, [*dims])
        self.matmul(code.lines, code.declare("%s", self.score, scores), q, k, self.score, scores)
        if not grad:
            p, top, total = self.write_forward(code)
            self.matmul(code.lines, "%y", (p, self.probability, scores), values, self.result, self.maps["output"])
            return self.function(self.operands(grad), code.lines, [("%y", self.result, self.maps["output"]), (top, F32, OUTER), (total, F32, OUTER)])
        do = self.operands(grad)[3]
        self.matmul(code.lines, code.declare("%g", self.score, scores), do, values, self.score, scores)
        p, ds = self.write_backward(code)
        rows = lambda name: (name, self.probability, scores)
        self.matmul(code.lines, "%dv", rows(p), do, self.result, self.grads["value"])
        self.matmul(code.lines, "%dq", rows(ds), k, self.result, self.grads["query"])
        self.matmul(code.lines, "%dk", rows(ds), q, self.result, self.grads["key"])
        return self.function(self.operands(grad), code.lines, [(f"%d{n}", self.result, self.grads[t]) for n, t in (("q", "query"), ("k", "key"), ("v", "value"))])

    def step(self):
        """Forward and backward, written out, as one function: its results are the output and the gradients. The gradient of
        the output is that of half the sum of the squares of its elements times those of the fourth argument.
        """
        arguments = [argument for argument in self.operands(grad=True) if argument[0] not in ("%max", "%sum")]
        arguments[3] = ("%weights", *arguments[3][1:])
        scores, code = [*OUTER, "j"], Whole(self.sizes)
        for name, dtype, dims in arguments:
            code.declare(name, dtype, [*dims])
        q, k, values, weights = arguments[:4]
        self.matmul(code.lines, code.declare("%s", self.score, scores), q, k, self.score, scores)
        p, top, total = self.write_forward(code)
        self.matmul(code.lines, "%y", (p, self.probability, scores), values, self.result, self.maps["output"])
        do = ("%do", *weights[1:])
        self.write_output_gradient(code, *weights[1:])
        self.matmul(code.lines, code.declare("%g", self.score, scores), do, values, self.score, scores)
        wide = self.write_probabilities(code, "%pw", F32, "%exps", total)
        ds = self.write_score_gradients(code, wide)
        rows = lambda name: (name, self.probability, scores)
        self.matmul(code.lines, "%dv", rows(p), do, self.result, self.maps["value"])
        self.matmul(code.lines, "%dq", rows(ds), k, self.result, self.maps["query"])
        self.matmul(code.lines, "%dk", rows(ds), q, self.result, self.maps["key"])
        gradients = [(f"%d{n}", self.result, self.maps[t]) for n, t in (("q", "query"), ("k", "key"), ("v", "value"))]
        if self.has_bias() and self.has_bias_gradient:
            gradients.append((self.write_bias_gradient(code, wide), F32, [*self.bias_dims]))
        if self.sink_dims:
            gradients.append((self.write_sink_gradient(code, top, total), F32, [*self.sink_dims]))
        return self.function(arguments, code.lines, [("%y", self.result, self.maps["output"]), *gradients])

    def write_output_gradient(self, code, dtype, dims):
        """%do: the output %y times %weights, of its type."""
        out, parallel = self.type(dtype, dims), ", ".join(['"parallel"'] * len(dims))
        first, y = widen("%a", "%wide_y", self.result)
        second, w = widen("%b", "%wide_w", dtype)
        maps = ", ".join([affine(dims, dims)] * 3)
        code.lines += ["%do_e = tensor.empty() : " + out,
                       f"%do = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{parallel}]}} "
                       f"ins(%y, %weights : {self.type(self.result, dims)}, {out}) outs(%do_e : {out}) {{",
                       f"^bb0(%a: {MLIR_NAMES[self.result]}, %b: {MLIR_NAMES[dtype]}, %out: {MLIR_NAMES[dtype]}):",
                       *first, *second, f"%t = arith.mulf {y}, {w} : f32", *narrow("%t", dtype), f"linalg.yield %v : {MLIR_NAMES[dtype]}", f"}} -> {out}"]

    def fused(self, grad):
        operands = self.operands(grad)
        count = 4 if grad else 3
        code = Region(self.sizes, {name: name + "_p" for name, _, _ in operands[count:]})
        for name, dtype, dims in operands[count:]:
            code.declare(name + "_p", dtype, [*dims])
        code.declare("%s", self.score, "j")
        code.declare("%g", self.score, "j")
        if grad:
            yielded = [(name, self.type(self.probability, "j")) for name in self.write_backward(code)]
            results = [(f"%r#{n}", self.result, self.grads[t]) for n, t in enumerate(("query", "key", "value"))]
        else:
            p, top, total = self.write_forward(code)
            yielded = [(p, self.type(self.probability, "j")), (top, "f32"), (total, "f32")]
            results = [("%r#0", self.result, self.maps["output"]), ("%r#1", F32, OUTER), ("%r#2", F32, OUTER)]
        part = lambda dtype, dims: (self.type(dtype, "j") if "j" in dims else MLIR_NAMES[dtype])
        arguments = [*(f"%{d}x: index" for d in OUTER), *(f"{n}: {self.type(self.score, 'j')}" for n in (["%s", "%g"] if grad else ["%s"])),
                     *(f"{name}_p: {part(dtype, dims)}" for name, dtype, dims in operands[count:])]
        names = lambda values: f"{', '.join(v[0] for v in values)} : {', '.join(self.type(*v[1:]) for v in values)}"
        lines = [f"%o{n} = tensor.empty() : {self.type(*r[1:])}" for n, r in enumerate(results)]
        outs = [(f"%o{n}", *r[1:]) for n, r in enumerate(results)]
        maps = ", ".join(affine(DIMS, v[2]) for v in [*operands, *outs])
        rows = f" row_ins({names(operands[count:])})" if operands[count:] else ""
        sites = ", ".join(f'#fp8.matmul_site<site = "{name}", kept = "in attention">' for name in (["s", "g", "dv", "dq", "dk"] if grad else ["s", "y"]))
        lines += [f"%r:3 = fp8.attention{'_grad' if grad else ''} ins({names(operands[:count])}){rows} outs({names(outs)})",
                  f"    {{indexing_maps = [{maps}], sites = [{sites}]}} rows {{", f"  ^bb0({', '.join(arguments)}):",
                  *("    " + line for line in code.lines), f"    fp8.yield {', '.join(v[0] for v in yielded)} : {', '.join(v[1] for v in yielded)}",
                  f"}} -> {', '.join(self.type(*r[1:]) for r in results)}"]
        return self.function(self.operands(grad), lines, results)

    def arrays(self, rng, grad, statistics=None):
        """Random arguments; statistics are those of a forward pass. Without them the arguments are those of `step` if `grad`."""
        arrays = []
        for name, dtype, dims in self.operands(grad):
            if name in ("%max", "%sum"):
                if statistics is None:
                    continue
                arrays.append(statistics[name == "%sum"])
            elif name == "%lengths":
                arrays.append(rng.integers(0, self.sizes["j"] + 1, self.shape(dims)).astype(I32))
            else:
                arrays.append(rng.standard_normal(self.shape(dims)).astype(dtype))
        return arrays
