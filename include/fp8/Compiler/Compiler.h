// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The compiler as a library: a program in, a library (or the IR after a stage), a report and
// a manifest out. It writes no file, prints nothing and keeps nothing between compilations;
// errors of a program are diagnostics of the program's context.
//
//   mlir::DialectRegistry registry;
//   fp8::registerCompiler(registry);
//   mlir::MLIRContext context(registry);
//   llvm::Expected<fp8::Compiler> compiler = fp8::Compiler::create(context, options);
//   mlir::OwningOpRef<mlir::ModuleOp> program = fp8::readProgram(text, "step.mlir", context);
//   mlir::FailureOr<fp8::Compiled> step = compiler->compile(*program);
//
// One context compiles one program at a time, and as many as wanted after each other;
// threads that compile at the same time have a context each.

#ifndef FP8_COMPILER_COMPILER_H
#define FP8_COMPILER_COMPILER_H

#include "fp8/Compiler/Options.h"
#include "fp8/Report/Manifest.h"
#include "fp8/Report/Report.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/SmallString.h"

namespace fp8 {

/// Adds what a context needs to compile: the dialect, upstream's dialects and extensions, and
/// the translations to LLVM IR. Reading and compiling add what is missing themselves.
void registerCompiler(mlir::DialectRegistry &registry);

/// Reads a program, text or bytecode, from memory; `name` is the file that locations name.
/// Operations without a place in a file (a front end's names alone) get theirs in this one.
/// Null after an error, which starts at the place in the source: a program that does not
/// parse, or an operation of an unknown dialect.
mlir::OwningOpRef<mlir::ModuleOp> readProgram(llvm::StringRef source, llvm::StringRef name,
                                              mlir::MLIRContext &context);

/// Reads a program from a file in the same way; "-" is standard input.
mlir::OwningOpRef<mlir::ModuleOp> readProgramFile(llvm::StringRef path, mlir::MLIRContext &context);

/// The first place in a file that `location` has: inside names, calls or several places too.
/// Null where it has none.
mlir::FileLineColLoc findFilePosition(mlir::Location location);

/// The result of a compilation.
struct Compiled {
  /// The bytes of a shared library or object, or the text of LLVM IR or of IR after a stage.
  llvm::SmallString<0> artifact;
  /// The decision about every matmul. Empty after ingest, when nothing is decided yet.
  Report report;
  /// The arguments, results and state of the entry points. A library contains the manifest, too.
  Manifest manifest;

  /// The report in indented JSON, and as a table for people.
  std::string getReportJSON() const;
  std::string getReportText() const;
  /// The manifest in indented JSON.
  std::string getManifestJSON() const;
};

/// A compiler with checked options, for programs of one context.
class Compiler {
public:
  /// Checks the options as a whole. An error is one sentence that names the option that is
  /// wrong or contradicts another, and what to change.
  static llvm::Expected<Compiler> create(mlir::MLIRContext &context, CompilerOptions options);

  /// Compiles `module`, which then holds the IR after the last stage that ran. Returns failure
  /// after an error, which starts at the place in the program that is wrong.
  mlir::FailureOr<Compiled> compile(mlir::ModuleOp module) const;

  const CompilerOptions &getOptions() const { return options; }

private:
  Compiler() = default;

  CompilerOptions options;
  /// The recipe as an attribute and as its text; null and empty for none.
  RecipeAttrInterface recipe;
  std::string recipeText;
  /// The recipes of sites, in no order.
  std::vector<RecipeAttrInterface> siteRecipes;
  /// The target that modules are compiled for.
  TargetAttrInterface target;
};

} // namespace fp8

#endif // FP8_COMPILER_COMPILER_H
