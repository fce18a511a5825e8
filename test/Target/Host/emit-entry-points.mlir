// RUN: fp8-opt %s --split-input-file --fp8-emit-entry-points=declare-helpers=true | FileCheck %s -enable-var-scope
// RUN: fp8-opt %s --split-input-file --fp8-emit-entry-points | FileCheck %s --check-prefix=HELPERS

// The checks first; nothing else where they fail.
// CHECK: func @fp8_call_step(%[[CALL:.*]]: !llvm.ptr) -> i32 attributes {fp8.workspace_bytes = 64 : i64}
// CHECK-DAG: %[[SPECS:.*]] = llvm.mlir.addressof @fp8_specs_step
// CHECK-DAG: %[[LINES:.*]] = llvm.mlir.addressof @fp8_lines_step
// CHECK: %[[CHECKED:.*]] = call @fp8_abi_check_call(%[[CALL]], %c2_i32, %c2_i32_0, %c64_i64, %[[SPECS]], %[[LINES]])
// CHECK: %[[STATUS:.*]] = scf.if
// CHECK: %[[W:.*]] = func.call @fp8_abi_argument(%[[CALL]], %c0_i64)
// CHECK: %[[X:.*]] = func.call @fp8_abi_argument(%[[CALL]], %c1_i64)
// CHECK: %[[R0:.*]] = func.call @fp8_abi_result(%[[CALL]]
// CHECK: %[[R1:.*]] = func.call @fp8_abi_result(%[[CALL]]
// CHECK: func.call @fp8_abi_workspace(%[[CALL]])
// CHECK: func.call @fp8_entry_step
// CHECK-SAME: (memref<4x8xf32>, memref<4xf8E4M3FN>, memref<i1>, memref<64xi8>) -> ()
// The carried result, if its tensor is other memory.
// CHECK: func.call @fp8_abi_copy(%[[R0]], %[[W]], %c128_i64
// CHECK-NOT: fp8_abi_copy
// CHECK: scf.yield %[[CHECKED]]
// CHECK: return %[[STATUS]]

// Version 1 of the call, host memory, a workspace aligned to 64 bytes; then DLPack's type, rank and sizes: f32 is code 2, 32 bits, one lane; f8E4M3FN is 10; bool is 6.
// CHECK: @fp8_specs_step(dense<[1, 1, 64, 73730, 2, 4, 8, 67594, 1, 4, 73730, 2, 4, 8, 67590, 0]>
// CHECK: @fp8_lines_step("this library needs version 1 of fp8rt_call\00
// CHECK-SAME: 'step': the number of arguments must be 2, that of results 2\00
// CHECK-SAME: 'step' needs a workspace of 64 bytes, aligned to 64\00
// CHECK-SAME: argument 0 'w': expected f32 [4, 8] (row-major, in host memory)\00
// CHECK-SAME: argument 1 'arg1': expected f8E4M3FN [4] (row-major, in host memory)\00
// CHECK-SAME: result 0: expected f32 [4, 8] (row-major, in host memory)\00
// CHECK-SAME: result 1: expected i1 [] (row-major, in host memory)\00

// CHECK: func private @fp8_entry_step(%{{.*}}: memref<4x8xf32>, %{{.*}}: memref<4xf8E4M3FN>, %{{.*}}: memref<i1>, %{{.*}}: memref<64xi8>)
// CHECK: func private @fp8_abi_check_call(!llvm.ptr, i32, i32, i64, !llvm.ptr, !llvm.ptr) -> i32{{$}}

// HELPERS: func.func private @fp8_abi_check_call({{.*}}) -> i32 {
func.func public @step(%w: memref<4x8xf32> {tf.aliasing_output = 0 : i32} loc("w"), %x: memref<4xf8E4M3FN>,
                       %out: memref<i1> {fp8.result = 1 : i32}, %workspace: memref<64xi8>)
    attributes {fp8.workspace_bytes = 64 : i64} {
  return
}

// -----

// Sizes come from the call. A carried result has those of its argument (-2: of argument 0),
// another is the caller's to allocate (rank -1). Memory that the entry left on the heap
// is freed before its status is looked at.
// CHECK-LABEL: func @fp8_call_dynamic
// CHECK: %[[W:.*]] = func.call @fp8_abi_argument(%[[CALL:.*]], %c0_i64
// CHECK: %[[R0:.*]] = func.call @fp8_abi_result
// CHECK: func.call @fp8_abi_size(%[[CALL]], %c0_i64{{.*}}, %c0_i64
// CHECK: %[[FRAME:.*]] = llvm.alloca
// CHECK: llvm.store %[[CALL]], %[[FRAME]]
// CHECK: %[[STATUS:.*]] = func.call @fp8_entry_dynamic(%{{.*}}, %[[FRAME]]) : (memref<?x8xf32>, !llvm.ptr) -> i32
// CHECK-NEXT: func.call @fp8_abi_release(%[[FRAME]])
// CHECK: %[[GOOD:.*]] = arith.cmpi eq, %[[STATUS]]
// CHECK: scf.if %[[GOOD]]
// CHECK: func.call @fp8_abi_copy(%[[R0]], %[[W]]
// CHECK: scf.yield %[[STATUS]]
// CHECK: @fp8_specs_dynamic(dense<[1, 1, 64, 73730, 2, -1, 8, 73730, 2, -2, 8, 67594, -1]>
// CHECK: argument 0 'w': expected f32 [?, 8] (row-major, in host memory)\00
// CHECK-SAME: result 0: expected f32 [?, 8] (row-major, in host memory)\00
// CHECK-SAME: result 1: expected f8E4M3FN [3, ?] (in host memory that the call's 'allocate' gives)\00
func.func public @dynamic(%w: memref<?x8xf32> {tf.aliasing_output = 0 : i32} loc("w"), %frame: !llvm.ptr) -> i32
    attributes {fp8.allocated_results = {"1" = memref<3x?xf8E4M3FN>}, fp8.workspace_bytes = 0 : i64} {
  %ok = arith.constant 0 : i32
  return %ok : i32
}
