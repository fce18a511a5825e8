// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensor maps as operands.

#ifndef FP8EMU_ISA_COPY_TENSOR_H
#define FP8EMU_ISA_COPY_TENSOR_H

#include "async/TensorMap.h"
#include "isa/memory/Memory.h"

namespace fp8emu {

/// The map at a lane's address. Faults where there is no map, or one that may not be used.
TensorMap readTensorMap(Warp &warp, const Op &address, unsigned lane);

} // namespace fp8emu

#endif // FP8EMU_ISA_COPY_TENSOR_H
