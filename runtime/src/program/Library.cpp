// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loading compiled libraries, and the C ABI of library.h.

#include "Library.h"
#include "../core/ElfFile.h"
#include "../core/Status.h"

#include <dlfcn.h>

using namespace fp8rt;

static void *findSymbol(void *handle, const std::string &name) {
  void *symbol = dlsym(handle, name.c_str());
  if (!symbol)
    fail(FP8RT_CORRUPT, "not a compiled library: it does not export " + name);
  return symbol;
}

Library::Library(const std::string &path) : path(path) {
  try {
    within(path, [&] { load(); });
  } catch (...) {
    if (handle)
      dlclose(handle);
    throw;
  }
}

Library::~Library() { dlclose(handle); }

void Library::load() {
  checkElfFile(path);
  // Without a slash, dlopen would search the system's folders.
  bool hasFolder = path.find('/') != std::string::npos;
  std::string file = hasFolder ? path : "./" + path;
  handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    fail(FP8RT_CORRUPT, std::string("cannot load it: ") + dlerror());
  auto manifestOf = reinterpret_cast<fp8rt_manifest_fn>(findSymbol(handle, "fp8_manifest"));
  const char *found = manifestOf();
  if (!found)
    fail(FP8RT_CORRUPT, "its manifest is null");
  text = found;
  parsed = parseManifest(text);
  checkProcessor(parsed.processor);
  if (auto kernelsOf = reinterpret_cast<fp8rt_kernels_fn>(dlsym(handle, "fp8_kernels")))
    kernels = kernelsOf();
  loadDeviceCode();
  for (const Entry &entry : parsed.entries)
    functions.push_back(reinterpret_cast<fp8rt_call_fn>(findSymbol(handle, "fp8_call_" + entry.name)));
}

/// Checks what device.h promises, as far as the runtime relies on it.
static void checkDeviceCode(const fp8rt_device_code &code, uint32_t callVersion) {
  if (code.version > FP8RT_DEVICE_VERSION)
    fail(FP8RT_UNSUPPORTED, "its device code is of version " + std::to_string(code.version) +
                                ", this runtime knows version " + std::to_string(FP8RT_DEVICE_VERSION) +
                                ": use a newer runtime");
  if (callVersion < 2)
    fail(FP8RT_CORRUPT, "it has device code, but takes calls of version 1, which have no device");
  if (!code.num_images || !code.images || (code.num_kernels && !code.kernels) ||
      (code.num_symbols && !code.symbols))
    fail(FP8RT_CORRUPT, "its device code is incomplete");
  for (uint32_t i = 0; i < code.num_images; ++i)
    if (!code.images[i].chip || (!code.images[i].ptx && !code.images[i].cubin))
      fail(FP8RT_CORRUPT, "image " + std::to_string(i) + " of its device code is incomplete");
}

void Library::loadDeviceCode() {
  auto codeOf = reinterpret_cast<fp8rt_device_code_fn>(dlsym(handle, "fp8_device_code"));
  if (!codeOf)
    return;
  code = codeOf();
  if (!code)
    fail(FP8RT_CORRUPT, "its device code is null");
  checkDeviceCode(*code, parsed.callVersion);
}

void Library::checkHost() const {
  if (code)
    fail(FP8RT_UNSUPPORTED, path + ": its kernels are for " + code->images[0].chip +
                                ": run it on a GPU (fp8-run --device=cuda) or on the emulator of one "
                                "(--device=emulator)");
}

size_t Library::findEntry(const std::string &name) const {
  std::string known;
  for (size_t i = 0; i < parsed.entries.size(); ++i) {
    if (parsed.entries[i].name == name)
      return i;
    known += (i ? ", " : "") + parsed.entries[i].name;
  }
  fail(FP8RT_NOT_FOUND, path + ": there is no entry " + inQuotes(name) + "; it has " + known);
}

static const Entry &entryOf(const fp8rt_library *library, const char *entry) {
  const Library &shared = *required(library, "library").shared;
  return shared.entry(shared.findEntry(&required(entry, "entry")));
}

static void describeValue(const std::vector<Value> &values, uint32_t index, fp8rt_value &out) {
  if (index >= values.size())
    fail(FP8RT_INVALID_ARGUMENT, "index " + std::to_string(index) + " is out of range");
  const Value &value = values[index];
  out.name = value.name.c_str();
  out.type = value.type->mlir;
  out.dtype = value.type->dlpack;
  out.ndim = static_cast<int32_t>(value.shape.size());
  out.shape = value.shape.data();
  out.kind = value.kind;
  out.carry = value.carry;
  out.alias = value.alias;
  out.written = value.written;
}

fp8rt_status fp8rt_library_load(const char *path, fp8rt_library **out_library) {
  return guarded([&] {
    fp8rt_library *&out = required(out_library, "out_library");
    out = new fp8rt_library{std::make_shared<const Library>(&required(path, "path"))};
  });
}

void fp8rt_library_destroy(fp8rt_library *library) { delete library; }

const char *fp8rt_library_manifest(const fp8rt_library *library) {
  return library ? library->shared->manifestText().c_str() : nullptr;
}

uint32_t fp8rt_library_num_entries(const fp8rt_library *library) {
  return library ? static_cast<uint32_t>(library->shared->manifest().entries.size()) : 0;
}

const char *fp8rt_library_entry_name(const fp8rt_library *library, uint32_t index) {
  if (index >= fp8rt_library_num_entries(library))
    return nullptr;
  return library->shared->entry(index).name.c_str();
}

fp8rt_status fp8rt_library_counts(const fp8rt_library *library, const char *entry,
                                  uint32_t *out_num_arguments, uint32_t *out_num_results) {
  return guarded([&] {
    const Entry &found = entryOf(library, entry);
    required(out_num_arguments, "out_num_arguments") = static_cast<uint32_t>(found.arguments.size());
    required(out_num_results, "out_num_results") = static_cast<uint32_t>(found.results.size());
  });
}

fp8rt_status fp8rt_library_argument(const fp8rt_library *library, const char *entry, uint32_t index,
                                    fp8rt_value *out_value) {
  return guarded(
      [&] { describeValue(entryOf(library, entry).arguments, index, required(out_value, "out_value")); });
}

fp8rt_status fp8rt_library_result(const fp8rt_library *library, const char *entry, uint32_t index,
                                  fp8rt_value *out_value) {
  return guarded(
      [&] { describeValue(entryOf(library, entry).results, index, required(out_value, "out_value")); });
}
