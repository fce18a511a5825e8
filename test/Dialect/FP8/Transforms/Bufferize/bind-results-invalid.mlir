// RUN: fp8-opt %s --split-input-file --verify-diagnostics --fp8-bind-results

// expected-error @below {{argument 0 of 'complex' has type 'tensor<4xcomplex<f32>>': only tensors and scalars of floats and integers can be arguments and results}}
func.func @complex(%x: tensor<4xcomplex<f32>>) {
  return
}

// -----

// expected-error @below {{argument 0 of 'no_such_result' carries result 1, but there are only 1 results}}
func.func @no_such_result(%x: tensor<4xf32> {tf.aliasing_output = 1 : i32}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// expected-error @below {{argument 1 of 'twice' carries result 0, which argument 0 carries already}}
func.func @twice(%x: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %y: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// expected-error @below {{argument 0 of 'other_type' carries result 0 of type 'tensor<4xbf16>', but its own type is 'tensor<4xf32>'}}
func.func @other_type(%x: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %y: tensor<4xbf16>) -> tensor<4xbf16> {
  return %y : tensor<4xbf16>
}

// -----

// expected-error @below {{'blocks' branches between blocks: use structured control flow (scf)}}
func.func @blocks(%x: tensor<4xf32>) -> tensor<4xf32> {
  cf.br ^end
^end:
  return %x : tensor<4xf32>
}

// -----

func.func private @elsewhere(tensor<4xf32>) -> tensor<4xf32>

func.func @calls(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'calls' calls a function that cannot be inlined: functions must not call themselves and need a body in this module}}
  %0 = func.call @elsewhere(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

memref.global "private" @counter : memref<i32> = dense<0>

func.func @global(%x: tensor<4xf32>) -> i32 {
  // expected-error @below {{global 'counter' can be written: pass what 'global' keeps between calls as an argument and a result}}
  %memory = memref.get_global @counter : memref<i32>
  %value = memref.load %memory[] : memref<i32>
  return %value : i32
}

// -----

// Constants are no state.
memref.global "private" constant @table : memref<i32> = dense<7>

func.func @constant(%x: tensor<4xf32>) -> i32 {
  %memory = memref.get_global @table : memref<i32>
  %value = memref.load %memory[] : memref<i32>
  return %value : i32
}

// -----

llvm.mlir.global internal @seed(1 : i32) : i32
func.func @main() -> tensor<i32> {
  // expected-error @+1 {{global 'seed' can be written: pass what 'main' keeps between calls as an argument and a result}}
  %memory = llvm.mlir.addressof @seed : !llvm.ptr
  %v = llvm.load %memory : !llvm.ptr -> i32
  %t = tensor.from_elements %v : tensor<i32>
  return %t : tensor<i32>
}

// -----

// expected-error@+1 {{argument 0 of 'f' is not result 0, as 'fp8.returned' says}}
func.func @f(%x: tensor<4xf32> {fp8.returned = 0 : i32}) -> tensor<4xf32> {
  %y = arith.negf %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
