// RUN: fp8-opt %s --fp8-annotate-alias-scopes | FileCheck %s -enable-var-scope

// CHECK-DAG: #[[$X:.*]] = #llvm.alias_scope<id = "kernel_0.0", domain = #[[D:.*]]>
// CHECK-DAG: #[[$Y:.*]] = #llvm.alias_scope<id = "kernel_0.1", domain = #[[D]]>

// Through address arithmetic, and inside of a parallel region.
// CHECK-LABEL: llvm.func @kernel_0
// CHECK: llvm.load %{{.*}} {alias_scopes = [#[[$X]]], noalias_scopes = [#[[$Y]]]}
// CHECK: llvm.store %{{.*}} {alias_scopes = [#[[$Y]]], noalias_scopes = [#[[$X]]]}
// An argument without the promise gets no scope.
// CHECK: llvm.store %{{[^{]*}} : f32, !llvm.ptr
llvm.func @kernel_0(%x: !llvm.ptr {llvm.noalias}, %y: !llvm.ptr {llvm.noalias}, %z: !llvm.ptr) {
  omp.parallel {
    %0 = llvm.getelementptr %x[4] : (!llvm.ptr) -> !llvm.ptr, f32
    %1 = llvm.load %0 : !llvm.ptr -> f32
    llvm.store %1, %y : f32, !llvm.ptr
    llvm.store %1, %z : f32, !llvm.ptr
    omp.terminator
  }
  llvm.return
}

// One pointer alone has nothing to be told apart from.
// CHECK-LABEL: llvm.func @kernel_1
// CHECK-NOT: alias_scopes
llvm.func @kernel_1(%x: !llvm.ptr {llvm.noalias}) {
  %0 = llvm.load %x : !llvm.ptr -> f32
  llvm.store %0, %x : f32, !llvm.ptr
  llvm.return
}
