# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs as dynamo and AOT autograd capture them, made ready for the compiler."""

from __future__ import annotations

import contextlib
import copy
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch._functorch import config as functorch
from torch._subclasses.fake_tensor import DataDependentOutputException
from torch.fx import GraphModule, Node
from torch.nn.attention import SDPBackend, sdpa_kernel

from .. import _outside
from .._errors import Location, UnsupportedError
from .lowering._import import OWN_FOLDERS, clean_path, user_line
from .lowering._rewrites import Rewrites

aten = torch.ops.aten


@contextlib.contextmanager
def tracing(device: torch.device) -> Iterator[None]:
    """Settings under which AOT autograd captures: attention as products and softmax, LSTMs as products, writes by masks as choices.

    On a GPU, tensors that decompositions make lie there too. Gradients are computed outside of a torch.autocast around
    the call, as where eager PyTorch leaves it before `backward()`; AOT autograd's default would round those of attention.
    """
    _outside.start(_outside.TORCH_MLIR)  # A captured graph goes through its passes.
    # torch.backends.mkldnn.flags would also set, and warn about, TF32.
    mkldnn = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        with _autocast_off_in_backward(), sdpa_kernel([SDPBackend.MATH]), Rewrites(), device if device.type != "cpu" else contextlib.nullcontext():
            yield
    finally:
        torch._C._set_mkldnn_enabled(mkldnn)


def _autocast_off_in_backward() -> contextlib.AbstractContextManager[None]:
    """A user who has said how backward casts is left to that."""
    is_default = functorch.backward_pass_autocast == "same_as_forward"
    return functorch.patch(backward_pass_autocast="off") if is_default else contextlib.nullcontext()


@contextlib.contextmanager
def attributes_as_buffers(root: nn.Module) -> Iterator[None]:
    """Tensors that are plain attributes of modules, such as a table of positions, count as buffers meanwhile.

    Afterwards the attributes are as before: what forward assigns while it is traced has no values.
    """
    before = [(module, dict(vars(module))) for module in root.modules()]
    # An attribute of the class would be found before a buffer.
    found = [(m, name) for m, attributes in before for name, value in attributes.items() if isinstance(value, Tensor) and not hasattr(type(m), name)]
    for module, name in found:
        module._buffers[name] = vars(module).pop(name)
    try:
        yield
    finally:
        for module, name in found:
            del module._buffers[name]
        for module, attributes in before:
            vars(module).clear()
            vars(module).update(attributes)


@contextlib.contextmanager
def known_tensors() -> Iterator[None]:
    """Raises UnsupportedError at the user's line for a tensor that is no argument of what is captured, or whose value is read."""
    try:
        yield
    except DataDependentOutputException as error:
        raise UnsupportedError("Python reads the value of a tensor, which a compiled step has not: use fp8.torch.backend", _users_frame(error)) from None
    except AssertionError as error:
        if "convert all Tensors to FakeTensors" not in str(error):
            raise
        message = "a tensor is used that is neither a parameter nor a buffer of the model: call register_buffer for it"
        raise UnsupportedError(message, _users_frame(error)) from None


def _users_frame(error: BaseException) -> Location | None:
    """The innermost line of the user's code that an error comes from."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(OWN_FOLDERS)]
    return Location(frames[-1].filename, frames[-1].lineno or 1, 1) if frames else None


def output_of(module: GraphModule) -> Node:
    return next(node for node in module.graph.nodes if node.op == "output")


def values_of(module: GraphModule) -> list[Any]:
    """Per result its fake tensor, or the constant that it is."""
    return [result.meta["val"] if isinstance(result, Node) else result for result in output_of(module).args[0]]


def for_compiler(module: GraphModule) -> GraphModule:
    """A copy whose results are tensors alone: None and numbers are dropped."""
    # Not of the module: constants would be copied, which fails in PyTorch's mode of tensors without data.
    module = GraphModule(module, copy.deepcopy(module.graph))
    output = output_of(module)
    output.args = (tuple(result for result in output.args[0] if isinstance(result, Node)),)
    module.graph.eliminate_dead_code()
    module.recompile()
    return module


#: Operations whose tensors matter by their sizes alone.
_DRAWS_BY_SIZE = (
    aten.bernoulli.p, aten.rand_like, aten.randn_like, aten.randint_like, aten.normal_functional, aten.uniform, aten.exponential, aten.cauchy,
    aten.log_normal, aten.geometric, aten.random,
)  # fmt: skip


def random_nodes(module: GraphModule) -> list[Node]:
    """The nodes that draw random numbers."""
    return [node for node in module.graph.nodes if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())]


def draw_outside(module: GraphModule) -> list[Callable[[], Tensor]]:
    """Makes the random numbers of a graph its last arguments. Returns what draws them, before every call and in their order.

    PyTorch's own generator draws them: `torch.manual_seed` counts, and dropout takes the elements that it takes in
    eager PyTorch.
    """
    draws = []
    for node in random_nodes(module):
        if node.target is aten.native_dropout.default:
            node = _mask_of(module, node)
        elif node.all_input_nodes and node.target not in _DRAWS_BY_SIZE and node.target.overloadpacket not in _DRAWS_BY_SIZE:
            raise UnsupportedError(f"'{node.target}' draws random numbers that depend on a tensor", user_line(node))
        draws.append(_draw(node))
        arguments = placeholders(module)
        place = module.graph.inserting_after(arguments[-1]) if arguments else module.graph.inserting_before(next(iter(module.graph.nodes)))
        with place:
            drawn = module.graph.placeholder(f"random_{len(draws)}")
        drawn.meta["val"] = node.meta["val"]
        node.replace_all_uses_with(drawn)
        module.graph.erase_node(node)
    if draws:
        module.graph.eliminate_dead_code()
        module.recompile()
    return draws


def _mask_of(module: GraphModule, node: Node) -> Node:
    """Lets a graph's dropout multiply by a mask. Returns the node of the mask, which is `aten.native_dropout`'s alone."""
    x, p = node.args[:2]
    value, mask_value = node.meta["val"]
    with module.graph.inserting_before(node):
        mask = module.graph.call_function(_dropout_mask, (x, p))
    mask.meta["val"] = mask_value
    with module.graph.inserting_before(node):
        factor = module.graph.call_function(torch.ops.prims.convert_element_type.default, (mask, value.dtype))
        kept = module.graph.call_function(aten.mul.Tensor, (x, factor))
        scaled = module.graph.call_function(aten.mul.Tensor, (kept, 1 / (1 - p)))
    for new in (factor, kept, scaled):
        new.meta.update({**node.meta, "val": value})
    for user in list(node.users):
        user.replace_all_uses_with((scaled, mask)[user.args[1]])
        module.graph.erase_node(user)
    module.graph.erase_node(node)
    return mask


def _dropout_mask(x: Tensor, p: float) -> Tensor:
    return torch.native_dropout(x, p, True)[1]


def _draw(node: Node) -> Callable[[], Tensor]:
    """A function that computes a random node, with tensors of any content for its arguments.

    PyTorch draws in the order of memory, so their strides count.
    """
    # Dropout changes a tensor in place, which keeps its strides; what it is captured as would not.
    target = Tensor.bernoulli_ if node.target is aten.bernoulli.p else node.target
    examples = {other: other.meta["val"] for other in node.all_input_nodes}
    sizes = {other: (tuple(value.shape), value.stride(), value.dtype) for other, value in examples.items()}
    arguments, device = node.args, node.meta["val"].device
    options = {name: device if name == "device" else value for name, value in node.kwargs.items()}

    def draw() -> Tensor:
        tensors = {other: torch.empty_strided(shape, strides, dtype=dtype, device=device) for other, (shape, strides, dtype) in sizes.items()}
        return target(*[tensors.get(a, a) if isinstance(a, Node) else a for a in arguments], **options)

    return draw


def placeholders(module: GraphModule) -> list[Node]:
    return [node for node in module.graph.nodes if node.op == "placeholder"]


def input_names(module: GraphModule) -> list[str]:
    """The names of dynamo's inputs as the user wrote them: `h.0.fc1.weight`, `x`."""
    names = []
    for node in placeholders(module):
        source = getattr(node.meta.get("grapharg"), "source", None)
        name = getattr(source, "name", "")
        name = name() if callable(name) else name
        local = name.removeprefix("L['").removesuffix("']")
        names.append(clean_path(name) or (local if local.isidentifier() else node.name))
    return names


def named_tensors(module: GraphModule, names: Sequence[str]) -> Iterator[tuple[str, Tensor, Location | None]]:
    """The tensors of one of dynamo's graphs: inputs, with their names, and what it makes."""
    inputs = dict(zip(placeholders(module), names))
    for node in module.graph.nodes:
        if isinstance(value := node.meta.get("example_value"), Tensor):
            yield inputs.get(node, "a result of this line"), value, user_line(node)


def argument_names(module: GraphModule, inputs: Sequence[str]) -> list[str]:
    """Names for the arguments of a graph of AOT autograd, from those of dynamo's inputs."""
    names = []
    for node in placeholders(module):
        index = input_index(node)
        names.append(inputs[index] if index is not None and index < len(inputs) else node.name)
    return names


def input_index(node: Node) -> int | None:
    """The number of dynamo's input that a placeholder of AOT autograd is; None for tangents, residuals and
    others."""
    index = getattr(node.meta.get("desc"), "idx", None)
    return index if isinstance(index, int) else None


def number_inputs(module: GraphModule) -> list[bool]:
    """For each of dynamo's inputs whether it is a number: sizes, and floats, which dynamo gives as tensors that it calls
    .item() of."""
    return [
        isinstance(node.meta.get("example_value"), (torch.SymInt, torch.SymFloat)) or bool(getattr(node.meta.get("grapharg"), "pass_arg_as_tensor", False))
        for node in placeholders(module)
    ]


def with_numbers(module: GraphModule, values: Sequence[Any]) -> tuple[GraphModule, list[Any]]:
    """A copy for these inputs: what is no tensor among the values is put in for the symbols. Returns it and the tensors."""
    module = GraphModule(module, copy.deepcopy(module.graph))
    tensors = []
    for node, value in zip(placeholders(module), values):
        if isinstance(value, (int, float)):
            _put_in(module, node, value)
            module.graph.erase_node(node)
        else:
            tensors.append(value)
    for node in module.graph.nodes:
        for key in ("example_value", "val"):
            node.meta.pop(key, None)
    module.recompile()
    return module, tensors


def _put_in(module: GraphModule, node: Node, value: float) -> None:
    """Puts a number in the place of a node, and of its .item()."""
    for user in list(node.users):
        if user.op == "call_method" and user.target == "item":
            _put_in(module, user, value)
            module.graph.erase_node(user)
        else:
            user.replace_input_with(node, value)
