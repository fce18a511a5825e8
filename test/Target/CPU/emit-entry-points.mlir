// RUN: fp8-opt %s --fp8-emit-entry-points=declare-helpers=true | FileCheck %s -enable-var-scope
// RUN: fp8-opt %s --fp8-emit-entry-points | FileCheck %s --check-prefix=HELPERS

// The checks first; nothing else where they fail.
// CHECK: func @fp8_call_step(%[[CALL:.*]]: !llvm.ptr) -> i32 attributes {fp8.workspace_bytes = 64 : i64}
// CHECK-DAG: %[[SPECS:.*]] = llvm.mlir.addressof @fp8_specs_step
// CHECK-DAG: %[[LINES:.*]] = llvm.mlir.addressof @fp8_lines_step
// CHECK: %[[STATUS:.*]] = call @fp8_abi_check_call(%[[CALL]], %c2_i32, %c2_i32_0, %c64_i64, %[[SPECS]], %[[LINES]])
// CHECK: scf.if
// CHECK: %[[W:.*]] = func.call @fp8_abi_argument(%[[CALL]], %c0_i64)
// CHECK: %[[X:.*]] = func.call @fp8_abi_argument(%[[CALL]], %c1_i64)
// CHECK: %[[R0:.*]] = func.call @fp8_abi_result(%[[CALL]]
// CHECK: %[[R1:.*]] = func.call @fp8_abi_result(%[[CALL]]
// CHECK: func.call @fp8_abi_workspace(%[[CALL]])
// CHECK: func.call @fp8_entry_step
// CHECK-SAME: (memref<4x8xf32>, memref<4xf8E4M3FN>, memref<i1>, memref<64xi8>) -> ()
// The carried result, if its tensor is other memory.
// CHECK: func.call @fp8_abi_copy(%[[R0]], %[[W]], %c128_i64)
// CHECK-NOT: fp8_abi_copy
// CHECK: return %[[STATUS]]

// DLPack's type, rank and sizes: f32 is code 2, 32 bits, one lane; f8E4M3FN is 10; bool is 6.
// CHECK: @fp8_specs_step(dense<[73730, 2, 4, 8, 67594, 1, 4, 73730, 2, 4, 8, 67590, 0]>
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
