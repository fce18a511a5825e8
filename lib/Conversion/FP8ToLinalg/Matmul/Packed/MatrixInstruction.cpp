// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of the instructions that packed matmuls multiply with.

#include "fp8/Conversion/FP8ToLinalg/PackedGemm.h"

using namespace fp8;

static constexpr MatrixInstructionTraits kTraits[] = {
    {"", "packed f32 products", /*inElement=*/1, /*step=*/1},
    {"avx512bf16", "AVX512_BF16 dot products", /*inElement=*/2, /*step=*/1},
    {"amx-bf16", "AMX tile products", /*inElement=*/2, /*step=*/16},
};

const MatrixInstructionTraits &fp8::getTraits(MatrixInstruction instruction) {
  return kTraits[static_cast<unsigned>(instruction)];
}

MatrixInstruction fp8::findMatrixInstruction(llvm::StringRef name) {
  for (auto [number, traits] : llvm::enumerate(kTraits))
    if (traits.name == name)
      return static_cast<MatrixInstruction>(number);
  return MatrixInstruction::fma;
}
