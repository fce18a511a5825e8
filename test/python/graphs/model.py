# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The random choices: a model as a tree of layers, how it is trained, how it is compiled.

A tree stays valid when any node is deleted or any field set back to its default, so that a
failing one can be shrunk: what does not fit any more (a residual of other shape, a tie to a
weight that is gone) is left out when training.py builds the program.
"""
from dataclasses import dataclass, field, fields


@dataclass
class Linear:
    """y = x · w [+ b] [+ x]."""

    out: int
    name: str = ""
    forms: tuple = ("generic", "generic", "generic")  # of fprop, dgrad and wgrad
    turned: bool = False  # the weight is [out, in]
    bias: bool = False
    frozen: bool = False
    residual: bool = False  # x is what the products are added to
    experts: bool = False  # a weight for every index of the first dimension
    tied: str = ""  # the layer whose weight this one uses
    wide: bool = False  # the gradient of the weight is summed into f32


@dataclass
class Activation:
    kind: str = "relu"


@dataclass
class Residual:
    body: list = field(default_factory=list)


@dataclass
class Branch:
    """Several layers read one activation; their results are added or multiplied."""

    paths: list = field(default_factory=list)
    combine: str = "add"
    scaled: bool = False  # each result by a number of its own, so that the gradients differ
    chained: bool = False  # gradients are added by the products themselves


@dataclass
class Attention:
    """(q · kᵀ / 8) · v, without a softmax."""

    q: Linear
    k: Linear
    v: Linear
    name: str = ""
    forms: tuple = ("generic",) * 6


@dataclass
class Remat:
    """The body is computed again for the backward pass."""

    body: list = field(default_factory=list)
    rewritten: bool = False  # by operations in forms of their own


@dataclass
class Conditional:
    """The body is run where an argument says so; its gradients compute it again."""

    body: list = field(default_factory=list)


@dataclass
class Stack:
    """Equal layers in a loop over their weights, which are one tensor: y = act(x · w[i])."""

    linear: Linear  # as wide as its input
    count: int = 2
    kind: str = "relu"


@dataclass
class Options:
    recipe: str = "delayed"
    format: str = "hybrid"
    margin: int = 0
    amax_history_len: int = 4
    amax_compute_algo: str = "max"
    sites: str = "linear"
    keep: str = ""
    calibrate: bool = False
    eps: float = 0.0
    power_2_scale: bool = False
    ignore_non_finite: bool = False
    init: str = "one"
    fprop: str = "fp8"
    dgrad: str = "fp8"
    wgrad: str = "fp8"

    def command_line(self):
        names = [f"--sites={self.sites}", *([f"--keep={self.keep}"] if self.keep else [])]
        names += ["--calibrate"] if self.calibrate else []
        roles = [f"--{role}={self.role(role)}" for role in ("fprop", "dgrad", "wgrad") if self.role(role) != "fp8"]
        words = {name: str(getattr(self, name.replace("-", "_"))).lower() for name in self.parameters()}
        return [f"--recipe={self.recipe}", *names, *roles, *(f"--{name}={word}" for name, word in words.items())]

    def role(self, role):
        return getattr(self, role) if role in ("fprop", "dgrad", "wgrad") else "fp8"

    def parameters(self):
        """Options that belong to the recipe."""
        if self.recipe in ("current", "row", "block"):
            return ["format", "eps", "power-2-scale"]
        if self.recipe == "mxfp8":
            return ["format"]
        own = ["margin", "amax-history-len", "amax-compute-algo", "format", "ignore-non-finite", "init"]
        return own if self.recipe == "delayed" else []


@dataclass
class Model:
    seed: int  # of forms, styles and data
    layers: list = field(default_factory=list)
    lead: tuple = (4,)  # sizes before the features
    features: int = 4
    dtype: str = "f32"
    weight_dtype: str = "f32"
    dynamic: int = -1  # which of `lead` is known only at run time
    pair: str = ""  # two functions: forward computes the "loss", or the "result" alone
    microbatches: int = 1
    looped: bool = False  # the loop over microbatches is a loop of the program
    update: str = "carry"  # or "carry option", "gradients"
    input_gradient: bool = False
    evaluate: bool = False
    names: str = "jax"  # or "calls", "attributes", "none"
    steps: int = 3
    magnitude: float = 1.0
    options: Options = field(default_factory=Options)


def to_text(node, indent=""):
    """The fields that are not as by default, a line per layer."""
    if isinstance(node, list):
        return "[" + "".join(f"\n{indent}  {to_text(n, indent + '  ')}," for n in node) + (f"\n{indent}]" if node else "]")
    if not hasattr(node, "__dataclass_fields__"):
        return repr(node)
    default = type(node)(**{f.name: getattr(node, f.name) for f in fields(node) if is_required(f)})
    shown = [f for f in fields(node) if is_required(f) or getattr(node, f.name) != getattr(default, f.name)]
    parts = ", ".join(f"{f.name}={to_text(getattr(node, f.name), indent)}" for f in shown)
    return f"{type(node).__name__}({parts})"


def is_required(f):
    return f.default is f.default_factory  # both are missing
