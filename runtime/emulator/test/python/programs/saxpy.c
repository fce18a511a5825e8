// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program for libcuda.so.1 as one finds them: compiled against cuda.h, the library opened by name. It
// links two PTX texts, runs their kernel from a stream and from a graph, and compares. Prints "ok".

#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define LENGTH 1000

/* cuda.h renames entry points by macros: what they become is the name to look up. */
#define TEXT(name) #name
#define NAME(name) TEXT(name)
#define CALL(name, ...)                                                                                      \
  do {                                                                                                       \
    CUresult code = ((__typeof__(&name))find(NAME(name)))(__VA_ARGS__);                                      \
    if (code != CUDA_SUCCESS) {                                                                              \
      printf("%s gave %d\n", NAME(name), (int)code);                                                         \
      exit(1);                                                                                               \
    }                                                                                                        \
  } while (0)

static void *find(const char *name) {
  static void *library;
  if (!library && !(library = dlopen("libcuda.so.1", RTLD_NOW))) {
    printf("%s\n", dlerror());
    exit(1);
  }
  void *entry = dlsym(library, name);
  if (!entry) {
    printf("no %s\n", name);
    exit(1);
  }
  return entry;
}

#define HEADER ".version 8.0\n.target sm_80\n.address_size 64\n"

static char kernel[] =
    HEADER ".extern .func (.param .f32 r) axpy(.param .f32 a, .param .f32 x, .param .f32 y);\n"
           ".visible .entry saxpy(.param .u32 n, .param .f32 a, .param .u64 x, .param .u64 y) {\n"
           "  .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .f32 %f<4>;\n"
           "  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x;\n"
           "  mad.lo.u32 %r0, %r0, %r1, %r2;\n"
           "  ld.param.u32 %r3, [n]; setp.ge.u32 %p, %r0, %r3; @%p ret;\n"
           "  ld.param.u64 %rd0, [x]; ld.param.u64 %rd1, [y]; ld.param.f32 %f0, [a];\n"
           "  mul.wide.u32 %rd2, %r0, 4; add.u64 %rd0, %rd0, %rd2; add.u64 %rd1, %rd1, %rd2;\n"
           "  ld.global.f32 %f1, [%rd0]; ld.global.f32 %f2, [%rd1];\n"
           "  { .param .f32 p0; .param .f32 p1; .param .f32 p2; .param .f32 r;\n"
           "    st.param.f32 [p0], %f0; st.param.f32 [p1], %f1; st.param.f32 [p2], %f2;\n"
           "    call (r), axpy, (p0, p1, p2);\n"
           "    ld.param.f32 %f3, [r]; }\n"
           "  st.global.f32 [%rd1], %f3;\n"
           "  ret;\n}\n";
static char library[] =
    HEADER ".visible .func (.param .f32 r) axpy(.param .f32 a, .param .f32 x, .param .f32 y) {\n"
           "  .reg .f32 %f<4>;\n"
           "  ld.param.f32 %f0, [a]; ld.param.f32 %f1, [x]; ld.param.f32 %f2, [y];\n"
           "  fma.rn.f32 %f3, %f0, %f1, %f2;\n"
           "  st.param.f32 [r], %f3;\n"
           "  ret;\n}\n";

static void check(const float *y, int times) {
  for (int i = 0; i < LENGTH; ++i)
    if (y[i] != 1 + times * 0.5f * i) {
      printf("y[%d] is %g after %d times\n", i, y[i], times);
      exit(1);
    }
}

int main(void) {
  CUdevice device;
  CUcontext context;
  CALL(cuInit, 0);
  CALL(cuDeviceGet, &device, 0);
  CALL(cuDevicePrimaryCtxRetain, &context, device);
  CALL(cuCtxSetCurrent, context);

  CUlinkState link;
  CUmodule module;
  CUfunction saxpy;
  void *image;
  size_t bytes;
  CALL(cuLinkCreate, 0, NULL, NULL, &link);
  CALL(cuLinkAddData, link, CU_JIT_INPUT_PTX, kernel, sizeof kernel, "kernel.ptx", 0, NULL, NULL);
  CALL(cuLinkAddData, link, CU_JIT_INPUT_PTX, library, sizeof library, "library.ptx", 0, NULL, NULL);
  CALL(cuLinkComplete, link, &image, &bytes);
  CALL(cuModuleLoadData, &module, image);
  CALL(cuLinkDestroy, link);
  CALL(cuModuleGetFunction, &saxpy, module, "saxpy");

  float host[LENGTH];
  CUdeviceptr x, y;
  CUstream stream;
  CALL(cuMemAlloc, &x, sizeof host);
  CALL(cuMemAlloc, &y, sizeof host);
  CALL(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
  for (int i = 0; i < LENGTH; ++i)
    host[i] = (float)i;
  CALL(cuMemcpyHtoDAsync, x, host, sizeof host, stream);
  CALL(cuStreamSynchronize, stream);
  for (int i = 0; i < LENGTH; ++i)
    host[i] = 1;
  CALL(cuMemcpyHtoDAsync, y, host, sizeof host, stream);

  unsigned n = LENGTH;
  float a = 0.5f;
  void *arguments[] = {&n, &a, &x, &y};
  CUlaunchConfig config = {.gridDimX = 8,
                           .gridDimY = 1,
                           .gridDimZ = 1,
                           .blockDimX = 128,
                           .blockDimY = 1,
                           .blockDimZ = 1,
                           .hStream = stream};
  CALL(cuLaunchKernelEx, &config, saxpy, arguments, NULL);
  CALL(cuMemcpyDtoHAsync, host, y, sizeof host, stream);
  CALL(cuStreamSynchronize, stream);
  check(host, 1);

  CUgraph graph;
  CUgraphExec ready;
  CUgraphNode node;
  CUDA_KERNEL_NODE_PARAMS node_params = {.func = saxpy,
                                         .gridDimX = 8,
                                         .gridDimY = 1,
                                         .gridDimZ = 1,
                                         .blockDimX = 128,
                                         .blockDimY = 1,
                                         .blockDimZ = 1,
                                         .kernelParams = arguments};
  CALL(cuGraphCreate, &graph, 0);
  CALL(cuGraphAddKernelNode, &node, graph, NULL, 0, &node_params);
  CALL(cuGraphInstantiate, &ready, graph, 0);
  for (int i = 0; i < 3; ++i)
    CALL(cuGraphLaunch, ready, stream);
  CALL(cuStreamSynchronize, stream);
  CALL(cuMemcpyDtoH, host, y, sizeof host);
  check(host, 4);

  CALL(cuGraphExecDestroy, ready);
  CALL(cuGraphDestroy, graph);
  CALL(cuStreamDestroy, stream);
  CALL(cuMemFree, x);
  CALL(cuMemFree, y);
  CALL(cuModuleUnload, module);
  CALL(cuDevicePrimaryCtxRelease, device);
  puts("ok");
  return 0;
}
