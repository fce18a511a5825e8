# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch's own samples of its operations (OpInfo) through fp8.torch.backend, beside eager PyTorch: a process of its own.

It reads a line of JSON for each row, `{"row": "cumsum float32", "word": null}`, and writes one, `{"verdict": …, "reason": …}`.
A row is an operation with a type; `opinfo.py` starts this process, and ends it where it takes too long.
"""

from __future__ import annotations

import functools
import json
import os
import random
import re
import sys
import warnings

import fp8.torch
import torch
from torch.testing._internal import common_methods_invocations
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import BinaryUfuncInfo, SampleInput, UnaryUfuncInfo
from torch.utils import _pytree

HALVES = {torch.bfloat16: 2.0**-7, torch.float16: 2.0**-10}
#: Types in the order in which one is taken.
TYPES = (torch.float32, torch.int64, torch.bool, torch.int32, torch.bfloat16, torch.complex64)
#: Operations that leave the elements of their results as they find them in memory.
WITHOUT_VALUES = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}
#: Operations whose kernels for bf16 and f16 round in between, or compute otherwise than those for f32.
IN_HALVES = set(
    """add addcdiv addcmul addr dist div floor_divide fmod ge ldexp logit lt mean nn.functional.adaptive_avg_pool2d nn.functional.embedding_bag
    nn.functional.huber_loss nn.functional.mse_loss nn.functional.pairwise_distance norm pow remainder rsub scatter_reduce special.entr
    special.xlog1py sub xlogy""".split()
)
#: Limits of differences of gradients in f32, of the largest number. PyTorch's formula for the gradient of sinc divides a difference of nearly
#: equal numbers by a small one: an error in the last place of a sine is 6e-8 / x.
LIMITS_OF_GRADIENTS = {"sinc": 1e-2}
#: Operations whose gradients at NaN depend on the place in the tensor (findings/torch-activations-nan.sh): these are not compared.
WITHOUT_GRADIENT_AT_NAN = set(
    "nn.functional." + name for name in ("celu", "elu", "hardshrink", "hardswish", "hardtanh", "relu6", "selu", "smooth_l1_loss", "softshrink")
)

# OpInfo sets the seed within operations that draw, which torch.compile does not capture; run() sets it before all samples.
common_methods_invocations.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)


@functools.cache
def rows() -> dict[str, tuple[object, torch.dtype]]:
    """Every operation with one type, and those of IN_HALVES with bf16 and f16."""
    found = {}
    for op in op_db:
        name = f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name
        supported = op.supported_dtypes("cpu")
        first = next((dtype for dtype in TYPES if dtype in supported), None)
        halves = [dtype for dtype in HALVES if op.name in IN_HALVES and dtype in supported and dtype != first]
        for dtype in [first, *halves] if first is not None else []:
            found[f"{name} {str(dtype).removeprefix('torch.')}"] = op, dtype
    return found


def spread(samples: list, count: int) -> list:
    """`count` of the samples, the first and the last among them."""
    if len(samples) <= count:
        return samples
    return [samples[i * (len(samples) - 1) // (count - 1)] for i in range(count)]


def chosen(row: str, word: str | None) -> list:
    """The samples of a row: always the same, or those that a word draws."""
    op, dtype = rows()[row]
    has_gradient = op.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
    torch.manual_seed(0)
    random.seed(0)
    samples = list(op.sample_inputs("cpu", dtype, requires_grad=has_gradient))
    more = isinstance(op, (UnaryUfuncInfo, BinaryUfuncInfo)) and dtype.is_floating_point
    references = list(op.reference_inputs("cpu", dtype, requires_grad=has_gradient)) if more else []
    if word is None:
        return spread(samples, 3) + references[-1:]
    samples += references
    return random.Random(f"{word} {row}").sample(samples, min(2, len(samples)))


def run(function, op, samples: list, dtype: torch.dtype) -> list:
    """The results of the function for all samples, and the gradients of their floats; cotangents are numbers of the type."""
    torch.manual_seed(0)
    calls = [[_pytree.tree_map(fresh, (sample.input, *sample.args)), _pytree.tree_map(fresh, sample.kwargs)] for sample in samples]

    def all_samples():
        return [op(*arguments, **options) for arguments, options in calls]

    results = [leaf for leaf in _pytree.tree_leaves(function(all_samples)()) if leaf is not None]
    inputs = [leaf for leaf in _pytree.tree_leaves(calls) if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    outputs = [result for result in results if isinstance(result, torch.Tensor) and result.requires_grad]
    gradients: list = []
    if inputs and outputs:
        weights = [torch.linspace(0.5, 1.5, o.numel()).reshape(o.shape).to(dtype).to(o.dtype) for o in outputs]
        gradients = list(torch.autograd.grad(outputs, inputs, weights, allow_unused=True))
        gradients = [torch.zeros_like(i) if g is None else g for i, g in zip(inputs, gradients)]
    return [r.detach() if isinstance(r, torch.Tensor) else r for r in results + gradients]


def fresh(value):
    return value.detach().clone().requires_grad_(value.requires_grad) if isinstance(value, torch.Tensor) else value


def difference(want, got, exact=None, limit_of_f32=2e-5) -> str | None:
    """How a result differs by more than sums in another order and other libraries of functions make; None where it does not.

    Of f32 that is, if no limit is given, 2e-5 of the largest number, some hundred units in the last place. Of bf16 and f16,
    that are computed in f32 and rounded, one element of fifty may be rounded to its neighbour. Elements are right too that
    are nearer to PyTorch's result in f64, `exact`, and where PyTorch's own has no digit: at poles and large arguments f32
    has few, and kernels for bf16 and f16 may round in between.
    """
    if not isinstance(want, torch.Tensor):
        return None if type(want) is type(got) and want == got else f"{want!r} became {got!r}"
    if want.dtype != got.dtype or want.shape != got.shape:
        return f"{want.dtype} of {list(want.shape)} became {got.dtype} of {list(got.shape)}"
    if want.layout != torch.strided or want.numel() == 0:
        return None
    if want.is_complex():
        want, got = torch.view_as_real(want.resolve_conj()), torch.view_as_real(got.resolve_conj())
    if not want.is_floating_point():
        return None if torch.equal(want, got) else f"{int((want != got).sum())} of {want.numel()} elements differ"
    same = (want == got) | want.isnan() & got.isnan()
    wide, found = want.double(), got.double()
    finite = wide.isfinite()
    distance = (wide - found).abs()
    if exact is not None and exact.shape == want.shape and is_alike(wide, exact):
        error, ours = (wide - exact).abs(), (found - exact).abs()
        same |= error.isfinite() & ((ours <= error) | (error > exact.abs() / 2) & ((ours <= 2 * error) | found.isinf() & (exact.abs() > 1e30)))
    if want.dtype in HALVES:
        near = (distance <= HALVES[want.dtype] * torch.maximum(wide.abs(), found.abs())) & finite & found.isfinite()
        count, limit = int((~same & near).sum()), max(1, want.numel() // 50)
    else:
        largest = max(1.0, float(wide[finite].abs().max())) if finite.any() else 1.0
        near = (distance <= limit_of_f32 * largest) & finite & found.isfinite()
        count, limit = 0, 0
    wrong = ~same & ~near
    if wrong.any():
        place = wrong.reshape(-1).nonzero()[0, 0]
        return f"{int(wrong.sum())} of {want.numel()} elements differ: {want.reshape(-1)[place].item()} became {got.reshape(-1)[place].item()}"
    return f"{count} of {want.numel()} elements are rounded otherwise" if count > limit else None


def is_alike(wide, exact) -> bool:
    """Whether most elements are those of f64: others are of other random numbers."""
    return bool(((wide - exact).abs() <= 2e-2 * exact.abs() + 1e-6).double().mean() > 0.5)


def in_f64(op, samples: list, dtype: torch.dtype, place: int):
    """A result by PyTorch in f64, of samples in f32, bf16 or f16; None where there is none."""
    if dtype not in (torch.float32, *HALVES):
        return None

    def widened(value):
        is_narrow = isinstance(value, torch.Tensor) and value.dtype == dtype
        return value.detach().double().requires_grad_(value.requires_grad) if is_narrow else value

    wide = [SampleInput(**_pytree.tree_map(widened, {name: getattr(s, name) for name in ("input", "args", "kwargs")})) for s in samples]
    try:
        return run(lambda f: f, op, wide, dtype)[place]
    except Exception:
        return None


def judge(row: str, word: str | None) -> dict[str, str]:
    op, dtype = rows()[row]
    torch._dynamo.reset()
    kept, expected = [], []
    for sample in chosen(row, word):
        try:
            expected.append(run(lambda f: f, op, [sample], dtype))
            kept.append(sample)
        except Exception:  # noqa: S112 - PyTorch itself has no result.
            continue
    if not kept:
        return {"verdict": "left", "reason": "PyTorch has no result for the samples"}
    wanted = run(lambda f: f, op, kept, dtype)
    backend = fp8.torch.backend("none")
    try:
        found = run(lambda f: torch.compile(f, backend=backend, fullgraph=True), op, kept, dtype)
    except torch._dynamo.exc.BackendCompilerFailed as error:
        return {"verdict": "refused", "reason": words(error.inner_exception)}
    except fp8.Error as error:
        return {"verdict": "refused", "reason": words(error)}
    except torch._dynamo.exc.TorchDynamoException as error:
        return {"verdict": "left", "reason": f"torch.compile: {str(error).strip().splitlines()[0]}"}
    except Exception as error:
        return {"verdict": "refused", "reason": words(error)}
    if not backend.graphs:
        return {"verdict": "left", "reason": "torch.compile found nothing to compile"}
    if len(found) != len(wanted):
        return {"verdict": "wrong", "reason": f"{len(wanted)} results became {len(found)}"}
    leaves = _pytree.tree_leaves([[s.input, *s.args, s.kwargs] for s in kept])
    inputs = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
    if op.name not in WITHOUT_VALUES:
        for place, (want, got) in enumerate(zip(wanted, found)):
            gradient, limit = place - (len(wanted) - len(inputs)), 2e-5
            if gradient >= 0:
                limit = LIMITS_OF_GRADIENTS.get(op.name, limit)
                if op.name in WITHOUT_GRADIENT_AT_NAN:
                    got = torch.where(inputs[gradient].isnan(), want, got)
            if difference(want, got) and (reason := difference(want, got, in_f64(op, kept, dtype, place), limit)):
                return {"verdict": "wrong", "reason": f"result {place} of {len(wanted)}: {reason}"}
    return {"verdict": "right", "reason": "" if all(map(same_bits, wanted, found)) else "last bits"}


def same_bits(want, got) -> bool:
    if isinstance(want, torch.Tensor) and want.is_complex():
        want, got = torch.view_as_real(want.resolve_conj()), torch.view_as_real(got.resolve_conj())
    if not isinstance(want, torch.Tensor) or not want.is_floating_point():
        return True
    return bool((((want == got) & (want.signbit() == got.signbit())) | want.isnan() & got.isnan()).all())


def words(error: BaseException) -> str:
    """An error in one line, without the places of files."""
    message = error.message if isinstance(error, fp8.CompileError) else str(error)
    kind = "" if isinstance(error, fp8.Error) else f"{type(error).__name__}: "
    line = " ".join(f"{kind}{message}".split())
    return re.split(r"; the input is kept|: %\d| While executing| \(/| loc\(", line)[0][:160]


def main() -> None:
    # Output of compiled programs must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    fp8.config.compile_timeout = 120
    torch.set_num_threads(1)
    for line in sys.stdin:
        request = json.loads(line)
        answer = sorted(rows()) if request == "rows" else judge(request["row"], request["word"])
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
