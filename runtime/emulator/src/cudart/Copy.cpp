// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entry points: copying and filling memory, and variables. The kind of a copy tells which way it goes, or
// leaves it to the addresses (cudaMemcpyDefault).

#include "Registry.h"

using namespace fp8emu::cudart;

namespace {

/// CUmemorytype.
enum Side { OfHost = 1, OfDevice = 2, Unified = 4 };

struct Sides {
  Side from, to;
};
Sides sidesOf(cudaMemcpyKind kind) {
  switch (kind) {
  case cudaMemcpyHostToHost:
    return {OfHost, OfHost};
  case cudaMemcpyHostToDevice:
    return {OfHost, OfDevice};
  case cudaMemcpyDeviceToHost:
    return {OfDevice, OfHost};
  case cudaMemcpyDeviceToDevice:
    return {OfDevice, OfDevice};
  case cudaMemcpyDefault:
    return {Unified, Unified};
  }
  throw Error{cudaErrorInvalidMemcpyDirection};
}

CUcopySide sideOf(const cudaCopySide &side, Side type) {
  // There are no arrays: none can have been made.
  require(!side.array);
  CUcopySide out{};
  out.x = side.pos.x;
  out.y = side.pos.y;
  out.z = side.pos.z;
  out.type = type;
  out.host = side.ptr.ptr;
  out.device = number(side.ptr.ptr);
  out.pitch = side.ptr.pitch;
  out.height = side.ptr.ysize;
  return out;
}
cudaCopySide sideOf(const CUcopySide &side) {
  void *const base = side.type == OfHost ? side.host : pointer(side.device);
  return {nullptr, {side.x, side.y, side.z}, {base, side.pitch, side.pitch, side.height}};
}

cudaError_t copy(const CUDA_MEMCPY3D &box, cudaStream_t stream) {
  if (!box.width || !box.height || !box.depth)
    return cudaSuccess;
  return cudaError_t(cuMemcpy3DAsync_v2(&box, stream));
}

cudaError_t copyRows(void *to, size_t toPitch, const void *from, size_t fromPitch, size_t width,
                     size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return enter([=] {
    require(height <= 1 || (width <= toPitch && width <= fromPitch), cudaErrorInvalidPitchValue);
    CUDA_MEMCPY3D box = rowOf(to, from, width, kind);
    box.height = height;
    box.to.pitch = toPitch;
    box.from.pitch = fromPitch;
    return copy(box, stream);
  });
}

cudaError_t fillRows(void *to, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream) {
  return enter([=] {
    require(height <= 1 || width <= pitch, cudaErrorInvalidPitchValue);
    if (!width || !height)
      return CUDA_SUCCESS;
    require(to);
    return cuMemsetD2D8Async(number(to), pitch, static_cast<unsigned char>(value), width, height, stream);
  });
}

cudaError_t fillBox(const cudaPitchedPtr &to, int value, const cudaExtent &extent, cudaStream_t stream) {
  for (size_t z = 0; z < extent.depth; ++z) {
    char *const plane = static_cast<char *>(to.ptr) + z * to.pitch * to.ysize;
    if (const cudaError_t code = fillRows(plane, to.pitch, value, extent.width, extent.height, stream))
      return code;
  }
  return cudaSuccess;
}

/// The address `offset` bytes into the variable, where so many bytes are.
void *place(const void *symbol, size_t bytes, size_t offset) {
  const Variable variable = variableOf(symbol);
  require(offset <= variable.bytes && bytes <= variable.bytes - offset);
  return pointer(variable.address + offset);
}

} // namespace

CUDA_MEMCPY3D fp8emu::cudart::boxOf(const cudaMemcpy3DParms &copy) {
  const Sides sides = sidesOf(copy.kind);
  return {sideOf(copy.from, sides.from), sideOf(copy.to, sides.to), copy.extent.width, copy.extent.height,
          copy.extent.depth};
}

cudaMemcpy3DParms fp8emu::cudart::copyOf(const CUDA_MEMCPY3D &box) {
  const bool fromHost = box.from.type == OfHost, toHost = box.to.type == OfHost;
  const bool isUnified = box.from.type == Unified;
  return {sideOf(box.from),
          sideOf(box.to),
          {box.width, box.height, box.depth},
          isUnified  ? cudaMemcpyDefault
          : fromHost ? (toHost ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice)
                     : (toHost ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice)};
}

CUDA_MEMCPY3D fp8emu::cudart::rowOf(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
  cudaMemcpy3DParms copy{};
  copy.from.ptr.ptr = const_cast<void *>(from);
  copy.to.ptr.ptr = to;
  copy.extent = {bytes, 1, 1};
  copy.kind = kind;
  return boxOf(copy);
}

CUDA_MEMCPY3D fp8emu::cudart::rowToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset,
                                          cudaMemcpyKind kind) {
  return rowOf(place(symbol, bytes, offset), from, bytes, kind);
}
CUDA_MEMCPY3D fp8emu::cudart::rowFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset,
                                            cudaMemcpyKind kind) {
  return rowOf(to, place(symbol, bytes, offset), bytes, kind);
}

FP8CUDART_API cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                                          cudaStream_t stream) {
  return enter([=] { return copy(rowOf(to, from, bytes, kind), stream); });
}
FP8CUDART_API cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind) {
  return cudaMemcpyAsync(to, from, bytes, kind, nullptr);
}
// All devices share one memory.
FP8CUDART_API cudaError_t cudaMemcpyPeerAsync(void *to, int, const void *from, int, size_t bytes,
                                              cudaStream_t stream) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}
FP8CUDART_API cudaError_t cudaMemcpyPeer(void *to, int toDevice, const void *from, int fromDevice,
                                         size_t bytes) {
  return cudaMemcpyPeerAsync(to, toDevice, from, fromDevice, bytes, nullptr);
}

FP8CUDART_API cudaError_t cudaMemcpy2DAsync(void *to, size_t toPitch, const void *from, size_t fromPitch,
                                            size_t width, size_t height, cudaMemcpyKind kind,
                                            cudaStream_t stream) {
  return copyRows(to, toPitch, from, fromPitch, width, height, kind, stream);
}
FP8CUDART_API cudaError_t cudaMemcpy2D(void *to, size_t toPitch, const void *from, size_t fromPitch,
                                       size_t width, size_t height, cudaMemcpyKind kind) {
  return copyRows(to, toPitch, from, fromPitch, width, height, kind, nullptr);
}

FP8CUDART_API cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms *box, cudaStream_t stream) {
  return enter([=] {
    require(box);
    return copy(boxOf(*box), stream);
  });
}
FP8CUDART_API cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms *box) {
  return cudaMemcpy3DAsync(box, nullptr);
}
FP8CUDART_API cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms *box, cudaStream_t stream) {
  return enter([=] {
    require(box);
    return copy(boxOf({box->from.side, box->to.side, box->extent, cudaMemcpyDeviceToDevice}), stream);
  });
}
FP8CUDART_API cudaError_t cudaMemcpy3DPeer(const cudaMemcpy3DPeerParms *box) {
  return cudaMemcpy3DPeerAsync(box, nullptr);
}

FP8CUDART_API cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream) {
  return fillRows(to, bytes, value, bytes, 1, stream);
}
FP8CUDART_API cudaError_t cudaMemset(void *to, int value, size_t bytes) {
  return fillRows(to, bytes, value, bytes, 1, nullptr);
}
FP8CUDART_API cudaError_t cudaMemset2DAsync(void *to, size_t pitch, int value, size_t width, size_t height,
                                            cudaStream_t stream) {
  return fillRows(to, pitch, value, width, height, stream);
}
FP8CUDART_API cudaError_t cudaMemset2D(void *to, size_t pitch, int value, size_t width, size_t height) {
  return fillRows(to, pitch, value, width, height, nullptr);
}
FP8CUDART_API cudaError_t cudaMemset3DAsync(cudaPitchedPtr to, int value, cudaExtent extent,
                                            cudaStream_t stream) {
  return fillBox(to, value, extent, stream);
}
FP8CUDART_API cudaError_t cudaMemset3D(cudaPitchedPtr to, int value, cudaExtent extent) {
  return fillBox(to, value, extent, nullptr);
}

FP8CUDART_API cudaError_t cudaGetSymbolAddress(void **address, const void *symbol) {
  return enter([=] {
    require(address);
    *address = pointer(variableOf(symbol).address);
    return cudaSuccess;
  });
}
FP8CUDART_API cudaError_t cudaGetSymbolSize(size_t *bytes, const void *symbol) {
  return enter([=] {
    require(bytes);
    *bytes = variableOf(symbol).bytes;
    return cudaSuccess;
  });
}
FP8CUDART_API cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes,
                                                  size_t offset, cudaMemcpyKind kind, cudaStream_t stream) {
  return enter([=] { return copy(rowToSymbol(symbol, from, bytes, offset, kind), stream); });
}
FP8CUDART_API cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes,
                                             size_t offset, cudaMemcpyKind kind) {
  return cudaMemcpyToSymbolAsync(symbol, from, bytes, offset, kind, nullptr);
}
FP8CUDART_API cudaError_t cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t bytes, size_t offset,
                                                    cudaMemcpyKind kind, cudaStream_t stream) {
  return enter([=] { return copy(rowFromSymbol(to, symbol, bytes, offset, kind), stream); });
}
FP8CUDART_API cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset,
                                               cudaMemcpyKind kind) {
  return cudaMemcpyFromSymbolAsync(to, symbol, bytes, offset, kind, nullptr);
}

FP8CUDART_API cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, int kind) {
  return {x, y, z, w, kind};
}
