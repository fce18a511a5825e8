// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decides for every matmul whether it becomes FP8. Matmuls that stay get the reason.

#include "SitePatterns.h"
#include "fp8/Analysis/Dequantization.h"
#include "fp8/Analysis/OneHot.h"
#include "fp8/Analysis/Sites/LayerNumbers.h"
#include "fp8/Dialect/FP8/IR/Marks.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Dialect/FP8/Transforms/UnusedOptions.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringSet.h"
#include <set>

using namespace mlir;

namespace fp8 {
#define GEN_PASS_DEF_SELECTSITES
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"

namespace {

/// The options of one run, applied to this module. They are no members of the pass, because passes
/// are copied and an llvm::Regex cannot be.
struct Selection {
  SitePattern sites, keep, require;
  SiteRecipes siteRecipes;
  /// The recipe of all other sites; null where they stay in high precision.
  RecipeAttrInterface recipe;
  /// Whether that recipe has been refused. One error is enough: it does not fit, whatever the matmul.
  bool isRefused = false;
  /// Sites in the first and last layers that are to stay.
  llvm::StringMap<std::string> keptLayers;
  /// Sites whose forward matmul only selects rows.
  llvm::StringSet<> oneHot;
  /// Functions that compute scales, not the program's results.
  llvm::StringSet<> recipeFunctions;
};

class SelectSites : public impl::SelectSitesBase<SelectSites> {
public:
  using impl::SelectSitesBase<SelectSites>::SelectSitesBase;

  void runOnOperation() final {
    Selection selection;
    if (failed(readOptions(selection)))
      return signalPassFailure();
    bool ok = true;
    getOperation()->walk([&](MatmulOp op) {
      auto function = op->getParentOfType<FunctionOpInterface>();
      if (function && selection.recipeFunctions.contains(function.getName()))
        return op.setKept("in a function that the recipe names");
      FailureOr<std::string> reason = decide(op, selection);
      ok &= succeeded(reason);
      if (failed(reason) || reason->empty())
        return;
      op.setKept(*reason);
      op.removeRecipeAttr();
      ok &= succeeded(checkRequired(op, *reason, selection));
    });
    if (!ok)
      return signalPassFailure();
    // Only --keep may always match no site, because one pattern is often used for many models.
    if (keep.empty() || selection.keep.isUsed(getOperation()))
      return;
    UnusedOption unused{"keep", {}, "no site matches --keep=" + keep};
    noteUnused(getOperation(), unused);
    if (!allowUnused)
      getOperation()->emitWarning() << unused.message << "; the report lists them";
  }

private:
  LogicalResult readOptions(Selection &selection) {
    ModuleOp module = getOperation();
    bool named = sites == "linear" || sites == "all";
    if (failed(selection.sites.compile(module, "sites", named ? "" : StringRef(sites))) ||
        failed(selection.keep.compile(module, "keep", keep)) ||
        failed(selection.require.compile(module, "require", require == "all" ? "" : StringRef(require))) ||
        failed(selection.siteRecipes.parse(module, siteRecipes, allowUnused)) ||
        failed(findKeptLayers(selection)) ||
        (!named && failed(checkMatched(selection.sites, "sites", sites))) ||
        (!require.empty() && require != "all" && failed(checkMatched(selection.require, "require", require))))
      return failure();
    if (!recipe.empty())
      selection.recipe = dyn_cast_or_null<RecipeAttrInterface>(parseAttribute(recipe, &getContext()));
    if (!recipe.empty() && !selection.recipe)
      return module.emitError() << "--recipe=" << recipe << " is not a recipe attribute";
    if (selection.recipe && failed(checkFormats(module, selection.recipe)))
      return failure();
    for (const SiteRecipe &own : selection.siteRecipes)
      if (own.recipe && failed(checkFormats(module, own.recipe)))
        return failure();
    findRecipeFunctions(selection);
    if (sites == "linear")
      findOneHotSites(selection);
    return success();
  }

  /// Checks that a site matches the pattern, the value of an option.
  LogicalResult checkMatched(const SitePattern &pattern, StringRef option, StringRef value) {
    if (pattern.isUsed(getOperation()))
      return success();
    return checkUnused(getOperation(), allowUnused,
                       {option.str(), {}, ("no site matches --" + option + "=" + value).str()},
                       "; the report lists the sites");
  }

  /// Refuses E5M2 for all tensors of all roles. Forward matmuls alone may have it.
  static LogicalResult checkFormats(ModuleOp module, RecipeAttrInterface recipe) {
    Role roles[] = {Role::fprop, Role::dgrad, Role::wgrad};
    if (!llvm::all_of(roles, [&](Role role) {
          return isa<Float8E5M2Type>(recipe.getRecipeFor(role).getFormat(TensorKind::input));
        }))
      return success();
    return module.emitError() << "the recipe " << recipe
                              << " has E5M2 for all tensors, too few bits for activations and weights; say "
                                 "format = hybrid, which gives it to gradients";
  }

  static void findRecipeFunctions(Selection &selection) {
    auto add = [&](RecipeAttrInterface recipe) {
      if (recipe)
        for (FlatSymbolRefAttr name : recipe.getFunctions())
          selection.recipeFunctions.insert(name.getValue());
    };
    add(selection.recipe);
    for (const SiteRecipe &own : selection.siteRecipes)
      add(own.recipe);
  }

  /// Returns the reason why `op` stays in high precision; empty if it becomes FP8, with its recipe set.
  FailureOr<std::string> decide(MatmulOp op, Selection &selection) const {
    if (std::string reason = reasonToKeep(op, selection); !reason.empty())
      return reason;
    const SiteRecipe *own = selection.siteRecipes.find(op.getSite().value_or(""));
    if (own && !own->recipe)
      return keepInType(op, own->option, own->word);
    Role role = op.getRole().value_or(Role::other);
    if (StringRef type = typeOfRole(role); !own && !type.empty())
      return keepInType(op, ("--" + stringifyRole(role) + "=").str(), type);
    RecipeAttrInterface chosen = (own ? own->recipe : selection.recipe).getRecipeFor(role);
    std::string unfit = whyUnfit(op, chosen);
    if (unfit.empty()) {
      op.setRecipeAttr(chosen);
      return std::string();
    }
    if (own)
      return own->option + own->word + ": " + unfit;
    if (!selection.isRefused)
      op.emitError() << "site '" << op.getSite().value_or("") << "': " << unfit;
    selection.isRefused = true;
    return failure();
  }

  /// Returns the reason why `op` stays in high precision, whatever the recipes; empty if it has none.
  std::string reasonToKeep(MatmulOp op, const Selection &selection) const {
    StringRef site = op.getSite().value_or("");
    if (op.getKept())
      return op.getKept()->str();
    if (recipe.empty() && !selection.siteRecipes.find(site))
      return "--recipe=none";
    if (!op.isPlain())
      return "its readers are fused into it; recipes come before fusion";
    if (op.getResume())
      return "its sums go on from those of another matmul";
    for (Value value : {op.getLhs(), op.getRhs(), op.getInit()})
      if (!isSupported(getElementTypeOrSelf(value)) && !isBytes(op, value))
        return "element type " + getFormatName(getElementTypeOrSelf(value)) + " has no FP8 matmul";
    std::optional<Dequantization> own[] = {matchOwnBytes(op, 0), matchOwnBytes(op, 1)};
    if ((own[0] && !own[0]->perTensor) || (own[1] && !own[1]->perTensor))
      return "an operand is FP8 with a scale per channel, which FP8 matmuls cannot take yet";
    if (selection.keep.matches(site))
      return "matches --keep=" + keep;
    if (auto layer = selection.keptLayers.find(site); layer != selection.keptLayers.end())
      return layer->second;
    if (own[0] && own[1])
      return ""; // FP8 already: there is nothing to choose
    if (sites == "linear" && (selects(op) || (isGradient(op) && selection.oneHot.contains(site))))
      return "one-hot selection";
    bool isLinear = op.getRole() && *op.getRole() != Role::other;
    if (sites == "linear" && !isLinear && !attention)
      return "no weight operand";
    if (sites != "linear" && sites != "all" && !selection.sites.matches(site))
      return "does not match --sites=" + sites;
    return "";
  }

  static bool isGradient(MatmulOp op) {
    return op.getLhsKind() == TensorKind::grad_output || op.getRhsKind() == TensorKind::grad_output;
  }

  /// True for a matmul with an operand of zeros and ones, which only selects rows of the other one.
  static bool selects(MatmulOp op) { return isZeroOrOne(op.getLhs()) || isZeroOrOne(op.getRhs()); }

  /// Collects the sites whose forward matmul selects rows. Their gradients select, too, which does not show
  /// in the gradients: one need not read the operand of zeros and ones, and in another function that operand
  /// is an argument like any other.
  void findOneHotSites(Selection &selection) {
    getOperation()->walk([&](MatmulOp op) {
      if (!isGradient(op) && op.getSite() && selects(op))
        selection.oneHot.insert(*op.getSite());
    });
  }

  /// Returns why `recipe` cannot be used for `op`: the kinds of its operands do not fit, or the target of the
  /// module, where one is named, has no kernels for it. Empty if it can.
  std::string whyUnfit(MatmulOp op, RecipeAttrInterface recipe) const {
    if (op.getLhsKind() && op.getRhsKind())
      if (std::string reason = recipe.getUnfitReason(*op.getLhsKind(), *op.getRhsKind()); !reason.empty())
        return reason;
    auto target = op->getParentOfType<ModuleOp>()->getAttrOfType<TargetAttrInterface>(kTargetAttrName);
    return target && !allowUnsupported ? target.getUnsupportedReason(recipe) : "";
  }

  /// The type that the options keep matmuls of this role in; empty for FP8.
  StringRef typeOfRole(Role role) const {
    switch (role) {
    case Role::fprop:
      return fprop;
    case Role::dgrad:
      return dgrad;
    case Role::wgrad:
      return wgrad;
    case Role::other:
      return "";
    }
    llvm_unreachable("all roles are listed");
  }

  /// Returns the reason for a matmul that `option` keeps in `wanted`. Its own type is not changed, and must
  /// have every value of `wanted`; otherwise it is an error. Any type will do for `none`.
  static FailureOr<std::string> keepInType(MatmulOp op, StringRef option, StringRef wanted) {
    Type lhs = getElementTypeOrSelf(op.getLhs()), rhs = getElementTypeOrSelf(op.getRhs());
    Type own = lhs.getIntOrFloatBitWidth() < rhs.getIntOrFloatBitWidth() ? rhs : lhs;
    std::string name = getFormatName(own), given = (option + wanted).str();
    if (name == wanted || wanted == "none")
      return given;
    if (name == "f32" && wanted != "f64")
      return given + "; the program has it in " + name + ", where it stays";
    return op.emitError() << "site '" << op.getSite().value_or("") << "': " << given
                          << " keeps matmuls as they are, and the program has this one in " << name
                          << "; say " << option << name << ", or keep the site with --keep";
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
      return checkUnused(module, allowUnused,
                         {first ? "first" : "last",
                          {},
                          "--first and --last need layers, but no number in the site names varies while the "
                          "rest of the name repeats"},
                         "; choose sites with --keep");
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
