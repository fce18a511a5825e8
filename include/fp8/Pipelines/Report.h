// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What became of every contraction of a program, for people and for scripts.

#ifndef FP8_PIPELINES_REPORT_H
#define FP8_PIPELINES_REPORT_H

#include "fp8/Dialect/FP8/IR/FP8.h"
#include "fp8/Pipelines/TrafficReport.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

namespace fp8 {

/// One contraction of the input and its decision.
struct SiteRecord {
  std::string entry; ///< the function it is in
  std::string site;
  Role role;
  /// Sizes of the batch, M, N and K dimensions together; unset where dynamic.
  std::optional<int64_t> batch, m, n, k;
  bool isFP8;
  std::string reason; ///< why it stays in high precision; empty for FP8
  std::string recipe; ///< "delayed", …; "none" where it stays, "own" where an operand was FP8 in the input
  std::string formats[2];
  /// What one execution reads of the operands, in those formats; unset where dynamic.
  std::optional<int64_t> operandBytes;
  bool isNeeded;        ///< whether a result of the program depends on it
  std::string location; ///< where the user wrote it
  std::string code;     ///< what computes it, or why nothing does; empty before code is generated
};

/// An operation that looks like a contraction of floats and is none: it stays as it is.
struct LookAlikeRecord {
  std::string entry; ///< the function it is in
  std::string op;    ///< "linalg.conv_2d_nhwc_hwcf", …
  std::string reason;
  std::string location; ///< where the user wrote it
};

/// Names of options and their values, in the order in which people read them.
using OptionValues = std::vector<std::pair<std::string, llvm::json::Value>>;

/// A number of bytes with its name in JSON and its words in the text; unset where the program
/// decides while it runs.
struct MemoryFigure {
  std::string key, title;
  std::optional<int64_t> bytes;
};

/// All decisions of a compilation and where its memory goes.
struct Report {
  OptionValues options; ///< what was in force, defaults included
  std::vector<SiteRecord> sites;
  std::vector<LookAlikeRecord> others;
  std::vector<TrafficRecord> traffic; ///< empty where fusion did not run
  std::vector<MemoryFigure> memory;   ///< in the order in which people read them
};

/// Reads every fp8.matmul after fp8-select-sites, and every fp8.scaled_matmul that the input
/// had already. `recipe` may be null (none).
std::vector<SiteRecord> collectSites(mlir::ModuleOp module, RecipeAttrInterface recipe);

/// How `code` starts for a product that is computed together with an equal one.
inline constexpr llvm::StringLiteral kComputedOnce = "computed once, with an equal product";

/// Fills in `code`, from the marks that the code in `module`, after stage 6 or 7, carries
/// (ProductMarks.h): what computes the product; kComputedOnce and where, if an equal product
/// of the same site does; "none: …" where no code is left of it. EmittedCode.cpp.
void readEmittedCode(mlir::ModuleOp module, std::vector<SiteRecord> &sites);

/// Reads what fp8-raise-contractions left and a reader of the program might miss.
std::vector<LookAlikeRecord> collectLookAlikes(mlir::ModuleOp module);

llvm::json::Object optionsToJSON(const OptionValues &options);
llvm::json::Array sitesToJSON(const std::vector<SiteRecord> &sites);
llvm::json::Object reportToJSON(const Report &report);

/// A table of sites, layers that are alike in one row; how many became FP8 and why the others
/// did not; memory; options; look-alikes. ReportText.cpp.
void printReport(const Report &report, llvm::raw_ostream &os);

/// "512 B", "1.5 KiB", "40 MiB"; "?" for what is not known.
std::string describeBytes(std::optional<int64_t> bytes);

/// The parts with blanks between them, in lines of moderate length; all but the first are indented.
void printParts(llvm::ArrayRef<std::string> parts, llvm::raw_ostream &os);

} // namespace fp8

#endif // FP8_PIPELINES_REPORT_H
