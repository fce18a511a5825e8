// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// LLVM IR, an object, or a linked shared library, as bytes. The linker alone needs files.

#include "HostModule.h"
#include "fp8/Target/Host/HostCode.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"

using namespace mlir;
using namespace fp8;

namespace {
/// A file in the system's folder for temporary files that disappears with this object.
class TemporaryFile {
public:
  explicit TemporaryFile(StringRef suffix)
      : error(llvm::sys::fs::createTemporaryFile("fp8", suffix, descriptor, path)) {}
  ~TemporaryFile() {
    if (!error)
      llvm::sys::fs::remove(path);
  }
  TemporaryFile(const TemporaryFile &) = delete;
  TemporaryFile &operator=(const TemporaryFile &) = delete;

  /// For another program to open by its path.
  void close() {
    llvm::sys::fs::file_t handle = descriptor;
    llvm::sys::fs::closeFile(handle);
  }

  int descriptor = -1;
  SmallString<128> path;
  std::error_code error;
};
} // namespace

static InFlightDiagnostic cannotLink(ModuleOp module, StringRef path, std::error_code error) {
  return module.emitError("cannot link in '") << path << "': " << error.message();
}

LogicalResult fp8::emitLLVMIR(ModuleOp module, StringRef manifest, const HostCodeOptions &options,
                              llvm::raw_pwrite_stream &out) {
  FailureOr<HostModule> code = buildHostModule(module, manifest, options);
  if (failed(code))
    return failure();
  code->module->print(out, nullptr);
  return success();
}

LogicalResult fp8::emitObject(ModuleOp module, StringRef manifest, const HostCodeOptions &options,
                              llvm::raw_pwrite_stream &out) {
  FailureOr<HostModule> code = buildHostModule(module, manifest, options);
  return failed(code) ? failure() : writeObject(module, *code, out);
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

/// Has the linker make `library` of `object`.
static LogicalResult link(ModuleOp module, StringRef object, StringRef library) {
  FailureOr<std::string> linker = findLinker(module);
  FailureOr<SmallVector<StringRef>> libraries = findLibraries(module);
  if (failed(linker) || failed(libraries))
    return failure();
  TemporaryFile log("log");
  if (log.error)
    return cannotLink(module, log.path, log.error);
  log.close();
  SmallVector<StringRef> arguments = {*linker,       "-shared", "--gc-sections", "-z",
                                      "noexecstack", "-o",      library,         object};
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

/// Writes the object that is to be linked.
static LogicalResult writeObjectFile(ModuleOp module, HostModule &code, TemporaryFile &file) {
  if (file.error)
    return cannotLink(module, file.path, file.error);
  llvm::raw_fd_ostream stream(file.descriptor, /*shouldClose=*/true);
  LogicalResult written = writeObject(module, code, stream);
  stream.flush();
  std::error_code error = stream.error();
  stream.clear_error();
  if (failed(written))
    return failure();
  return error ? LogicalResult(cannotLink(module, file.path, error)) : success();
}

LogicalResult fp8::emitSharedLibrary(ModuleOp module, StringRef manifest, const HostCodeOptions &options,
                                     llvm::raw_pwrite_stream &out) {
  FailureOr<HostModule> code = buildHostModule(module, manifest, options);
  if (failed(code))
    return failure();
  TemporaryFile object("o"), library("so");
  if (failed(writeObjectFile(module, *code, object)))
    return failure();
  if (library.error)
    return cannotLink(module, library.path, library.error);
  library.close();
  if (failed(link(module, object.path, library.path)))
    return failure();
  auto bytes = llvm::MemoryBuffer::getFile(library.path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!bytes)
    return cannotLink(module, library.path, bytes.getError());
  out << (*bytes)->getBuffer();
  return success();
}
