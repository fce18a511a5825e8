# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recipes as objects: what the compiler makes of them is what the fields say."""

import dataclasses
import enum

import fp8
import pytest
from fp8 import recipe

from small_programs import compile_product


@pytest.mark.parametrize(
    "given, attribute",
    [
        (recipe.DelayedScaling(), "#fp8.delayed_scaling"),
        (recipe.DelayedScaling(2, recipe.Format.E4M3, 16, "most_recent", reduce_amax=False),
         "#fp8.delayed_scaling<format = e4m3, margin = 2, amax_history_len = 16, amax_compute_algo = most_recent, reduce_amax = false>"),
        (recipe.Float8CurrentScaling(use_power_2_scales=True), "#fp8.current_scaling<power_2_scale = true>"),
        (recipe.Float8BlockScaling(w_block_scaling_dim=1), "#fp8.block_scaling<w_block_scaling_dim = 1>"),
        (recipe.MXFP8BlockScaling(), "#fp8.mx_scaling"),
        (recipe.RowScaling(), "#fp8.row_scaling"),
        (recipe.Custom("current", wgrad=recipe.DelayedScaling()), "#fp8.custom<base = #fp8.current_scaling, wgrad = #fp8.delayed_scaling>"),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_the_compiler_takes_every_recipe(given, attribute):
    report = compile_product(recipe=given).report
    assert report.options["recipe_attribute"] == attribute
    assert [site.decision for site in report.sites] == ["fp8"]


def test_words_as_objects():
    assert compile_product(recipe=recipe.None_()).report.kept
    automatic = compile_product(recipe=recipe.Auto()).report
    assert (automatic.options["recipe"], len(automatic.fp8)) == ("auto", 1)


@pytest.mark.parametrize(
    "given, error, message",
    [
        (recipe.DelayedScaling(fp8_format=recipe.Format.E5M2), ValueError, "fp8_format=E5M2 for all tensors"),
        (recipe.DelayedScaling(fp8_format="HYBRID"), TypeError, "fp8_format='HYBRID' is none of Format.E4M3, Format.E5M2, Format.HYBRID"),
        (recipe.DelayedScaling(fp8_dpa=True), ValueError, "fp8_dpa=True asks for attention in FP8: pass sites='all'"),
        (recipe.DelayedScaling(amax_compute_algo="mean"), ValueError, "amax_compute_algo='mean'"),
        (recipe.DelayedScaling(amax_compute_algo=max), NotImplementedError, "amax_compute_algo is a function"),
        (recipe.MXFP8BlockScaling(margin=1), ValueError, "MXFP8 has no margin"),
        (recipe.DelayedScaling, TypeError, "a recipe is a word"),
        (3, TypeError, "a recipe is a word"),
    ],
)
def test_what_is_not_offered_names_the_field(given, error, message):
    with pytest.raises(error, match=message):
        compile_product(recipe=given)


class TEFormat(enum.Enum):
    """Transformer Engine's class has the same members; it is recognized by names."""

    E4M3 = 1
    HYBRID = 2


@dataclasses.dataclass
class QParams:
    power_2_scale: bool = False
    amax_epsilon: float = 0.0


def transformer_engine_class(name, **fields):
    """A dataclass like one of Transformer Engine's, with fields and defaults."""
    columns = [(field, type(value), dataclasses.field(default_factory=lambda value=value: value)) for field, value in fields.items()]
    return dataclasses.make_dataclass(name, columns)


DELAYED = transformer_engine_class(
    "DelayedScaling", margin=0, fp8_format=TEFormat.HYBRID, amax_history_len=1024, amax_compute_algo="max",
    scaling_factor_compute_algo=None, reduce_amax=True, fp8_dpa=False, fp8_mha=False, override_linear_precision=(False, False, False),
)  # fmt: skip
CURRENT = transformer_engine_class(
    "Float8CurrentScaling", use_power_2_scales=False, fp8_format=TEFormat.HYBRID, fp8_quant_fwd_inp=QParams(),
    fp8_quant_fwd_weight=QParams(), fp8_quant_bwd_grad=QParams(), fp8_gemm_fprop="MMParams", fp8_dpa=False, fp8_mha=False,
)  # fmt: skip


def test_recipes_of_transformer_engine():
    assert recipe.to_text(DELAYED(margin=1, fp8_format=TEFormat.E4M3)) == "#fp8.delayed_scaling<format = e4m3, margin = 1>"
    assert recipe.to_text(CURRENT(use_power_2_scales=True)) == "#fp8.current_scaling<power_2_scale = true>"
    block = transformer_engine_class("Float8BlockScaling", fp8_format=TEFormat.E4M3, x_block_scaling_dim=1,
                                     **{name: QParams(power_2_scale=False) for name in ("fp8_quant_fwd_inp", "fp8_quant_fwd_weight")})  # fmt: skip
    assert recipe.to_text(block()) == "#fp8.block_scaling<power_2_scale = false>"
    assert compile_product(recipe=DELAYED(amax_history_len=8)).state()["amax_history"].shape[0] == 8


def test_unknown_fields_are_never_dropped():
    with pytest.raises(NotImplementedError, match=r"override_linear_precision=\(True, .* has no counterpart"):
        recipe.to_text(DELAYED(override_linear_precision=(True, False, False)))
    with pytest.raises(NotImplementedError, match="fp8_quant_fwd_inp.amax_epsilon=0.5"):
        recipe.to_text(CURRENT(fp8_quant_fwd_inp=QParams(amax_epsilon=0.5)))
    # Its default is an environment variable's value.
    overridden = transformer_engine_class("MXFP8BlockScaling", margin=0, fp8_format=TEFormat.E4M3, backward_override="high_precision")
    with pytest.raises(NotImplementedError, match="backward_override='high_precision' has no counterpart here; its default is None"):
        recipe.to_text(overridden())
    with pytest.raises(NotImplementedError, match="CustomRecipe: its quantizers are code of PyTorch"):
        recipe.to_text(transformer_engine_class("CustomRecipe", qfactory=len)())
    with pytest.raises(NotImplementedError, match="there are no products in FP4"):
        recipe.to_text(transformer_engine_class("NVFP4BlockScaling")())


def test_formats_have_their_ranges():
    assert fp8.recipe.Format.HYBRID.value == (448, 57344)
    assert fp8.recipe.Format.E4M3.value.max_bwd == 448
