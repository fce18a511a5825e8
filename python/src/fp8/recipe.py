# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`fp8.recipe`: recipes as objects, with Transformer Engine's names and defaults.

    fp8.compile(source, recipe=fp8.recipe.DelayedScaling(amax_history_len=16, amax_compute_algo="most_recent"))

A recipe of Transformer Engine itself is taken too: it is recognized by the name of its class, and
converted field by field. A field that has no counterpart is an error unless it has its default.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple


class FormatRange(NamedTuple):
    """The largest finite values of forward tensors and of gradients."""

    max_fwd: float
    max_bwd: float


class Format(enum.Enum):
    """FP8 formats: HYBRID is E4M3 for forward tensors and E5M2 for gradients."""

    E4M3 = FormatRange(448.0, 448.0)
    E5M2 = FormatRange(57344.0, 57344.0)
    HYBRID = FormatRange(448.0, 57344.0)


@dataclass(frozen=True)
class DelayedScaling:
    """Scales from the amaxes of earlier steps.

    `amax_compute_algo` is "max", "most_recent" or, for fp8.jax.jit, a function of JAX: of one tensor's
    history, f32[amax_history_len] with the step under way first, to the amax that its scale is for.
    `scaling_factor_compute_algo` is None or a function of JAX (amax, old scale, fp8_max, recipe) to the scale.

    >>> to_text(DelayedScaling(margin=1, amax_history_len=16))
    '#fp8.delayed_scaling<margin = 1, amax_history_len = 16>'
    """

    margin: int = 0
    fp8_format: Format = Format.HYBRID
    amax_history_len: int = 1024
    amax_compute_algo: str | Callable[[Any], Any] = "max"
    scaling_factor_compute_algo: Callable[..., Any] | None = None
    reduce_amax: bool = True
    fp8_dpa: bool = False
    fp8_mha: bool = False


@dataclass(frozen=True)
class Float8CurrentScaling:
    """Scales from each tensor's own amax.

    >>> to_text(Float8CurrentScaling())
    '#fp8.current_scaling'
    """

    fp8_format: Format = Format.HYBRID
    use_power_2_scales: bool = False
    fp8_dpa: bool = False
    fp8_mha: bool = False


@dataclass(frozen=True)
class Float8BlockScaling:
    """A scale per 1 x 128 or 128 x 128 elements.

    >>> to_text(Float8BlockScaling(use_f32_scales=True))
    '#fp8.block_scaling<power_2_scale = false>'
    """

    fp8_format: Format = Format.E4M3
    use_f32_scales: bool = False
    x_block_scaling_dim: int = 1
    w_block_scaling_dim: int = 2
    grad_block_scaling_dim: int = 1
    fp8_dpa: bool = False
    fp8_mha: bool = False


@dataclass(frozen=True)
class MXFP8BlockScaling:
    """MXFP8: a power-of-two scale per 32 elements.

    >>> to_text(MXFP8BlockScaling())
    '#fp8.mx_scaling'
    """

    margin: int = 0
    fp8_format: Format = Format.E4M3
    fp8_dpa: bool = False
    fp8_mha: bool = False


@dataclass(frozen=True)
class RowScaling:
    """A scale per row of the first operand and per column of the second."""

    fp8_format: Format = Format.E4M3
    use_power_2_scales: bool = False


@dataclass(frozen=True)
class Auto:
    """MXFP8 where the target has instructions for it, else current scaling."""


@dataclass(frozen=True)
class None_:
    """No FP8: every product in the program's own type."""


@dataclass(frozen=True)
class Custom:
    """A recipe per role; a role that is not given has `base`.

    >>> to_text(Custom(Float8CurrentScaling(), wgrad=DelayedScaling()))
    '#fp8.custom<base = #fp8.current_scaling, wgrad = #fp8.delayed_scaling>'
    """

    base: Any
    fprop: Any = None
    dgrad: Any = None
    wgrad: Any = None


_WORDS = {
    "delayed": "#fp8.delayed_scaling",
    "current": "#fp8.current_scaling",
    "block": "#fp8.block_scaling",
    "row": "#fp8.row_scaling",
    "mxfp8": "#fp8.mx_scaling",
}
_CLASSES = {c.__name__: c for c in (DelayedScaling, Float8CurrentScaling, Float8BlockScaling, MXFP8BlockScaling)}
# Of Transformer Engine's, without a meaning here: how its products accumulate is the option `accumulation`.
_WITHOUT_MEANING = {"fp8_gemm_fprop", "fp8_gemm_dgrad", "fp8_gemm_wgrad"}
#: Fields whose default Transformer Engine reads from an environment variable: what has no effect.
_WITHOUT_EFFECT = {"backward_override": None}
_QUANTIZE = ("fp8_quant_fwd_inp", "fp8_quant_fwd_weight", "fp8_quant_bwd_grad")
#: Fields that may be functions, by the rule of #fp8.custom that such a function replaces.
_ALGORITHMS = {"scale": "scaling_factor_compute_algo", "amax": "amax_compute_algo"}


def algorithms(recipe: Any) -> dict[str, Callable[..., Any]]:
    """The functions of the user's in a recipe of delayed scaling, by "scale" and "amax"."""
    if type(recipe).__name__ != "DelayedScaling":
        return {}
    fields = {rule: getattr(recipe, field, None) for rule, field in _ALGORITHMS.items()}
    return {rule: function for rule, function in fields.items() if callable(function)}


def to_text(recipe: Any, names: dict[str, str] | None = None) -> str:
    """The value of fp8-compile's --recipe for a recipe: a word, an attribute, a class of this module, or a
    recipe of Transformer Engine.

    `names` are those that the program has for the recipe's `algorithms`. Raises TypeError for anything
    else, ValueError or NotImplementedError for a field, naming it.
    """
    if isinstance(recipe, str):
        return recipe
    if isinstance(recipe, (Auto, None_)):
        return {Auto: "auto", None_: "none"}[type(recipe)]
    if isinstance(recipe, Custom):
        parts = {name: getattr(recipe, name) for name in ("base", "fprop", "dgrad", "wgrad")}
        texts = {name: to_text(part) for name, part in parts.items() if part is not None}
        return _attribute("custom", {name: _WORDS.get(text, text) for name, text in texts.items()})
    name = type(recipe).__name__
    if isinstance(recipe, RowScaling):
        return _attribute("row_scaling", _format(recipe, Format.E4M3) | _flag("power_2_scale", recipe.use_power_2_scales, False))
    if name == "NVFP4BlockScaling":
        raise NotImplementedError("NVFP4BlockScaling: there are no products in FP4; MXFP8BlockScaling is the closest recipe")
    if name == "CustomRecipe":
        raise NotImplementedError("CustomRecipe: its quantizers are code of PyTorch; write casts in MLIR, as '#fp8.custom<base = …, quantize = …>'")
    if name not in _CLASSES or isinstance(recipe, type):
        raise TypeError(
            f"recipe={recipe!r}: a recipe is a word such as 'delayed' or 'none', an attribute such as '#fp8.delayed_scaling<margin = 1>', "
            "or an object of fp8.recipe"
        )
    ours = recipe if isinstance(recipe, _CLASSES[name]) else _from_transformer_engine(recipe, _CLASSES[name])
    for field in ("fp8_dpa", "fp8_mha"):
        if getattr(ours, field):
            raise ValueError(f"{name}: {field}=True asks for attention in FP8: pass sites='all' or fp8_attention=True to fp8 instead")
    if isinstance(ours, DelayedScaling):
        return _delayed(ours, names or {})
    if isinstance(ours, Float8CurrentScaling):
        return _attribute("current_scaling", _format(ours, Format.HYBRID) | _flag("power_2_scale", ours.use_power_2_scales, False))
    if isinstance(ours, Float8BlockScaling):
        dims = {"x_block_scaling_dim": 1, "w_block_scaling_dim": 2, "grad_block_scaling_dim": 1}
        given = {dim: str(getattr(ours, dim)) for dim, default in dims.items() if getattr(ours, dim) != default}
        return _attribute("block_scaling", _format(ours, Format.E4M3) | _flag("power_2_scale", not ours.use_f32_scales, True) | given)
    if ours.margin:
        raise ValueError(f"{name}: margin={ours.margin}: MXFP8 has no margin")
    return _attribute("mx_scaling", _format(ours, Format.E4M3))


def _delayed(recipe: DelayedScaling, names: dict[str, str]) -> str:
    functions = algorithms(recipe)
    for rule in functions.keys() - names.keys():
        raise NotImplementedError(
            f"DelayedScaling: {_ALGORITHMS[rule]} is a function, which only the recipe of fp8.jax.jit may have: "
            f"write it in MLIR, as {rule} of '#fp8.custom<base = #fp8.delayed_scaling, …>'"
        )
    if "amax" not in functions and recipe.amax_compute_algo not in ("max", "most_recent"):
        raise ValueError(f"DelayedScaling: amax_compute_algo={recipe.amax_compute_algo!r} is neither 'max' nor 'most_recent'")
    fields = _format(recipe, Format.HYBRID)
    # A function for the scale is given the recipe, and with it the margin.
    fields |= {"margin": str(recipe.margin)} if recipe.margin and "scale" not in functions else {}
    fields |= {"amax_history_len": str(recipe.amax_history_len)} if recipe.amax_history_len != 1024 else {}
    fields |= {"amax_compute_algo": "most_recent"} if recipe.amax_compute_algo == "most_recent" else {}
    base = _attribute("delayed_scaling", fields | _flag("reduce_amax", recipe.reduce_amax, True))
    return _attribute("custom", {"base": base} | {rule: f"@{names[rule]}" for rule in functions}) if functions else base


def _attribute(name: str, fields: dict[str, str]) -> str:
    inside = ", ".join(f"{field} = {value}" for field, value in fields.items())
    return f"#fp8.{name}<{inside}>" if inside else f"#fp8.{name}"


def _flag(name: str, value: bool, default: bool) -> dict[str, str]:
    return {} if bool(value) == default else {name: str(bool(value)).lower()}


def _format(recipe: Any, default: Format) -> dict[str, str]:
    if not isinstance(recipe.fp8_format, Format):
        names = ", ".join(f"Format.{name}" for name in Format.__members__)
        raise TypeError(f"{type(recipe).__name__}: fp8_format={recipe.fp8_format!r} is none of {names}")
    if recipe.fp8_format is Format.E5M2:
        raise ValueError(f"{type(recipe).__name__}: fp8_format=E5M2 for all tensors is not offered: HYBRID has it for gradients")
    return {} if recipe.fp8_format is default else {"format": recipe.fp8_format.name.lower()}


def _from_transformer_engine(recipe: Any, kind: type[Any]) -> Any:
    """The recipe of this module with the fields of a recipe of Transformer Engine."""
    name, ours = type(recipe).__name__, {field.name for field in dataclasses.fields(kind)}
    values = {field: getattr(recipe, field) for field in ours if hasattr(recipe, field)}
    if hasattr(values.get("fp8_format"), "name"):
        values["fp8_format"] = Format[values["fp8_format"].name]
    for field, default in _fields(recipe).items():
        value = getattr(recipe, field)
        if field in ours or field in _WITHOUT_MEANING or field in _QUANTIZE:
            continue
        default = _WITHOUT_EFFECT.get(field, default)
        if value != default:
            raise NotImplementedError(f"{name}: {field}={value!r} has no counterpart here; its default is {default!r}")
    return kind(**values, **_quantization(recipe, kind, ours - set(values)))


def _quantization(recipe: Any, kind: type[Any], missing: set[str]) -> dict[str, Any]:
    """The options that the parameters of a recipe's three casts stand for, which must be equal."""
    casts = {field: getattr(recipe, field) for field in _QUANTIZE if getattr(recipe, field, None) is not None}
    for field, cast in casts.items():
        if getattr(cast, "amax_epsilon", 0.0):
            raise NotImplementedError(f"{type(recipe).__name__}: {field}.amax_epsilon={cast.amax_epsilon}: use the option eps instead")
    powers = {bool(getattr(cast, "power_2_scale", False)) for cast in casts.values()}
    if len(powers) > 1:
        raise NotImplementedError(f"{type(recipe).__name__}: power_2_scale differs between {', '.join(casts)}")
    if not powers:
        return {}
    power = powers.pop()
    known = {"use_power_2_scales": power, "use_f32_scales": not power}
    return {field: value for field, value in known.items() if field in missing}


def _fields(recipe: Any) -> dict[str, Any]:
    """The fields of a dataclass or of a pydantic model, with their defaults."""
    if dataclasses.is_dataclass(recipe):
        missing = dataclasses.MISSING
        return {
            f.name: f.default if f.default is not missing else f.default_factory() if f.default_factory is not missing else None
            for f in dataclasses.fields(recipe)
        }
    models = getattr(type(recipe), "model_fields", {})
    return {name: model.get_default(call_default_factory=True) for name, model in models.items()}
