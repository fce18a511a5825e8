// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lowerings of the fp8 dialect to kernels for GPUs, in stage 6.

#ifndef FP8_CONVERSION_GPUPASSES_TD
#define FP8_CONVERSION_GPUPASSES_TD

include "mlir/Pass/PassBase.td"

def PadRows : Pass<"fp8-pad-rows", "::mlir::func::FuncOp"> {
  let summary = "give buffers that matmuls read rows of a multiple of 16 bytes";
  let description = [{
    Before: allocations of FP8, bf16 or f16 that are operands of matmuls.
    After: those whose rows are not multiples of 16 bytes are views of longer rows, so that
    kernels of matmuls read them in place. A row is the last dimensions of the buffer that
    count as one for the product, such as all of K. The bytes behind a row are never read.

    A matrix whose rows have a dynamic size gets a pitch that the host computes. Other
    buffers of dynamic shape stay, and those that something uses that needs one block of
    memory, such as a reshape or a loop that carries them.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-pad-rows))'
    func.func @f(%x: memref<8x50xf32>, %s: memref<f32>, %w: memref<32x64xf8E4M3FN>, %i: memref<f32>, %y: memref<8x32xf32>) {
      %d = memref.alloc() : memref<8x50xf8E4M3FN>
      fp8.quantize ins(%x : memref<8x50xf32>) scale(%s : memref<f32>)
          outs(%d, %i : memref<8x50xf8E4M3FN>, memref<f32>)
      %k = memref.subview %w[0, 0] [32, 50] [1, 1] : memref<32x64xf8E4M3FN> to memref<32x50xf8E4M3FN, strided<[64, 1]>>
      fp8.scaled_matmul fast ins(%d, %k : memref<8x50xf8E4M3FN>, memref<32x50xf8E4M3FN, strided<[64, 1]>>)
          scales(%i, %i : memref<f32>, memref<f32>) outs(%y : memref<8x32xf32>)
          {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                            affine_map<(m, n, k) -> (m, n)>]}
      return
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: memref<8x50xf32>, %s: memref<f32>, %w: memref<32x64xf8E4M3FN>, %i: memref<f32>, %y: memref<8x32xf32>) {
      %rows = memref.alloc() : memref<8x64xf8E4M3FN>
      %d = memref.subview %rows[0, 0] [8, 50] [1, 1] : memref<8x64xf8E4M3FN> to memref<8x50xf8E4M3FN, strided<[64, 1]>>
      fp8.quantize ins(%x : memref<8x50xf32>) scale(%s : memref<f32>)
          outs(%d, %i : memref<8x50xf8E4M3FN, strided<[64, 1]>>, memref<f32>)
      %k = memref.subview %w[0, 0] [32, 50] [1, 1] : memref<32x64xf8E4M3FN> to memref<32x50xf8E4M3FN, strided<[64, 1]>>
      fp8.scaled_matmul fast ins(%d, %k : memref<8x50xf8E4M3FN, strided<[64, 1]>>, memref<32x50xf8E4M3FN, strided<[64, 1]>>)
          scales(%i, %i : memref<f32>, memref<f32>) outs(%y : memref<8x32xf32>)
          {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                            affine_map<(m, n, k) -> (m, n)>]}
      return
    }
    ```
  }];
  let dependentDialects = ["::mlir::memref::MemRefDialect"];
}

def SplitMatmuls : Pass<"fp8-split-matmuls", "::mlir::ModuleOp"> {
  let summary = "divide long sums of matmuls among the multiprocessors of a GPU";
  let description = [{
    Before: all operands are memrefs; the module's target is a `#fp8.chip`.
    After: a matmul whose kernel would have tiles for less than half of the multiprocessors, and that has
    4,096 bytes or more along K, is a batch of up to 16 matmuls of parts of K, with f32 sums and without scales.
    The sums of the other parts are added to the first, in order, and the epilogue, which multiplies by the
    scales once, is code of its own.

    Matmuls stay as they are that have a configuration (`fp8.config`), batches, dynamic sizes, scales along K,
    operands without strides, an FP8 result, or an epilogue with amaxes or sums; so do all matmuls with the attribute
    `fp8.program_order` on the module. Parts are multiples of 128 elements.

    Example:
    ```mlir
    // fp8-opt --fp8-split-matmuls
    module attributes {fp8.target = #fp8.chip<"sm_90a">} {
      func.func @f(%x: memref<128x16384xf8E4M3FN>, %g: memref<64x16384xf8E5M2>, %s: memref<f32>, %dw: memref<128x64xbf16>) {
        fp8.scaled_matmul site("fc1") role(wgrad) fast ins(%x, %g : memref<128x16384xf8E4M3FN>, memref<64x16384xf8E5M2>)
            scales(%s, %s : memref<f32>, memref<f32>) outs(%dw : memref<128x64xbf16>)
            {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                              affine_map<(m, n, k) -> (m, n)>]}
        return
      }
    }
    ```
    becomes
    ```mlir
    ...
        %sums = memref.alloc() : memref<16x128x64xf32>
        %xs = memref.expand_shape %x ... into memref<128x16x1024xf8E4M3FN>
        %gs = memref.expand_shape %g ... into memref<64x16x1024xf8E5M2>
        %one = memref.get_global @unit_scale : memref<f32>
        fp8.scaled_matmul site("fc1") role(wgrad) fast ins(%xs, %gs : ...) ... outs(%sums : memref<16x128x64xf32>) ...
        ...
        linalg.reduce { arith.addf } ... dimensions = [0]...
        ...
        linalg.generic ...
    ```
  }];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::linalg::LinalgDialect", "mlir::memref::MemRefDialect",
                           "mlir::scf::SCFDialect"];
}

def ChooseConfigs : Pass<"fp8-choose-configs", "::mlir::func::FuncOp"> {
  let summary = "choose the GPU kernel of each matmul";
  let description = [{
    Before: all operands are memrefs; the module's target is a `#fp8.chip`.
    After: every matmul that a kernel with tensor cores computes has the attribute `fp8.config`, which says
    how: a `#fp8.product_config`. Fields that the attribute has before the pass stay; fields that the
    chip's kernels cannot follow are an error. `convert-fp8-to-gpu` follows the attribute, and chooses
    where there is none.

    Other targets have nothing to choose.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-choose-configs))'
    module attributes {fp8.target = #fp8.chip<"sm_90a">} {
      func.func @f(%x: memref<64x256xf8E4M3FN>, %w: memref<8192x256xf8E4M3FN>, %s: memref<f32>, %y: memref<64x8192xf32>) {
        fp8.scaled_matmul fast ins(%x, %w : memref<64x256xf8E4M3FN>, memref<8192x256xf8E4M3FN>)
            scales(%s, %s : memref<f32>, memref<f32>) outs(%y : memref<64x8192xf32>)
            {fp8.config = #fp8.product_config<stages = 4>,
             indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                              affine_map<(m, n, k) -> (m, n)>]}
        return
      }
    }
    ```
    becomes
    ```mlir
    ...
        fp8.scaled_matmul fast ... {fp8.config = #fp8.product_config<family = wgmma, tile_m = 128, tile_n = 64, stages = 4, swapped = false>, ...
    ```
  }];
}

def ConvertFP8ToGPU : Pass<"convert-fp8-to-gpu", "::mlir::ModuleOp"> {
  let summary = "lower operations of the fp8 dialect on memrefs to launches of GPU kernels";
  let description = [{
    Before: all operands are memrefs; the module's target is a `#fp8.chip`.
    After: operations that have a kernel are a `gpu.launch_func` each; the kernels are
    `func.func` in `gpu.module @kernels`, one for all operations that can share it.
    Operations without a kernel stay, for `convert-fp8-to-linalg`.

    A remark tells which operands of matmuls are copied first, and why.

    Operations whose kernels depend on equal things, as those of the layers of a model, share kernels
    without building them again; `check-sharing` builds them all the same and emits an error if
    they differ.

    Example:
    ```mlir
    // fp8-opt --convert-fp8-to-gpu --canonicalize
    module attributes {fp8.target = #fp8.chip<"sm_89">} {
      func.func @f(%x: memref<8x16xf8E4M3FN>, %w: memref<32x16xf8E4M3FN>, %s: memref<f32>, %y: memref<8x32xf32>) {
        fp8.scaled_matmul site("fc1") role(fprop) fast
            ins(%x, %w : memref<8x16xf8E4M3FN>, memref<32x16xf8E4M3FN>)
            scales(%s, %s : memref<f32>, memref<f32>) outs(%y : memref<8x32xf32>)
            {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                              affine_map<(m, n, k) -> (m, n)>]}
        return
      }
    }
    ```
    becomes
    ```mlir
    module attributes {fp8.target = #fp8.chip<"sm_89">, gpu.container_module} {
      func.func @f(%x: memref<8x16xf8E4M3FN>, %w: memref<32x16xf8E4M3FN>, %s: memref<f32>, %y: memref<8x32xf32>) {
        ...
        gpu.launch_func  @kernels::@kernel_product_fprop_fc1 blocks in ...
        return
      }
      gpu.module @kernels {
        llvm.mlir.global external @dynamic_shared() ...
        func.func @kernel_product_fprop_fc1(...) attributes {...fp8.threads = 128 : i32, gpu.kernel...} {
        ...
    ```
  }];
  let options = [Option<"checkSharing", "check-sharing", "bool", "false",
                        "builds kernels that operations share for each of them, and compares them">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
                           "::mlir::gpu::GPUDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::NVVM::NVVMDialect",
                           "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

#endif // FP8_CONVERSION_GPUPASSES_TD
