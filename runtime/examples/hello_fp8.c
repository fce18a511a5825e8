// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// hello_fp8: loads a compiled step, runs it, saves its state, and loads the state again. In C, terse;
// hello_fp8_explained.c is the same program with explanations.
//
//   cc hello_fp8.c -I runtime/include -L build/lib -lfp8rt -o hello_fp8
//   ./hello_fp8 step.so 10 state.safetensors

#include "fp8rt/session.h"

#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                                                          \
  if (call) {                                                                                                \
    fprintf(stderr, "hello_fp8: %s\n", fp8rt_last_error());                                                  \
    return 1;                                                                                                \
  }

int main(int argc, char **argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: hello_fp8 LIBRARY STEPS STATE\n");
    return 2;
  }
  fp8rt_library *library;
  fp8rt_state *state;
  fp8rt_session *session;
  CHECK(fp8rt_library_load(argv[1], &library))
  CHECK(fp8rt_state_create(library, &state))
  CHECK(fp8rt_session_create(library, "main", state, &session))

  CHECK(fp8rt_session_zero_missing(session))
  for (int step = atoi(argv[2]); step > 0; --step)
    CHECK(fp8rt_session_step(session))

  fp8rt_tensors *tensors;
  CHECK(fp8rt_tensors_create(&tensors))
  CHECK(fp8rt_state_export(state, tensors))
  CHECK(fp8rt_session_export_carried(session, tensors))
  CHECK(fp8rt_tensors_write(tensors, argv[3]))
  fp8rt_tensors_destroy(tensors);

  CHECK(fp8rt_tensors_read(argv[3], &tensors))
  CHECK(fp8rt_state_import(state, tensors))
  CHECK(fp8rt_session_import_carried(session, tensors))
  printf("hello: %llu tensors in %s\n", (unsigned long long)fp8rt_tensors_count(tensors), argv[3]);

  fp8rt_tensors_destroy(tensors);
  fp8rt_session_destroy(session);
  fp8rt_state_destroy(state);
  fp8rt_library_destroy(library);
  return 0;
}
