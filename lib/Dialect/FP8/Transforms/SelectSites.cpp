// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decides for every matrix product whether it becomes FP8. What stays says why.

#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Regex.h"

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_SELECTSITES
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

/// A regex option; unset where the option is empty. An invalid one is an error.
class SitePattern {
public:
  LogicalResult compile(Operation *op, StringRef option, StringRef pattern) {
    if (pattern.empty())
      return success();
    regex.emplace(pattern);
    std::string reason;
    if (!regex->isValid(reason))
      return op->emitError() << "--" << option << "=" << pattern
                             << " is not a regular expression: " << reason;
    return success();
  }
  bool matches(StringRef site) const { return regex && regex->match(site); }

private:
  std::optional<llvm::Regex> regex;
};

/// The regexes of one run; a llvm::Regex cannot be copied as passes are.
struct Patterns {
  SitePattern sites, keep, require;
};

class SelectSites : public impl::SelectSitesBase<SelectSites> {
public:
  using impl::SelectSitesBase<SelectSites>::SelectSitesBase;

  void runOnOperation() final {
    Operation *module = getOperation();
    bool named = sites == "linear" || sites == "all";
    Patterns patterns;
    if (failed(patterns.sites.compile(module, "sites", named ? "" : StringRef(sites))) ||
        failed(patterns.keep.compile(module, "keep", keep)) ||
        failed(patterns.require.compile(module, "require", require == "all" ? "" : StringRef(require))))
      return signalPassFailure();

    bool ok = true;
    module->walk([&](MatmulOp op) {
      std::string reason = reasonToKeep(op, patterns);
      if (reason.empty())
        return;
      op.setKept(reason);
      ok &= succeeded(checkRequired(op, reason, patterns));
    });
    if (!ok)
      signalPassFailure();
  }

private:
  /// Why `op` stays in high precision; empty where it becomes FP8.
  std::string reasonToKeep(MatmulOp op, const Patterns &patterns) const {
    StringRef site = op.getSite().value_or("");
    if (op.getKept())
      return op.getKept()->str();
    if (recipe.empty())
      return "--recipe=none";
    for (Value value : {op.getLhs(), op.getRhs(), op.getOuts()})
      if (!isSupported(getElementTypeOrSelf(value)))
        return "element type " + getFormatName(getElementTypeOrSelf(value)) + " has no FP8 product";
    if (patterns.keep.matches(site))
      return "matches --keep=" + keep;
    bool isLinear = op.getRole() && *op.getRole() != Role::other;
    if (sites == "linear" && !isLinear)
      return "no weight operand (attention); --sites=all would take it";
    if (sites != "linear" && sites != "all" && !patterns.sites.matches(site))
      return "does not match --sites=" + sites;
    return "";
  }

  static bool isSupported(Type type) { return type.isF32() || type.isBF16() || type.isF16(); }

  LogicalResult checkRequired(MatmulOp op, StringRef reason, const Patterns &patterns) const {
    StringRef site = op.getSite().value_or("");
    if (require != "all" && !patterns.require.matches(site))
      return success();
    return op.emitError() << "site '" << site << "' is required to be FP8 (--require=" << require
                          << ") but stays in high precision: " << reason;
  }
};

} // namespace
} // namespace fp8
