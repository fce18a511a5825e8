# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs as MLIR text: linalg, tensor, arith and scf on tensors."""
from .builder import NAMED
from .program import Dynamic, Value, is_dynamic, is_forward


def emit_module(functions, names):
    """`names`: how sites are named, as in model.Model."""
    return "\n".join(Emitter(part, names).run() for function in functions for part in function.written())


def location(op, names, function):
    """Where a front end says that a product comes from."""
    scope, backward, again = op["site"].scope, not is_forward(op), op["again"]
    if names not in ("jax", "calls"):
        return ""
    outer, _, inner = scope.partition("/")
    if function == "evaluate":
        stack = [outer]
    elif backward or again:
        stack = [f"transpose(jvp({outer}))"]
    else:
        stack = [f"jvp({outer})"]
    if again:
        stack += ["checkpoint"] if backward else ["checkpoint", "rematted_computation"]
    if op["loop"]:
        stack += ["while", "body", "closed_call"]
    stack = [f"jit({function})", *stack]
    rest = [*([inner] if inner else []), "->".join([",".join(op["einsum"][:2]), op["einsum"][2]]), "dot_general"]
    if names == "calls":
        return f' loc(callsite("{"/".join(rest)}" at "{"/".join(stack)}"))'
    return f' loc("{"/".join([*stack, *rest])}")'


def type_of(value, dtype=None):
    if value.dtype == "index":
        return "index"
    sizes = "".join("?x" if isinstance(n, Dynamic) else f"{n}x" for n in value.shape)
    return f"tensor<{sizes}{dtype or value.dtype}>"


def affine_map(dims, results):
    names = [f"d{i}" for i in range(dims)]
    return f"affine_map<({', '.join(names)}) -> ({', '.join(results)})>"


def projection(dims, kept):
    return affine_map(dims, [f"d{i}" for i in kept])


def number(value):
    return repr(float(value))


class Emitter:
    def __init__(self, function, names):
        self.function, self.names = function, names
        self.lines, self.known, self.count, self.indent = [], {}, 0, "  "

    # --- small things ---

    def name(self, value):
        if value not in self.known:
            self.known[value] = self.fresh()
        return self.known[value]

    def fresh(self):
        self.count += 1
        return f"%{self.count}"

    def line(self, text):
        self.lines.append(self.indent + text)

    def let(self, text):
        name = self.fresh()
        self.line(f"{name} = {text}")
        return name

    def set(self, value, text):
        self.line(f"{self.name(value)} = {text}")

    def empty(self, value, dtype=None):
        sizes = ", ".join(self.size(n) for n in value.shape if isinstance(n, Dynamic))
        return self.let(f"tensor.empty({sizes}) : {type_of(value, dtype)}")

    def size(self, size):
        """A number, or the value that is it at run time."""
        if not isinstance(size, Dynamic):
            return str(size)
        if size.factor == 1:
            return self.dynamic
        factor = self.let(f"arith.constant {size.factor} : index")
        return self.let(f"arith.muli {self.dynamic}, {factor} : index")

    def find_size(self):
        """The dynamic dimension, of the first argument that has it."""
        for value in self.function.body.arguments:
            for i, n in enumerate(value.shape):
                if isinstance(n, Dynamic) and n.factor == 1:
                    dimension = self.let(f"arith.constant {i} : index")
                    return self.let(f"tensor.dim {self.name(value)}, {dimension} : {type_of(value)}")
        return None

    def filled(self, value, number_text, style):
        if style == "constant" and not is_dynamic(value.shape):
            return self.let(f"arith.constant dense<{number_text}> : {type_of(value)}")
        scalar = self.let(f"arith.constant {number_text} : {value.dtype}")
        return self.let(
            f"linalg.fill ins({scalar} : {value.dtype}) outs({self.empty(value)} : {type_of(value)}) -> {type_of(value)}"
        )

    def typed(self, values):
        return f"{', '.join(map(self.name, values))} : {', '.join(map(type_of, values))}"

    def generic(self, result, inputs, maps, iterators, body, out, place="", attribute=""):
        """body: lines that compute what is yielded from %in0, … and %out."""
        quoted = ", ".join(f'"{i}"' for i in iterators)
        attribute = f"attrs = {{{attribute}}} " if attribute else ""
        inputs_text = f"ins({self.typed(inputs)}) " if inputs else ""
        self.set(
            result,
            f"linalg.generic {{indexing_maps = [{', '.join(maps)}], iterator_types = [{quoted}]}} "
            f"{inputs_text}outs({out} : {type_of(result)}) {attribute}{{",
        )
        arguments = [f"%in{i}: {v.dtype}" for i, v in enumerate(inputs)] + [f"%out: {result.dtype}"]
        self.line(f"  ^bb0({', '.join(arguments)}):")
        for text in body:
            self.line("    " + text)
        self.line(f"}} -> {type_of(result)}{place}")

    # --- the function ---

    def run(self):
        function, body = self.function, self.function.body
        arguments = []
        for i, (name, value) in enumerate(zip(function.names, body.arguments)):
            carry = f" {{tf.aliasing_output = {function.carried[i]} : i32}}" if i in function.carried else ""
            arguments.append(f"{self.name(value)}: {type_of(value)}{carry} loc(\"{name}\")")
        results = ", ".join(map(type_of, body.results))
        self.lines.append(f"func.func @{function.name}({', '.join(arguments)}) -> ({results}) {{")
        self.dynamic = self.find_size()
        self.emit_ops(body)
        self.line(f"return {self.typed(body.results)}")
        self.lines.append("}")
        return "\n".join(self.lines) + "\n"

    def emit_ops(self, block):
        for op in block.ops:
            getattr(self, "emit_" + op.kind)(op, op.results[0] if op.results else None)

    def emit_region(self, block):
        outer, self.indent = self.indent, self.indent + "  "
        self.emit_ops(block)
        self.line(f"scf.yield {self.typed(block.results)}")
        self.indent = outer

    # --- moving elements about ---

    def emit_fill(self, op, result):
        self.known[result] = self.filled(result, number(op["value"]), op.style)

    def emit_cast(self, op, result):
        (source,) = op.inputs
        word = "extf" if result.dtype == "f32" else "truncf"
        if op.style == "arith":
            return self.set(result, f"arith.{word} {self.name(source)} : {type_of(source)} to {type_of(result)}")
        identity = projection(len(result.shape), range(len(result.shape)))
        body = [f"%r = arith.{word} %in0 : {source.dtype} to {result.dtype}", f"linalg.yield %r : {result.dtype}"]
        iterators = ["parallel"] * len(result.shape)
        self.generic(result, [source], [identity] * 2, iterators, body, self.empty(result))

    def emit_transpose(self, op, result):
        (source,), rank, permutation = op.inputs, len(result.shape), op["permutation"]
        if op.style == "named":
            return self.set(
                result,
                f"linalg.transpose ins({self.typed([source])}) outs({self.empty(result)} : {type_of(result)}) "
                f"permutation = {list(permutation)}",
            )
        inverse = [permutation.index(i) for i in range(rank)]
        self.copy(result, source, projection(rank, inverse))

    def copy(self, result, source, source_map):
        rank = len(result.shape)
        body, iterators = [f"linalg.yield %in0 : {result.dtype}"], ["parallel"] * rank
        self.generic(result, [source], [source_map, projection(rank, range(rank))], iterators, body, self.empty(result))

    def emit_broadcast(self, op, result):
        (source,), rank = op.inputs, len(result.shape)
        new = rank - len(source.shape)
        if op.style == "named":
            return self.set(
                result,
                f"linalg.broadcast ins({self.typed([source])}) outs({self.empty(result)} : {type_of(result)}) "
                f"dimensions = {list(range(new))}",
            )
        self.copy(result, source, projection(rank, range(new, rank)))

    def emit_reshape(self, op, result):
        (source,) = op.inputs
        expands = len(result.shape) > len(source.shape)
        word = "expand" if expands else "collapse"
        shape = f" output_shape [{', '.join(map(self.size, result.shape))}]" if expands else ""
        groups = [list(group) for group in op["groups"]]
        self.set(
            result,
            f"tensor.{word}_shape {self.name(source)} {groups}{shape} : {type_of(source)} into {type_of(result)}",
        )

    def slice_text(self, index, shape):
        offset = self.name(index) if isinstance(index, Value) else index
        zeros, ones = ", 0" * len(shape), ", 1" * len(shape)
        sizes = "".join(f", {self.size(n)}" for n in shape)
        return f"[{offset}{zeros}] [1{sizes}] [1{ones}]"

    def emit_slice(self, op, result):
        source, index = op.inputs[0], op["index"] if op["index"] is not None else op.inputs[1]
        place = self.slice_text(index, result.shape)
        self.set(result, f"tensor.extract_slice {self.name(source)}{place} : {type_of(source)} to {type_of(result)}")

    def emit_insert(self, op, result):
        target, value, index = op.inputs[0], op.inputs[1], op["index"] if op["index"] is not None else op.inputs[2]
        place = self.slice_text(index, value.shape)
        self.set(
            result,
            f"tensor.insert_slice {self.name(value)} into {self.name(target)}{place} : "
            f"{type_of(value)} into {type_of(target)}",
        )

    # --- arithmetic ---

    def emit_elementwise(self, op, result):
        rank = len(result.shape)
        if op.style == "arith":
            constant = lambda text: self.filled(result, text, "constant")
            writer = ExpressionWriter(self.let, [self.name(v) for v in op.inputs], result, constant)
            self.known[result] = writer.write(op["expression"])
            return
        body = []

        def let(text):
            body.append(f"%e{len(body)} = {text}")
            return f"%e{len(body) - 1}"

        value = ExpressionWriter(let, [f"%in{i}" for i in range(len(op.inputs))], result).write(op["expression"])
        body.append(f"linalg.yield {value} : {result.dtype}")
        maps = [projection(rank, d) for d in op["dims"]] + [projection(rank, range(rank))]
        self.generic(result, op.inputs, maps, ["parallel"] * rank, body, self.empty(result))

    def emit_sum(self, op, result):
        (source,) = op.inputs
        rank, keep = len(source.shape), op["keep"]
        body, term = [], "%in0"
        if source.dtype != "f32":
            body.append(f"%w = arith.extf %in0 : {source.dtype} to f32")
            term = "%w"
        if op["square"]:
            body.append(f"%q = arith.mulf {term}, {term} : f32")
            term = "%q"
        body += [f"%s = arith.addf %out, {term} : f32", "linalg.yield %s : f32"]
        maps = [projection(rank, range(rank)), projection(rank, keep)]
        iterators = ["parallel" if d in keep else "reduction" for d in range(rank)]
        self.generic(result, [source], maps, iterators, body, self.filled(result, "0.0", "fill"))

    # --- products ---

    def emit_contract(self, op, result):
        a, b, *init = op.inputs
        out = self.name(init[0]) if init else self.filled(result, "0.0", "fill")
        place = location(op, self.names, self.function.name)
        named = self.names == "attributes" and is_forward(op)
        site = f'fp8.site = "{op["site"].scope}"' if named else ""
        letters, loops = op["letters"], op["loops"]
        maps = [affine_map(len(loops), [f"d{loops.index(l)}" for l in text]) for text in letters]
        if op.style == "generic":
            iterators = ["parallel" if l in letters[2] else "reduction" for l in loops]
            return self.generic(result, [a, b], maps, iterators, self.product_body(op, result), out, place, site)
        word = NAMED[canonical(letters)] if op.style == "named" else "contract"
        explicit = op.style == "contract" or letters not in NAMED
        maps_text = f" indexing_maps = [{', '.join(maps)}]" if explicit else ""
        site = f" {{{site}}}" if site else ""
        self.set(
            result,
            f"linalg.{word}{maps_text}{site} ins({self.typed([a, b])}) outs({out} : {type_of(result)}) "
            f"-> {type_of(result)}{place}",
        )

    def product_body(self, op, result):
        body, terms = [], []
        for i, value in enumerate(op.inputs[:2]):
            if value.dtype != result.dtype:
                body.append(f"%w{i} = arith.extf %in{i} : {value.dtype} to {result.dtype}")
            terms.append(f"%w{i}" if value.dtype != result.dtype else f"%in{i}")
        flip_product, flip_sum = op["flipped"]
        body.append(f"%p = arith.mulf {', '.join(terms[::-1] if flip_product else terms)} : {result.dtype}")
        body.append(f"%s = arith.addf {'%p, %out' if flip_sum else '%out, %p'} : {result.dtype}")
        return body + [f"linalg.yield %s : {result.dtype}"]

    # --- control flow ---

    def emit_backwards(self, op, result):
        last = self.let(f"arith.constant {op['last']} : index")
        self.set(result, f"arith.subi {last}, {self.name(op.inputs[0])} : index")

    def emit_for(self, op, _):
        (block,) = op.blocks
        zero, one, end = (self.let(f"arith.constant {i} : index") for i in (0, 1, op["trips"]))
        pairs = [f"{self.name(v)} = {self.name(init)}" for v, init in zip(block.arguments[1:], op.inputs)]
        types = ", ".join(map(type_of, op.results))
        base = self.fresh()
        self.line(
            f"{base}:{len(op.results)} = scf.for {self.name(block.arguments[0])} = {zero} to {end} step {one} "
            f"iter_args({', '.join(pairs)}) -> ({types}) {{"
        )
        self.close(op, base)

    def emit_if(self, op, _):
        flag = self.let(f"tensor.extract {self.name(op.inputs[0])}[] : tensor<f32>")
        zero = self.let("arith.constant 0.0 : f32")
        condition = self.let(f"arith.cmpf ogt, {flag}, {zero} : f32")
        base = self.fresh()
        self.line(f"{base}:{len(op.results)} = scf.if {condition} -> ({', '.join(map(type_of, op.results))}) {{")
        self.close(op, base)

    def close(self, op, base):
        for i, result in enumerate(op.results):
            self.known[result] = f"{base}#{i}"
        for i, block in enumerate(op.blocks):
            if i:
                self.line("} else {")
            self.emit_region(block)
        self.line("}")


def canonical(letters):
    """Letters with every matrix turned the usual way round."""
    return next(known for known in NAMED if all(sorted(a) == sorted(b) for a, b in zip(known, letters)))


class ExpressionWriter:
    """Writes an expression tree with arith, on scalars or on whole tensors."""

    WORDS = {"add": "arith.addf", "sub": "arith.subf", "mul": "arith.mulf", "max": "arith.maximumf"}

    def __init__(self, let, inputs, result, constant=None):
        """`constant` makes one of a tensor's type; without it all is scalar."""
        self.let, self.inputs, self.constant, scalar = let, inputs, constant, constant is None
        self.type = result.dtype if scalar else type_of(result)
        self.condition_type = "i1" if scalar else type_of(result, "i1")
        self.scalar = scalar

    def write(self, tree):
        if isinstance(tree, int):
            return self.inputs[tree]
        if isinstance(tree, float):
            text = number(tree)
            return self.constant(text) if self.constant else self.let(f"arith.constant {text} : {self.type}")
        word, *rest = tree
        values = [self.write(part) for part in rest]
        if word == "gt":
            return self.let(f"arith.cmpf ogt, {values[0]}, {values[1]} : {self.type}")
        if word == "select":
            types = self.type if self.scalar else f"{self.condition_type}, {self.type}"
            return self.let(f"arith.select {', '.join(values)} : {types}")
        return self.let(f"{self.WORDS[word]} {', '.join(values)} : {self.type}")
