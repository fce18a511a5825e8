// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entry points that are not supported. They are here so that programs that have them can be loaded, and are
// told what is missing where they call one.

#include "Runtime.h"

using namespace fp8emu::cudart;

namespace {
const char *const kArrays = "the emulator has no arrays, textures and surfaces";
const char *const kProcesses = "the emulator shares nothing with other processes and interfaces";
const char *const kGraphics = "the emulator has no graphics";
const char *const kGraphs =
    "graphs of the emulator do not allocate, have no conditions, objects of the user and "
    "attributes of nodes, and capture whole streams";
const char *const kBatches = "the emulator has no batches of copies: copy one by one";
const char *const kOthers = "the emulator has nothing like it";
const char *const kTables = "the runtime's tables of functions are not documented";
} // namespace

/// An entry point that returns cudaErrorNotSupported, whatever its arguments.
#define MISSING(name, reason)                                                                                \
  FP8CUDART_API cudaError_t name() { return missing(#name, reason); }

// The names are CUDA's.
// NOLINTBEGIN(readability-identifier-naming)
MISSING(cudaMallocArray, kArrays)
MISSING(cudaMalloc3DArray, kArrays)
MISSING(cudaMallocMipmappedArray, kArrays)
MISSING(cudaFreeArray, kArrays)
MISSING(cudaFreeMipmappedArray, kArrays)
MISSING(cudaArrayGetInfo, kArrays)
MISSING(cudaArrayGetMemoryRequirements, kArrays)
MISSING(cudaArrayGetPlane, kArrays)
MISSING(cudaArrayGetSparseProperties, kArrays)
MISSING(cudaMipmappedArrayGetMemoryRequirements, kArrays)
MISSING(cudaMipmappedArrayGetSparseProperties, kArrays)
MISSING(cudaGetMipmappedArrayLevel, kArrays)
MISSING(cudaGetChannelDesc, kArrays)
MISSING(cudaMemcpyToArray, kArrays)
MISSING(cudaMemcpyToArrayAsync, kArrays)
MISSING(cudaMemcpyFromArray, kArrays)
MISSING(cudaMemcpyFromArrayAsync, kArrays)
MISSING(cudaMemcpyArrayToArray, kArrays)
MISSING(cudaMemcpy2DToArray, kArrays)
MISSING(cudaMemcpy2DToArrayAsync, kArrays)
MISSING(cudaMemcpy2DFromArray, kArrays)
MISSING(cudaMemcpy2DFromArrayAsync, kArrays)
MISSING(cudaMemcpy2DArrayToArray, kArrays)
MISSING(cudaDeviceGetTexture1DLinearMaxWidth, kArrays)
MISSING(cudaCreateTextureObject, kArrays)
MISSING(cudaDestroyTextureObject, kArrays)
MISSING(cudaGetTextureObjectResourceDesc, kArrays)
MISSING(cudaGetTextureObjectResourceViewDesc, kArrays)
MISSING(cudaGetTextureObjectTextureDesc, kArrays)
MISSING(cudaCreateSurfaceObject, kArrays)
MISSING(cudaDestroySurfaceObject, kArrays)
MISSING(cudaGetSurfaceObjectResourceDesc, kArrays)
MISSING(__cudaRegisterTexture, kArrays)
MISSING(__cudaRegisterSurface, kArrays)

MISSING(cudaIpcGetEventHandle, kProcesses)
MISSING(cudaIpcOpenEventHandle, kProcesses)
MISSING(cudaIpcGetMemHandle, kProcesses)
MISSING(cudaIpcOpenMemHandle, kProcesses)
MISSING(cudaIpcCloseMemHandle, kProcesses)
MISSING(cudaMemPoolExportPointer, kProcesses)
MISSING(cudaMemPoolExportToShareableHandle, kProcesses)
MISSING(cudaMemPoolImportFromShareableHandle, kProcesses)
MISSING(cudaMemPoolImportPointer, kProcesses)
MISSING(cudaImportExternalMemory, kProcesses)
MISSING(cudaImportExternalSemaphore, kProcesses)
MISSING(cudaDestroyExternalMemory, kProcesses)
MISSING(cudaDestroyExternalSemaphore, kProcesses)
MISSING(cudaExternalMemoryGetMappedBuffer, kProcesses)
MISSING(cudaExternalMemoryGetMappedMipmappedArray, kProcesses)
MISSING(cudaSignalExternalSemaphoresAsync, kProcesses)
MISSING(cudaSignalExternalSemaphoresAsync_v2, kProcesses)
MISSING(cudaWaitExternalSemaphoresAsync, kProcesses)
MISSING(cudaWaitExternalSemaphoresAsync_v2, kProcesses)
MISSING(cudaGraphAddExternalSemaphoresSignalNode, kProcesses)
MISSING(cudaGraphAddExternalSemaphoresWaitNode, kProcesses)
MISSING(cudaGraphExternalSemaphoresSignalNodeGetParams, kProcesses)
MISSING(cudaGraphExternalSemaphoresSignalNodeSetParams, kProcesses)
MISSING(cudaGraphExternalSemaphoresWaitNodeGetParams, kProcesses)
MISSING(cudaGraphExternalSemaphoresWaitNodeSetParams, kProcesses)
MISSING(cudaGraphExecExternalSemaphoresSignalNodeSetParams, kProcesses)
MISSING(cudaGraphExecExternalSemaphoresWaitNodeSetParams, kProcesses)

MISSING(cudaGraphicsMapResources, kGraphics)
MISSING(cudaGraphicsUnmapResources, kGraphics)
MISSING(cudaGraphicsUnregisterResource, kGraphics)
MISSING(cudaGraphicsResourceGetMappedPointer, kGraphics)
MISSING(cudaGraphicsResourceGetMappedMipmappedArray, kGraphics)
MISSING(cudaGraphicsResourceSetMapFlags, kGraphics)
MISSING(cudaGraphicsSubResourceGetMappedArray, kGraphics)
MISSING(cudaGraphicsGLRegisterBuffer, kGraphics)
MISSING(cudaGraphicsGLRegisterImage, kGraphics)
MISSING(cudaGLGetDevices, kGraphics)
MISSING(cudaDeviceGetNvSciSyncAttributes, kGraphics)

MISSING(cudaGraphAddMemAllocNode, kGraphs)
MISSING(cudaGraphAddMemFreeNode, kGraphs)
MISSING(cudaGraphMemAllocNodeGetParams, kGraphs)
MISSING(cudaGraphMemFreeNodeGetParams, kGraphs)
MISSING(cudaDeviceGraphMemTrim, kGraphs)
MISSING(cudaDeviceGetGraphMemAttribute, kGraphs)
MISSING(cudaDeviceSetGraphMemAttribute, kGraphs)
MISSING(cudaGraphConditionalHandleCreate, kGraphs)
MISSING(cudaUserObjectCreate, kGraphs)
MISSING(cudaUserObjectRetain, kGraphs)
MISSING(cudaUserObjectRelease, kGraphs)
MISSING(cudaGraphRetainUserObject, kGraphs)
MISSING(cudaGraphReleaseUserObject, kGraphs)
MISSING(cudaGraphKernelNodeCopyAttributes, kGraphs)
MISSING(cudaGraphKernelNodeGetAttribute, kGraphs)
MISSING(cudaGraphKernelNodeSetAttribute, kGraphs)
MISSING(cudaStreamBeginCaptureToGraph, kGraphs)
MISSING(cudaStreamUpdateCaptureDependencies, kGraphs)
MISSING(cudaStreamUpdateCaptureDependencies_v2, kGraphs)

MISSING(cudaMemcpyBatchAsync, kBatches)
MISSING(cudaMemcpy3DBatchAsync, kBatches)
MISSING(cudaMemPrefetchBatchAsync, kBatches)
MISSING(cudaMemDiscardBatchAsync, kBatches)
MISSING(cudaMemDiscardAndPrefetchBatchAsync, kBatches)

MISSING(cudaStreamGetAttribute, kOthers)
MISSING(cudaStreamSetAttribute, kOthers)
MISSING(cudaStreamCopyAttributes, kOthers)
MISSING(cudaMemRangeGetAttribute, kOthers)
MISSING(cudaMemRangeGetAttributes, kOthers)
MISSING(cudaMemGetDefaultMemPool, kOthers)
MISSING(cudaMemGetMemPool, kOthers)
MISSING(cudaMemSetMemPool, kOthers)
MISSING(cudaDeviceFlushGPUDirectRDMAWrites, kOthers)
MISSING(cudaDeviceRegisterAsyncNotification, kOthers)
MISSING(cudaDeviceUnregisterAsyncNotification, kOthers)
MISSING(cudaDeviceGetHostAtomicCapabilities, kOthers)
MISSING(cudaDeviceGetP2PAtomicCapabilities, kOthers)
MISSING(cudaLibraryGetUnifiedFunction, kOthers)
MISSING(cudaLogsCurrent, kOthers)
MISSING(cudaLogsDumpToFile, kOthers)
MISSING(cudaLogsDumpToMemory, kOthers)
MISSING(cudaLogsRegisterCallback, kOthers)
MISSING(cudaLogsUnregisterCallback, kOthers)
MISSING(cudaChooseDevice, kOthers)
MISSING(cudaLaunchCooperativeKernelMultiDevice, kOthers)

MISSING(cudaGetExportTable, kTables)
// NOLINTEND(readability-identifier-naming)
