// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of GPU architectures, and the target attribute of each.

#include "fp8/Dialect/FP8/IR/Chips.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace fp8;

/// Sizes: "Technical Specifications per Compute Capability" of the CUDA C++ Programming Guide 13.0. PTX
/// versions: the lowest that ptxas and LLVM 22 accept for the instructions in use. Multiprocessors: RTX 6000
/// Ada, H100 SXM, B200, RTX 5090.
static constexpr Chip kChips[] = {
    {"sm_89", 84, ProductFamily::mma, /*hasTensorMaps=*/false, /*hasBlockScaledMma=*/false,
     /*readsTransposedFP8=*/false, /*sharedBytes=*/101376, /*registers=*/65536, /*threads=*/1536,
     /*multiprocessors=*/142},
    {"sm_90a", 80, ProductFamily::wgmma, /*hasTensorMaps=*/true, /*hasBlockScaledMma=*/false,
     /*readsTransposedFP8=*/false, /*sharedBytes=*/232448, /*registers=*/65536, /*threads=*/2048,
     /*multiprocessors=*/132},
    {"sm_100a", 86, ProductFamily::tcgen05, /*hasTensorMaps=*/true, /*hasBlockScaledMma=*/false,
     /*readsTransposedFP8=*/true, /*sharedBytes=*/232448, /*registers=*/65536, /*threads=*/2048,
     /*multiprocessors=*/148},
    {"sm_120a", 87, ProductFamily::mma, /*hasTensorMaps=*/true, /*hasBlockScaledMma=*/true,
     /*readsTransposedFP8=*/false, /*sharedBytes=*/101376, /*registers=*/65536, /*threads=*/1536,
     /*multiprocessors=*/170},
};

ArrayRef<Chip> fp8::listChips() { return kChips; }

static const Chip *findChip(StringRef name) {
  const Chip *chip = llvm::find_if(kChips, [&](const Chip &chip) { return chip.name == name; });
  return chip == std::end(kChips) ? nullptr : chip;
}

const Chip &fp8::getChip(ChipAttr attribute) { return *findChip(attribute.getName()); }

//===----------------------------------------------------------------------===//
// #fp8.chip
//===----------------------------------------------------------------------===//

LogicalResult ChipAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef name) {
  if (findChip(name))
    return success();
  auto names = llvm::map_range(kChips, [](const Chip &chip) { return chip.name; });
  return emitError() << "chip \"" << name << "\" is none of " << llvm::join(names, ", ");
}

StringRef ChipAttr::getTargetName() const { return getName(); }

/// Returns whether `chip` multiplies blocks that have E8M0 scales.
static bool hasMXTensorCores(const Chip &chip) {
  return chip.family == ProductFamily::tcgen05 || chip.hasBlockScaledMma;
}

std::string ChipAttr::getUnsupportedReason(RecipeAttrInterface recipe) const {
  FloatType type = recipe.getScaleType();
  bool isMX = isa<Float8E8M0FNUType>(type);
  if (type.isF32() || (isMX && hasMXTensorCores(getChip(*this))))
    return "";
  std::string text;
  llvm::raw_string_ostream out(text);
  out << recipe.getRecipeName() << " scales have no kernel on " << getName();
  if (isMX)
    out << ", which has no MX tensor cores; use --recipe=block";
  else
    out << ": they are of " << type << ", not of f32";
  return text;
}

/// A row's temporaries are in the registers of a block, 64 of each of 1,024 threads.
int64_t ChipAttr::getMaxRowBytes() const { return 256 * 1024; }

/// Pointers and indices of more tensors than this spill.
unsigned ChipAttr::getMaxFusedInputs() const { return 16; }

/// All rows in one chunk: the sum over rows is one reduction of the whole tensor.
int64_t ChipAttr::getRowChunkElements() const { return std::numeric_limits<int64_t>::max(); }

bool ChipAttr::hasManyThreads() const { return true; }

/// What cuMemAlloc guarantees; TMA needs 16 bytes, and caches transfer 128 at a time.
int64_t ChipAttr::getBufferAlignment() const { return 256; }
