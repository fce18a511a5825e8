// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Divides a module in the LLVM dialect into parts, for which code is generated in several threads
// and kept in the cache of objects.

#include "Parts.h"
#include "fp8/Conversion/CallingConvention.h"
#include "fp8/Target/Host/HostCode.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace fp8;

/// The size at which groups of kernels aim. Smaller parts share the work better among threads; each
/// costs about 6 ms by itself.
static constexpr size_t kPartSize = 4000;

bool fp8::isExported(StringRef name) {
  return name == "fp8_manifest" || name == kDeviceCodeName || name == "fp8_kernels" ||
         name.starts_with("fp8_call_");
}

/// Returns whether `op` runs once per call: an entry point, a function of the C ABI, or a global. The checks
/// of calls run for every tensor.
static bool belongsToEntry(Operation &op) {
  auto func = dyn_cast<LLVM::LLVMFuncOp>(op);
  return !func || isExported(func.getName()) || func.getName().starts_with(kEntryPrefix) ||
         (func.getName().starts_with("fp8_abi_") && !func.getName().starts_with("fp8_abi_check_"));
}

static size_t countOps(Operation &op) {
  size_t count = 0;
  op.walk([&](Operation *) { ++count; });
  return count;
}

static StringRef getFirstName(const Part &part) {
  return part.symbols.empty() ? StringRef() : SymbolTable::getSymbolName(part.symbols.front()).getValue();
}

SmallVector<Part> fp8::cutIntoParts(ModuleOp module) {
  Part entry;
  entry.isEntry = true;
  SmallVector<std::pair<LLVM::LLVMFuncOp, size_t>> kernels;
  size_t total = 0;
  for (Operation &op : *module.getBody()) {
    auto func = dyn_cast<LLVM::LLVMFuncOp>(op);
    if (func && func.isExternal())
      continue;
    size_t size = countOps(op);
    if (belongsToEntry(op)) {
      entry.symbols.push_back(&op);
      entry.size += size;
      continue;
    }
    kernels.emplace_back(func, size);
    total += size;
  }
  // By a hash of the name, so that a kernel remains in its group when others change; the number of groups
  // is a power of two, so that it seldom changes.
  SmallVector<Part> parts(llvm::PowerOf2Ceil(llvm::divideCeil(total, kPartSize)));
  for (auto [kernel, size] : kernels) {
    Part &part = parts[llvm::xxh3_64bits(kernel.getName()) % parts.size()];
    part.symbols.push_back(kernel);
    part.size += size;
  }
  llvm::erase_if(parts, [](const Part &part) { return part.symbols.empty(); });
  parts.push_back(std::move(entry));
  llvm::sort(parts, [](const Part &a, const Part &b) {
    return std::tuple(b.size, getFirstName(a)) < std::tuple(a.size, getFirstName(b));
  });
  return parts;
}

/// Makes `global` visible to the other parts, but not outside of the library.
static void share(LLVM::GlobalOp global) {
  global.setLinkage(LLVM::Linkage::External);
  global.setVisibility_(LLVM::Visibility::Hidden);
}

/// Declares a function or a global that another part defines.
static void declare(Operation *symbol, OpBuilder &builder) {
  Operation *declaration = builder.insert(symbol->cloneWithoutRegions());
  if (auto global = dyn_cast<LLVM::GlobalOp>(declaration)) {
    global.removeValueAttr();
    share(global);
  }
}

OwningOpRef<ModuleOp> fp8::clonePart(const SymbolTable &symbols, const Part &part) {
  Operation *module = symbols.getOp();
  OwningOpRef<ModuleOp> clone = ModuleOp::create(module->getLoc());
  (*clone)->setAttrs(module->getAttrDictionary());
  OpBuilder builder = OpBuilder::atBlockEnd(clone->getBody());
  llvm::SmallPtrSet<Operation *, 16> known(part.symbols.begin(), part.symbols.end());
  for (Operation *symbol : part.symbols) {
    Operation *copy = builder.clone(*symbol);
    if (auto global = dyn_cast<LLVM::GlobalOp>(copy))
      share(global);
    std::optional<SymbolTable::UseRange> uses = SymbolTable::getSymbolUses(symbol);
    if (!uses)
      continue;
    for (const SymbolTable::SymbolUse &use : *uses) {
      Operation *used = symbols.lookup(use.getSymbolRef().getRootReference());
      if (used && known.insert(used).second)
        declare(used, builder);
    }
  }
  return clone;
}
