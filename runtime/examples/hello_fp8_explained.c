// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// hello_fp8, explained: what a program does that trains with a compiled step. It
//
//   1. loads the library that fp8-compile wrote, and looks at its arguments,
//   2. creates the FP8 state (scales and amax histories) and a session, which owns all buffers,
//   3. gives the arguments their values and runs steps,
//   4. saves a checkpoint while the next steps run,
//   5. and starts again from the checkpoint.
//
// Build and run it beside a build of this project:
//
//   fp8-compile step.mlir -o step.so
//   cc hello_fp8_explained.c -I runtime/include -L build/lib -lfp8rt -Wl,-rpath,build/lib -o
//   hello_fp8_explained
//   ./hello_fp8_explained step.so 10 state.safetensors

#include "fp8rt/checkpoints.h"
#include "fp8rt/session.h"

#include <stdio.h>
#include <stdlib.h>

// Every function that can fail returns a status, 0 for success. fp8rt_last_error then has one line that names
// the file, the tensor and what was expected.
static void check(fp8rt_status status) {
  if (status == FP8RT_OK)
    return;
  fprintf(stderr, "hello_fp8_explained: %s\n", fp8rt_last_error());
  exit(1);
}

// Prints an argument as "w: f32 [2 3]". A size of -1 is known when the program runs.
static void describe(const fp8rt_value *value) {
  printf("  %s: %s [", value->name, value->type);
  for (int32_t i = 0; i < value->ndim; ++i)
    printf(i ? " %lld" : "%lld", (long long)value->shape[i]);
  printf("]%s\n", value->kind == FP8RT_KIND_STATE ? ", FP8 state"
                  : value->carry >= 0             ? ", carried: a result becomes its value in the next step"
                                                  : "");
}

// Gives an argument a value: all its elements are `value`. Only f32 of known size, for this example.
static void fill(fp8rt_session *session, uint32_t index, const fp8rt_value *wanted, float value) {
  int64_t count = 1;
  for (int32_t i = 0; i < wanted->ndim; ++i)
    count *= wanted->shape[i];
  float *data = malloc(sizeof(float) * (size_t)count);
  for (int64_t i = 0; data && i < count; ++i)
    data[i] = value;
  // A DLTensor describes memory that somebody else owns: NumPy, PyTorch and JAX speak it, too.
  DLTensor tensor = {0};
  tensor.data = data;
  tensor.device.device_type = kDLCPU;
  tensor.dtype = wanted->dtype;
  tensor.ndim = wanted->ndim;
  tensor.shape = (int64_t *)wanted->shape;
  check(fp8rt_session_set_argument(session, index, &tensor)); // copies
  free(data);
}

// Sets every argument of type f32 to 0.5 and the others to 0.
static void set_arguments(fp8rt_library *library, fp8rt_session *session) {
  uint32_t arguments, results;
  check(fp8rt_library_counts(library, "main", &arguments, &results));
  for (uint32_t i = 0; i < arguments; ++i) {
    fp8rt_value value;
    check(fp8rt_library_argument(library, "main", i, &value));
    describe(&value);
    int isF32 = value.dtype.code == kDLFloat && value.dtype.bits == 32;
    for (int32_t d = 0; d < value.ndim; ++d)
      isF32 = isF32 && value.shape[d] >= 0;
    // The state's arguments are the state itself: nobody sets them.
    if (value.kind == FP8RT_KIND_USER && isF32)
      fill(session, i, &value, 0.5f);
  }
  check(fp8rt_session_zero_missing(session));
}

// Collects what a checkpoint needs: views of the state and of the carried arguments (weights, optimizer).
static fp8rt_tensors *collect(const fp8rt_state *state, const fp8rt_session *session) {
  fp8rt_tensors *tensors;
  check(fp8rt_tensors_create(&tensors));
  check(fp8rt_state_export(state, tensors));
  check(fp8rt_session_export_carried(session, tensors));
  return tensors;
}

int main(int argc, char **argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: hello_fp8_explained LIBRARY STEPS STATE\n");
    return 2;
  }
  const char *path = argv[3];
  long steps = strtol(argv[2], NULL, 10);

  // 1. The library checks itself when it is loaded: its manifest, and that this processor has the
  // instructions.
  fp8rt_library *library;
  check(fp8rt_library_load(argv[1], &library));

  // 2. One state may serve several sessions, such as training and evaluation.
  fp8rt_state *state;
  fp8rt_session *session;
  check(fp8rt_state_create(library, &state));
  check(fp8rt_session_create(library, "main", state, &session));

  // 3. A step updates the carried arguments and the state in place. Nothing else is written.
  set_arguments(library, session);
  // 4. `save` copies and returns: a thread writes the file, checks it in with a checksum and renames it, so
  // that
  //    a kill at any moment leaves the old checkpoint or the new one. The last two are kept.
  fp8rt_checkpoints *checkpoints;
  check(fp8rt_checkpoints_create(path, /*keep_last=*/2, /*present_step=*/-1, &checkpoints));
  for (long step = 1; step <= steps; ++step) {
    check(fp8rt_session_step(session));
    check(fp8rt_checkpoints_check(checkpoints)); // an error of the disk comes out here
    if (step % 5 == 0 || step == steps) {
      fp8rt_tensors *tensors = collect(state, session);
      check(fp8rt_checkpoints_save(checkpoints, tensors, (uint64_t)step));
      fp8rt_tensors_destroy(tensors);
    }
  }
  check(fp8rt_checkpoints_finish(checkpoints)); // until everything is on the disk
  fp8rt_checkpoints_destroy(checkpoints);

  // Every buffer of the state can be read by its name after any step. (On a GPU fp8rt_state_export copies it
  // here.)
  const DLTensor *scale = fp8rt_state_tensor(state, "scale");
  for (int64_t i = 0; scale && i < scale->shape[0]; ++i)
    printf("scale of column %lld: %g\n", (long long)i, ((const float *)scale->data)[i]);

  // 5. A new state and session of the same program, from the file. The state is checked before it changes.
  fp8rt_state *again;
  fp8rt_session *next;
  fp8rt_tensors *tensors;
  check(fp8rt_state_create(library, &again));
  check(fp8rt_session_create(library, "main", again, &next));
  check(fp8rt_tensors_read(path, &tensors));
  check(fp8rt_state_import(again, tensors));
  check(fp8rt_session_import_carried(next, tensors));
  printf("hello: %llu tensors in %s\n", (unsigned long long)fp8rt_tensors_count(tensors), path);

  // Handles are destroyed in any order; sessions and states keep the library as long as they need it.
  fp8rt_tensors_destroy(tensors);
  fp8rt_session_destroy(next);
  fp8rt_state_destroy(again);
  fp8rt_session_destroy(session);
  fp8rt_state_destroy(state);
  fp8rt_library_destroy(library);
  return 0;
}
