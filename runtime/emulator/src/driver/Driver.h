// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The state behind the entry points: devices, contexts, modules, streams. A process has one
// Driver, as the API has it; entry points hold its lock.

#ifndef FP8EMU_DRIVER_DRIVER_H
#define FP8EMU_DRIVER_DRIVER_H

#include "Abi.h"
#include "Summary.h"
#include "exec/Chip.h"
#include "exec/Program.h"
#include "fp8emu/Machine.h"
#include "memory/DeviceMemory.h"

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <typeindex>
#include <vector>

namespace fp8emu::driver {

struct Image;

struct Context {
  int device = 0;
  bool isPrimary = false;
  unsigned references = 0;
  /// The code of the fault that has broken the context: all calls but those that destroy it
  /// return the code.
  CUresult broken = CUDA_SUCCESS;
  uint32_t stackBytes = 1024;
  uint64_t printfBytes = 1 << 20, heapBytes = 8 << 20;
};

/// The base of an object that another one owns, as a module owns its kernels and a graph its
/// nodes. The object is a handle that the driver knows as long as it lives.
template <class T>
struct Owned {
  Owned();
  ~Owned();
  Owned(const Owned &) = delete;
  Owned &operator=(const Owned &) = delete;
};

struct KernelHandle : Owned<KernelHandle> {
  LoadedModule *module = nullptr;
  const fp8emu::Kernel *loaded = nullptr;
  std::string name;
  Allowance allowance;

  const Program &program() const { return *loaded->program; }
  const FunctionCode &code() const { return *loaded->code; }
};

struct LoadedModule {
  /// The module's context; null for a library, which every context may use.
  Context *context = nullptr;
  std::unique_ptr<Module> module;
  std::map<std::string, KernelHandle> kernels;
};

struct Capture;

/// Priorities of streams: the smaller number is the greater one.
constexpr int kLeastPriority = 0, kGreatestPriority = -5;

struct Stream {
  ~Stream();
  Context *context = nullptr;
  unsigned flags = 0;
  int priority = 0;
  /// The capture that the stream takes part in, and the nodes that its next work comes after.
  std::shared_ptr<Capture> capture;
  std::vector<GraphNode *> frontier;
};

struct Event {
  Context *context = nullptr;
  unsigned flags = 0;
  bool recorded = false;
  /// When the event was recorded, in seconds of the host's clock.
  double time = 0;
  /// The capture in which the event was recorded: a stream that waits for the event joins it.
  std::weak_ptr<Capture> capture;
  std::vector<GraphNode *> frontier;
};

/// An error that an entry point returns.
struct Error {
  CUresult code;
};
[[noreturn]] inline void fail(CUresult code) { throw Error{code}; }
inline void require(bool holds, CUresult code = CUDA_ERROR_INVALID_VALUE) {
  if (!holds)
    fail(code);
}

class Driver {
public:
  static Driver &get();

  std::recursive_mutex mutex;
  bool initialized = false;
  Machine machine;
  DeviceMemory &memory = machine.memory();
  Settings settings;
  /// The process's devices: those of FP8EMU_CHIP, or all that are known.
  std::vector<Chip> devices;
  std::vector<Context *> primary;
  std::set<Stream *> streams;
  /// Memory that programs took and have to give back, and in which context.
  std::map<uint64_t, Context *> allocations;
  /// Memory of the host's own that programs have registered, and in which context.
  std::map<uint64_t, Context *> registered;

  /// The context current in this thread; an error where there is none or it is
  /// broken.
  Context &current();
  const Chip &chip(CUdevice device);
  /// Whether a handle was given out with its type and not taken back.
  template <class T>
  bool isLive(T *handle) const {
    auto found = live.find(handle);
    return found != live.end() && found->second.type == typeid(T);
  }
  template <class T>
  T &check(T *handle, CUresult otherwise = CUDA_ERROR_INVALID_HANDLE) const {
    require(isLive(handle), otherwise);
    return *handle;
  }
  /// Gives out a handle; an object of a context ends with it.
  template <class T>
  T *track(std::unique_ptr<T> object, Context *context = nullptr) {
    T *raw = object.get();
    live.insert_or_assign(raw, Handle{typeid(T), std::shared_ptr<void>(std::move(object)), context});
    return raw;
  }
  /// Gives out a handle to what something else owns; it is kept as long as the handle.
  template <class T>
  T *share(const std::shared_ptr<T> &object) {
    live.insert_or_assign(object.get(), Handle{typeid(T), object, nullptr});
    return object.get();
  }
  /// Takes a handle back. The object ends after that: it may take back handles of its own.
  void drop(void *handle) { auto ended = live.extract(handle); }
  /// Ends everything that was made in a context: modules, streams, events, memory.
  void clear(Context &context);

  /// Runs a kernel; a fault is reported, and breaks the context unless faults are only to be
  /// reported (FP8EMU_FAULTS).
  void launch(KernelHandle &kernel, LaunchConfig config);
  /// Writes the text to standard error, and to the file that FP8EMU_REPORT names.
  void report(const std::string &text);
  /// Writes the file that FP8EMU_PROFILE names.
  void writeProfile();
  /// Prints the summary where FP8EMU_SUMMARY asks for it. True where there were findings with which
  /// the process went on.
  bool finish();

private:
  Driver();
  template <class T>
  friend struct Owned;
  struct Handle {
    std::type_index type;
    std::shared_ptr<void> object;
    Context *context = nullptr;
  };
  std::map<void *, Handle> live;
  void report(const Fault &fault, const char *consequence);

  std::string reportFile, profileFile;
  ProfileReport profiles;
  Summary summary;
  bool reportsOnly = false, showsSummary = false;
};

template <class T>
Owned<T>::Owned() {
  Driver &driver = Driver::get();
  std::lock_guard<std::recursive_mutex> lock(driver.mutex);
  T *handle = static_cast<T *>(this);
  driver.live.insert_or_assign(handle, Driver::Handle{typeid(T), nullptr, nullptr});
}
template <class T>
Owned<T>::~Owned() {
  Driver &driver = Driver::get();
  std::lock_guard<std::recursive_mutex> lock(driver.mutex);
  driver.live.erase(static_cast<T *>(this));
}

/// The options of a program that loads PTX: a buffer for errors, and the most registers that a
/// thread may have (0: any number).
struct JitOptions {
  char *buffer = nullptr;
  size_t bytes = 0;
  unsigned maxRegisters = 0;

  void log(const std::string &text) const;
};
JitOptions readJitOptions(unsigned count, const int *options, void **values);
/// A file's bytes; an error where it cannot be read.
std::string readFile(const char *path);
/// Finds the PTX in an image (Image.h) for the context's device, or for any without one. Where there is
/// none, the reason is reported.
Image readImage(Driver &driver, const void *bytes, size_t size, const JitOptions &options,
                const Context *context);
/// Loads an image into a context or, as a library, into none.
LoadedModule *loadModule(Driver &driver, const void *bytes, const JitOptions &options, Context *context);

/// Whether memory is the host's; devices reach it too.
bool isHosts(const Allocation &allocation);

/// The stack of contexts of the calling thread.
std::vector<Context *> &contextStack();

/// Runs an entry point's body under the driver's lock; an exception becomes the code that
/// is returned. `needsInit`: cuInit must have been called.
CUresult enter(const std::function<void(Driver &)> &body, bool needsInit = true);

CUresult codeOf(FaultKind kind);

} // namespace fp8emu::driver

#endif // FP8EMU_DRIVER_DRIVER_H
