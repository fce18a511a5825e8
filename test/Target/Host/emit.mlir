// RUN: fp8-compile %s --recipe=none --emit=llvm -o %t.ll && FileCheck %s --input-file=%t.ll
// RUN: fp8-compile %s --recipe=none --emit=obj -o %t.o && llvm-nm --extern-only --defined-only %t.o | FileCheck %s --check-prefix=SYMBOLS
// RUN: fp8-compile %s --recipe=none -o %t.so && llvm-readelf --dynamic %t.so | FileCheck %s --check-prefix=NEEDED
// RUN: not fp8-compile %s --recipe=none -o %t.missing/x.so 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: mkdir -p %t.folder && not fp8-compile %s --recipe=none --emit=obj -o %t.folder 2>&1 | FileCheck %s --check-prefix=FOLDER
// RUN: ls %t.folder | count 0

// A device is written to, not replaced.
// RUN: fp8-compile %s --recipe=none --emit=llvm -o /dev/stdout | FileCheck %s

// Only the C ABI is visible; the processor's bf16 conversions, which flush denormals, are off.
// CHECK-DAG: define internal {{.*}}void @kernel_
// CHECK-DAG: define {{.*}}i32 @fp8_call_main
// CHECK-DAG: define {{.*}}ptr @fp8_manifest
// CHECK: attributes {{.*}} "target-features"="{{.*}}-avx512bf16

// SYMBOLS: T fp8_call_main
// SYMBOLS-NEXT: T fp8_kernels
// SYMBOLS-NEXT: T fp8_manifest
// SYMBOLS-NOT: T

// This program calls no function of OpenMP.
// NEEDED-NOT: libomp
// NEEDED: Shared library: [libm.so.6]

// MISSING: error: cannot write '{{.*}}x.so': No such file or directory
// FOLDER: error: cannot write '{{.*}}.folder': Is a directory
func.func @main(%x: tensor<4xf32>) -> tensor<4xbf16> {
  %empty = tensor.empty() : tensor<4xbf16>
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<4xf32>) outs(%empty : tensor<4xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %0 = arith.truncf %in : f32 to bf16
    linalg.yield %0 : bf16
  } -> tensor<4xbf16>
  return %y : tensor<4xbf16>
}
