// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decides for every matrix product whether it becomes FP8. Products that stay get the reason.

#include "fp8/Analysis/Dequantization.h"
#include "fp8/Analysis/OneHot.h"
#include "fp8/Analysis/Sites/LayerNumbers.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Regex.h"
#include <set>

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

/// The options of one run, applied to this module. They are no members of the pass, because passes
/// are copied and an llvm::Regex cannot be.
struct Selection {
  SitePattern sites, keep, require;
  /// Sites in the first and last layers that are to stay.
  llvm::StringMap<std::string> keptLayers;
  /// Sites whose forward product only selects rows.
  llvm::StringSet<> oneHot;
  /// Functions that compute scales, not the program's results.
  llvm::StringSet<> recipeFunctions;
};

class SelectSites : public impl::SelectSitesBase<SelectSites> {
public:
  using impl::SelectSitesBase<SelectSites>::SelectSitesBase;

  void runOnOperation() final {
    Operation *module = getOperation();
    bool named = sites == "linear" || sites == "all";
    Selection selection;
    if (failed(selection.sites.compile(module, "sites", named ? "" : StringRef(sites))) ||
        failed(selection.keep.compile(module, "keep", keep)) ||
        failed(selection.require.compile(module, "require", require == "all" ? "" : StringRef(require))) ||
        failed(findKeptLayers(selection)) || (!named && failed(checkUsed(selection.sites, "sites", sites))) ||
        (!require.empty() && require != "all" && failed(checkUsed(selection.require, "require", require))))
      return signalPassFailure();

    if (!keep.empty() && !isUsed(selection.keep))
      getOperation()->emitWarning() << "no site matches --keep=" << keep
                                    << ", which keeps nothing; the report lists the sites";
    auto chosen = recipe.empty()
                      ? RecipeAttrInterface()
                      : dyn_cast_or_null<RecipeAttrInterface>(parseAttribute(recipe, &getContext()));
    if (!recipe.empty() && !chosen) {
      module->emitError() << "--recipe=" << recipe << " is not a recipe attribute";
      return signalPassFailure();
    }
    if (chosen)
      for (FlatSymbolRefAttr name : chosen.getFunctions())
        selection.recipeFunctions.insert(name.getValue());
    if (sites == "linear")
      findOneHotSites(selection);

    bool ok = true;
    MatmulOp refused;
    module->walk([&](MatmulOp op) {
      auto function = op->getParentOfType<FunctionOpInterface>();
      if (function && selection.recipeFunctions.contains(function.getName()))
        return op.setKept("in a function that the recipe names");
      std::string reason = reasonToKeep(op, selection);
      if (StringRef type = typeOfRole(op); reason.empty() && !type.empty()) {
        FailureOr<std::string> kept = keepInType(op, type);
        ok &= succeeded(kept);
        reason = kept.value_or("");
      }
      if (reason.empty()) {
        RecipeAttrInterface own = chosen.getRecipeFor(op.getRole().value_or(Role::other));
        // One error is enough: the recipe does not fit the target, whatever the product.
        if (!refused && !allowUnsupported && failed(checkSupported(op, own)))
          refused = op;
        op.setRecipeAttr(own);
        return;
      }
      op.setKept(reason);
      ok &= succeeded(checkRequired(op, reason, selection));
    });
    ok &= !refused;
    if (!ok)
      signalPassFailure();
  }

private:
  /// Returns the reason why `op` stays in high precision; empty if it becomes FP8.
  std::string reasonToKeep(MatmulOp op, const Selection &selection) const {
    StringRef site = op.getSite().value_or("");
    if (op.getKept())
      return op.getKept()->str();
    if (recipe.empty())
      return "--recipe=none";
    if (!op.isPlain())
      return "its readers are fused into it; recipes come before fusion";
    for (Value value : {op.getLhs(), op.getRhs(), op.getInit()})
      if (!isSupported(getElementTypeOrSelf(value)) && !isBytes(op, value))
        return "element type " + getFormatName(getElementTypeOrSelf(value)) + " has no FP8 product";
    std::optional<Dequantization> own[] = {matchOwnBytes(op, 0), matchOwnBytes(op, 1)};
    if ((own[0] && !own[0]->perTensor) || (own[1] && !own[1]->perTensor))
      return "an operand is FP8 with a scale per channel, which FP8 products cannot take yet";
    if (selection.keep.matches(site))
      return "matches --keep=" + keep;
    if (auto layer = selection.keptLayers.find(site); layer != selection.keptLayers.end())
      return layer->second;
    if (own[0] && own[1])
      return ""; // FP8 already: there is nothing to choose
    if (sites == "linear" && (selects(op) || (isGradient(op) && selection.oneHot.contains(site))))
      return "one-hot selection";
    bool isLinear = op.getRole() && *op.getRole() != Role::other;
    if (sites == "linear" && !isLinear)
      return "no weight operand";
    if (sites != "linear" && sites != "all" && !selection.sites.matches(site))
      return "does not match --sites=" + sites;
    return "";
  }

  static bool isGradient(MatmulOp op) {
    return op.getLhsKind() == TensorKind::grad_output || op.getRhsKind() == TensorKind::grad_output;
  }

  /// True for a product with an operand of zeros and ones, which only selects rows of the other one.
  static bool selects(MatmulOp op) { return isZeroOrOne(op.getLhs()) || isZeroOrOne(op.getRhs()); }

  /// Collects the sites whose forward product selects rows. Their gradients select, too, which does not show
  /// in the gradients: one need not read the operand of zeros and ones, and in another function that operand
  /// is an argument like any other.
  void findOneHotSites(Selection &selection) {
    getOperation()->walk([&](MatmulOp op) {
      if (!isGradient(op) && op.getSite() && selects(op))
        selection.oneHot.insert(*op.getSite());
    });
  }

  /// Whether the target of the module, where one is named, has kernels for what the recipe makes
  /// of `op`.
  static LogicalResult checkSupported(MatmulOp op, RecipeAttrInterface recipe) {
    auto target = op->getParentOfType<ModuleOp>()->getAttrOfType<TargetAttrInterface>(kTargetAttrName);
    std::string reason = target ? target.getUnsupportedReason(recipe) : "";
    if (reason.empty())
      return success();
    return op.emitError() << "site '" << op.getSite().value_or("") << "': " << reason;
  }

  /// The type that the options keep products of this role in; empty for FP8.
  StringRef typeOfRole(MatmulOp op) const {
    Role role = op.getRole().value_or(Role::other);
    if (role == Role::other)
      return "";
    return role == Role::fprop ? fprop : role == Role::dgrad ? dgrad : wgrad;
  }

  /// Returns the reason for a product that --fprop, --dgrad or --wgrad keeps in `wanted`. Its own type is
  /// not changed, and must have every value of `wanted`; otherwise it is an error.
  static FailureOr<std::string> keepInType(MatmulOp op, StringRef wanted) {
    Type lhs = getElementTypeOrSelf(op.getLhs()), rhs = getElementTypeOrSelf(op.getRhs());
    Type own = lhs.getIntOrFloatBitWidth() < rhs.getIntOrFloatBitWidth() ? rhs : lhs;
    std::string name = getFormatName(own);
    std::string option = ("--" + stringifyRole(*op.getRole()) + "=" + wanted).str();
    if (name == wanted)
      return option;
    if (name == "f32" && wanted != "f64")
      return option + "; the program has it in " + name + ", where it stays";
    return op.emitError() << "site '" << op.getSite().value_or("") << "': " << option
                          << " keeps products as they are, and the program has this one in " << name
                          << "; say --" << stringifyRole(*op.getRole()) << "=" << name
                          << ", or keep the site with --keep";
  }

  /// Reports a pattern that no site matches: it is probably misspelt, and would silently do nothing. Only
  /// --keep may match no site, with a warning, because one pattern is often used for many models.
  LogicalResult checkUsed(const SitePattern &pattern, StringRef option, StringRef text) {
    if (isUsed(pattern))
      return success();
    return getOperation()->emitError()
           << "no site matches --" << option << "=" << text << "; the report lists the sites";
  }

  bool isUsed(const SitePattern &pattern) {
    return getOperation()
        ->walk([&](Operation *op) {
          std::optional<StringRef> site;
          if (auto matmul = dyn_cast<MatmulOp>(op))
            site = matmul.getSite();
          else if (auto scaled = dyn_cast<ScaledMatmulOp>(op))
            site = scaled.getSite();
          return site && pattern.matches(*site) ? WalkResult::interrupt() : WalkResult::advance();
        })
        .wasInterrupted();
  }

  /// Finds the layers that --first and --last keep.
  LogicalResult findKeptLayers(Selection &selection) {
    if (first == 0 && last == 0)
      return success();
    ModuleOp module = getOperation();
    if (first < 0 || last < 0)
      return module.emitError("--first and --last count layers and cannot be negative");
    SmallVector<StringRef> sites;
    module.walk([&](MatmulOp op) { sites.push_back(op.getSite().value_or("")); });
    llvm::StringMap<int64_t> layers = findLayers(sites);
    std::set<int64_t> numbers;
    for (const auto &entry : layers)
      numbers.insert(entry.second);
    int64_t count = numbers.size();
    if (count == 0)
      return module.emitError(
          "--first and --last need layers, but no number in the site names varies while the "
          "rest of the name repeats; choose sites with --keep");
    if (first > count - last) // first + last could overflow
      return module.emitError() << "--first=" << first.getValue() << " and --last=" << last.getValue()
                                << " name more than the " << count << " layers of this program";
    for (const auto &entry : layers) {
      int64_t position = std::distance(numbers.begin(), numbers.find(entry.second));
      if (position < first)
        selection.keptLayers[entry.first()] = "in the first layers, --first=" + std::to_string(first);
      else if (position >= count - last)
        selection.keptLayers[entry.first()] = "in the last layers, --last=" + std::to_string(last);
    }
    return success();
  }

  /// True for a value that is an operand of `op` and FP8 already.
  static bool isBytes(MatmulOp op, Value value) {
    return value != op.getInit() && isa<Float8E4M3FNType, Float8E5M2Type>(getElementTypeOrSelf(value));
  }

  static bool isSupported(Type type) { return type.isF32() || type.isBF16() || type.isF16(); }

  LogicalResult checkRequired(MatmulOp op, StringRef reason, const Selection &selection) const {
    StringRef site = op.getSite().value_or("");
    if (require != "all" && !selection.require.matches(site))
      return success();
    return op.emitError() << "site '" << site << "' is required to be FP8 (--require=" << require
                          << ") but stays in high precision: " << reason;
  }
};

} // namespace
} // namespace fp8
