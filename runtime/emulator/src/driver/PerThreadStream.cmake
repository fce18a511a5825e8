# This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Entry points that cuda.h names differently where a program is compiled for a default stream of
# each thread (CUDA_API_PER_THREAD_DEFAULT_STREAM). Work is done when it is given, so that all
# streams are alike: they are the same functions.

set(FP8EMU_WITH_STREAM # …_ptsz
  cuEventRecord cuEventRecordWithFlags cuGraphInstantiateWithParams cuGraphLaunch cuGraphUpload
  cuLaunchCooperativeKernel cuLaunchHostFunc cuLaunchKernel cuLaunchKernelEx cuMemAllocAsync
  cuMemAllocFromPoolAsync cuMemFreeAsync cuMemPrefetchAsync_v2 cuMemcpy2DAsync_v2 cuMemcpy3DAsync_v2
  cuMemcpyAsync cuMemcpyDtoDAsync_v2 cuMemcpyDtoHAsync_v2 cuMemcpyHtoDAsync_v2 cuMemcpyPeerAsync
  cuMemsetD16Async cuMemsetD2D16Async cuMemsetD2D32Async cuMemsetD2D8Async cuMemsetD32Async
  cuMemsetD8Async cuStreamAddCallback cuStreamBeginCapture_v2 cuStreamEndCapture
  cuStreamGetCaptureInfo_v3 cuStreamGetCtx cuStreamGetDevice cuStreamGetFlags cuStreamGetId
  cuStreamGetPriority cuStreamIsCapturing cuStreamQuery cuStreamSynchronize cuStreamWaitEvent)
set(FP8EMU_WITH_DEFAULT_STREAM # …_ptds
  cuMemcpy cuMemcpy2DUnaligned_v2 cuMemcpy2D_v2 cuMemcpy3D_v2 cuMemcpyDtoD_v2 cuMemcpyDtoH_v2
  cuMemcpyHtoD_v2 cuMemcpyPeer cuMemsetD16_v2 cuMemsetD2D16_v2 cuMemsetD2D32_v2 cuMemsetD2D8_v2
  cuMemsetD32_v2 cuMemsetD8_v2)
foreach(name ${FP8EMU_WITH_STREAM})
  target_link_options(fp8emu PRIVATE "LINKER:--defsym=${name}_ptsz=${name}")
endforeach()
foreach(name ${FP8EMU_WITH_DEFAULT_STREAM})
  target_link_options(fp8emu PRIVATE "LINKER:--defsym=${name}_ptds=${name}")
endforeach()
