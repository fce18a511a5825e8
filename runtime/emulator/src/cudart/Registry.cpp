// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The fat binaries that a program registers: __cudaRegister… are what nvcc's host code calls
// (crt/host_runtime.h).

#include "Registry.h"

#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

using namespace fp8emu::cudart;

namespace {

/// The form in which nvcc's host code gives a fat binary (fatbinary_section.h).
struct Wrapper {
  unsigned magic, version;
  const void *image;
  /// Of version 2, for code that was compiled with -rdc=true: the fat binaries that nvlink has linked,
  /// and null behind them.
  const void *const *linked;
};
constexpr unsigned kMagic = 0x466243B1, kLinkedVersion = 2;
/// CU_JIT_INPUT_FATBINARY
constexpr int kFatBinary = 2;

/// A fat binary in one context.
struct Loaded {
  CUmodule module = nullptr;
  /// Why it could not be loaded.
  CUresult code = CUDA_SUCCESS;
};

struct Managed {
  void **hostPointer;
  std::string name;
};

struct Binary {
  const Wrapper *wrapper;
  std::map<CUcontext, Loaded> loaded;
  std::vector<Managed> managed;
};

/// A __global__ function. Its address is its cudaKernel_t.
struct Kernel {
  Binary *binary;
  const void *host;
  std::string name;
};
struct Symbol {
  Binary *binary;
  std::string name;
};

struct Registry {
  std::mutex mutex;
  std::map<const Binary *, std::unique_ptr<Binary>> binaries;
  /// By the address of the host's function, and by their own.
  std::map<const void *, std::unique_ptr<Kernel>> kernels;
  std::map<const void *, const Kernel *> handles;
  std::map<const void *, Symbol> symbols;

  static Registry &get() {
    // Never destroyed: programs unregister when they end.
    static auto *registry = new Registry();
    return *registry;
  }
};

/// The PTX of all the linked fat binaries, as one module. One without PTX for the device is left out, as
/// that of nvcc's device library; a symbol of it that is missing shows when the others are linked.
CUresult loadLinked(const Wrapper &wrapper, CUmodule *module) {
  char reason[512] = "";
  int options[] = {5, 6}; // CU_JIT_ERROR_LOG_BUFFER and its size
  void *values[] = {reason, reinterpret_cast<void *>(sizeof reason)};
  CUlinkState state = nullptr;
  CUresult code = cuLinkCreate_v2(0, nullptr, nullptr, &state);
  unsigned added = 0;
  for (const void *const *one = wrapper.linked; code == CUDA_SUCCESS && *one; ++one) {
    Wrapper single = {kMagic, 1, *one, nullptr};
    code = cuLinkAddData_v2(state, kFatBinary, &single, sizeof single, nullptr, 2, options, values);
    added += code == CUDA_SUCCESS;
    code = code == CUDA_ERROR_NO_BINARY_FOR_GPU ? CUDA_SUCCESS : code;
  }
  if (code == CUDA_SUCCESS && !added) {
    std::fprintf(stderr, "fp8emu: %s\n", reason);
    code = CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  void *image = nullptr;
  size_t bytes = 0;
  if (code == CUDA_SUCCESS)
    code = cuLinkComplete(state, &image, &bytes);
  if (code == CUDA_SUCCESS)
    code = cuModuleLoadData(module, image);
  if (state)
    cuLinkDestroy(state);
  return code;
}

CUcontext current() {
  CUcontext context = nullptr;
  check(cuCtxGetCurrent(&context));
  return context;
}

/// Gives the host's pointers of managed variables their addresses.
void bindManaged(const Binary &binary, CUmodule module) {
  for (const Managed &variable : binary.managed) {
    CUdeviceptr address = 0;
    check(cuModuleGetGlobal_v2(&address, nullptr, module, variable.name.c_str()));
    *variable.hostPointer = pointer(address);
  }
}

/// The module of the fat binary in the current context.
CUmodule moduleOf(Binary &binary) {
  CUcontext context = current();
  auto [at, isNew] = binary.loaded.try_emplace(context);
  Loaded &loaded = at->second;
  if (isNew && !binary.managed.empty() && binary.loaded.size() > 1) {
    // Each context would have a variable of its own, and the host knows one address.
    std::fprintf(stderr, "fp8emu: a program with __managed__ variables is not supported on several devices: "
                         "run it on one (FP8EMU_CHIP)\n");
    loaded.code = CUDA_ERROR_NOT_SUPPORTED;
  } else if (isNew) {
    loaded.code = binary.wrapper->version == kLinkedVersion && binary.wrapper->linked
                      ? loadLinked(*binary.wrapper, &loaded.module)
                      : cuModuleLoadData(&loaded.module, binary.wrapper);
    if (loaded.code == CUDA_SUCCESS)
      bindManaged(binary, loaded.module);
  }
  check(loaded.code);
  return loaded.module;
}

/// The kernel that an address or a handle means; null for none.
const Kernel *find(const Registry &registry, const void *kernel) {
  if (auto found = registry.kernels.find(kernel); found != registry.kernels.end())
    return found->second.get();
  auto found = registry.handles.find(kernel);
  return found == registry.handles.end() ? nullptr : found->second;
}

/// The managed variable that an address lies in; one of no bytes where there is none.
Variable managedAt(const Registry &registry, CUdeviceptr address) {
  for (const auto &[handle, binary] : registry.binaries)
    for (const auto &[context, loaded] : binary->loaded)
      for (const Managed &variable : binary->managed) {
        Variable found{};
        if (loaded.module &&
            cuModuleGetGlobal_v2(&found.address, &found.bytes, loaded.module, variable.name.c_str()) ==
                CUDA_SUCCESS &&
            address - found.address < found.bytes)
          return found;
      }
  return {};
}

Binary *binaryOf(void **handle) { return reinterpret_cast<Binary *>(handle); }

void addSymbol(void **handle, const void *host, const char *name) {
  Registry &registry = Registry::get();
  std::lock_guard<std::mutex> lock(registry.mutex);
  registry.symbols[host] = {binaryOf(handle), name};
}

} // namespace

CUfunction fp8emu::cudart::functionOf(const void *kernel) {
  Registry &registry = Registry::get();
  std::lock_guard<std::mutex> lock(registry.mutex);
  CUfunction function = nullptr;
  const Kernel *found = find(registry, kernel);
  if (!found) {
    // A kernel of a library; the driver knows its own handles.
    auto *const handle = reinterpret_cast<CUkernel>(const_cast<void *>(kernel));
    require(cuKernelGetFunction(&function, handle) == CUDA_SUCCESS, cudaErrorInvalidDeviceFunction);
    return function;
  }
  const CUresult code = cuModuleGetFunction(&function, moduleOf(*found->binary), found->name.c_str());
  require(code == CUDA_SUCCESS,
          code == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidDeviceFunction : cudaError_t(code));
  return function;
}

const void *fp8emu::cudart::kernelOf(CUfunction function) {
  Registry &registry = Registry::get();
  std::lock_guard<std::mutex> lock(registry.mutex);
  for (const auto &[host, kernel] : registry.kernels)
    for (const auto &[context, loaded] : kernel->binary->loaded) {
      CUfunction own = nullptr;
      if (loaded.module && cuModuleGetFunction(&own, loaded.module, kernel->name.c_str()) == CUDA_SUCCESS &&
          own == function)
        return host;
    }
  return function;
}

Variable fp8emu::cudart::variableOf(const void *symbol) {
  Registry &registry = Registry::get();
  std::lock_guard<std::mutex> lock(registry.mutex);
  auto found = registry.symbols.find(symbol);
  if (found == registry.symbols.end()) {
    // The name of a managed variable is the variable itself to the host.
    const Variable managed = managedAt(registry, number(symbol));
    require(managed.address == number(symbol), cudaErrorInvalidSymbol);
    return managed;
  }
  Variable out{};
  const CUresult code = cuModuleGetGlobal_v2(&out.address, &out.bytes, moduleOf(*found->second.binary),
                                             found->second.name.c_str());
  require(code == CUDA_SUCCESS, code == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidSymbol : cudaError_t(code));
  return out;
}

bool fp8emu::cudart::isManaged(CUdeviceptr address) {
  Registry &registry = Registry::get();
  std::lock_guard<std::mutex> lock(registry.mutex);
  return managedAt(registry, address).bytes != 0;
}

void fp8emu::cudart::forgetContext(CUcontext context) {
  Registry &registry = Registry::get();
  std::lock_guard<std::mutex> lock(registry.mutex);
  for (const auto &[handle, binary] : registry.binaries)
    if (binary->loaded.erase(context) && !binary->managed.empty())
      moduleOf(*binary);
}

FP8CUDART_API void **__cudaRegisterFatBinary(const void *wrapper) {
  Registry &registry = Registry::get();
  std::lock_guard<std::mutex> lock(registry.mutex);
  auto own = std::make_unique<Binary>();
  own->wrapper = static_cast<const Wrapper *>(wrapper);
  Binary *handle = own.get();
  registry.binaries[handle] = std::move(own);
  return reinterpret_cast<void **>(handle);
}
FP8CUDART_API void __cudaRegisterFatBinaryEnd(void **) {}

FP8CUDART_API void __cudaUnregisterFatBinary(void **handle) {
  Registry &registry = Registry::get();
  std::lock_guard<std::mutex> lock(registry.mutex);
  auto binary = registry.binaries.find(binaryOf(handle));
  if (binary == registry.binaries.end())
    return;
  for (auto at = registry.kernels.begin(); at != registry.kernels.end();) {
    const bool ends = at->second->binary == binary->first;
    if (ends)
      registry.handles.erase(at->second.get());
    at = ends ? registry.kernels.erase(at) : std::next(at);
  }
  for (auto at = registry.symbols.begin(); at != registry.symbols.end();)
    at = at->second.binary == binary->first ? registry.symbols.erase(at) : std::next(at);
  for (const auto &[context, loaded] : binary->second->loaded)
    if (loaded.module)
      cuModuleUnload(loaded.module);
  registry.binaries.erase(binary);
}

FP8CUDART_API void __cudaRegisterFunction(void **handle, const void *host, const char *, const char *name,
                                          int, void *, void *, void *, void *, int *) {
  Registry &registry = Registry::get();
  std::lock_guard<std::mutex> lock(registry.mutex);
  std::unique_ptr<Kernel> &kernel = registry.kernels[host];
  // An inline kernel of several files has one address, and each fat binary has it.
  if (kernel)
    return;
  kernel.reset(new Kernel{binaryOf(handle), host, name});
  registry.handles[kernel.get()] = kernel.get();
}

FP8CUDART_API void __cudaRegisterVar(void **handle, const void *host, const char *, const char *name, int,
                                     size_t, int, int) {
  addSymbol(handle, host, name);
}

/// The host finds the variable by a pointer, which __cudaInitModule sets before it is used.
FP8CUDART_API void __cudaRegisterManagedVar(void **handle, void **host, const char *, const char *name, int,
                                            size_t, int, int) {
  addSymbol(handle, host, name);
  Registry &registry = Registry::get();
  std::lock_guard<std::mutex> lock(registry.mutex);
  binaryOf(handle)->managed.push_back({host, name});
}

FP8CUDART_API char __cudaInitModule(void **handle) {
  return enter([=] {
           Registry &registry = Registry::get();
           std::lock_guard<std::mutex> lock(registry.mutex);
           moduleOf(*binaryOf(handle));
           return cudaSuccess;
         }) == cudaSuccess;
}

FP8CUDART_API cudaError_t __cudaGetKernel(cudaKernel_t *handle, const void *host) {
  return enterWithoutContext([=] {
    require(handle);
    Registry &registry = Registry::get();
    std::lock_guard<std::mutex> lock(registry.mutex);
    const Kernel *found = find(registry, host);
    require(found, cudaErrorInvalidDeviceFunction);
    *handle = found;
    return cudaSuccess;
  });
}
FP8CUDART_API cudaError_t cudaGetKernel(cudaKernel_t *handle, const void *host) {
  return __cudaGetKernel(handle, host);
}
