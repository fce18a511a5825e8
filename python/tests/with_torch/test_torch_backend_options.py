# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8.torch.backend: options that choose products, in models of several graphs and in inference."""

import warnings

import fp8.torch
import pytest
import torch
from torch import nn
from torch_backends import MLP, batches, compiled

pytestmark = pytest.mark.usefixtures("fresh_dynamo")


class Parts(nn.Module):
    """Three graphs: one product each, and none in the last."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(16, 32), nn.Linear(32, 8)

    def forward(self, x):
        h = self.a(x).tanh()
        torch._dynamo.graph_break()
        h = self.b(h)
        torch._dynamo.graph_break()
        return h.softmax(-1).log().mean()


def run(options, kind=Parts, calls=3):
    """After some steps, the backend and the warnings."""
    _, forward, backend = compiled(kind, **options)
    x, _ = next(batches(1))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(calls):
            forward(x).mean().backward()
    return backend, [str(warning.message) for warning in caught if warning.category is fp8.Warning]


@pytest.mark.parametrize(
    ("options", "in_fp8"),
    [
        ({"sites": "^a$"}, "a"),
        ({"sites": "^b$", "recipe": "delayed", "amax_history_len": 4}, "b"),
        ({"require": "^a$", "sites": "^a$"}, "a"),
        ({"site_recipe": {"^a$": "block"}}, "ab"),
        ({"recipe": "none", "site_recipe": {"^a$": "current"}, "fp8_parameters": True}, "a"),
        ({"site_recipe": {"^a$": "block", "a|b": "row"}}, "ab"),
        ({"fp8_parameters": True}, "ab"),
        ({"stochastic_rounding": True}, "ab"),
        ({"keep": "^a$"}, "b"),
    ],
)
def test_an_option_holds_in_the_graphs_that_it_fits(options, in_fp8):
    backend, told = run(options)
    assert {(site.site, site.in_fp8) for site in backend.report().sites} == {("a", "a" in in_fp8), ("b", "b" in in_fp8)}
    assert not told


def test_the_recipe_of_a_site_is_for_its_graph_alone():
    backend, _ = run({"site_recipe": {"^a$": "block"}})
    assert {(site.site, "block" in site.recipe) for site in backend.report().sites} == {("a", True), ("b", False)}


def test_a_report_says_which_sites_were_chosen():
    report = run({"sites": "^a$"})[0].report()
    assert {site.reason for site in report.sites if site.site == "b"} == {"does not match --sites=^a$"}
    assert "does not match --sites=^a$" in str(report)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sites": "nope"}, "no site matches sites=nope"),
        ({"require": "nope"}, "no site matches require=nope"),
        ({"keep": "nope"}, "no site matches keep=nope"),
        ({"site_recipe": {"nope": "block", "a|0": "row"}}, "no site matches site_recipe=nope"),
        ({"first": 1, "last": 1}, "first and last need layers"),
        ({"fp8_parameters": True, "keep": "."}, "fp8_parameters keeps no weight"),
    ],
)
def test_what_fits_no_graph_is_a_warning(options, message, fresh_cache):
    """When a graph is called again: PyTorch may capture another one that it fits."""
    assert [text.startswith(message) for text in run(options)[1]] == [True]


@pytest.mark.parametrize("option", ["sites", "keep"])
def test_the_report_tells_what_fits_no_graph(option, fresh_cache):
    backend, told = run({option: "nope"}, calls=1)
    assert not told
    with pytest.warns(fp8.Warning, match=f"no site matches {option}=nope"):
        backend.report()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sites": "nope"}, "no site matches sites=nope"),
        ({"require": "nope"}, "no site matches require=nope"),
        ({"site_recipe": {"nope": "block"}}, "no site matches site_recipe=nope"),
        ({"first": 1}, "first and last need layers"),
        ({"fp8_parameters": True, "keep": "."}, "fp8_parameters keeps no weight"),
    ],
)
def test_what_does_not_fit_a_model_of_one_graph_is_an_error(options, message):
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=message):
        run(options, MLP, calls=1)


def test_a_warning_of_a_model_of_one_graph_comes_at_once(fresh_cache):
    assert [": no site matches keep=nope;" in text for text in run({"keep": "nope"}, MLP, calls=1)[1]] == [True]


def test_a_contradiction_stays_an_error():
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="'b' is required to be FP8.*does not match sites"):
        run({"sites": "^a$", "require": "^b$"})


def test_rounding_of_gradients_is_for_training():
    model, forward, backend = compiled(MLP, stochastic_rounding=True)
    x, _ = next(batches(1))
    forward(x).sum().backward()
    plain = torch.compile(model, backend=fp8.torch.backend())
    with torch.no_grad():
        found = forward(x)
        torch._dynamo.reset()
        assert torch.equal(found, plain(x))
    assert len(backend.report().sites) == 5 + 2
    assert backend.state == {}


@pytest.mark.parametrize("recipe", ["current", "row"])
def test_sites_of_delayed_scaling_have_current_scaling_before_training(recipe):
    model, forward, _ = compiled(MLP, recipe, site_recipe={"up": "delayed"}, amax_history_len=4)
    x, _ = next(batches(1))
    with torch.no_grad(), pytest.warns(fp8.Warning, match="current scaling"):
        found = forward(x)
    torch._dynamo.reset()
    with torch.no_grad():
        assert torch.equal(found, torch.compile(model, backend=fp8.torch.backend(recipe, site_recipe={"up": "current"}))(x))
