// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entry points: tensor maps. The requirements that cuda.h documents are checked; tiles
// are encoded, im2col is not supported.

#include "async/TensorMap.h"
#include "Driver.h"

using namespace fp8emu;
using namespace fp8emu::driver;

namespace {

/// CUtensorMapDataType counts otherwise than tensormap.replace does.
TensorType typeOf(int type) {
  constexpr TensorType types[] = {
      TensorType::U8,      TensorType::U16,   TensorType::U32,      TensorType::S32,
      TensorType::U64,     TensorType::S64,   TensorType::F16,      TensorType::F32,
      TensorType::F64,     TensorType::BF16,  TensorType::F32Ftz,   TensorType::TF32,
      TensorType::TF32Ftz, TensorType::B4x16, TensorType::B4x16P64, TensorType::B6x16};
  require(type >= 0 && type < int(TensorType::Count));
  return types[type];
}

/// CUtensorMapSwizzle has the atomicities of 128 bytes among the swizzles.
void setSwizzle(TensorMap &map, int swizzle) {
  require(swizzle >= 0 && swizzle <= 6);
  map.swizzle = swizzle < 3 ? Swizzle(swizzle) : Swizzle::B128;
  map.atom = swizzle < 3 ? SwizzleAtom::B16 : SwizzleAtom(swizzle - 3);
}

/// Tensor maps came with compute capability 9.0, packed elements and atomicities
/// with 10.0.
void checkDevice(Driver &driver, const TensorMap &map) {
  const int major = driver.chip(driver.current().device).major;
  const bool isNew = map.type >= TensorType::B4x16 || map.atom != SwizzleAtom::B16;
  require(major >= (isNew ? 10 : 9), CUDA_ERROR_NOT_SUPPORTED);
}

void checkPlace(const CUtensorMap *map) {
  require(map && reinterpret_cast<uint64_t>(map) % kTensorMapAlignment == 0);
}

} // namespace

FP8EMU_API CUresult cuTensorMapEncodeTiled(CUtensorMap *out, int type, uint32_t rank, void *address,
                                           const uint64_t *sizes, const uint64_t *strides,
                                           const uint32_t *box, const uint32_t *steps, int interleave,
                                           int swizzle, int l2Promotion, int fill) {
  return enter([=](Driver &driver) {
    driver.current();
    checkPlace(out);
    require(rank >= 1 && rank <= kMaxTensorRank && sizes && box && steps && (strides || rank == 1));
    require(interleave >= 0 && interleave <= 2 && l2Promotion >= 0 && l2Promotion <= 3);
    require(fill == 0 || fill == 1);
    TensorMap map;
    map.type = typeOf(type);
    map.rank = uint8_t(rank);
    map.address = reinterpret_cast<uint64_t>(address);
    map.interleave = uint8_t(interleave);
    map.fillNaN = fill;
    setSwizzle(map, swizzle);
    for (unsigned i = 0; i < rank; ++i) {
      map.size[i] = sizes[i];
      map.box[i] = box[i];
      map.step[i] = steps[i];
      if (i)
        map.stride[i - 1] = strides[i - 1];
    }
    require(map.problem().empty());
    require(!interleave, CUDA_ERROR_NOT_SUPPORTED);
    checkDevice(driver, map);
    map.encode(reinterpret_cast<uint8_t *>(out));
  });
}

FP8EMU_API CUresult cuTensorMapReplaceAddress(CUtensorMap *out, void *address) {
  return enter([=](Driver &driver) {
    driver.current();
    checkPlace(out);
    TensorMap map;
    require(TensorMap::decode(reinterpret_cast<uint8_t *>(out), map));
    map.address = reinterpret_cast<uint64_t>(address);
    require(map.problem().empty());
    map.encode(reinterpret_cast<uint8_t *>(out));
  });
}

// im2col: known, so that programs that look them up find them, and refused.

FP8EMU_API CUresult cuTensorMapEncodeIm2col(CUtensorMap *, int, uint32_t, void *, const uint64_t *,
                                            const uint64_t *, const int *, const int *, uint32_t, uint32_t,
                                            const uint32_t *, int, int, int, int) {
  return enter([](Driver &) { fail(CUDA_ERROR_NOT_SUPPORTED); });
}

FP8EMU_API CUresult cuTensorMapEncodeIm2colWide(CUtensorMap *, int, uint32_t, void *, const uint64_t *,
                                                const uint64_t *, int, int, uint32_t, uint32_t,
                                                const uint32_t *, int, int, int, int, int) {
  return enter([](Driver &) { fail(CUDA_ERROR_NOT_SUPPORTED); });
}
