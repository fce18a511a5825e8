// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of GPU architectures, and the target attribute of each.

#include "fp8/Dialect/FP8/IR/Chips.h"
#include "Recipes/RecipeParts.h"
#include "fp8/Dialect/FP8/IR/GroupedMatmulSupport.h"
#include "fp8/Dialect/FP8/IR/KernelTime.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace fp8;

/// Sizes: "Technical Specifications per Compute Capability" of the CUDA C++ Programming Guide 13.0. PTX
/// versions: the lowest that ptxas and LLVM 22 accept for the instructions in use. Multiprocessors, clocks,
/// memory and rates: the data sheets of RTX 6000 Ada, H100 SXM, B200, RTX 5090 (dense, sums in f32). L2
/// cache: DeepGEMM's model of sm_90 (csrc/jit_kernels/heuristics/sm90.hpp), 8 TB/s at 1.3 GHz for 132
/// multiprocessors, and at most 64 bytes for each. No rate of the two caches of a B200 is known here, so it
/// has that limit.
static constexpr Chip kChips[] = {
    {"sm_89", 84, MatmulFamily::mma, /*hasTensorMaps=*/false, /*hasBlockScaledMma=*/false,
     /*hasMXScales=*/false, /*readsTransposedFP8=*/false, /*sharedBytes=*/101376, /*registers=*/65536,
     /*threads=*/1536,
     /*multiprocessors=*/142, /*clockMHz=*/2505, /*memoryGBs=*/960, /*fp8Rate=*/1024, /*halfRate=*/512,
     /*l2BytesPerClock=*/0},
    {"sm_90a", 80, MatmulFamily::wgmma, /*hasTensorMaps=*/true, /*hasBlockScaledMma=*/false,
     /*hasMXScales=*/false, /*readsTransposedFP8=*/false, /*sharedBytes=*/232448, /*registers=*/65536,
     /*threads=*/2048,
     /*multiprocessors=*/132, /*clockMHz=*/1830, /*memoryGBs=*/3350, /*fp8Rate=*/4096, /*halfRate=*/2048,
     /*l2BytesPerClock=*/46.6},
    {"sm_100a", 88, MatmulFamily::tcgen05, /*hasTensorMaps=*/true, /*hasBlockScaledMma=*/false,
     /*hasMXScales=*/true, /*readsTransposedFP8=*/true, /*sharedBytes=*/232448, /*registers=*/65536,
     /*threads=*/2048,
     /*multiprocessors=*/148, /*clockMHz=*/1850, /*memoryGBs=*/8000, /*fp8Rate=*/8192, /*halfRate=*/4096,
     /*l2BytesPerClock=*/64},
    {"sm_120a", 87, MatmulFamily::mma, /*hasTensorMaps=*/true, /*hasBlockScaledMma=*/true,
     /*hasMXScales=*/true, /*readsTransposedFP8=*/false, /*sharedBytes=*/101376, /*registers=*/65536,
     /*threads=*/1536,
     /*multiprocessors=*/170, /*clockMHz=*/2407, /*memoryGBs=*/1792, /*fp8Rate=*/1024, /*halfRate=*/256,
     /*l2BytesPerClock=*/0},
};

ArrayRef<Chip> fp8::listChips() { return kChips; }

static const Chip *findChip(StringRef name) {
  const Chip *chip = llvm::find_if(kChips, [&](const Chip &chip) { return chip.name == name; });
  return chip == std::end(kChips) ? nullptr : chip;
}

const Chip &fp8::getChip(ChipAttr attribute) { return *findChip(attribute.getName()); }

/// Tensor cores multiply f32 operands as TF32 only.
static StringRef nameElement(Type type) {
  return isa<Float8E4M3FNType>(type) ? "e4m3"
         : isa<Float8E5M2Type>(type) ? "e5m2"
         : type.isF16()              ? "f16"
         : type.isF32()              ? "tf32"
                                     : "bf16";
}

MatmulFamily fp8::getBlockFamily(const Chip &chip, int64_t extent) {
  return extent == 128 ? chip.family : MatmulFamily::mma;
}

int64_t fp8::getWidestTile(MatmulFamily family, bool hasParts, bool hasScalesAlongK) {
  int64_t widest = family == MatmulFamily::mma ? 128 : 256;
  // The sums of tcgen05 are in tensor memory, and need no parts.
  return hasScalesAlongK || (hasParts && family != MatmulFamily::tcgen05) ? widest / 2 : widest;
}

std::string fp8::nameInstruction(const Chip &chip, MatmulFamily family, Type lhs, Type rhs, const Twine &m,
                                 const Twine &n, bool hasMXScales) {
  bool isFP8 = lhs.getIntOrFloatBitWidth() == 8;
  StringRef depth = isFP8 ? "k32 " : lhs.isF32() ? "k8 " : "k16 ";
  std::string types = (nameElement(lhs) + "·" + nameElement(rhs)).str();
  switch (family) {
  case MatmulFamily::mma:
    return ("mma.sync.m16n8" + depth + (isFP8 && chip.hasBlockScaledMma ? "block_scale " : "") + types).str();
  case MatmulFamily::wgmma:
    return ("wgmma.mma_async.m64n" + n + depth + types).str();
  case MatmulFamily::tcgen05:
    return ("tcgen05.mma m" + m + "n" + n + depth + (hasMXScales ? "block_scale " : "") + types).str();
  }
  llvm_unreachable("all families are listed");
}

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

std::string ChipAttr::getUnsupportedReason(RecipeAttrInterface recipe) const {
  for (TensorKind kind : {TensorKind::input, TensorKind::weight, TensorKind::grad_output})
    if (recipe.hasOwnDequantize(kind))
      return ("the tensor cores of " + getName() +
              " multiply FP8, not what a recipe's own function dequantizes; "
              "leave out dequantize, or use --target=cpu")
          .str();
  FloatType type = recipe.getScaleType();
  bool isMX = isa<Float8E8M0FNUType>(type);
  if (type.isF32() || (isMX && getChip(*this).hasMXScales))
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

MatmulSupport fp8::describeMatmulOf(ChipAttr attribute, MatmulFamily family, RecipeAttrInterface recipe,
                                    Role role) {
  const Chip &chip = getChip(attribute);
  Type lhs = BFloat16Type::get(attribute.getContext()), rhs = lhs;
  bool isMX = false;
  std::string sums;
  if (recipe) {
    if (std::string reason = attribute.getUnsupportedReason(recipe); !reason.empty())
      return {"", reason};
    auto [lhsKind, rhsKind] = getOperandKinds(role);
    lhs = recipe.getFormat(lhsKind);
    rhs = recipe.getFormat(rhsKind);
    isMX = isa<Float8E8M0FNUType>(recipe.getScaleType());
    SmallVector<int64_t> block = recipe.getBlockShape(lhsKind, {false, true});
    bool hasBlocks = !block.empty() && block[1] != 0;
    if (hasBlocks && !isMX)
      family = getBlockFamily(chip, block[1]);
    if (hasBlocks)
      sums = (isMX ? ", scales of " + Twine(block[1]) + " elements"
                   : ", scaled sums of blocks of " + Twine(block[1]))
                 .str();
    // The sums of tcgen05 are exact enough without parts.
    if ((isMX || !hasBlocks) && recipe.getAccumulation(role) == Accumulation::split)
      sums += family == MatmulFamily::tcgen05 ? kOneSum : kSplitSums;
  }
  // The program and the sizes decide which of the two operands the instruction reads first.
  return {nameInstruction(chip, family, lhs, rhs, "M", "N", isMX) + sums, ""};
}

MatmulSupport ChipAttr::describeMatmul(RecipeAttrInterface recipe, Role role) const {
  return describeMatmulOf(*this, getChip(*this).family, recipe, role);
}

/// The M, N and K of the matmul whose rate is asked for.
static constexpr int64_t kComparedSize = 4096;

/// Describes a matmul of that size by the kernels of the chip, in the widest tiles.
static MatmulWork describeWork(const Chip &chip, RecipeAttrInterface recipe, Role role) {
  MatmulWork work{1,
                  kComparedSize,
                  kComparedSize,
                  kComparedSize,
                  /*elementBytes=*/recipe ? 1 : 2,
                  /*usesTensorCores=*/true,
                  /*tileM=*/128,
                  /*tileN=*/0,
                  /*tileKBytes=*/128};
  MatmulFamily family = chip.family;
  bool hasScalesAlongK = false;
  if (recipe) {
    SmallVector<int64_t> block = recipe.getBlockShape(getOperandKinds(role).first, {false, true});
    hasScalesAlongK = !block.empty() && block.back() != 0;
    work.hasRowScales = !block.empty() && !hasScalesAlongK;
    work.hasScaledParts = hasScalesAlongK && recipe.getScaleType().isF32();
    if (work.hasScaledParts) {
      family = getBlockFamily(chip, block.back());
      work.part = block.back();
    } else if (recipe.getAccumulation(role) == Accumulation::split && family != MatmulFamily::tcgen05) {
      work.part = 128;
    }
  }
  work.tileN = getWidestTile(family, work.part != 0, hasScalesAlongK);
  return work;
}

/// The rate by the model of kernels' times.
double ChipAttr::getMatmulRate(RecipeAttrInterface recipe, Role role) const {
  const Chip &chip = getChip(*this);
  MatmulClocks clocks = countMatmulClocks(chip, describeWork(chip, recipe, role));
  constexpr auto size = static_cast<double>(kComparedSize);
  return size * size * size / clocks.getTotal() * static_cast<double>(chip.clockMHz) * 1e6;
}

/// The rate of casts by the same model.
double ChipAttr::getMemoryRate() const {
  return static_cast<double>(getChip(*this).memoryGBs) * 1e9 * TimeCalibration().castShare;
}

/// A row's temporaries are in the registers of a block, 64 of each of 1,024 threads.
int64_t ChipAttr::getMaxRowBytes() const { return 256 * 1024; }

/// Pointers and indices of more tensors than this spill.
unsigned ChipAttr::getMaxFusedInputs() const { return 16; }

/// All rows in one chunk: the sum over rows is one reduction of the whole tensor.
int64_t ChipAttr::getRowChunkElements() const { return std::numeric_limits<int64_t>::max(); }

bool ChipAttr::hasManyThreads() const { return true; }
bool ChipAttr::hasOnlineAttention() const { return true; }

/// The alignment that cuMemAlloc guarantees; TMA needs 16 bytes, and caches transfer 128 at a time.
int64_t ChipAttr::getBufferAlignment() const { return 256; }
