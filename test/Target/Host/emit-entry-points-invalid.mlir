// RUN: fp8-opt %s --split-input-file --verify-diagnostics --fp8-emit-entry-points

// expected-error @below {{'results' returns values: run fp8-allocate-dynamic first}}
func.func @results(%x: memref<4xf32>) -> memref<4xf32> {
  return %x : memref<4xf32>
}

// -----

// expected-error @below {{argument 0 of 'strided' has type 'memref<4xf32, strided<[2]>>': only row-major}}
func.func @strided(%x: memref<4xf32, strided<[2]>>) {
  return
}

// -----

// expected-error @below {{argument 0 of 'odd' has elements of type 'i4', which the C interface cannot describe}}
func.func @odd(%x: memref<4xi4>) {
  return
}

// -----

// expected-error @below {{no argument of 'gap' holds result 0}}
func.func @gap(%x: memref<4xf32> {fp8.result = 1 : i32}) {
  return
}
