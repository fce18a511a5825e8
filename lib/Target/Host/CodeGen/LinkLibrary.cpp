// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Links with lld in this process, so that compiling needs no other program and none of the
// libraries that compiled code calls.

#include "LinkLibrary.h"

#include "lld/Common/Driver.h"
#include "llvm/InterfaceStub/ELFObjHandler.h"
#include "llvm/InterfaceStub/IFSHandler.h"
#include "llvm/InterfaceStub/IFSStub.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/TargetParser/Host.h"

#include <mutex>
#include <thread>

LLD_HAS_DRIVER(elf)

using namespace mlir;
using namespace fp8;

/// The libraries that compiled code calls, by the names under which the loader finds them. OpenMP's is named
/// only where its functions are called: the host code of a GPU's library has no threads.
static constexpr llvm::StringLiteral kMathLibrary = "libm.so.6", kOpenMPLibrary = "libomp.so.5";
static constexpr llvm::StringLiteral kOpenMPPrefix = "__kmpc_";

namespace {
/// A folder in the system's one for temporary files that disappears with this object.
class TemporaryFolder {
public:
  TemporaryFolder() : error(llvm::sys::fs::createUniqueDirectory("fp8", path)) {}
  ~TemporaryFolder() {
    if (!error)
      llvm::sys::fs::remove_directories(path);
  }
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  std::string getFile(StringRef name) const { return (path + "/" + name).str(); }

  SmallString<128> path;
  std::error_code error;
};
} // namespace

static InFlightDiagnostic cannotLink(ModuleOp module, StringRef path, std::error_code error) {
  return module.emitError("cannot link in '") << path << "': " << error.message();
}

/// Checks that the files fit on the disk: LLVM ends the process if it cannot write a file to its end.
static LogicalResult verifySpace(ModuleOp module, StringRef folder, uint64_t objectBytes) {
  // The object, the library, and padding to pages.
  uint64_t needed = 2 * objectBytes + (1 << 20);
  llvm::ErrorOr<llvm::sys::fs::space_info> space = llvm::sys::fs::disk_space(folder);
  if (space && space->available < needed)
    return cannotLink(module, folder, std::make_error_code(std::errc::no_space_on_device));
  return success();
}

static LogicalResult writeFile(ModuleOp module, StringRef path, StringRef bytes) {
  std::error_code error;
  llvm::raw_fd_ostream stream(path, error);
  if (error)
    return cannotLink(module, path, error);
  stream << bytes;
  stream.close();
  error = stream.error();
  stream.clear_error();
  return error ? LogicalResult(cannotLink(module, path, error)) : success();
}

/// Writes a library without contents: linked with, it is named as needed. Symbols that are
/// defined nowhere are the loader's to find.
static LogicalResult writeStub(ModuleOp module, StringRef name, StringRef path) {
  llvm::ifs::IFSStub stub;
  stub.SoName = name.str();
  stub.Target = llvm::ifs::parseTriple(llvm::sys::getProcessTriple());
  if (llvm::Error error = llvm::ifs::writeBinaryStub(path, stub))
    return cannotLink(module, path, llvm::errorToErrorCode(std::move(error)));
  return success();
}

/// Reports calls of functions from the C compiler's own library, which a machine need not have. LLVM
/// inserts them where the processor lacks an instruction. Sets `callsOpenMP` if the object does.
static llvm::Error checkSymbols(StringRef bytes, bool &callsOpenMP) {
  auto object = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(bytes, "object"));
  if (!object)
    return object.takeError();
  for (const llvm::object::SymbolRef &symbol : (*object)->symbols()) {
    llvm::Expected<uint32_t> flags = symbol.getFlags();
    if (!flags)
      return flags.takeError();
    llvm::Expected<StringRef> name = symbol.getName();
    if (!name)
      return name.takeError();
    if (!(*flags & llvm::object::SymbolRef::SF_Undefined))
      continue;
    if (name->starts_with(kOpenMPPrefix))
      callsOpenMP = true;
    else if (name->starts_with("__"))
      return llvm::createStringError("the processor has no instruction for what '" + *name +
                                     "' does, which the program needs; choose one that has with --cpu: "
                                     "x86-64-v3 converts f16");
  }
  return llvm::Error::success();
}

/// Runs lld; its messages are added to `messages`.
static bool runLinker(ArrayRef<const char *> arguments, std::string &messages) {
  // lld keeps its working state in globals.
  static std::mutex turn;
  std::lock_guard<std::mutex> lock(turn);
  llvm::raw_string_ostream stream(messages);
  const lld::DriverDef drivers[] = {{lld::Gnu, &lld::elf::link}};
  bool isLinked = false;
  // lld frees its sections when the thread that created them ends: it gets a thread of its own.
  std::thread([&] { isLinked = lld::lldMain(arguments, stream, stream, drivers).retCode == 0; }).join();
  return isLinked;
}

/// Links the files `inputs` to the file `library`.
static LogicalResult link(ModuleOp module, ArrayRef<std::string> inputs, const std::string &library) {
  SmallVector<const char *> arguments = {"ld.lld",      "-shared", "--gc-sections", "-z", "noexecstack",
                                         "--threads=1", "-o",      library.c_str()};
  for (const std::string &input : inputs)
    arguments.push_back(input.c_str());
  std::string messages;
  if (runLinker(arguments, messages))
    return success();
  StringRef line = StringRef(messages).split('\n').first;
  line.consume_front("ld.lld: error: ");
  return module.emitError("linking failed: ") << line;
}

LogicalResult fp8::linkLibrary(ModuleOp module, ArrayRef<SmallString<0>> objects, raw_ostream &out) {
  uint64_t size = 0;
  bool callsOpenMP = false;
  for (StringRef object : objects) {
    if (llvm::Error error = checkSymbols(object, callsOpenMP))
      return module.emitError(llvm::toString(std::move(error)));
    size += object.size();
  }
  TemporaryFolder folder;
  if (folder.error)
    return cannotLink(module, folder.path, folder.error);
  if (failed(verifySpace(module, folder.path, size)))
    return failure();
  SmallVector<std::string> inputs;
  for (auto [index, object] : llvm::enumerate(objects)) {
    inputs.push_back(folder.getFile("part" + std::to_string(index) + ".o"));
    if (failed(writeFile(module, inputs.back(), object)))
      return failure();
  }
  SmallVector<StringRef> needed = {kMathLibrary};
  if (callsOpenMP)
    needed.push_back(kOpenMPLibrary);
  for (StringRef name : needed) {
    inputs.push_back(folder.getFile(name));
    if (failed(writeStub(module, name, inputs.back())))
      return failure();
  }
  std::string library = folder.getFile("step.so");
  if (failed(link(module, inputs, library)))
    return failure();
  auto bytes = llvm::MemoryBuffer::getFile(library, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!bytes)
    return cannotLink(module, library, bytes.getError());
  out << (*bytes)->getBuffer();
  return success();
}
