# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8-bench step: milliseconds of a training step, beside XLA and PyTorch."""

import functools
import pathlib

import compiler
import parameters
import tensors
from compiler import Program
from peer import sizes
from results import Results, least
from session import Session

RECIPES = ["none", "current", "delayed"]
NETWORKS = {"gpt": "embed|head", "mlp": "head", "mixer": "embed|head"}  # and the sites that stay high
PEERS = {"jax": {"XLA bf16": "bf16"}, "torch": {"PyTorch f32": "f32", "PyTorch bf16": "bf16"}}


def inputs(network: str) -> dict[str, compiler.Tensor]:
    """Initial parameters and a batch, by the names of the program's arguments. The state of the optimizer
    starts at zero."""
    if network == "gpt":
        found = {f"params['{name}']": ("F32", *value) for name, value in parameters.initial().items()}
        window = (parameters.BATCH, parameters.SEQUENCE + 1)
        return found | {"tokens": compiler.integers(window, parameters.VOCABULARY)}
    model = sizes.MODELS[network]
    found = {f"params['{name}']": compiler.values(shape, sizes.deviation(name, shape)) for name, shape in model.shapes().items()}
    return found | {"inputs": compiler.values(model.inputs, 1.0), "labels": compiler.integers(model.inputs[:1], sizes.CLASSES)}


def measure(session: Session, examples: pathlib.Path) -> Results:
    columns = session.columns(PEERS)
    recipes: list[str] = session.options.recipe
    results = Results("Milliseconds of a training step", "network", recipes, list(columns))
    networks: list[str] = session.options.networks
    work = len(recipes) + session.options.rounds * (len(recipes) + len(columns))
    advance = session.progress(len(networks) * work)

    def peer(name: str, network: str, kind: str) -> float:
        answer = session.peers[name].ask("step", network=network, kind=kind, seconds=session.options.seconds)
        return float(answer["seconds"])

    for network in networks:
        source = examples / "gpt.mlir" if network == "gpt" else pathlib.Path(__file__).parent / f"networks/{network}.mlir"
        tensors.write(file := session.tools.scratch / f"{network}.safetensors", inputs(network))
        measures = {}
        for recipe in recipes:
            advance(f"{network}, compiling")
            library, _ = session.tools.compile(source, recipe, f"--keep={NETWORKS[network]}")
            measures[recipe] = functools.partial(Program(session.tools, library, file).seconds, session.options.seconds)
        for title, (name, kind) in columns.items():
            measures[title] = functools.partial(peer, name, network, kind)
        best = least(measures, session.options.rounds, lambda name, network=network: advance(f"{network}, {name}"))
        results.rows[network] = {name: 1000 * seconds for name, seconds in best.items()}
        for running in session.peers.values():
            running.ask("forget")
    return results
