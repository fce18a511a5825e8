// RUN: fp8-opt %s --fp8-emit-entry-points='on-device=true declare-helpers=true' | FileCheck %s -enable-var-scope
// RUN: fp8-opt %s --fp8-emit-entry-points=on-device=true | FileCheck %s --check-prefix=HELPERS

// A carried result is copied by the device, and the copy may fail too.
// CHECK: func @fp8_call_step(%[[CALL:.*]]: !llvm.ptr) -> i32
// CHECK-SAME: fp8.capturable = true
// CHECK: %[[W:.*]] = func.call @fp8_abi_argument(%[[CALL]]
// CHECK: %[[R0:.*]] = func.call @fp8_abi_result(%[[CALL]]
// CHECK: %[[STATUS:.*]] = func.call @fp8_entry_step
// CHECK: func.call @fp8_abi_release
// CHECK: %[[COPIED:.*]] = func.call @fp8_abi_copy_on_device(%[[CALL]], %[[STATUS]], %[[R0]], %[[W]], %c128_i64
// CHECK: scf.yield %[[COPIED]]
// Version 2 of the call, memory of a GPU, a workspace aligned to 256 bytes.
// CHECK: @fp8_specs_step(dense<[2, 2, 256, 73730, 2, 4, 8, 73730, 2, 4, 8]>
// CHECK: @fp8_lines_step("this library runs on a GPU: pass a device (version 2 of fp8rt_call, version 2 of fp8rt_device)\00
// CHECK-SAME: argument 0 'w': expected f32 [4, 8] (row-major, in memory of the device)\00
// CHECK: func private @fp8_entry_step
// CHECK-NOT: fp8.capturable

// HELPERS-NOT: aligned_alloc
// HELPERS: func.func private @fp8_abi_launch({{.*}}) -> i1 {
module attributes {fp8.target = #fp8.chip<"sm_89">} {
  func.func public @step(%w: memref<4x8xf32> {tf.aliasing_output = 0 : i32} loc("w"), %frame: !llvm.ptr) -> i32
      attributes {fp8.workspace_bytes = 0 : i64, fp8.capturable = true} {
    %ok = arith.constant 0 : i32
    return %ok : i32
  }
}
