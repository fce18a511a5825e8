// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The report: what became of every contraction of a program, as text and as JSON.

#ifndef FP8_REPORT_REPORT_H
#define FP8_REPORT_REPORT_H

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "fp8/Dialect/FP8/Transforms/UnusedOptions.h"
#include "fp8/Report/AttentionReport.h"
#include "fp8/Report/KernelReport.h"
#include "fp8/Report/ParameterReport.h"
#include "fp8/Report/TrafficReport.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

namespace fp8 {

/// One contraction of the input and the decision about it.
struct SiteRecord {
  std::string entry; ///< the function that contains it
  std::string site;
  Role role;
  /// The product of the sizes of all batch (M, N, K) dimensions; unset if one is dynamic.
  std::optional<int64_t> batch, m, n, k;
  bool isFP8;
  std::string reason; ///< why it stays in high precision; empty for FP8
  std::string recipe; ///< "delayed", …; "none": not FP8; "own": the program's own FP8 operand
  std::string formats[2];
  /// The bytes of both operands in those formats; unset if a size is dynamic.
  std::optional<int64_t> operandBytes;
  bool isNeeded;        ///< whether a result of the program depends on it
  std::string location; ///< where the user wrote it
  std::string code;     ///< what computes it, or why nothing does; empty before code generation
};

/// An operation that resembles a contraction of floats but is not one, and so stays unchanged.
struct LookAlikeRecord {
  std::string entry; ///< the function that contains it
  std::string op;    ///< "linalg.conv_2d_nhwc_hwcf", …
  std::string reason;
  std::string location; ///< where the user wrote it
};

/// A collective of a program.
struct CollectiveRecord {
  std::string entry;            ///< the function that contains it
  std::string name;             ///< what messages call it
  std::string kind;             ///< "all_reduce", …
  std::string reduction;        ///< "sum", …; empty if it only moves
  std::vector<int64_t> axes;    ///< of the grid
  std::string type;             ///< of an element
  std::optional<int64_t> bytes; ///< that a rank gives; unset if the size is dynamic
  int64_t savedBytes = 0;       ///< that a rank gives less because it casts its shard to FP8 before a gather
  int64_t joined = 1;           ///< how many of the program it stands for
  std::string wideReason;       ///< why a gather is of wide elements, if it could be of FP8
};

/// Names of options and their values, in the order of the report.
using OptionValues = std::vector<std::pair<std::string, llvm::json::Value>>;

/// A number of bytes with its key in JSON and its title in the text; unset if it is known only at
/// run time.
struct MemoryFigure {
  std::string key, title;
  std::optional<int64_t> bytes;
};

/// All decisions of a compilation, its memory traffic and its memory.
struct Report {
  OptionValues options; ///< all options with their values, defaults included
  /// The recipes that `auto` was chosen from, a line each; empty for other recipes.
  std::vector<std::string> weighedRecipes;
  std::vector<UnusedOption> unusedOptions; ///< that no matmul fits
  std::vector<SiteRecord> sites;
  std::vector<LookAlikeRecord> others;
  std::vector<CollectiveRecord> collectives; ///< in the order in which they start
  std::vector<AttentionRecord> attention;    ///< in program order
  std::vector<ParameterRecord> parameters;   ///< empty without --fp8-parameters
  std::vector<TrafficRecord> traffic;        ///< empty if fusion did not run
  std::vector<MemoryFigure> memory;          ///< in the order of the report
  std::vector<StepRecord> steps;             ///< entry points on a GPU; empty before stage 6
};

/// Returns a record for every fp8.matmul after fp8-select-sites, and for every fp8.scaled_matmul
/// of the input.
std::vector<SiteRecord> collectSites(mlir::ModuleOp module);

/// The beginning of `code` for a matmul that is computed together with an equal one.
inline constexpr llvm::StringLiteral kComputedOnce = "computed once, with an equal product";

/// Fills in `code` from the attributes on the generated code in `module` after stage 6 or 7
/// (MatmulMarks.h): the code that computes the matmul; kComputedOnce and the place if an equal matmul of the
/// same site is computed instead; "none: …" if no code is left for it. In EmittedCode.cpp.
void readEmittedCode(mlir::ModuleOp module, std::vector<SiteRecord> &sites);

/// Returns the operations that resemble contractions and that fp8-raise-contractions left.
std::vector<LookAlikeRecord> collectLookAlikes(mlir::ModuleOp module);

/// Returns the collectives of `module` after stage 4. In CollectiveReport.cpp, like the next two.
std::vector<CollectiveRecord> collectCollectives(mlir::ModuleOp module);
llvm::json::Array collectivesToJSON(const std::vector<CollectiveRecord> &collectives);
void printCollectives(const std::vector<CollectiveRecord> &collectives, llvm::raw_ostream &os);

llvm::json::Object optionsToJSON(const OptionValues &options);
llvm::json::Array sitesToJSON(const std::vector<SiteRecord> &sites);
llvm::json::Object reportToJSON(const Report &report);

/// Prints a table of sites, with one row for layers that are alike; how many sites became FP8 and
/// why the others did not; memory; options; look-alikes. In ReportText.cpp.
void printReport(const Report &report, llvm::raw_ostream &os);

/// Returns "512 B", "1.5 KiB", "40 MiB"; "?" if unset.
std::string describeBytes(std::optional<int64_t> bytes);

/// Prints `parts` separated by blanks, in lines of moderate length; all lines but the first are
/// indented.
void printParts(llvm::ArrayRef<std::string> parts, llvm::raw_ostream &os);

} // namespace fp8

#endif // FP8_REPORT_REPORT_H
