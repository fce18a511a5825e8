// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Memory: copies in all directions and dimensions, fills, pools, memory of the host, managed memory, what
// addresses belong to.

#include "check.h"

#include <cstdint>
#include <vector>

__global__ void addOne(int *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] += 1; // fault: more than there are
}

__global__ void addRows(float *rows, size_t pitch, int width) {
  auto *row = (float *)((char *)rows + blockIdx.x * pitch);
  if (threadIdx.x < width)
    row[threadIdx.x] += threadIdx.x + 100 * blockIdx.x;
}

static void copies(int n) {
  std::vector<int> in(n), out(n);
  for (int i = 0; i < n; ++i)
    in[i] = 3 * i;
  int *x, *y;
  OK(cudaMalloc(&x, n * 4));
  OK(cudaMalloc(&y, n * 4));
  OK(cudaMemcpy(x, in.data(), n * 4, cudaMemcpyHostToDevice));
  addOne<<<(n + 31) / 32, 32>>>(x, n);
  OK(cudaMemcpy(y, x, n * 4, cudaMemcpyDeviceToDevice));
  OK(cudaMemset(x, 0xFF, 40));
  OK(cudaMemcpy(y, x, 40, cudaMemcpyDefault));
  OK(cudaMemcpy(out.data(), y, n * 4, cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; ++i)
    SAME(i < 10 ? -1 : 3 * i + 1, out[i]);
  RETURNS(cudaErrorInvalidMemcpyDirection, cudaMemcpy(x, y, 4, (cudaMemcpyKind)9));
  RETURNS(cudaErrorInvalidValue, cudaMemcpy(x, in.data(), n * 4 + 4, cudaMemcpyHostToDevice));
  RETURNS(cudaErrorInvalidValue, cudaFree(in.data()));
  OK(cudaFree(x));
  RETURNS(cudaErrorInvalidValue, cudaFree(x));
  OK(cudaFree(y));
  OK(cudaFree(nullptr));
  void *none = &in;
  OK(cudaMalloc(&none, 0));
  SAME(true, none == nullptr);
  RETURNS(cudaErrorMemoryAllocation, cudaMalloc(&none, size_t(1) << 60));
}

static void boxes() {
  float *rows, out[6][10];
  size_t pitch;
  OK(cudaMallocPitch(&rows, &pitch, 40, 6));
  SAME(true, pitch >= 40 && pitch % 256 == 0);
  OK(cudaMemset2D(rows, pitch, 0, 40, 6));
  addRows<<<6, 32>>>(rows, pitch, 10);
  OK(cudaMemcpy2D(out, 40, rows, pitch, 40, 6, cudaMemcpyDeviceToHost));
  for (int y = 0; y < 6; ++y)
    for (int x = 0; x < 10; ++x)
      SAME(x + 100 * y, out[y][x]);
  RETURNS(cudaErrorInvalidPitchValue, cudaMemcpy2D(out, 20, rows, pitch, 40, 6, cudaMemcpyDeviceToHost));
  OK(cudaFree(rows));

  cudaPitchedPtr box;
  char bytes[2][3][20];
  OK(cudaMalloc3D(&box, make_cudaExtent(20, 3, 2)));
  OK(cudaMemset3D(box, 1, make_cudaExtent(20, 3, 2)));
  OK(cudaMemset3D(box, 2, make_cudaExtent(5, 2, 2)));
  cudaMemcpy3DParms copy{};
  copy.srcPtr = box;
  copy.dstPtr = make_cudaPitchedPtr(bytes, 20, 20, 3);
  copy.extent = make_cudaExtent(20, 3, 2);
  copy.kind = cudaMemcpyDeviceToHost;
  OK(cudaMemcpy3D(&copy));
  for (int z = 0; z < 2; ++z)
    for (int y = 0; y < 3; ++y)
      for (int x = 0; x < 20; ++x)
        SAME(x < 5 && y < 2 ? 2 : 1, bytes[z][y][x]);
  OK(cudaFree(box.ptr));
}

static void pools() {
  cudaStream_t stream;
  OK(cudaStreamCreate(&stream));
  int *x, out[8];
  OK(cudaMallocAsync(&x, 32, stream));
  OK(cudaMemsetAsync(x, 0, 32, stream));
  addOne<<<1, 8, 0, stream>>>(x, 8);
  OK(cudaMemcpyAsync(out, x, 32, cudaMemcpyDeviceToHost, stream));
  OK(cudaFreeAsync(x, stream));
  OK(cudaStreamSynchronize(stream));
  for (int value : out)
    SAME(1, value);
  cudaMemPool_t pool;
  uint64_t kept = 1 << 20, read = 0;
  OK(cudaDeviceGetDefaultMemPool(&pool, 0));
  OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &kept));
  OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &read));
  SAME(kept, read);
  OK(cudaMallocFromPoolAsync(&x, 32, pool, stream));
  OK(cudaFreeAsync(x, stream));
  OK(cudaStreamDestroy(stream));
}

static int typeOf(const void *address) {
  cudaPointerAttributes attributes;
  OK(cudaPointerGetAttributes(&attributes, address));
  return attributes.type;
}

static void ofTheHost() {
  int *pinned, *reached, *managed, *x;
  OK(cudaHostAlloc(&pinned, 64, cudaHostAllocMapped));
  for (int i = 0; i < 16; ++i)
    pinned[i] = i;
  OK(cudaHostGetDevicePointer(&reached, pinned, 0));
  addOne<<<1, 16>>>(reached, 16);
  OK(cudaDeviceSynchronize());
  SAME(16, pinned[15]);
  std::vector<int> own(16, 5);
  OK(cudaHostRegister(own.data(), 64, cudaHostRegisterDefault));
  addOne<<<1, 16>>>(own.data(), 16);
  OK(cudaDeviceSynchronize());
  SAME(6, own[15]);
  OK(cudaHostUnregister(own.data()));
  OK(cudaMallocManaged(&managed, 64));
  managed[3] = 8;
  addOne<<<1, 4>>>(managed, 4);
  OK(cudaDeviceSynchronize());
  SAME(9, managed[3]);
  OK(cudaMalloc(&x, 64));
  SAME(cudaMemoryTypeHost, typeOf(pinned));
  SAME(cudaMemoryTypeManaged, typeOf(managed));
  SAME(cudaMemoryTypeDevice, typeOf(x + 3));
  SAME(cudaMemoryTypeUnregistered, typeOf(own.data()));
  size_t free, total;
  OK(cudaMemGetInfo(&free, &total));
  SAME(true, free < total);
  OK(cudaFreeHost(pinned));
  OK(cudaFree(managed));
}

int main(int count, char **arguments) {
  copies(100);
  boxes();
  pools();
  ofTheHost();
  if (wantsFault(count, arguments)) {
    int *x;
    OK(cudaMalloc(&x, 400));
    OK(cudaMemset(x, 0, 400));
    addOne<<<4, 32>>>(x, 128);
    RETURNS(cudaErrorIllegalAddress, cudaDeviceSynchronize());
    // The context cannot be used any more, until it is a new one.
    RETURNS(cudaErrorIllegalAddress, cudaMalloc(&x, 4));
    OK(cudaDeviceReset());
    copies(10);
    return 1;
  }
  std::puts("ok");
}
