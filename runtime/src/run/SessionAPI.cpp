// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C ABI of session.h.

#include "../core/Status.h"
#include "../core/Tensors.h"
#include "Session.h"

using namespace fp8rt;

fp8rt_status fp8rt_session_create(const fp8rt_library *library, const char *entry, fp8rt_state *state,
                                  fp8rt_session **out_session) {
  return guarded([&] {
    fp8rt_session *&out = required(out_session, "out_session");
    const auto &shared = required(library, "library").shared;
    size_t index = shared->findEntry(&required(entry, "entry"));
    out = new fp8rt_session(shared, index, state ? state->shared : nullptr);
  });
}

void fp8rt_session_destroy(fp8rt_session *session) { delete session; }

fp8rt_status fp8rt_session_find_argument(const fp8rt_session *session, const char *key, uint32_t *out_index) {
  return guarded([&] {
    required(out_index, "out_index") = required(session, "session").findArgument(&required(key, "key"));
  });
}

fp8rt_status fp8rt_session_find_result(const fp8rt_session *session, const char *key, uint32_t *out_index) {
  return guarded([&] {
    required(out_index, "out_index") = required(session, "session").findResult(&required(key, "key"));
  });
}

fp8rt_status fp8rt_session_set_argument(fp8rt_session *session, uint32_t index, const DLTensor *tensor) {
  return guarded([&] { required(session, "session").setArgument(index, required(tensor, "tensor")); });
}

fp8rt_status fp8rt_session_bind_argument(fp8rt_session *session, uint32_t index, const DLTensor *tensor) {
  return guarded([&] { required(session, "session").bindArgument(index, required(tensor, "tensor")); });
}

fp8rt_status fp8rt_session_zero_missing(fp8rt_session *session) {
  return guarded([&] { required(session, "session").zeroMissing(); });
}

fp8rt_status fp8rt_session_step(fp8rt_session *session) {
  return guarded([&] { required(session, "session").step(); });
}

fp8rt_status fp8rt_session_profile(fp8rt_session *session, fp8rt_profiler *profiler) {
  return guarded([&] { required(session, "session").measureWith(profiler ? profiler->shared : nullptr); });
}

/// Copies from a device may fail: the tensor is null then, and the last error says why.
template <typename Fn>
static const DLTensor *tensorOrNull(Fn &&find) {
  const DLTensor *tensor = nullptr;
  guarded([&] { tensor = find(); });
  return tensor;
}

const DLTensor *fp8rt_session_argument(const fp8rt_session *session, uint32_t index) {
  return tensorOrNull([&] { return session ? session->argument(index) : nullptr; });
}

const DLTensor *fp8rt_session_result(const fp8rt_session *session, uint32_t index) {
  return tensorOrNull([&] { return session ? session->result(index) : nullptr; });
}

const DLTensor *fp8rt_session_argument_in_place(const fp8rt_session *session, uint32_t index) {
  return session ? session->argumentInPlace(index) : nullptr;
}

const DLTensor *fp8rt_session_result_in_place(const fp8rt_session *session, uint32_t index) {
  return session ? session->resultInPlace(index) : nullptr;
}

fp8rt_status fp8rt_session_export_carried(const fp8rt_session *session, fp8rt_tensors *tensors) {
  return guarded([&] { required(session, "session").exportCarried(required(tensors, "tensors")); });
}

fp8rt_status fp8rt_session_import_carried(fp8rt_session *session, const fp8rt_tensors *tensors) {
  return guarded([&] {
    const fp8rt_tensors &source = required(tensors, "tensors");
    auto import = [&] { required(session, "session").importCarried(source); };
    source.source.empty() ? import() : within(source.source, import);
  });
}
