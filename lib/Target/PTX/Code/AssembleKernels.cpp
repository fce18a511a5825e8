// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes machine code of the PTX text by NVIDIA's assembler, a program of the CUDA toolkit, and turns what it
// says of slow code into warnings at the kernels. A library without machine code runs as well: the driver
// assembles the text then.

#include "../../Host/CodeGen/ObjectCache.h"
#include "DeviceCode.h"
#include "fp8/Target/PTX/Passes.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

namespace fp8 {
#define GEN_PASS_DEF_ASSEMBLEKERNELS
#include "fp8/Target/PTX/Passes.h.inc"
} // namespace fp8

using namespace mlir;
using namespace fp8;

namespace {
/// A file that is removed at the end.
struct TemporaryFile {
  explicit TemporaryFile(StringRef suffix) {
    error = llvm::sys::fs::createTemporaryFile("fp8", suffix, path);
    remover.setFile(path);
  }
  std::string read() const {
    auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
    return buffer ? (*buffer)->getBuffer().str() : std::string();
  }
  SmallString<64> path;
  std::error_code error;
  llvm::FileRemover remover;
};
} // namespace

/// Returns the kernel that a line of the assembler names in quotes; the gpu.module if it names none.
static Operation *findKernel(gpu::GPUModuleOp kernels, StringRef line) {
  auto [before, rest] = line.split('\'');
  while (!rest.empty()) {
    auto [name, after] = rest.split('\'');
    if (Operation *kernel = kernels.lookupSymbol(name))
      return kernel;
    rest = after;
  }
  return kernels;
}

/// Returns the number in front of `what`; 0 if it is not there.
static int64_t readNumberBefore(StringRef line, StringRef what) {
  int64_t number = 0;
  size_t place = line.find(what);
  if (place != StringRef::npos)
    (void)line.take_front(place).rtrim().rsplit(' ').second.getAsInteger(10, number);
  return number;
}

/// Emits warnings for registers that did not suffice and for what the assembler itself calls slow: its
/// warnings, and its remarks with numbers C75xx.
static void warn(gpu::GPUModuleOp kernels, StringRef messages) {
  Operation *kernel = kernels;
  for (StringRef line : llvm::split(messages, '\n')) {
    StringRef name = line.split("Function properties for ").second.trim();
    if (Operation *found = name.empty() ? nullptr : kernels.lookupSymbol(name))
      kernel = found;
    if (int64_t bytes = readNumberBefore(line, " bytes spill stores"))
      kernel->emitWarning() << "kernel '" << SymbolTable::getSymbolName(kernel).getValue() << "' stores "
                            << bytes << " bytes of registers in memory: it needs more than a thread has";
    if (line.contains("(C75") || line.starts_with("ptxas warning"))
      findKernel(kernels, line)->emitWarning() << line.split(": ").second.trim();
  }
}

/// Finds a program by its path, or by its name on $PATH.
static FailureOr<std::string> findProgram(gpu::GPUModuleOp kernels, StringRef program) {
  llvm::ErrorOr<std::string> found = llvm::sys::findProgramByName(program);
  if (!found)
    return kernels.emitError() << "there is no program '" << program
                               << "' on $PATH; ptxas=none makes no machine code";
  return *found;
}

/// Kernels are assembled in several threads. The number is fixed, since the code's order depends on it.
static constexpr StringLiteral kThreadsOption = "-split-compile", kThreads = "--split-compile=4";

namespace {
/// The machine code of a text, and the messages of the assembler.
struct Assembled {
  std::string messages, code;
};
} // namespace

/// Runs the assembler.
static FailureOr<Assembled> assemble(gpu::GPUModuleOp kernels, StringRef ptxas, StringRef chip) {
  TemporaryFile text("ptx"), code("cubin"), messages("txt");
  for (const TemporaryFile *file : {&text, &code, &messages})
    if (file->error)
      return kernels.emitError("no temporary file for ptxas: ") << file->error.message();
  {
    std::error_code error;
    llvm::raw_fd_ostream stream(text.path, error);
    stream << kernels->getAttrOfType<StringAttr>(kPTXAttrName).getValue();
  }
  std::string arch = ("-arch=" + chip).str(), failure;
  SmallVector<StringRef> arguments = {ptxas, "-v", arch, text.path, "-o", code.path, kThreads};
  std::optional<StringRef> redirects[] = {StringRef(), StringRef(messages.path), StringRef(messages.path)};
  auto run = [&] {
    return llvm::sys::ExecuteAndWait(ptxas, arguments, std::nullopt, redirects, 0, 0, &failure);
  };
  int status = run();
  std::string said = messages.read();
  if (status != 0 && StringRef(said).contains(kThreadsOption)) { // an assembler that does not know it
    arguments.pop_back();
    status = run();
    said = messages.read();
  }
  if (status != 0)
    return kernels.emitError() << "'" << ptxas << "' failed: " << (failure.empty() ? said : failure);
  return Assembled{said, code.read()};
}

/// Returns what tells one assembler from another: its place, its size, and when it was written.
static std::string identify(StringRef ptxas) {
  llvm::sys::fs::file_status status;
  if (llvm::sys::fs::status(ptxas, status))
    return "";
  return (ptxas + " " + Twine(status.getSize()) + " " +
          Twine(status.getLastModificationTime().time_since_epoch().count()))
      .str();
}

/// Returns what the assembler makes of the text, or has made of it: the cache holds the messages, a NUL, and
/// the machine code.
static FailureOr<Assembled> findOrAssemble(gpu::GPUModuleOp kernels, StringRef ptxas, StringRef chip,
                                           const ObjectCache &cache) {
  std::string assembler = cache.isEnabled() ? identify(ptxas) : "";
  std::string key = ObjectCache::getKey(
      {kThreads, assembler, chip, kernels->getAttrOfType<StringAttr>(kPTXAttrName).getValue()});
  SmallString<0> kept;
  if (!assembler.empty() && cache.find(key, kept)) {
    auto [messages, code] = kept.str().split('\0');
    return Assembled{messages.str(), code.str()};
  }
  FailureOr<Assembled> made = assemble(kernels, ptxas, chip);
  if (succeeded(made) && !assembler.empty() && !StringRef(made->messages).contains('\0'))
    cache.add(key, made->messages + std::string(1, '\0') + made->code);
  return made;
}

namespace {
struct AssembleKernelsPass : public fp8::impl::AssembleKernelsBase<AssembleKernelsPass> {
  using Base::Base;

  void runOnOperation() override {
    gpu::GPUModuleOp kernels = getOperation();
    if (ptxas.empty() || ptxas == "none" || getKernels(kernels).empty())
      return;
    FailureOr<ChipAttr> chip = getChipOf(kernels);
    FailureOr<std::string> program = findProgram(kernels, ptxas);
    if (failed(chip) || failed(program))
      return signalPassFailure();
    FailureOr<Assembled> made = findOrAssemble(kernels, *program, chip->getName(), ObjectCache(cache));
    if (failed(made))
      return signalPassFailure();
    warn(kernels, made->messages);
    kernels->setAttr(kCubinAttrName, StringAttr::get(&getContext(), made->code));
  }
};
} // namespace
