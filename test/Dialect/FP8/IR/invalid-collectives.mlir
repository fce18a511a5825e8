// Groups that a grid does not have, and sizes that do not fit the group.
// RUN: fp8-opt %s -split-input-file -verify-diagnostics

func.func @axis(%v: tensor<4xf32>) {
  // expected-error@+1 {{names axis 2 of a grid of 2}}
  %0 = fp8.all_reduce sum on(2x4) axes [2] ins(%v : tensor<4xf32>) outs(%v : tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @twice(%v: tensor<4xf32>) {
  // expected-error@+1 {{names axis 1 twice}}
  %0 = fp8.all_reduce sum on(2x4) axes [1, 1] ins(%v : tensor<4xf32>) outs(%v : tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @unknown(%v: tensor<4xf32>) {
  // expected-error@+1 {{has a grid with two unknown extents; the number of ranks gives only one}}
  %0 = fp8.all_reduce sum on(?x?) axes [1] ins(%v : tensor<4xf32>) outs(%v : tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @bytes(%v: tensor<4xf8E4M3FN>) {
  // expected-error@+1 {{cannot combine elements of type 'f8E4M3FN'; there are f16, bf16, f32, f64, i8, i32 and i64}}
  %0 = fp8.all_reduce max on(4) axes [0] ins(%v : tensor<4xf8E4M3FN>) outs(%v : tensor<4xf8E4M3FN>) -> tensor<4xf8E4M3FN>
  return
}

// -----

func.func @scatter(%v: tensor<8xf32>, %i: tensor<4xf32>) {
  // expected-error@+1 {{dimension 0 has size 4 in the result and 8 in the input, for 4 ranks}}
  %0 = fp8.reduce_scatter sum dim 0 on(4) axes [0] ins(%v : tensor<8xf32>) outs(%i : tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @root(%v: tensor<8xf32>) {
  // expected-error@+1 {{rank 4 is not in the group of 4}}
  %0 = fp8.broadcast 4 on(4) axes [0] ins(%v : tensor<8xf32>) outs(%v : tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @parts(%v: tensor<6xf32>) {
  // expected-error@+1 {{size 6 of dimension 0 is no multiple of the 4 ranks of a group}}
  %0 = fp8.all_to_all on(4) axes [0] ins(%v : tensor<6xf32>) outs(%v : tensor<6xf32>) -> tensor<6xf32>
  return
}

// -----

func.func @half(%v: memref<6xf32>) {
  // expected-error@+1 {{names no axis of the grid}}
  %0 = fp8.start_collective all_reduce sum root 0 on(4) axes [] of("v") from(%v : memref<6xf32>) to(%v : memref<6xf32>)
  return
}
