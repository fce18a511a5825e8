// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Compiles where the declarations of python/lib/xla_ffi.h have the layout of those in jaxlib's own header
// (test_jax_ffi.py).

#include "xla/ffi/api/c_api.h"
#include "xla_ffi.h"

#define SAME_VALUE(OURS, THEIRS)                                                                             \
  static_assert(static_cast<int>(xla_ffi::OURS) == static_cast<int>(THEIRS), #OURS)
#define SAME_SIZE(OURS, THEIRS) static_assert(sizeof(xla_ffi::OURS) == sizeof(THEIRS), #OURS)
#define SAME_FIELD(OURS, OUR_FIELD, THEIRS, THEIR_FIELD)                                                     \
  static_assert(offsetof(xla_ffi::OURS, OUR_FIELD) == offsetof(THEIRS, THEIR_FIELD) &&                       \
                    sizeof(xla_ffi::OURS::OUR_FIELD) == sizeof(THEIRS::THEIR_FIELD),                         \
                #OURS "." #OUR_FIELD)
#define SAME_HEAD(OURS, THEIRS)                                                                              \
  SAME_FIELD(OURS, structSize, THEIRS, struct_size);                                                         \
  SAME_FIELD(OURS, extension, THEIRS, extension_start)

SAME_VALUE(kMajor, XLA_FFI_API_MAJOR);
static_assert(xla_ffi::kMinor <= XLA_FFI_API_MINOR, "jaxlib is older than what is declared");
SAME_VALUE(kMetadataExtension, XLA_FFI_Extension_Metadata);
SAME_VALUE(kBuffer, XLA_FFI_ArgType_BUFFER);
SAME_VALUE(kBuffer, XLA_FFI_RetType_BUFFER);
SAME_VALUE(kString, XLA_FFI_AttrType_STRING);
SAME_VALUE(ErrorCode::InvalidArgument, XLA_FFI_Error_Code_INVALID_ARGUMENT);
SAME_VALUE(ErrorCode::ResourceExhausted, XLA_FFI_Error_Code_RESOURCE_EXHAUSTED);
SAME_VALUE(ErrorCode::FailedPrecondition, XLA_FFI_Error_Code_FAILED_PRECONDITION);
SAME_VALUE(ErrorCode::Internal, XLA_FFI_Error_Code_INTERNAL);
SAME_VALUE(Stage::Instantiate, XLA_FFI_ExecutionStage_INSTANTIATE);
SAME_VALUE(Stage::Initialize, XLA_FFI_ExecutionStage_INITIALIZE);
SAME_VALUE(kCommandBufferCompatible, XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE);
SAME_VALUE(Stage::Execute, XLA_FFI_ExecutionStage_EXECUTE);

#define SAME_TYPE(NAME) SAME_VALUE(ElementType::NAME, XLA_FFI_DataType_##NAME)
SAME_TYPE(PRED);
SAME_TYPE(S8);
SAME_TYPE(S16);
SAME_TYPE(S32);
SAME_TYPE(S64);
SAME_TYPE(U8);
SAME_TYPE(U16);
SAME_TYPE(U32);
SAME_TYPE(U64);
SAME_TYPE(F16);
SAME_TYPE(F32);
SAME_TYPE(F64);
SAME_TYPE(BF16);
SAME_TYPE(F8E5M2);
SAME_TYPE(F8E4M3FN);
SAME_TYPE(F8E8M0FNU);

SAME_SIZE(Extension, XLA_FFI_Extension_Base);
SAME_FIELD(Extension, structSize, XLA_FFI_Extension_Base, struct_size);
SAME_FIELD(Extension, type, XLA_FFI_Extension_Base, type);
SAME_FIELD(Extension, next, XLA_FFI_Extension_Base, next);

SAME_SIZE(Version, XLA_FFI_Api_Version);
SAME_HEAD(Version, XLA_FFI_Api_Version);
SAME_FIELD(Version, major, XLA_FFI_Api_Version, major_version);
SAME_FIELD(Version, minor, XLA_FFI_Api_Version, minor_version);

SAME_SIZE(TypeId, XLA_FFI_TypeId);
SAME_FIELD(TypeId, value, XLA_FFI_TypeId, type_id);
SAME_SIZE(TypeInfo, XLA_FFI_TypeInfo);
SAME_HEAD(TypeInfo, XLA_FFI_TypeInfo);
SAME_FIELD(TypeInfo, destroy, XLA_FFI_TypeInfo, deleter);

SAME_SIZE(Metadata, XLA_FFI_Metadata);
SAME_FIELD(Metadata, structSize, XLA_FFI_Metadata, struct_size);
SAME_FIELD(Metadata, version, XLA_FFI_Metadata, api_version);
SAME_FIELD(Metadata, traits, XLA_FFI_Metadata, traits);
SAME_FIELD(Metadata, stateType, XLA_FFI_Metadata, state_type_id);
SAME_SIZE(MetadataExtension, XLA_FFI_Metadata_Extension);
SAME_FIELD(MetadataExtension, base, XLA_FFI_Metadata_Extension, extension_base);
SAME_FIELD(MetadataExtension, metadata, XLA_FFI_Metadata_Extension, metadata);

SAME_SIZE(CreateErrorArgs, XLA_FFI_Error_Create_Args);
SAME_HEAD(CreateErrorArgs, XLA_FFI_Error_Create_Args);
SAME_FIELD(CreateErrorArgs, message, XLA_FFI_Error_Create_Args, message);
SAME_FIELD(CreateErrorArgs, code, XLA_FFI_Error_Create_Args, errc);

SAME_SIZE(Buffer, XLA_FFI_Buffer);
SAME_HEAD(Buffer, XLA_FFI_Buffer);
SAME_FIELD(Buffer, type, XLA_FFI_Buffer, dtype);
SAME_FIELD(Buffer, data, XLA_FFI_Buffer, data);
SAME_FIELD(Buffer, rank, XLA_FFI_Buffer, rank);
SAME_FIELD(Buffer, dimensions, XLA_FFI_Buffer, dims);

SAME_SIZE(ByteSpan, XLA_FFI_ByteSpan);
SAME_FIELD(ByteSpan, data, XLA_FFI_ByteSpan, ptr);
SAME_FIELD(ByteSpan, size, XLA_FFI_ByteSpan, len);

#define SAME_BUFFERS(THEIRS, THEIR_VALUES)                                                                   \
  SAME_SIZE(Buffers, THEIRS);                                                                                \
  SAME_HEAD(Buffers, THEIRS);                                                                                \
  SAME_FIELD(Buffers, size, THEIRS, size);                                                                   \
  SAME_FIELD(Buffers, types, THEIRS, types);                                                                 \
  SAME_FIELD(Buffers, values, THEIRS, THEIR_VALUES)
SAME_BUFFERS(XLA_FFI_Args, args);
SAME_BUFFERS(XLA_FFI_Rets, rets);

SAME_SIZE(Attributes, XLA_FFI_Attrs);
SAME_HEAD(Attributes, XLA_FFI_Attrs);
SAME_FIELD(Attributes, size, XLA_FFI_Attrs, size);
SAME_FIELD(Attributes, types, XLA_FFI_Attrs, types);
SAME_FIELD(Attributes, names, XLA_FFI_Attrs, names);
SAME_FIELD(Attributes, values, XLA_FFI_Attrs, attrs);

#define SAME_STATE(THEIRS)                                                                                   \
  SAME_SIZE(StateArgs, THEIRS);                                                                              \
  SAME_HEAD(StateArgs, THEIRS);                                                                              \
  SAME_FIELD(StateArgs, context, THEIRS, ctx);                                                               \
  SAME_FIELD(StateArgs, stage, THEIRS, stage);                                                               \
  SAME_FIELD(StateArgs, type, THEIRS, type_id);                                                              \
  SAME_FIELD(StateArgs, state, THEIRS, state)
SAME_STATE(XLA_FFI_State_Set_Args);
SAME_STATE(XLA_FFI_State_Get_Args);

SAME_SIZE(StreamArgs, XLA_FFI_Stream_Get_Args);
SAME_HEAD(StreamArgs, XLA_FFI_Stream_Get_Args);
SAME_FIELD(StreamArgs, context, XLA_FFI_Stream_Get_Args, ctx);
SAME_FIELD(StreamArgs, stream, XLA_FFI_Stream_Get_Args, stream);

SAME_SIZE(DeviceOrdinalArgs, XLA_FFI_DeviceOrdinal_Get_Args);
SAME_HEAD(DeviceOrdinalArgs, XLA_FFI_DeviceOrdinal_Get_Args);
SAME_FIELD(DeviceOrdinalArgs, context, XLA_FFI_DeviceOrdinal_Get_Args, ctx);
SAME_FIELD(DeviceOrdinalArgs, ordinal, XLA_FFI_DeviceOrdinal_Get_Args, device_ordinal);

SAME_HEAD(Api, XLA_FFI_Api);
SAME_FIELD(Api, version, XLA_FFI_Api, api_version);
SAME_FIELD(Api, internalApi, XLA_FFI_Api, internal_api);
SAME_FIELD(Api, createError, XLA_FFI_Api, XLA_FFI_Error_Create);
SAME_FIELD(Api, setState, XLA_FFI_Api, XLA_FFI_State_Set);
SAME_FIELD(Api, getState, XLA_FFI_Api, XLA_FFI_State_Get);
SAME_FIELD(Api, getStream, XLA_FFI_Api, XLA_FFI_Stream_Get);
SAME_FIELD(Api, getDeviceOrdinal, XLA_FFI_Api, XLA_FFI_DeviceOrdinal_Get);
static_assert(sizeof(xla_ffi::Api) <= sizeof(XLA_FFI_Api), "Api");

SAME_HEAD(CallFrame, XLA_FFI_CallFrame);
SAME_FIELD(CallFrame, api, XLA_FFI_CallFrame, api);
SAME_FIELD(CallFrame, context, XLA_FFI_CallFrame, ctx);
SAME_FIELD(CallFrame, stage, XLA_FFI_CallFrame, stage);
SAME_FIELD(CallFrame, arguments, XLA_FFI_CallFrame, args);
SAME_FIELD(CallFrame, results, XLA_FFI_CallFrame, rets);
SAME_FIELD(CallFrame, attributes, XLA_FFI_CallFrame, attrs);
static_assert(sizeof(xla_ffi::CallFrame) <= sizeof(XLA_FFI_CallFrame), "CallFrame");
