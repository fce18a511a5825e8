// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How tensor cores add in a launch: Settings::sums as a model of num/DotProduct.h.

#ifndef FP8EMU_ISA_MATRIX_SUMMODEL_H
#define FP8EMU_ISA_MATRIX_SUMMODEL_H

#include "exec/Block.h"
#include "exec/Launch.h"
#include "num/DotProduct.h"

namespace fp8emu {

inline num::SumModel sumModel(const Warp &warp) {
  switch (warp.block().launch().settings().sums) {
  case TensorSums::Hardware:
    return num::SumModel::Truncating;
  case TensorSums::Exact:
    return num::SumModel::ExactOnce;
  case TensorSums::KOrder:
    return num::SumModel::KOrderF32;
  }
  return num::SumModel::Truncating;
}

} // namespace fp8emu

#endif // FP8EMU_ISA_MATRIX_SUMMODEL_H
