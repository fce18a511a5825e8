# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes a failing model smaller for as long as it still fails.

Layers are deleted, what is around them is dropped, fields go back to their defaults, sizes
become smaller. Fields without a default (a name, the seed) stay.
"""
import copy
from dataclasses import fields

from .model import is_required

SMALL_SIZE = 2


def shrink(model, fails):
    """A smaller model for which `fails` is still true."""
    changed = True
    while changed:
        changed = False
        for candidate in smaller(model):
            if candidate != model and fails(candidate):
                model, changed = candidate, True
                break
    return model


def smaller(model):
    """Models that are a step smaller, the largest steps first."""
    for path in list(places(model)):
        yield from changes(model, path)


def places(node, path=()):
    """Paths to the model, to every layer and to the options, outermost first."""
    if isinstance(node, list):
        for i, item in enumerate(node):
            yield from places(item, (*path, i))
    elif hasattr(node, "__dataclass_fields__"):
        yield path
        for f in fields(node):
            yield from places(getattr(node, f.name), (*path, f.name))


def follow(node, path):
    for step in path:
        node = node[step] if isinstance(step, int) else getattr(node, step)
    return node


def changes(model, path):
    if path and isinstance(path[-1], int):
        yield replaced(model, path, [])
        inner = follow(model, path)
        body = getattr(inner, "body", None) or getattr(inner, "paths", None) or []
        if body:
            yield replaced(model, path, body)
            if hasattr(inner, "paths"):
                yield replaced(model, path, body[:1])
        if hasattr(inner, "q"):
            yield replaced(model, path, [inner.q])
    node = follow(model, path)
    for f in fields(node):
        value = getattr(node, f.name)
        for simpler in simpler_values(f, value):
            candidate = copy.deepcopy(model)
            setattr(follow(candidate, path), f.name, simpler)
            if is_valid(candidate):
                yield candidate


def replaced(model, path, items):
    """`model` with the item of a list at `path` replaced by these."""
    candidate = copy.deepcopy(model)
    follow(candidate, path[:-1])[path[-1] : path[-1] + 1] = copy.deepcopy(items)
    return candidate if is_valid(candidate) else model


def is_valid(model):
    """A branch needs a path."""
    nodes = [follow(model, path) for path in places(model)]
    return bool(model.layers) and all(getattr(node, "paths", True) for node in nodes)


def simpler_values(f, value):
    """Values of a field that make a model simpler."""
    if f.name == "lead":
        if len(value) > 1:
            yield value[-1:]
        if max(value) > SMALL_SIZE or 0 in value:
            yield tuple(min(n or SMALL_SIZE, SMALL_SIZE) for n in value)
    elif f.name in ("out", "features"):
        if value > SMALL_SIZE or value == 0:
            yield SMALL_SIZE
    elif f.name == "forms":
        if set(value) != {"generic"}:
            yield ("generic",) * len(value)
            for i, form in enumerate(value):
                if form != "generic":
                    yield (*value[:i], "generic", *value[i + 1 :])
    elif f.name == "steps":
        if value > 1:
            yield 1
    elif f.name == "microbatches":
        if value > 1:
            yield value - 1
    elif not is_required(f) and not isinstance(value, list) and not hasattr(value, "__dataclass_fields__"):
        if f.name == "kind":
            if value != "scale":
                yield "scale"
        elif value != f.default:
            yield f.default
