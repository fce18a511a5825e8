// Casts become launches of kernels that read their tensor once; values: test/python/gpu/test_casts.py.
// RUN: fp8-opt %s -split-input-file --remarks-filter=fp8-kernels --convert-fp8-to-gpu --canonicalize --cse -verify-diagnostics | FileCheck %s

// Rows and columns in one kernel, which equal casts share; 3 x 2 tiles.
module attributes {fp8.target = #fp8.chip<"sm_90a">} {
  // CHECK-LABEL: func.func @rows_and_columns
  // CHECK-SAME: %[[X:.+]]: memref<300x200xbf16>, %[[Y:[^:]+]]: memref<300x200xbf16>
  // CHECK: gpu.launch_func @kernels::@[[$KERNEL:kernel_quantize]] blocks in (%c6, %c1, %c1) threads in (%c256, %c1, %c1) args(%[[X]]
  // CHECK-SAME: fp8.kernel_cost = {read = 120004 : i64, written = 120004 : i64}
  // CHECK: gpu.launch_func @kernels::@[[$KERNEL]] blocks in (%c6, %c1, %c1) threads in (%c256, %c1, %c1) args(%[[Y]]
  func.func @rows_and_columns(%x: memref<300x200xbf16>, %y: memref<300x200xbf16>, %s: memref<f32>, %i: memref<f32>,
      %d: memref<300x200xf8E4M3FN>, %t: memref<200x300xf8E4M3FN>) {
    fp8.quantize ins(%x : memref<300x200xbf16>) scale(%s : memref<f32>)
        outs(%d, %t, %i : memref<300x200xf8E4M3FN>, memref<200x300xf8E4M3FN>, memref<f32>) {transposition = array<i64: 1, 0>}
    fp8.quantize ins(%y : memref<300x200xbf16>) scale(%s : memref<f32>)
        outs(%d, %t, %i : memref<300x200xf8E4M3FN>, memref<200x300xf8E4M3FN>, memref<f32>) {transposition = array<i64: 1, 0>}
    return
  }
  // CHECK: gpu.module @kernels
  // CHECK: memref.global "private" @[[TILE:.+]] : memref<128x32xi32, 3>
  // CHECK: func.func @[[$KERNEL]](
  // CHECK-SAME: fp8.kernel_kind = "casts", fp8.threads = 256 : i32, gpu.kernel, llvm.bareptr
  // CHECK: arith.divf
  // CHECK: llvm.load %{{.+}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xbf16>
  // CHECK: nvvm.convert.f32x2.to.f8x2
  // CHECK: llvm.store %{{.+}} {alignment = 8 : i64} : vector<2xi32>, !llvm.ptr<1>
  // CHECK: llvm.call_intrinsic "llvm.nvvm.prmt"
  // CHECK-NOT: nvvm.redux
  // CHECK: nvvm.barrier
  // CHECK: vector.load {{.+}} : memref<128x32xi32, 3>, vector<4xi32>
  // CHECK-NOT: func.func
}

// -----

// Rows alone need no shared memory.
module attributes {fp8.target = #fp8.chip<"sm_89">} {
  // CHECK-LABEL: func.func @rows
  // CHECK: gpu.module @kernels
  // CHECK-NOT: memref.global
  // CHECK-NOT: nvvm.barrier
  // CHECK: return
  func.func @rows(%x: memref<2x64x128xf32>, %s: memref<f32>, %i: memref<f32>, %d: memref<2x64x128xf8E5M2>) {
    fp8.quantize ins(%x : memref<2x64x128xf32>) scale(%s : memref<f32>)
        outs(%d, %i : memref<2x64x128xf8E5M2>, memref<f32>)
    return
  }
}

// -----

// A permutation that moves other dimensions than the last one is a kernel of its own, on bytes.
module attributes {fp8.target = #fp8.chip<"sm_89">} {
  // CHECK-LABEL: func.func @permuted
  // CHECK: gpu.launch_func @kernels::@kernel_quantize
  // CHECK: gpu.launch_func @kernels::@kernel_transpose {{.*}} args(%[[D:.+]] : memref<2x3x16x24xf8E4M3FN>, %{{.+}} : memref<16x2x24x3xf8E4M3FN>)
  // CHECK: func.func @kernel_transpose
  // CHECK-NOT: nvvm.convert
  // CHECK: return
  func.func @permuted(%x: memref<2x3x16x24xbf16>, %s: memref<f32>, %i: memref<f32>, %d: memref<2x3x16x24xf8E4M3FN>,
                      %t: memref<16x2x24x3xf8E4M3FN>) {
    fp8.quantize ins(%x : memref<2x3x16x24xbf16>) scale(%s : memref<f32>)
        outs(%d, %t, %i : memref<2x3x16x24xf8E4M3FN>, memref<16x2x24x3xf8E4M3FN>, memref<f32>)
        {transposition = array<i64: 2, 0, 3, 1>}
    return
  }
}

// -----

// The amaxes that a block allocates are elements of a vector, cleared by one launch; others are cleared one by one.
module attributes {fp8.target = #fp8.chip<"sm_89">} {
  // CHECK-LABEL: func.func @amaxes
  // CHECK-SAME: %[[A:[^:]+]]: memref<f32>)
  // CHECK: %[[V:.+]] = memref.alloc() : memref<2xf32>
  // CHECK-NEXT: gpu.launch_func @kernels::@kernel_clear_amax {{.+}} args(%[[V]] : memref<2xf32>, %c2_i32 : i32)
  // CHECK: %[[V0:.+]] = memref.subview %[[V]][0]
  // CHECK: %[[V1:.+]] = memref.subview %[[V]][1]
  // CHECK: gpu.launch_func @kernels::@kernel_quantize {{.+}} %[[V0]] : memref<f32, strided<[]>>)
  // CHECK: gpu.launch_func @kernels::@kernel_quantize {{.+}} %[[V1]] : memref<f32, strided<[], offset: 1>>)
  // CHECK: gpu.launch_func @kernels::@kernel_clear_amax {{.+}} args(%[[A]] : memref<f32>, %c1_i32 : i32)
  // CHECK-NEXT: gpu.launch_func @kernels::@kernel_quantize {{.+}} %[[A]] : memref<f32>)
  // CHECK: llvm.atomicrmw umax
  func.func @amaxes(%x: memref<8x128xf32>, %s: memref<f32>, %i: memref<f32>, %d: memref<8x128xf8E4M3FN>,
                    %sum: memref<f32>, %a: memref<f32>) {
    %a0 = memref.alloc() : memref<f32>
    fp8.quantize record_amax ins(%x : memref<8x128xf32>) scale(%s : memref<f32>)
        outs(%d, %i, %a0 : memref<8x128xf8E4M3FN>, memref<f32>, memref<f32>)
    %a1 = memref.alloc() : memref<f32>
    fp8.quantize record_amax ins(%x : memref<8x128xf32>) scale(%s : memref<f32>)
        outs(%d, %i, %a1 : memref<8x128xf8E4M3FN>, memref<f32>, memref<f32>)
    fp8.quantize record_amax ins(%x : memref<8x128xf32>) scale(%s : memref<f32>)
        outs(%d, %i, %a : memref<8x128xf8E4M3FN>, memref<f32>, memref<f32>)
    %0 = memref.load %a0[] : memref<f32>
    memref.store %0, %sum[] : memref<f32>
    return
  }
}

// -----

// So are the elements of a vector that the program allocates.
module attributes {fp8.target = #fp8.chip<"sm_89">} {
  // CHECK-LABEL: func.func @vector
  // CHECK: %[[V:.+]] = memref.alloc() : memref<3xf32>
  // CHECK-NEXT: gpu.launch_func @kernels::@kernel_clear_amax {{.+}} args(%[[V]] : memref<3xf32>, %c3_i32 : i32)
  // CHECK-NOT: clear_amax
  // CHECK: gpu.module
  func.func @vector(%x: memref<8x128xf32>, %s: memref<f32>, %i: memref<f32>, %d: memref<8x128xf8E4M3FN>, %out: memref<3xf32>) {
    %v = memref.alloc() : memref<3xf32>
    %a0 = memref.subview %v[0] [1] [1] : memref<3xf32> to memref<f32, strided<[]>>
    fp8.quantize record_amax ins(%x : memref<8x128xf32>) scale(%s : memref<f32>)
        outs(%d, %i, %a0 : memref<8x128xf8E4M3FN>, memref<f32>, memref<f32, strided<[]>>)
    %a2 = memref.subview %v[2] [1] [1] : memref<3xf32> to memref<f32, strided<[], offset: 2>>
    fp8.quantize record_amax ins(%x : memref<8x128xf32>) scale(%s : memref<f32>)
        outs(%d, %i, %a2 : memref<8x128xf8E4M3FN>, memref<f32>, memref<f32, strided<[], offset: 2>>)
    memref.copy %v, %out : memref<3xf32> to memref<3xf32>
    return
  }
}

// -----

// Sums over 256 rows: partial sums of two tiles, added by a second kernel.
module attributes {fp8.target = #fp8.chip<"sm_89">} {
  // CHECK-LABEL: func.func @sums
  // CHECK-SAME: %[[B:[^:]+]]: memref<64xf32>)
  // CHECK: %[[P:.+]] = memref.alloc() : memref<2x64xf32>
  // CHECK: gpu.launch_func @kernels::@kernel_quantize {{.+}} %[[P]] : memref<2x64xf32>
  // CHECK: gpu.launch_func @kernels::@kernel_sum_of_rows {{.+}} args(%[[P]] : memref<2x64xf32>, %[[B]] : memref<64xf32>)
  func.func @sums(%x: memref<256x64xf32>, %s: memref<f32>, %i: memref<f32>, %d: memref<256x64xf8E5M2>, %b: memref<64xf32>) {
    fp8.quantize ins(%x : memref<256x64xf32>) scale(%s : memref<f32>)
        outs(%d, %i, %b : memref<256x64xf8E5M2>, memref<f32>, memref<64xf32>)
        {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>]} producer {
      ^bb0(%v: f32):
        fp8.yield %v, %v : f32, f32
    }
    return
  }
}

// -----

// A number of rows that only the call knows: an argument, as is the distance of the columns; the grid and the parts of a sum
// are computed by the host.
module attributes {fp8.target = #fp8.chip<"sm_89">} {
  // CHECK-LABEL: func.func @dynamic_rows
  // CHECK-SAME: %[[X:.+]]: memref<?x5x200xbf16>, {{.+}}, %[[T:.+]]: memref<200x?x5xf8E4M3FN>, %[[B:.+]]: memref<200xf32>)
  // CHECK-DAG: %[[SIZE:.+]] = memref.dim %[[X]], %c0
  // CHECK-DAG: %[[ROWS:.+]] = arith.muli %[[SIZE]], %c5
  // CHECK-DAG: %[[CEIL:.+]] = arith.ceildivui %[[ROWS]], %c128
  // CHECK-DAG: %[[ROW_TILES:.+]] = arith.maxui %[[CEIL]], %c1
  // CHECK-DAG: %[[TILES:.+]] = arith.muli %[[ROW_TILES]], %c2
  // CHECK-DAG: %[[PARTS:.+]] = memref.alloc(%[[ROW_TILES]]) : memref<?x200xf32>
  // CHECK-DAG: %[[ROWS32:.+]] = arith.index_cast %[[ROWS]] : index to i32
  // CHECK-DAG: %{{.+}}, %{{.+}}, %{{.+}}:3, %[[STRIDES:.+]]:3 = memref.extract_strided_metadata %[[T]]
  // CHECK-DAG: %[[PITCH:.+]] = arith.index_cast %[[STRIDES]]#0 : index to i64
  // CHECK: gpu.launch_func @kernels::@kernel_quantize blocks in (%[[TILES]], %c1, %c1) threads in (%c256, %c1, %c1) args(%[[X]]
  // CHECK-SAME: %[[ROWS32]] : i32, %[[PITCH]] : i64)
  // CHECK-DAG: %[[COUNT:.+]] = arith.index_cast %[[ROW_TILES]] : index to i32
  // CHECK: gpu.launch_func @kernels::@kernel_sum_of_rows {{.+}} args(%[[PARTS]] : memref<?x200xf32>, %[[B]] : memref<200xf32>, %[[COUNT]] : i32)
  func.func @dynamic_rows(%x: memref<?x5x200xbf16>, %s: memref<f32>, %i: memref<f32>, %d: memref<?x5x200xf8E4M3FN>,
      %t: memref<200x?x5xf8E4M3FN>, %b: memref<200xf32>) {
    fp8.quantize ins(%x : memref<?x5x200xbf16>) scale(%s : memref<f32>)
        outs(%d, %t, %i, %b : memref<?x5x200xf8E4M3FN>, memref<200x?x5xf8E4M3FN>, memref<f32>, memref<200xf32>)
        {transposition = array<i64: 2, 0, 1>,
         indexing_maps = [affine_map<(b, m, n) -> (b, m, n)>, affine_map<(b, m, n) -> (n)>]} producer {
      ^bb0(%v: bf16):
        %w = arith.extf %v : bf16 to f32
        fp8.yield %v, %w : bf16, f32
    }
    return
  }

  // A batch is a factor of the grid. Only whole heads are computed, of a batch that is in the tensor.
  // CHECK-LABEL: func.func @dynamic_batch
  // CHECK: %[[SIZE:.+]] = memref.dim
  // CHECK: %[[HEADS:.+]] = arith.muli %[[SIZE]], %c4
  // CHECK: %[[TILES:.+]] = arith.maxui %[[HEADS]], %c1
  // CHECK: %[[HEADS32:.+]] = arith.index_cast %[[HEADS]] : index to i32
  // CHECK: gpu.launch_func @kernels::@[[KERNEL:.+]] blocks in (%[[TILES]], %c1, %c1) {{.+}}, %[[HEADS32]] : i32)
  // CHECK: func.func @[[KERNEL]]({{.+}}, %[[ARGUMENT:[^:]+]]: i32)
  // CHECK: arith.cmpi slt, %{{.+}}, %[[ARGUMENT]] : i32
  func.func @dynamic_batch(%x: memref<?x4x128x128xbf16>, %s: memref<f32>, %i: memref<f32>,
      %d: memref<?x4x128x128xf8E4M3FN>, %t: memref<?x4x128x128xf8E4M3FN>) {
    fp8.quantize ins(%x : memref<?x4x128x128xbf16>) scale(%s : memref<f32>)
        outs(%d, %t, %i : memref<?x4x128x128xf8E4M3FN>, memref<?x4x128x128xf8E4M3FN>, memref<f32>)
        {transposition = array<i64: 0, 1, 3, 2>}
    return
  }
}

// -----

// A cast that the kernel cannot do is left for convert-fp8-to-linalg.
module attributes {fp8.target = #fp8.chip<"sm_89">} {
  // CHECK-LABEL: func.func @dynamic
  // CHECK: fp8.quantize
  func.func @dynamic(%x: memref<64x?xf32>, %s: memref<f32>, %i: memref<f32>, %d: memref<64x?xf8E4M3FN>) {
    // expected-remark @below {{'fp8.quantize' stays generic code on the GPU: the size of its last dimension is dynamic}}
    fp8.quantize ins(%x : memref<64x?xf32>) scale(%s : memref<f32>) outs(%d, %i : memref<64x?xf8E4M3FN>, memref<f32>)
    return
  }

  // The loop over rows becomes one kernel as a whole.
  // CHECK-LABEL: func.func @in_rows
  // CHECK: fp8.quantize
  func.func @in_rows(%x: memref<32x64xf32>, %s: memref<f32>, %i: memref<f32>, %d: memref<32x64xf8E4M3FN>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    scf.parallel (%row) = (%c0) to (%c32) step (%c1) {
      %r = memref.subview %x[%row, 0] [1, 64] [1, 1] : memref<32x64xf32> to memref<64xf32, strided<[1], offset: ?>>
      %q = memref.subview %d[%row, 0] [1, 64] [1, 1] : memref<32x64xf8E4M3FN> to memref<64xf8E4M3FN, strided<[1], offset: ?>>
      fp8.quantize ins(%r : memref<64xf32, strided<[1], offset: ?>>) scale(%s : memref<f32>)
          outs(%q, %i : memref<64xf8E4M3FN, strided<[1], offset: ?>>, memref<f32>)
    }
    return
  }
}
