// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// XLA's foreign function interface in C, as far as libfp8_jax.so uses it: how XLA calls a custom call and
// what a custom call may ask of XLA. The layout is XLA's stable ABI, version 0.3;
// python/tests/with_jax/devices/test_jax_ffi.py compares it with jaxlib's header. Declared here, the library
// is built without JAX.

#ifndef FP8_JAX_XLA_FFI_H
#define FP8_JAX_XLA_FFI_H

#include <cstddef>
#include <cstdint>

namespace xla_ffi {

/// The version of the interface that is declared here.
constexpr int kMajor = 0, kMinor = 3;

/// XLA's own.
struct Context;
struct Error;
struct InternalApi;

/// An extension that may be chained to a struct.
struct Extension {
  size_t structSize;
  int type;
  Extension *next;
};

/// A chained struct is XLA's question what the handler is.
constexpr int kMetadataExtension = 1;

struct Version {
  size_t structSize;
  Extension *extension;
  int major;
  int minor;
};

/// The number of a C++ type that XLA keeps objects of; XLA gives numbers greater than 0.
struct TypeId {
  int64_t value;
};

struct TypeInfo {
  size_t structSize;
  Extension *extension;
  void (*destroy)(void *object);
};

struct Metadata {
  size_t structSize;
  Version version;
  uint32_t traits;
  TypeId stateType;
};

struct MetadataExtension {
  Extension base;
  Metadata *metadata;
};

enum class ErrorCode : int {
  InvalidArgument = 3,
  ResourceExhausted = 8,
  FailedPrecondition = 9,
  Internal = 13
};

struct CreateErrorArgs {
  size_t structSize;
  Extension *extension;
  const char *message;
  ErrorCode code;
};

enum class ElementType : int {
  PRED = 1,
  S8 = 2,
  S16 = 3,
  S32 = 4,
  S64 = 5,
  U8 = 6,
  U16 = 7,
  U32 = 8,
  U64 = 9,
  F16 = 10,
  F32 = 11,
  F64 = 12,
  BF16 = 16,
  F8E5M2 = 19,
  F8E4M3FN = 20,
  F8E8M0FNU = 33,
};

struct Buffer {
  size_t structSize;
  Extension *extension;
  ElementType type;
  void *data;
  int64_t rank;
  int64_t *dimensions;
};

/// The only type of arguments and of results.
constexpr int kBuffer = 1;
/// The type of an attribute that is a string, a `ByteSpan`.
constexpr int kString = 4;

struct ByteSpan {
  const char *data;
  size_t size;
};

/// Arguments, or results.
struct Buffers {
  size_t structSize;
  Extension *extension;
  int64_t size;
  int *types;
  void **values;
};

struct Attributes {
  size_t structSize;
  Extension *extension;
  int64_t size;
  int *types;
  ByteSpan **names;
  void **values;
};

enum class Stage : int { Instantiate = 0, Initialize = 2, Execute = 3 };

/// The trait of a handler whose work on a GPU may be captured as a part of a graph.
constexpr uint32_t kCommandBufferCompatible = 1;

/// State that a custom call's first stage sets and its last one gets; `state` is given or filled in.
struct StateArgs {
  size_t structSize;
  Extension *extension;
  Context *context;
  Stage stage;
  TypeId *type;
  void *state;
};

/// On a GPU: `stream` is filled in, a CUstream.
struct StreamArgs {
  size_t structSize;
  Extension *extension;
  Context *context;
  void *stream;
};

/// The number of the device that a call runs on is filled in.
struct DeviceOrdinalArgs {
  size_t structSize;
  Extension *extension;
  Context *context;
  int32_t ordinal;
};

/// The functions that XLA offers. More may follow.
struct Api {
  size_t structSize;
  Extension *extension;
  Version version;
  const InternalApi *internalApi;
  Error *(*createError)(CreateErrorArgs *);
  void (*errorFunctions[2])();
  void (*registerHandler)();
  Error *(*getStream)(StreamArgs *);
  void (*typesAndContexts[2])();
  Error *(*setState)(StateArgs *);
  Error *(*getState)(StateArgs *);
  void (*memoryThreadsFuturesAndRuns[8])();
  Error *(*getDeviceOrdinal)(DeviceOrdinalArgs *);
};

/// One call of a handler. More members follow.
struct CallFrame {
  size_t structSize;
  Extension *extension;
  const Api *api;
  Context *context;
  Stage stage;
  Buffers arguments;
  Buffers results;
  Attributes attributes;
};

} // namespace xla_ffi

#endif // FP8_JAX_XLA_FFI_H
