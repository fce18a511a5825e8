// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C ABI of gpu.h.

#include "../core/Status.h"
#include "../cuda/DeviceProgram.h"
#include "Session.h"

#include "fp8rt/gpu.h"

using namespace fp8rt;

fp8rt_status fp8rt_gpu_open(const char *name, const fp8rt_library *library, fp8rt_gpu **out_gpu) {
  return guarded([&] {
    fp8rt_gpu *&out = required(out_gpu, "out_gpu");
    out = new fp8rt_gpu{std::make_shared<const cuda::DeviceProgram>(&required(name, "name"),
                                                                    required(library, "library").shared)};
  });
}

void fp8rt_gpu_close(fp8rt_gpu *gpu) { delete gpu; }

const char *fp8rt_gpu_name(const fp8rt_gpu *gpu) {
  return gpu ? gpu->shared->device().name().c_str() : nullptr;
}

fp8rt_status fp8rt_state_create_on(const fp8rt_gpu *gpu, fp8rt_state **out_state) {
  return guarded([&] {
    fp8rt_state *&out = required(out_state, "out_state");
    const cuda::DeviceProgram &program = *required(gpu, "gpu").shared;
    out = new fp8rt_state(std::make_shared<State>(program.library(), program.memory()));
  });
}

fp8rt_status fp8rt_session_create_on(const fp8rt_gpu *gpu, const char *entry, fp8rt_state *state,
                                     fp8rt_session **out_session) {
  return guarded([&] {
    fp8rt_session *&out = required(out_session, "out_session");
    const auto &program = required(gpu, "gpu").shared;
    size_t index = program->library()->findEntry(&required(entry, "entry"));
    out = new fp8rt_session(program, index, state ? state->shared : nullptr);
  });
}
