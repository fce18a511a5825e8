// RUN: fp8-opt %s --split-input-file --verify-diagnostics --fp8-return-errors | FileCheck %s -enable-var-scope

// One line with its place, and one block for all that fails; also from within a loop.
// CHECK: llvm.mlir.global internal constant @fp8_message_main_0("two lines ({{.*}}return-errors.mlir:{{[0-9]+}}:3)\00")
// CHECK: llvm.mlir.global internal constant @fp8_message_main_1("late (step ({{.*}}))\00")
// CHECK-LABEL: func @main
// CHECK-SAME: (%[[A:[a-z0-9]+]]: i1, %[[B:[a-z0-9]+]]: i1, %[[FRAME:[a-z0-9]+]]: !llvm.ptr) -> i32
// CHECK: %[[FIRST:.*]] = llvm.mlir.addressof @fp8_message_main_0
// CHECK: cf.cond_br %[[A]], ^[[LOOP:.*]], ^[[FAIL:.*]](%[[FIRST]] : !llvm.ptr)
// CHECK: %[[LATE:.*]] = llvm.mlir.addressof @fp8_message_main_1
// CHECK: cf.cond_br %[[B]], ^{{.*}}, ^[[FAIL]](%[[LATE]] : !llvm.ptr)
// CHECK: ^[[FAIL]](%[[LINE:.*]]: !llvm.ptr):
// CHECK: %[[CALL:.*]] = llvm.load %[[FRAME]]
// CHECK: %[[STATUS:.*]] = call @fp8_abi_fail(%[[CALL]], %[[LINE]])
// CHECK: return %[[STATUS]]
func.func private @fp8_abi_fail(!llvm.ptr, !llvm.ptr) -> i32
func.func @main(%a: i1, %b: i1, %frame: !llvm.ptr) -> i32 {
  cf.assert %a, "two\0Alines"
  cf.br ^loop
^loop:
  cf.assert %b, "late" loc("step"("main.py":3:4))
  cf.cond_br %a, ^loop, ^end
^end:
  %ok = arith.constant 0 : i32
  return %ok : i32
}

// -----

func.func private @kernel(%a: i1) {
  // expected-error @below {{cf.assert in code that runs in parallel, which is not supported: move it out of the loop}}
  cf.assert %a, "never"
  return
}

// -----

// A helper has written the reason already.
// CHECK-LABEL: func @told
// CHECK: %[[NULL:.*]] = llvm.mlir.zero : !llvm.ptr
// CHECK: cf.cond_br %{{.*}}, ^{{.*}}, ^{{.*}}(%[[NULL]] : !llvm.ptr)
func.func private @fp8_abi_fail(!llvm.ptr, !llvm.ptr) -> i32
func.func @told(%a: i1, %frame: !llvm.ptr) -> i32 {
  cf.assert %a, ""
  %ok = arith.constant 0 : i32
  return %ok : i32
}
