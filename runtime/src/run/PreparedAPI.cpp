// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C ABI of prepared.h, and of gpu.h as far as it is about prepared calls.

#include "../core/Status.h"
#include "Prepared.h"

#include "fp8rt/gpu.h"
#include "fp8rt/profiler.h"

using namespace fp8rt;

fp8rt_status fp8rt_prepare(const fp8rt_library *library, const char *entry, fp8rt_state *state,
                           const DLTensor *const *arguments, uint32_t num_arguments,
                           const DLTensor *const *results, uint32_t num_results,
                           fp8rt_prepared **out_prepared) {
  return guarded([&] {
    fp8rt_prepared *&out = required(out_prepared, "out_prepared");
    const auto &shared = required(library, "library").shared;
    size_t index = shared->findEntry(&required(entry, "entry"));
    out =
        new fp8rt_prepared(shared, index, state ? state->shared : nullptr,
                           Prepared::Given{arguments, num_arguments}, Prepared::Given{results, num_results});
  });
}

fp8rt_status fp8rt_prepare_on(const fp8rt_gpu *gpu, const char *entry, fp8rt_state *state,
                              const DLTensor *const *arguments, uint32_t num_arguments,
                              const DLTensor *const *results, uint32_t num_results,
                              fp8rt_prepared **out_prepared) {
  return guarded([&] {
    fp8rt_prepared *&out = required(out_prepared, "out_prepared");
    const auto &program = required(gpu, "gpu").shared;
    size_t index = program->library()->findEntry(&required(entry, "entry"));
    out =
        new fp8rt_prepared(program, index, state ? state->shared : nullptr,
                           Prepared::Given{arguments, num_arguments}, Prepared::Given{results, num_results});
  });
}

void fp8rt_prepared_destroy(fp8rt_prepared *prepared) { delete prepared; }

fp8rt_status fp8rt_prepared_call(fp8rt_prepared *prepared, void *const *arguments, void *const *results) {
  return guarded([&] {
    required(prepared, "prepared")(&required(arguments, "arguments"), &required(results, "results"));
  });
}

fp8rt_status fp8rt_prepared_profile(fp8rt_prepared *prepared, fp8rt_profiler *profiler) {
  return guarded([&] { required(prepared, "prepared").measureWith(profiler ? profiler->shared : nullptr); });
}

fp8rt_status fp8rt_prepared_enqueue(fp8rt_prepared *prepared, void *const *arguments, void *const *results,
                                    void *stream) {
  return guarded([&] {
    required(prepared, "prepared")
        .enqueue(&required(arguments, "arguments"), &required(results, "results"), nullptr, stream);
  });
}

fp8rt_status fp8rt_prepared_enqueue_in(fp8rt_prepared *prepared, void *const *arguments, void *const *results,
                                       void *workspace, void *stream) {
  return guarded([&] {
    required(prepared, "prepared")
        .enqueue(&required(arguments, "arguments"), &required(results, "results"), workspace, stream);
  });
}

fp8rt_status fp8rt_prepared_call_from_host(fp8rt_prepared *prepared, void *const *arguments,
                                           void *const *results) {
  return guarded([&] {
    required(prepared, "prepared").fromHost(&required(arguments, "arguments"), &required(results, "results"));
  });
}
