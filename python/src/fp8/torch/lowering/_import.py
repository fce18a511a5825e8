# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FX graphs of ATen operations to linalg on tensors, by torch-mlir's passes as iree-base-compiler brings them.

The locations of the result are what reports and errors show: the path of the module that an
operation comes from (`h.0.fc1`, in backward code `transpose(jvp(h.0.fc1))`), and the user's line.
"""

from __future__ import annotations

import inspect
import json
import os
import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch._ops import HigherOrderOperator
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx import Graph, GraphModule, Node
from torch.utils import _pytree

from ... import _compile, _process
from ..._errors import CompileError, Location, MissingToolError, UnsupportedError, warn
from ..._frameworks import INSTALL
from ..._library import Library
from ..._report import Report
from . import _blame, _comparisons, _complex, _decompose, _empty, _halves, _integers

try:
    from iree.compiler import ir
    from iree.compiler.extras import fx_importer

    from . import _bits, _conversions, _float8, _passes
    from ._loops import write_loops
except ImportError as error:
    raise MissingToolError(f"fp8.torch needs iree-base-compiler: {INSTALL['torch']} ({error})") from None

#: As the compiler writes it.
_LINE_OF_INPUT = re.compile(r" \(<stdin>:\d+:\d+\)|<stdin>:\d+:\d+")

#: The advice where there is no other way to write an operation.
_LEAVE = "under torch.compile, a function with @torch.compiler.disable leaves it to PyTorch"

#: The annotations of a node, beside those of the user's: the path of its module, and the file and number of its line.
MODULE, LINE = "fp8.module", "fp8.line"

#: The code in these folders is not the user's.
OWN_FOLDERS = (os.path.dirname(torch.__file__) + os.sep, str(pathlib.Path(__file__).parents[2]) + os.sep)


def to_linalg(graphs: Mapping[str, GraphModule], names: Mapping[str, Sequence[str]] | None = None) -> str:
    """The text of a module with one function per graph. `names` are those of a function's arguments.

    The graphs are functional, of ATen operations, with static shapes in `meta["val"]`.
    Raises UnsupportedError for an operation that has no linalg form.
    """
    for module in graphs.values():
        _refuse_transforms(module.graph)
    graphs = {name: _complex.in_pairs(module, _decompose.table(), user_line) for name, module in graphs.items()}
    views = 0
    for module in graphs.values():
        views = _bits.mark_views(module.graph, views)
        _prepare(module.graph)
    plain = {name: module.graph for name, module in graphs.items()}
    text = _text(plain, names or {})
    try:
        return _float8.let_overflow(_bits.take_bits(write_loops(_passes.run(text)), views))
    except CompileError as error:
        raise _explained(error, plain) from None


def _prepare(graph: Graph) -> None:
    _forget_devices(graph)
    _refuse_complex(graph)
    _refuse_sparse(graph)
    _refuse_effects(graph)
    _refuse_symbols(graph)
    _empty.fold(graph)
    _comparisons.of_one_kind(graph)
    _integers.cut_numbers(graph)
    _integers.widen(graph)
    _halves.widen(graph)
    _conversions.define(graph)
    _float8.through_f32(graph)


def _forget_devices(graph: Graph) -> None:
    """Lets all tensors be made on the CPU: a program runs on one device, and torch-mlir knows no other."""
    for node in list(graph.nodes):
        if node.target is torch.ops.prims.device_put.default:
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
        elif node.kwargs.get("device") is not None:
            node.kwargs = {**node.kwargs, "device": torch.device("cpu")}


def _text(graphs: Mapping[str, Graph], names: Mapping[str, Sequence[str]]) -> str:
    """The text of a module in the dialect torch."""
    context = ir.Context()
    with context:
        importer = fx_importer.FxImporter(context=context, config_check=False)
        importer._cc = _Locations(context, py_attr_tracker=importer._py_attr_tracker)
        for name, graph in graphs.items():
            _import(importer, name, graph)
        for function in importer.module.body.operations:
            if function.operation.name == "func.func" and names:
                _name_arguments(function, names.get(ir.StringAttr(function.attributes["sym_name"]).value, ()))
        return str(importer.module.operation.get_asm(enable_debug_info=True))


def _import(importer: Any, name: str, graph: Graph) -> None:
    try:
        # Constants have values, which the importer converts.
        with unset_fake_temporarily():
            importer.import_stateless_graph(graph, func_name=name)
    except (NotImplementedError, AssertionError, KeyError, TypeError) as error:
        if node := next((n for n in graph.nodes if isinstance(n.target, HigherOrderOperator)), None):
            raise UnsupportedError(f"'{node.target}' has no form in linalg", user_line(node)) from None
        unknown = [n for n in graph.nodes if isinstance(error, KeyError) and getattr(n.meta.get("val"), "dtype", None) in error.args]
        if unknown:
            raise UnsupportedError(f"'{unknown[0].name}' is a tensor of {error.args[0]}, which has no form in linalg", user_line(unknown[0])) from None
        raise UnsupportedError(f"torch-mlir cannot read the graph of '{name}': {type(error).__name__}: {error}") from error


def _explained(error: CompileError, graphs: Mapping[str, Graph]) -> CompileError:
    """A failure of torch-mlir's passes with the operation and the user's line, where they do not say both."""
    if isinstance(error, UnsupportedError) and error.location is not None:
        return error
    nodes = [node for graph in graphs.values() for node in graph.nodes]
    # A process that died, or ran out of time, is not started again and again.
    alone = _blame.operation_at_fault(graphs.values(), _failure) if error.message.startswith(_passes.CANNOT_LOWER) else None
    if alone is None:
        named = (n for n in nodes if n.op == "call_function" and error.message.startswith(f"'{_full_name(n)}'"))
        line = next((_blame.nearest_line(n, user_line) for n in named), None) or _line_in(error.notes)
        return type(error)(error.message, error.location or line or first_line_of(nodes), error.notes, error.source_path)
    node, own = alone
    line = _blame.nearest_line(node, user_line) or error.location
    return UnsupportedError(f"'{_full_name(node)}' has no form in linalg", line, (own.message.removeprefix(_passes.CANNOT_LOWER), *own.notes))


def _failure(graphs: dict[str, Graph]) -> CompileError | None:
    try:
        _passes.run(_text(graphs, {}))
    except CompileError as error:
        return error
    return None


def _full_name(node: Node) -> str:
    """The operation's name as in `aten.view.dtype`."""
    return str(node.target).removesuffix(".default")


def _line_in(notes: Sequence[str]) -> Location | None:
    """The first place in a file that locations of MLIR name."""
    found = re.search(r'\("([^"]+)":(\d+):(\d+)\)', "\n".join(notes))
    return Location(found[1], int(found[2]), int(found[3])) if found else None


def _refuse_effects(graph: Graph) -> None:
    """Raises UnsupportedError for functions that check what LAPACK found, under the name that users call them by."""
    for node in graph.nodes:
        if str(node.target) == "with_effects":
            names = [value for value in node.args if isinstance(value, str)]
            name = next(iter(names), str(node.args[1]) if len(node.args) > 1 else "with_effects")
            message = f"'{name}' has no form in linalg: {_LEAVE}"
            raise UnsupportedError(message, _blame.nearest_line(node, user_line))


def _refuse_symbols(graph: Graph) -> None:
    """Raises UnsupportedError for sizes and numbers that depend on the values of tensors."""
    for node in graph.nodes:
        values = _pytree.tree_leaves(node.meta.get("val")) if node.op == "call_function" else []
        sizes = [size for value in values for size in (value.shape if isinstance(value, Tensor) else [value])]
        if any(isinstance(size, (torch.SymInt, torch.SymFloat, torch.SymBool)) for size in sizes):
            what = f"the size of the result of '{_full_name(node)}' depends on the values of a tensor"
            if node.target is torch.ops.aten._local_scalar_dense.default:
                what = "a number of the program is read from a tensor"
            raise UnsupportedError(f"{what}, and compiled code has fixed sizes and numbers: {_LEAVE}", _blame.nearest_line(node, user_line))


def _refuse_transforms(graph: Graph) -> None:
    """Raises UnsupportedError for a Fourier transform."""
    for node in graph.nodes:
        if node.op == "call_function" and re.match(r"_fft_[cr]2[cr]$|fft_i?[rh]?fft[2n]?$", _operation(node)):
            message = f"'{_operation(node)}' has no form in linalg: {_LEAVE}"
            raise UnsupportedError(message, user_line(node))


def _refuse_complex(graph: Graph) -> None:
    """Raises UnsupportedError for complex arguments, results, residuals and constants."""
    for node in graph.nodes:
        if any(isinstance(value, complex) for value in node.args):
            raise UnsupportedError("a complex number stands in the program: use its parts", user_line(node))
        shown = node.all_input_nodes if node.op == "output" else [node] if node.op == "placeholder" else []
        for value in shown:
            if isinstance(value.meta.get("val"), Tensor) and value.meta["val"].is_complex():
                line = user_line(value) or next(filter(None, map(user_line, value.users)), None)
                message = f"'{value.name}' is complex, and compiled code takes and returns real tensors: use torch.view_as_real"
                raise UnsupportedError(message, line)


def _refuse_sparse(graph: Graph) -> None:
    """Raises UnsupportedError for sparse tensors, such as gradients of embeddings."""
    for node in graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, Tensor) and value.layout != torch.strided:
            path = module_path(node)
            message = f"'{node.name}' is a sparse tensor: use .to_dense()"
            if _is_backward(node):
                message = f"the gradient of the embedding{f' {path!r}' if path else ''} is sparse: make it with sparse=False"
            raise UnsupportedError(message, user_line(node))


def _name_arguments(function: Any, names: Sequence[str]) -> None:
    for argument, name in zip(function.regions[0].blocks[0].arguments, names):
        argument.set_location(ir.Location.name(name))


class _Locations(fx_importer.ContextCache):  # type: ignore[misc]
    """Gives every operation the location that this package wants: module path, operation, user's line."""

    def get_node_location(self, node: Node) -> Any:
        if node.op == "placeholder":
            return ir.Location.name(node.name, context=self._c)
        line = user_line(node)
        child = ir.Location.file(line.file, line.line, line.column, context=self._c) if line else None
        path = module_path(node)
        scope = f"{path}/" if path else ""
        if _is_backward(node):
            scope = f"transpose(jvp({path}))/"
        return ir.Location.name(f"{scope}{_bits.mark(node) or _operation(node)}", childLoc=child, context=self._c)


def _operation(node: Node) -> str:
    """The operation's name without namespace and overload: `addmm` of `aten.addmm.default`."""
    parts = str(node.target).split(".")
    return parts[-2] if len(parts) > 1 else node.name


def _is_backward(node: Node) -> bool:
    return bool(node.meta.get("autograd_backward") or node.meta.get("partitioner_tag") == "is_backward")


def module_path(node: Node) -> str:
    """The path of the innermost module that the node comes from, "" where it comes from none."""
    custom = node.meta.get("custom") or {}
    if MODULE in custom:
        return str(custom[MODULE])
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack")
    if not stack:
        return ""
    path = list(stack.values())[-1][0]
    return clean_path(path)


def clean_path(path: str) -> str:
    """A module's path as `named_modules` writes it, from the expression that dynamo keeps.

    >>> clean_path("L['self']._modules['h']._modules['0'].fc1")
    'h.0.fc1'
    """
    path = re.sub(r"\.?_(?:modules|parameters|buffers)\['([^']*)'\]", r".\1", path)
    path = re.sub(r"\[(?:'([^']*)'|(\d+))\]", lambda m: "." + (m[1] or m[2] or ""), path)
    path = re.sub(r"^L\.\w+", "", path)
    return path.replace("..", ".").strip(".")


def compile_text(text: str, line: Location | None, options: Mapping[str, Any]) -> Library:
    """Compiles the text of graphs. Errors and warnings about the whole program are at `line`, a line of the user's."""
    lines = text.split("\n")

    def placed(place: Location | None) -> Location | None:
        is_whole = place is not None and place.file == "<stdin>" and lines[place.line - 1].startswith("module")
        return line if is_whole else place

    with _process.keeping_warnings() as kept:
        try:
            library = _compile.compile(text, **options)
        except CompileError as error:
            raise type(error)(error.message, placed(error.location), error.notes, error.source_path) from None
    for place, message in kept:
        known = placed(place)
        warn(f"{known}: {message}" if known else message)
    return library


def report_of(library: Library) -> Report:
    """The library's report without lines of the compiler's input, which stand for operations that no line of the user's is known of."""
    report = library.report
    contents = json.loads(_LINE_OF_INPUT.sub("", report.to_json()))
    return Report(contents, _LINE_OF_INPUT.sub("", str(report)))


def first_line(graphs: Iterable[GraphModule]) -> Location | None:
    """The first line of the user's code that graphs come from."""
    return first_line_of(node for graph in graphs for node in graph.graph.nodes)


def first_line_of(nodes: Iterable[Node]) -> Location | None:
    return next((line for node in nodes if node.op == "call_function" and (line := user_line(node))), None)


def definition(modules: Iterable[nn.Module]) -> Location | None:
    """Where the first of the modules is defined whose code is the user's."""
    for module in modules:
        code = getattr(inspect.unwrap(type(module).forward), "__code__", None)
        if code is not None and not code.co_filename.startswith(OWN_FOLDERS):
            return Location(code.co_filename, code.co_firstlineno, 1)
    return None


def user_line(node: Node) -> Location | None:
    """The line of the user's code that the node comes from: the innermost that is neither torch's nor this package's."""
    if (place := (node.meta.get("custom") or {}).get(LINE)) is not None:
        file, number = place
        return Location(file, number, 1)
    frames = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
    for file, line in reversed(frames):
        if not file.startswith((*OWN_FOLDERS, "<")):
            return Location(file, int(line), 1)
    return None
