// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C ABI of tensors.h.

#include "Tensors.h"
#include "AtomicFile.h"
#include "Status.h"

#include <cstring>
#include <iterator>

using namespace fp8rt;

void fp8rt_tensors::add(const std::string &name, Tensor tensor) {
  if (name == kMetadataKey)
    fail(FP8RT_INVALID_ARGUMENT, inQuotes(name) + " is reserved");
  if (items.count(name))
    fail(FP8RT_INVALID_ARGUMENT, "there are two tensors " + inQuotes(name));
  Item &item = items[name];
  item.tensor = std::move(tensor);
  item.view = item.tensor.view();
}

const Tensor *fp8rt_tensors::find(const std::string &name) const {
  auto item = items.find(name);
  if (auto other = unsupported.find(name); other != unsupported.end())
    fail(FP8RT_UNSUPPORTED,
         "tensor " + inQuotes(name) + ": its dtype " + inQuotes(other->second) + " is not supported");
  return item == items.end() ? nullptr : &item->second.tensor;
}

fp8rt_status fp8rt_tensors_create(fp8rt_tensors **out_tensors) {
  return guarded([&] {
    fp8rt_tensors *&out = required(out_tensors, "out_tensors");
    out = new fp8rt_tensors();
  });
}

fp8rt_status fp8rt_tensors_read(const char *path, fp8rt_tensors **out_tensors) {
  return guarded([&] {
    fp8rt_tensors *&out = required(out_tensors, "out_tensors");
    out = readSafetensors(&required(path, "path")).release();
  });
}

fp8rt_status fp8rt_tensors_write(const fp8rt_tensors *tensors, const char *path) {
  return guarded([&] { writeSafetensors(required(tensors, "tensors"), &required(path, "path")); });
}

void fp8rt_tensors_destroy(fp8rt_tensors *tensors) { delete tensors; }

uint64_t fp8rt_tensors_count(const fp8rt_tensors *tensors) { return tensors ? tensors->items.size() : 0; }

const char *fp8rt_tensors_name(const fp8rt_tensors *tensors, uint64_t index) {
  if (index >= fp8rt_tensors_count(tensors))
    return nullptr;
  auto item = std::next(tensors->items.begin(), static_cast<int64_t>(index));
  return item->first.c_str();
}

const DLTensor *fp8rt_tensors_find(const fp8rt_tensors *tensors, const char *name) {
  if (!tensors || !name)
    return nullptr;
  auto item = tensors->items.find(name);
  return item == tensors->items.end() ? nullptr : &item->second.view;
}

const char *fp8rt_tensors_unsupported(const fp8rt_tensors *tensors, uint64_t index, const char **out_dtype) {
  if (!tensors || index >= tensors->unsupported.size())
    return nullptr;
  auto item = std::next(tensors->unsupported.begin(), static_cast<int64_t>(index));
  if (out_dtype)
    *out_dtype = item->second.c_str();
  return item->first.c_str();
}

fp8rt_status fp8rt_tensors_add(fp8rt_tensors *tensors, const char *name, const DLTensor *tensor) {
  return guarded(
      [&] { required(tensors, "tensors").add(&required(name, "name"), viewOf(required(tensor, "tensor"))); });
}

const char *fp8rt_tensors_metadata(const fp8rt_tensors *tensors, const char *key) {
  if (!tensors || !key)
    return nullptr;
  auto item = tensors->metadata.find(key);
  return item == tensors->metadata.end() ? nullptr : item->second.c_str();
}

fp8rt_status fp8rt_tensors_set_metadata(fp8rt_tensors *tensors, const char *key, const char *value) {
  return guarded(
      [&] { required(tensors, "tensors").metadata[&required(key, "key")] = &required(value, "value"); });
}

fp8rt_status fp8rt_check_writable(const char *path) {
  return guarded([&] { AtomicFile{&required(path, "path")}; });
}

fp8rt_status fp8rt_format_scalar(const DLTensor *tensor, char *out_text, uint64_t capacity) {
  return guarded([&] {
    Tensor view = viewOf(required(tensor, "tensor"));
    if (view.bytes() != view.type().bytes())
      fail(FP8RT_INVALID_ARGUMENT, describe(view.shape(), view.type()) + " is not a scalar");
    std::string text = formatElement(view.type(), view.data());
    if (text.size() >= capacity)
      fail(FP8RT_INVALID_ARGUMENT, "the text's capacity is too small");
    std::memcpy(&required(out_text, "out_text"), text.c_str(), text.size() + 1);
  });
}
