// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lowerings of the fp8 dialect: operations with `rows` and attention before bufferization, all others in
// stage 6.

#ifndef FP8_CONVERSION_PASSES_TD
#define FP8_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

include "fp8/Conversion/GPUPasses.td"

def VectorizeRows : Pass<"fp8-vectorize-rows", "mlir::func::FuncOp"> {
  let summary = "put the code of casts and amaxes with rows on vectors";
  let description = [{
    Before: `fp8.quantize` and `fp8.amax` with `rows`, on tensors.
    After: where the target has many threads (`hasManyThreads`), a row is the last dimension of
    static size, and all that is alive of a row fits in registers (half of `getMaxRowBytes`), the region computes with
    vectors: elementwise operations on a vector per tensor, `vector.step` for the index in the row, and
    `vector.reduction` into scalars. Bufferization does not touch it. A remark says why an
    operation stays as it is, for `fp8-expand-rows`. Under `fp8.program_order`, sums in the order of the program, the pass
    changes nothing.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-vectorize-rows))'
    module attributes {fp8.target = #fp8.chip<"sm_90a">} {
      func.func @f(%x: tensor<8x16xf32>, %a: tensor<f32>) -> tensor<f32> {
        %zero = arith.constant 0.0 : f32
        %r = fp8.amax ins(%x : tensor<8x16xf32>) outs(%a : tensor<f32>)
            {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], rows = array<i64: 1>} producer {
          ^bb0(%row: index, %e: tensor<16xf32>):
            %i = tensor.empty() : tensor<f32>
            %z = linalg.fill ins(%zero : f32) outs(%i : tensor<f32>) -> tensor<f32>
            %s = linalg.reduce {arith.addf} ins(%e : tensor<16xf32>) outs(%z : tensor<f32>) dimensions = [0]
            %sum = tensor.extract %s[] : tensor<f32>
            %init = tensor.empty() : tensor<16xf32>
            %q = linalg.map {arith.divf} ins(%e, %e : tensor<16xf32>, tensor<16xf32>) outs(%init : tensor<16xf32>)
            fp8.yield %q : tensor<16xf32>
        } -> tensor<f32>
        return %r : tensor<f32>
      }
    }
    ```
    becomes
    ```mlir
    module attributes {fp8.target = #fp8.chip<"sm_90a">} {
      func.func @f(%x: tensor<8x16xf32>, %a: tensor<f32>) -> tensor<f32> {
        %zero = arith.constant 0.0 : f32
        %r = fp8.amax ins(%x : tensor<8x16xf32>) outs(%a : tensor<f32>)
            {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], rows = array<i64: 1>} producer {
          ^bb0(%row: index, %e: vector<16xf32>):
            %sum = vector.reduction <add>, %e, %zero : vector<16xf32> into f32
            %q = arith.divf %e, %e : vector<16xf32>
            fp8.yield %q : vector<16xf32>
        } -> tensor<f32>
        return %r : tensor<f32>
      }
    }
    ```
  }];
  let dependentDialects = ["::fp8::FP8Dialect", "mlir::arith::ArithDialect", "mlir::math::MathDialect",
                           "mlir::vector::VectorDialect"];
}

def DecomposeAttention : Pass<"fp8-decompose-attention", "mlir::func::FuncOp"> {
  let summary = "decompose attention into matmuls and a loop over rows, block by block";
  let description = [{
    Before: `fp8.attention` and `fp8.attention_grad` on tensors.
    After: `fp8.matmul`s, and between them an `scf.forall` over the rows of scores, marked `fp8.row_elements`,
    whose body is the region's code. Where the temporaries of a row are of unknown size, or larger than the target's
    limit (`getMaxRowBytes`), the region's operations work on all rows in place of a loop. Where the rows together have
    more scores than the target wants in memory (`getScoreBlockElements`), `scf.for`s run one block of rows after the
    other: one index of the first outer dimensions, a part of the next, all of the others. Scores, probabilities and
    their gradients are tensors of a block.

    Outer dimensions of which every result has a part of its own, such as batch and heads, are tasks: an `scf.forall`,
    marked `fp8.tasks`, runs the blocks of each on one thread. Where all sizes are known, and scores are not few.

    With `visible_keys` a block has the keys from the first one of its first row, or up to 63 before, to the last one of
    its last row: matmuls and rows are of that size, a number known at run time, and memory is that of all keys. The
    attribute speaks for bounded operands, so that the operands' magnitudes are taken first; if they are too large, or
    not numbers, blocks have all keys.

    The bits are those of the whole matmuls. A gradient that is summed over the rows of several blocks is a tensor
    of f32 zeros first; each block's matmul resumes its sums, and they are rounded in the end. Where blocks would
    change the order of a sum, or the sum is in f64, the rows are one block.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-decompose-attention{block-elements=16},canonicalize,cse))'
    func.func @f(%q: tensor<4x16xf32>, %k: tensor<8x16xf32>, %v: tensor<8x16xf32>, %o: tensor<4x16xf32>) -> tensor<4x16xf32> {
      %0 = fp8.attention ins(%q, %k, %v : tensor<4x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>)
          outs(%o : tensor<4x16xf32>)
          {indexing_maps = [affine_map<(i, j, d, e) -> (i, d)>, affine_map<(i, j, d, e) -> (j, d)>,
                            affine_map<(i, j, d, e) -> (j, e)>, affine_map<(i, j, d, e) -> (i, e)>]} rows {
        ^bb0(%i: index, %s: tensor<8xf32>):
          %row = tensor.empty() : tensor<8xf32>
          %p = linalg.exp ins(%s : tensor<8xf32>) outs(%row : tensor<8xf32>) -> tensor<8xf32>
          fp8.yield %p : tensor<8xf32>
      } -> tensor<4x16xf32>
      return %0 : tensor<4x16xf32>
    }
    ```
    becomes
    ```mlir
    #left = affine_map<(i, j, d) -> (i, d)>
    #right = affine_map<(i, j, d) -> (j, d)>
    #out = affine_map<(i, j, d) -> (i, j)>
    #values = affine_map<(i, j, e) -> (j, e)>
    #output = affine_map<(i, j, e) -> (i, e)>
    func.func @f(%q: tensor<4x16xf32>, %k: tensor<8x16xf32>, %v: tensor<8x16xf32>, %o: tensor<4x16xf32>) -> tensor<4x16xf32> {
      %c0 = arith.constant 0 : index
      %c2 = arith.constant 2 : index
      %c4 = arith.constant 4 : index
      %0 = scf.for %i = %c0 to %c4 step %c2 iter_args(%outs = %o) -> (tensor<4x16xf32>) {
        %qs = tensor.extract_slice %q[%i, 0] [2, 16] [1, 1] : tensor<4x16xf32> to tensor<2x16xf32>
        %init = tensor.empty() : tensor<2x8xf32>
        %s = fp8.matmul ins(%qs, %k : tensor<2x16xf32>, tensor<8x16xf32>) outs(%init : tensor<2x8xf32>)
            {indexing_maps = [#left, #right, #out]} -> tensor<2x8xf32>
        %p = scf.forall (%r) in (2) shared_outs(%rows = %init) -> (tensor<2x8xf32>) {
          %row_s = tensor.extract_slice %s[%r, 0] [1, 8] [1, 1] : tensor<2x8xf32> to tensor<8xf32>
          %row = tensor.empty() : tensor<8xf32>
          %row_p = linalg.exp ins(%row_s : tensor<8xf32>) outs(%row : tensor<8xf32>) -> tensor<8xf32>
          scf.forall.in_parallel {
            tensor.parallel_insert_slice %row_p into %rows[%r, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<2x8xf32>
          }
        } {fp8.row_elements = 8 : i64}
        %part = tensor.extract_slice %outs[%i, 0] [2, 16] [1, 1] : tensor<4x16xf32> to tensor<2x16xf32>
        %y = fp8.matmul ins(%p, %v : tensor<2x8xf32>, tensor<8x16xf32>) outs(%part : tensor<2x16xf32>)
            {indexing_maps = [#out, #values, #output]} -> tensor<2x16xf32>
        %next = tensor.insert_slice %y into %outs[%i, 0] [2, 16] [1, 1] : tensor<2x16xf32> into tensor<4x16xf32>
        scf.yield %next : tensor<4x16xf32>
      }
      return %0 : tensor<4x16xf32>
    }
    ```
  }];
  let options = [Option<"blockElements", "block-elements", "int64_t", /*default=*/"0",
                        "scores in memory at a time; 0: as many as the target says">];
  let dependentDialects = ["::fp8::FP8Dialect", "mlir::affine::AffineDialect", "mlir::arith::ArithDialect",
                           "mlir::linalg::LinalgDialect", "mlir::scf::SCFDialect",
                           "mlir::tensor::TensorDialect"];
}

def ExpandRows : Pass<"fp8-expand-rows", "mlir::func::FuncOp"> {
  let summary = "expand casts and amaxes with rows into loops over the rows";
  let description = [{
    Before: `fp8.quantize` and `fp8.amax` with `rows`.
    After: an `scf.forall` over the rows, marked `fp8.row_elements`. Its body is the region's
    code on slices of the inputs, followed by a quantize or amax of the one row. The amax of
    the tensor is the maximum of the amaxes of the rows; `scale_inv` is computed from the
    scale. All of it is on tensors, so bufferization allocates the temporaries of a row.

    With sums over the rows, an `scf.for` runs one chunk of rows after the other: the rows
    of a chunk write their summands into a buffer, which is then summed in the order
    of the rows. The target limits the number of elements in a chunk. The pass leaves what
    `fp8-vectorize-rows` has put on vectors.

    Example:
    ```mlir
    // fp8-opt --pass-pipeline='builtin.module(func.func(fp8-expand-rows))'
    func.func @f(%x: tensor<8x16xf32>, %s: tensor<f32>, %d: tensor<8x16xf8E4M3FN>, %i: tensor<f32>)
        -> (tensor<8x16xf8E4M3FN>, tensor<f32>) {
      %q, %si = fp8.quantize ins(%x : tensor<8x16xf32>) scale(%s : tensor<f32>)
          outs(%d, %i : tensor<8x16xf8E4M3FN>, tensor<f32>)
          {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>], rows = array<i64: 1>} producer {
        ^bb0(%row: index, %e: tensor<16xf32>):
          %init = tensor.empty() : tensor<16xf32>
          %r = linalg.exp ins(%e : tensor<16xf32>) outs(%init : tensor<16xf32>) -> tensor<16xf32>
          fp8.yield %r : tensor<16xf32>
      } -> tensor<8x16xf8E4M3FN>, tensor<f32>
      return %q, %si : tensor<8x16xf8E4M3FN>, tensor<f32>
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: tensor<8x16xf32>, %s: tensor<f32>, %d: tensor<8x16xf8E4M3FN>, %i: tensor<f32>)
        -> (tensor<8x16xf8E4M3FN>, tensor<f32>) {
      %q = scf.forall (%row) in (8) shared_outs(%o = %d) -> (tensor<8x16xf8E4M3FN>) {
        %e = tensor.extract_slice %x[%row, 0] [1, 16] [1, 1] : tensor<8x16xf32> to tensor<16xf32>
        %init = tensor.empty() : tensor<16xf32>
        %r = linalg.exp ins(%e : tensor<16xf32>) outs(%init : tensor<16xf32>) -> tensor<16xf32>
        %part = tensor.extract_slice %o[%row, 0] [1, 16] [1, 1] : tensor<8x16xf8E4M3FN> to tensor<16xf8E4M3FN>
        %unused = tensor.empty() : tensor<f32>
        %bytes:2 = fp8.quantize ins(%r : tensor<16xf32>) scale(%s : tensor<f32>)
            outs(%part, %unused : tensor<16xf8E4M3FN>, tensor<f32>) -> tensor<16xf8E4M3FN>, tensor<f32>
        scf.forall.in_parallel {
          tensor.parallel_insert_slice %bytes#0 into %o[%row, 0] [1, 16] [1, 1]
              : tensor<16xf8E4M3FN> into tensor<8x16xf8E4M3FN>
        }
      } {fp8.row_elements = 16 : i64}
      %scale = tensor.extract %s[] : tensor<f32>
      %one = arith.constant 1.0 : f32
      %inverse = arith.divf %one, %scale : f32
      %si = tensor.insert %inverse into %i[] : tensor<f32>
      return %q, %si : tensor<8x16xf8E4M3FN>, tensor<f32>
    }
    ```
  }];
  let dependentDialects = ["::fp8::FP8Dialect", "mlir::affine::AffineDialect", "mlir::arith::ArithDialect",
                           "mlir::linalg::LinalgDialect", "mlir::scf::SCFDialect",
                           "mlir::tensor::TensorDialect"];
}

def ExpandScaling : Pass<"fp8-expand-scaling", "::mlir::ModuleOp"> {
  let summary = "expand scales and history updates into loops around the recipe's formulas";
  let description = [{
    For targets that have no kernels of their own for these two operations.

    Before: `fp8.compute_scale` and `fp8.update_amax_history` on memrefs.
    After: loops instead of both. The recipe emits the code for one amax or one column of
    the history; the loops around that code run over the elements of the amax, or over the
    rows of the history and the columns of a row. Columns without an amax in this step keep
    their scale and history.

    Errors: a history of dynamic shape; operations on tensors.

    Example:
    ```mlir
    // fp8-opt --fp8-expand-scaling
    func.func @f(%amax: memref<f32>, %scale: memref<f32>) {
      fp8.compute_scale recipe(#fp8.current_scaling) format(f8E4M3FN)
          ins(%amax : memref<f32>) outs(%scale : memref<f32>)
      return
    }
    ```
    becomes
    ```mlir
    func.func @f(%amax: memref<f32>, %scale: memref<f32>) {
      %a = memref.load %amax[] : memref<f32>
      %max = arith.constant 4.480000e+02 : f32
      %one = arith.constant 1.000000e+00 : f32
      %q = arith.divf %max, %a : f32
      ...
      memref.store %r, %scale[] : memref<f32>
      return
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def ConvertFP8ToLinalg : Pass<"convert-fp8-to-linalg", "::mlir::ModuleOp"> {
  let summary = "lower the fp8 dialect on memrefs to linalg, scf and arith, bit for bit";
  let description = [{
    Before: all operands are memrefs; scales and history updates are loops
    (`fp8-expand-scaling`).
    After: no operation of the fp8 dialect is left. Matmuls are packed f32
    matmuls (`PackedGemm.h`), or loops with the same sums for targets with many threads; with
    `fp8.hardware_sums` on the module and vectors of 512 bits, those of bf16 and FP8 are products of
    the instruction that it names: of AVX512_BF16 or AMX. Casts are exact integer arithmetic; a quantize reads its tensor
    once for FP8 data and amax. `fp8.computes` on linalg ops, copies and loops
    tells which operation they compute.

    Errors: operations without a lowering (row, block and MX scales, grouped matmuls with scales
    along K, loss scaling), collectives that are not divided in a start and a wait.

    Example:
    ```mlir
    // fp8-opt --convert-fp8-to-linalg
    func.func @f(%x: memref<4xf32>, %a: memref<f32>) {
      fp8.amax ins(%x : memref<4xf32>) outs(%a : memref<f32>)
      return
    }
    ```
    becomes
    ```mlir
    ...
      %amax = scf.for ...
      ...
      } {fp8.computes = "amax"}
      %r = arith.bitcast %amax : i32 to f32
      memref.store %r, ...
    ...
    ```
  }];
  let dependentDialects = ["::mlir::amx::AMXDialect", "::mlir::arith::ArithDialect",
                           "::mlir::func::FuncDialect", "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect",
                           "::mlir::x86vector::X86VectorDialect"];
}

def ExpandCasts : Pass<"fp8-expand-casts"> {
  let summary = "expand casts of FP8 that upstream does not lower";
  let description = [{
    Before: `arith.extf` from and `arith.truncf` to `f8E4M3FN` and `f8E5M2` on scalars
    or vectors, which upstream does not lower; `arith.extf` from `f8E8M0FNU`.
    After: the same conversions in integer, f16 and f32 arithmetic. `arith.truncf` has
    upstream's semantics for values in range; values out of range saturate, and
    NaN becomes 0x7F, as in all FP8 casts of this project. To round an f64 only once,
    it is rounded to f32 to odd first. Casts from f64 to bf16 and f16 are expanded in the same way,
    because upstream lowers them to a call of a function that need not exist. Integers become
    FP8 by way of f32, which is exact for those that do not saturate.
    Casts to `f8E8M0FNU` are errors, because several roundings are in use for it, and so are those of
    other formats of less than 16 bits.

    Example:
    ```mlir
    // fp8-opt --fp8-expand-casts
    func.func @f(%x: f8E5M2) -> f16 {
      %y = arith.extf %x : f8E5M2 to f16
      return %y : f16
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: f8E5M2) -> f16 {
      %b = arith.bitcast %x : f8E5M2 to i8
      %w = arith.extsi %b : i8 to i16
      ...
      %h = arith.bitcast %s : i16 to f16
      %f = arith.extf %h : f16 to f32
      %y = arith.truncf %f : f32 to f16
      return %y : f16
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def ExpandMath : Pass<"fp8-expand-math"> {
  let summary = "expand math functions of f32 into straight-line arithmetic, the same on all targets";
  let description = [{
    Before: operations of the math dialect on f32, scalars or vectors. Operations on f16 and bf16
    have become operations on f32 before (`math-extend-to-supported-types`). Also `arith.remf` of up
    to 32 bits, and powers of integers, which are exact.
    After: exponentials, logarithms, powers, roots, trigonometric, hyperbolic and error
    functions are straight-line code of operations that every target rounds correctly
    (`arith`, `math.fma`, `math.sqrt`, and operations on bits), with selects in place of
    branches, so that LLVM vectorizes the loops around them. The result is the same, bit for bit,
    on every target. Its error is at most 4 units in the last place for every argument,
    and zeros, infinities, NaN and subnormal numbers give what IEEE 754 and C ask for
    (lib/Conversion/ExpandMath/README.md has the measured errors). `fastmath` flags are dropped.

    Operations on f64, and on tensors, stay, as do those that are exact everywhere: `math.absf`,
    `math.floor`, `math.fma`, `math.sqrt` and others.

    Example:
    ```mlir
    // fp8-opt --fp8-expand-math
    func.func @f(%x: f32, %y: f64) -> (f32, f64) {
      %a = math.rsqrt %x : f32
      %b = math.rsqrt %y : f64
      return %a, %b : f32, f64
    }
    ```
    becomes
    ```mlir
    func.func @f(%x: f32, %y: f64) -> (f32, f64) {
      %r = math.sqrt %x : f32
      %one = arith.constant 1.0 : f32
      %a = arith.divf %one, %r : f32
      %b = math.rsqrt %y : f64
      return %a, %b : f32, f64
    }
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

#endif // FP8_CONVERSION_PASSES_TD
