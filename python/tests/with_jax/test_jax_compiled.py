# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`step.lower(…).compile()`, beside what jax.jit gives for it."""

import concurrent.futures

import pytest

jax = pytest.importorskip("jax")
import fp8  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

W, X = jnp.linspace(-1, 1, 128).reshape(16, 8), jnp.linspace(0, 2, 64).reshape(4, 16)


def step(params, x, power, scale=1.0):
    """`power` is static."""
    loss = lambda p: ((x @ p["w"]) ** power).mean() * scale
    value, gradients = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), value


def test_it_is_called_as_jaxs_without_static_arguments():
    ours = fp8.jax.jit(step, recipe="none", static_argnums=2).lower({"w": W}, X, 2, scale=0.5).compile()
    theirs = jax.jit(step, static_argnums=2).lower({"w": W}, X, 2, scale=0.5).compile()
    (new, value), (right, wanted) = ours({"w": W}, X, scale=0.5), theirs({"w": W}, X, scale=0.5)
    np.testing.assert_allclose(new["w"], right["w"], rtol=1e-5)
    np.testing.assert_allclose(value, wanted, rtol=1e-5)
    assert ours.cost_analysis() == {"flops": 2 * 2 * 4 * 16 * 8}
    memory, known = ours.memory_analysis(), theirs.memory_analysis()
    assert memory.argument_size_in_bytes == known.argument_size_in_bytes
    assert memory.output_size_in_bytes == sum(a.nbytes for a in jax.tree.leaves((new, value)))
    assert memory.temp_size_in_bytes == ours.library.entries["main"].description["workspace_bytes"]
    assert "linalg" in ours.as_text("ingest") and "memref" in ours.as_text()


def test_it_reads_and_replaces_the_state_of_the_step():
    a, b = (fp8.jax.jit(step, recipe="delayed", sites="all", static_argnames="power", amax_history_len=4) for _ in range(2))
    compiled = a.lower({"w": W}, X, power=2).compile()
    assert isinstance(compiled, fp8.jax.Compiled) and isinstance(compiled.library, fp8.Library)
    for scale in (1, 3):
        got, wanted = compiled({"w": W * scale}, X), b({"w": W * scale}, X, power=2)
        np.testing.assert_array_equal(got[0]["w"], wanted[0]["w"])
    np.testing.assert_array_equal(a.state["amax_history"], b.state["amax_history"])
    assert a.report() is compiled.library.report


@pytest.mark.parametrize("arguments", [({"w": W}, X[:2]), ({"w": W}, X.astype(jnp.bfloat16)), ([W], X), ({"w": W},), ({"w": W}, X, 2)])
def test_other_arguments_are_a_type_error_as_in_jax(arguments):
    ours = fp8.jax.jit(step, recipe="none", static_argnums=2).lower({"w": W}, X, 2).compile()
    theirs = jax.jit(step, static_argnums=2).lower({"w": W}, X, 2).compile()
    for compiled in (ours, theirs):
        with pytest.raises(TypeError, match="compiled"):
            compiled(*arguments)


def test_shapes_alone_are_enough_to_compile():
    types = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), ({"w": W}, X))
    compiled = fp8.jax.jit(step, recipe="none", static_argnums=2).lower(*types, 2).compile()
    np.testing.assert_allclose(compiled({"w": W}, X)[1], jax.jit(step, static_argnums=2)({"w": W}, X, 2)[1], rtol=1e-5)


def test_objects_of_flax_are_updated():
    nnx = pytest.importorskip("flax.nnx")

    def scale(model, x, factor):
        model.kernel[...] = model.kernel * factor
        return model(x)

    ours, theirs = (nnx.Linear(16, 8, rngs=nnx.Rngs(0)) for _ in range(2))
    compiled = fp8.jax.nnx_jit(scale, recipe="none", static_argnames="factor").lower(ours, X, 2.0).compile()
    np.testing.assert_allclose(compiled(ours, X), nnx.jit(scale, static_argnames="factor")(theirs, X, 2.0), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(ours.kernel[...], theirs.kernel[...])
    with pytest.raises(TypeError, match="the step was compiled for other arguments"):
        compiled(ours, X[:2])


def test_an_unknown_option_is_a_value_error():
    with pytest.raises(ValueError, match="there is no option nonsense"):
        fp8.jax.jit(step, recipe="current", nonsense=1, static_argnums=2)({"w": W}, X, 2)


def test_profiles():
    ours = fp8.jax.jit(step, recipe="none", static_argnums=2)
    library = ours.lower({"w": W}, X, 2).compile().library
    ours({"w": W}, X, 2)
    with library.profile() as profile:
        for _ in range(3):
            jax.block_until_ready(ours({"w": W}, X, 2))
    jax.block_until_ready(ours({"w": W}, X, 2))
    # The product and the weight's gradient.
    assert [kernel.calls for kernel in profile.kernels if kernel.kind == "products"] == [3, 3], str(profile)
    with pytest.warns(fp8.Warning, match="no call was measured"), library.profile():
        pass


def test_calls_of_several_threads_are_measured_one_after_the_other():
    ours = fp8.jax.jit(step, recipe="none", static_argnums=2)
    library = ours.lower({"w": W}, X, 2).compile().library
    with library.profile() as profile, concurrent.futures.ThreadPoolExecutor(4) as threads:
        [f.result() for f in [threads.submit(lambda: jax.block_until_ready(ours({"w": W}, X, 2))) for _ in range(40)]]
    assert [kernel.calls for kernel in profile.kernels if kernel.kind == "products"] == [40, 40]
