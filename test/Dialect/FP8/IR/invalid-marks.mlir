// RUN: fp8-opt %s -split-input-file -verify-diagnostics

// Discardable attributes of the dialect: their names, what they stand on, and their types (Marks.def).

// expected-error @+1 {{attribute 'fp8.mixed_precison' is unknown; the nearest of the dialect's is 'fp8.mixed_precision'}}
func.func @main() attributes {fp8.mixed_precison = "bf16"} {
  return
}

// -----

// expected-error @+1 {{attribute 'fp8.statee' is unknown; the nearest of the dialect's is 'fp8.state'}}
func.func @main(%x: tensor<4xf32> {fp8.statee = "scale"}) {
  return
}

// -----

// expected-error @+1 {{attribute 'fp8.unsinged' is unknown; the nearest of the dialect's is 'fp8.unsigned'}}
func.func @main(%x: tensor<4xi32>) -> (tensor<4xi32> {fp8.unsinged}) {
  return %x : tensor<4xi32>
}

// -----

// expected-error @+1 {{attribute 'fp8.site' is for operations, and not for arguments or results}}
func.func @main(%x: tensor<4xf32> {fp8.site = "fc"}) {
  return
}

// -----

// expected-error @+1 {{attribute 'fp8.batch' is for arguments and results of functions}}
func.func @main() attributes {fp8.batch = 0 : i64} {
  return
}

// -----

// expected-error @+1 {{attribute 'fp8.batch' must be an integer}}
func.func @main(%x: tensor<4xf32> {fp8.batch = "0"}) {
  return
}

// -----

// expected-error @+1 {{attribute 'fp8.shard' must be array<i64: …>}}
func.func @main(%x: tensor<4xf32> {fp8.shard = [0, 1]}) {
  return
}

// -----

// expected-error @+1 {{attribute 'fp8.unsigned' must be without a value}}
func.func @main(%x: tensor<4xi32> {fp8.unsigned = true}) {
  return
}

// -----

// expected-error @+1 {{attribute 'fp8.grid' must be array<i64: …>}}
module attributes {fp8.grid = 4 : i64} {
}
