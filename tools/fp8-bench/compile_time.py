# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""fp8-bench compile: seconds from IR to library, beside XLA from StableHLO to code."""

import functools
import pathlib

from results import Results, least
from session import Session

LAYERS_OF_EXAMPLE = 4


def programs(session: Session, examples: pathlib.Path) -> dict[int, pathlib.Path]:
    """Layers -> the example GPT's training step in linalg. JAX exports it; the exported file of the
    examples has four layers, and the evaluation beside the step."""
    layers: list[int] = session.options.layers
    if "jax" not in session.peers:
        missing = [str(n) for n in layers if n != LAYERS_OF_EXAMPLE]
        if missing:
            session.left_out.append(f"GPTs of {', '.join(missing)} layers, which JAX would export")
        return {LAYERS_OF_EXAMPLE: examples / "gpt.mlir"}
    found: dict[int, pathlib.Path] = {}
    for n in layers:
        found[n] = session.tools.scratch / f"gpt{n}.mlir"
        session.peers["jax"].ask("export", network="gpt", layers=n, file=str(found[n]))
    return found


def measure(session: Session, examples: pathlib.Path) -> Results:
    recipes: list[str] = session.options.recipe
    results = Results("Seconds to compile a GPT's training step", "layers", recipes, ["XLA"])
    sources = programs(session, examples)
    jax = session.peers.get("jax")
    advance = session.progress(len(sources) * session.options.rounds * (len(recipes) + bool(jax)))

    def ours(source: pathlib.Path, recipe: str) -> tuple[float, float]:
        library, seconds = session.tools.compile(source, recipe, "--keep=embed|head")
        library.unlink()
        return seconds

    def xla(layers: int) -> tuple[float, float]:
        assert jax
        answer = jax.ask("compile", network="gpt", layers=layers)
        return answer["wall"], answer["user"]

    for n, source in sources.items():
        measures = {recipe: functools.partial(ours, source, recipe) for recipe in recipes}
        if jax:
            measures["XLA"] = functools.partial(xla, n)
        best = least(measures, session.options.rounds, lambda name, n=n: advance(f"{n} layers, {name}"))
        results.rows[str(n)] = {}
        for name, (wall, user) in best.items():
            results.rows[str(n)] |= {name: wall, f"{name}, user": user}
    return results
