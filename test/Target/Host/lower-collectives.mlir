// Collectives become calls, with constant data for what is known; the number of ranks is checked first.
// RUN: fp8-opt %s --fp8-lower-collectives | FileCheck %s -enable-var-scope

module attributes {fp8.grid = array<i64: 2, 4>} {
  // Kind 0, reduction 1, type 6, root 0; two axes, of which the second is the group's; a name ending in NUL.
  // CHECK-DAG: @fp8_step_{{[0-9]+}}("\00\00\00\00\01\00\00\00\06\00\00\00\00\00\00\00")
  // CHECK-DAG: @fp8_grid_{{[0-9]+}}("\02\00\00\00\00\00\00\00\04\00\00\00\00\00\00\00")
  // CHECK-DAG: @fp8_name_{{[0-9]+}}("amaxes\00")
  // CHECK-LABEL: func.func @main
  // CHECK: %[[COUNT:.+]] = call @fp8_abi_rank_count(%[[FRAME:.+]]) : (!llvm.ptr) -> i64
  // CHECK: %[[FITS:.+]] = arith.cmpi eq, %[[COUNT]], %c8_i64
  // CHECK: cf.assert %[[FITS]], "this program runs on 8 ranks (grid 2x4), and the call's communicator has another number"
  // CHECK: %[[NAME:.+]] = llvm.mlir.addressof @fp8_name
  // CHECK: %[[GOOD:.+]] = call @fp8_abi_start(%[[FRAME]], {{.+}}, %c5_i64{{.*}}, %c20_i64{{.*}}, %[[NAME]], {{.+}}) : {{.+}} -> i1
  // CHECK: cf.assert %[[GOOD]], ""
  // CHECK: %[[TICKET:.+]] = llvm.load
  // CHECK: call @fp8_abi_wait(%[[FRAME]], %[[TICKET]])
  func.func @main(%g: memref<5xf32>, %frame: !llvm.ptr) -> i32 {
    %t = fp8.start_collective all_reduce max root 0 on(2x4) axes [1] of("amaxes") from(%g : memref<5xf32>) to(%g : memref<5xf32>)
    fp8.wait_collective %t from(%g : memref<5xf32>) to(%g : memref<5xf32>)
    %status = arith.constant 0 : i32
    return %status : i32
  }
}
