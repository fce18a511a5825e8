# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random elementwise code on f64, f32, bf16, f16, i32 and i1 operands, as linalg and in numpy.

An operand has all dimensions of the result, some of them, or none, and may be transposed. Every operation computes in one
float type, to which its operands are converted, and its result is converted to another one. `test_wide_epilogues.py` puts
such code behind products.
"""
import numpy as np

from harness import BF16, F16, F32, MLIR_NAMES, tensor_type

F64, I32, BIT = np.dtype(np.float64), np.dtype(np.int32), np.dtype(np.bool_)
FLOATS = [F32, F64, BF16, F16]


def round_to_odd(wide):
    """f64 as f32, the last bit set where it is not exact: a second rounding then rounds as one from f64."""
    near = wide.astype(F32)
    inexact = np.isfinite(wide) & (near.astype(F64) != wide)
    toward_zero = np.where(np.abs(near.astype(F64)) > np.abs(wide), np.nextafter(near, F32.type(0)), near)
    return np.where(inexact, (toward_zero.view(np.uint32) | 1).view(F32), near)


def convert(array, dtype):
    """One rounding, also from f64 to bf16, where ml_dtypes rounds twice."""
    with np.errstate(all="ignore"):
        return round_to_odd(array).astype(BF16) if array.dtype == F64 and dtype == BF16 else array.astype(dtype)


def maximum(x, y):
    """arith.maximumf: a NaN if there is one, and 0 is greater than -0."""
    larger = np.where((x > y) | ((x == y) & np.signbit(y)), x, y)
    return np.where(np.isnan(x) | np.isnan(y), np.array(np.nan, x.dtype), larger)


ARITHMETIC = {"addf": np.add, "subf": np.subtract, "mulf": np.multiply, "maximumf": maximum}


class Operand:
    """A tensor whose dimensions are `places` of the result's."""

    def __init__(self, name, array, places):
        self.name, self.array, self.places = name, array, tuple(places)

    @property
    def dtype(self):
        return self.array.dtype

    @property
    def type(self):
        return tensor_type(self.array.shape, self.dtype)

    def read(self, shape):
        """The array as the loops see it."""
        order = sorted(range(len(self.places)), key=lambda i: self.places[i])
        ones = [size if d in self.places else 1 for d, size in enumerate(shape)]
        return np.broadcast_to(self.array.transpose(order).reshape(ones), shape)


def generic(name, rank, operands, type, lines, result):
    """An elementwise linalg.generic with the code `lines`, which computes %`result` from %a0, %a1, …"""
    loops = ", ".join(f"d{d}" for d in range(rank))
    maps = [*(o.places for o in operands), range(rank)]
    maps = ", ".join(f"affine_map<({loops}) -> ({', '.join(f'd{d}' for d in places)})>" for places in maps)
    element = type.split("x")[-1].rstrip(">").removeprefix("tensor<")
    inputs = f"ins({', '.join(o.name for o in operands)} : {', '.join(o.type for o in operands)})"
    arguments = ", ".join(f"%a{i}: {MLIR_NAMES[o.dtype]}" for i, o in enumerate(operands))
    iterators = ", ".join(['"parallel"'] * rank)
    code = "".join(f"\n    {line}" for line in [*lines, f"linalg.yield {result} : {element}"])
    return f"""
  %e_{name[1:]} = tensor.empty() : {type}
  {name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}} {inputs} outs(%e_{name[1:]} : {type}) {{
  ^bb0({arguments}, %out: {element}):{code}
  }} -> {type}"""


class WideCode:
    """`count` random operations on `operands`; each reads the newest value, so that none is dead before the last."""

    def __init__(self, rng, shape, operands, count):
        self.rng, self.shape, self.text, self.values = rng, shape, "", list(operands)
        for i in range(count):
            self.values.append(self.step(f"%v{i}"))
        self.final, self.inner = self.values[-1], self.values[len(operands) : -1]

    def convert(self, name, source, target):
        """Lines that convert %`name`, and the name of the result."""
        if source == target:
            return [], name
        if BIT in (source, target) or source == I32:
            operation = "arith.sitofp" if source == I32 else "arith.uitofp"
            through = target if target in (F32, F64) else F32  # every i32 below 2²⁴ is exact in f32
            lines, middle = [f"{name}_f = {operation} {name} : {MLIR_NAMES[source]} to {MLIR_NAMES[through]}"], f"{name}_f"
            more, last = self.convert(middle, through, target)
            return lines + more, last
        if {source, target} == {BF16, F16}:
            lines, last = self.convert(f"{name}_w", F32, target)
            return [f"{name}_w = arith.extf {name} : {MLIR_NAMES[source]} to f32", *lines], last
        operation = "arith.truncf" if source.itemsize > target.itemsize else "arith.extf"
        return [f"{name}_c = {operation} {name} : {MLIR_NAMES[source]} to {MLIR_NAMES[target]}"], f"{name}_c"

    def pick(self, wanted):
        found = [v for v in self.values if wanted(v)]
        return found[self.rng.integers(len(found))]

    def step(self, name):
        rng = self.rng
        kind = rng.choice([*ARITHMETIC, "where", "where", "clip", "negf"])
        wide, dtype = (FLOATS[i] for i in rng.choice(4, 2, p=[0.3, 0.4, 0.15, 0.15]))
        dtype = F32 if dtype == F64 and rng.random() < 0.7 else dtype  # a value of f64 ends an epilogue
        operands = [self.values[-1], self.pick(lambda v: v.dtype != BIT)]
        lines, names = [], []
        for i, operand in enumerate(operands):
            more, last = self.convert(f"%a{i}", operand.dtype, wide)
            lines += more
            names.append(last)
        x, y = (convert(o.read(self.shape), wide) for o in operands)
        t = MLIR_NAMES[wide]
        with np.errstate(all="ignore"):
            if kind in ARITHMETIC:
                lines.append(f"%r = arith.{kind} {names[0]}, {names[1]} : {t}")
                result = ARITHMETIC[kind](x, y)
            elif kind == "negf":
                lines.append(f"%r = arith.negf {names[0]} : {t}")
                result = -x
            elif kind == "where":
                operands.append(self.pick(lambda v: v.dtype == BIT))
                lines.append(f"%r = arith.select %a2, {names[0]}, {names[1]} : {t}")
                result = np.where(operands[2].read(self.shape), x, y)
            else:
                lines += [f"%one = arith.constant 1.0 : {t}", f"%over = arith.cmpf ogt, {names[0]}, {names[1]} : {t}",
                          f"%r = arith.select %over, %one, {names[0]} : {t}"]
                result = np.where(x > y, np.array(1, wide), x)
        more, last = self.convert("%r", wide, dtype)
        lines += more
        self.text += generic(name, len(self.shape), operands, tensor_type(self.shape, dtype), lines, last)
        return Operand(name, np.ascontiguousarray(convert(result.astype(wide), dtype)), range(len(self.shape)))
