// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files: LLVM IR, an object, or a linked shared library. Each is written beside its final
// place and renamed at the end, so a failure leaves nothing half done.

#include "HostModule.h"
#include "fp8/Target/Host/HostCode.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

using namespace mlir;
using namespace fp8;

/// True for a pipe, a device or a directory: nothing that a rename may replace.
static bool isSpecialFile(StringRef path) {
  llvm::sys::fs::file_status status;
  return !llvm::sys::fs::status(path, status) && !llvm::sys::fs::is_regular_file(status);
}

namespace {
/// A file that disappears with this object unless it was moved: beside `target`, or in the
/// system's folder for temporary files where that is a special file.
class TemporaryFile {
public:
  explicit TemporaryFile(StringRef target, StringRef suffix = "") {
    error = isSpecialFile(target)
                ? llvm::sys::fs::createTemporaryFile("fp8", suffix, descriptor, path)
                : llvm::sys::fs::createUniqueFile(target + suffix + "-%%%%%%%%", descriptor, path);
  }
  ~TemporaryFile() {
    if (!error && !path.empty())
      llvm::sys::fs::remove(path);
  }
  TemporaryFile(const TemporaryFile &) = delete;
  TemporaryFile &operator=(const TemporaryFile &) = delete;

  std::error_code moveTo(StringRef target) {
    if (isSpecialFile(target))
      return llvm::sys::fs::copy_file(path, target);
    if (std::error_code failed = llvm::sys::fs::rename(path, target))
      return failed;
    path.clear();
    return {};
  }

  int descriptor = -1;
  SmallString<128> path;
  std::error_code error;
};
} // namespace

using Writer = llvm::function_ref<LogicalResult(HostModule &, llvm::raw_pwrite_stream &)>;

static InFlightDiagnostic cannotWrite(ModuleOp module, StringRef path, std::error_code error) {
  return module.emitError("cannot write '") << path << "': " << error.message();
}

/// Opens a temporary beside `outputPath` and has it filled.
static LogicalResult fill(ModuleOp module, HostModule &code, TemporaryFile &file, StringRef outputPath,
                          Writer write) {
  if (file.error)
    return cannotWrite(module, outputPath, file.error);
  llvm::raw_fd_ostream stream(file.descriptor, /*shouldClose=*/true);
  LogicalResult written = write(code, stream);
  stream.flush();
  std::error_code error = stream.error();
  stream.clear_error();
  if (failed(written))
    return failure();
  return error ? LogicalResult(cannotWrite(module, outputPath, error)) : success();
}

static LogicalResult emitFile(ModuleOp module, StringRef manifest, const HostCodeOptions &options,
                              StringRef outputPath, Writer write) {
  FailureOr<HostModule> code = buildHostModule(module, manifest, options);
  if (failed(code))
    return failure();
  TemporaryFile file(outputPath);
  if (failed(fill(module, *code, file, outputPath, write)))
    return failure();
  if (std::error_code error = file.moveTo(outputPath))
    return cannotWrite(module, outputPath, error);
  return success();
}

LogicalResult fp8::emitLLVMIR(ModuleOp module, StringRef manifest, const HostCodeOptions &options,
                              StringRef outputPath) {
  return emitFile(module, manifest, options, outputPath,
                  [](HostModule &code, llvm::raw_pwrite_stream &stream) {
                    code.module->print(stream, nullptr);
                    return success();
                  });
}

LogicalResult fp8::emitObject(ModuleOp module, StringRef manifest, const HostCodeOptions &options,
                              StringRef outputPath) {
  return emitFile(
      module, manifest, options, outputPath,
      [&](HostModule &code, llvm::raw_pwrite_stream &stream) { return writeObject(module, code, stream); });
}

/// The linker found when this was configured, or one on the user's path.
static FailureOr<std::string> findLinker(ModuleOp module) {
  if (StringRef configured(FP8_LLD); llvm::sys::fs::can_execute(configured))
    return configured.str();
  for (StringRef name : {"ld.lld-22", "ld.lld"})
    if (llvm::ErrorOr<std::string> found = llvm::sys::findProgramByName(name))
      return *found;
  return module.emitError("needs the linker ld.lld (Debian package lld-22) on the path");
}

/// The libraries that compiled code calls; they are named in the result as needed.
static FailureOr<SmallVector<StringRef>> findLibraries(ModuleOp module) {
  SmallVector<StringRef> libraries = {FP8_LIBOMP, FP8_LIBM};
  for (auto [path, name] :
       llvm::zip(libraries, ArrayRef{"libomp.so.5 (Debian package libomp5-22)", "libm.so.6"}))
    if (!llvm::sys::fs::exists(path))
      return module.emitError("needs the library ") << name << " to link with";
  return libraries;
}

static LogicalResult link(ModuleOp module, StringRef objectPath, StringRef outputPath) {
  FailureOr<std::string> linker = findLinker(module);
  FailureOr<SmallVector<StringRef>> libraries = findLibraries(module);
  if (failed(linker) || failed(libraries))
    return failure();
  TemporaryFile log(outputPath, ".log");
  if (log.error)
    return cannotWrite(module, outputPath, log.error);
  llvm::sys::fs::file_t handle = log.descriptor;
  llvm::sys::fs::closeFile(handle);
  SmallVector<StringRef> arguments = {*linker,       "-shared", "--gc-sections", "-z",
                                      "noexecstack", "-o",      outputPath,      objectPath};
  arguments.append(*libraries);
  std::optional<StringRef> redirects[] = {StringRef(), StringRef(log.path), StringRef(log.path)};
  std::string problem;
  int status = llvm::sys::ExecuteAndWait(*linker, arguments, std::nullopt, redirects, 0, 0, &problem);
  if (status == 0)
    return success();
  if (auto text = llvm::MemoryBuffer::getFile(log.path); text && problem.empty())
    problem = (*text)->getBuffer().split('\n').first.str();
  return module.emitError("linking failed: ") << problem;
}

LogicalResult fp8::emitSharedLibrary(ModuleOp module, StringRef manifest, const HostCodeOptions &options,
                                     StringRef outputPath) {
  FailureOr<HostModule> code = buildHostModule(module, manifest, options);
  if (failed(code))
    return failure();
  TemporaryFile object(outputPath, ".o");
  auto write = [&](HostModule &host, llvm::raw_pwrite_stream &stream) {
    return writeObject(module, host, stream);
  };
  if (failed(fill(module, *code, object, outputPath, write)))
    return failure();
  // The linker writes through a temporary name too.
  TemporaryFile library(outputPath);
  if (library.error)
    return cannotWrite(module, outputPath, library.error);
  llvm::sys::fs::file_t handle = library.descriptor;
  llvm::sys::fs::closeFile(handle);
  if (failed(link(module, object.path, library.path)))
    return failure();
  if (std::error_code error = library.moveTo(outputPath))
    return cannotWrite(module, outputPath, error);
  return success();
}
