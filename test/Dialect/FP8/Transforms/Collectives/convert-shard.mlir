// Collectives of the shard dialect, and what they cannot be. test/python/collectives/test_collectives.py checks the values.
// RUN: fp8-opt %s -split-input-file -verify-diagnostics --fp8-convert-shard | FileCheck %s -enable-var-scope

// CHECK: module attributes {fp8.grid = array<i64: 2, 4>}
// CHECK-NOT: shard.
shard.grid @grid(shape = 2x4)
// CHECK-LABEL: func.func @all
func.func @all(%x: tensor<8x?xf32>) -> (tensor<8x?xf32>, tensor<2x?xf32>, tensor<8x?xf32>) {
  // CHECK: %[[R:.+]] = fp8.all_reduce mean on(2x4) axes [0, 1]
  %r = shard.all_reduce %x on @grid grid_axes = [1, 0] reduction = average : tensor<8x?xf32> -> tensor<8x?xf32>
  // CHECK: %[[S:.+]] = fp8.reduce_scatter sum dim 0 on(2x4) axes [1] ins(%[[R]] : tensor<8x?xf32>)
  %s = shard.reduce_scatter %r on @grid grid_axes = [1] scatter_axis = 0 : tensor<8x?xf32> -> tensor<2x?xf32>
  // CHECK: fp8.shift -1 on(2x4) axes [1] ins(%[[R]]
  %n = shard.shift %r on @grid grid_axes = [0, 1] shift_axis = 1 offset = -1 rotate : tensor<8x?xf32> -> tensor<8x?xf32>
  return %r, %s, %n : tensor<8x?xf32>, tensor<2x?xf32>, tensor<8x?xf32>
}

// CHECK-LABEL: func.func @place
func.func @place() -> index {
  // CHECK: %[[RANK:.+]] = fp8.rank
  // CHECK: %[[FOUR:.+]] = arith.constant 4 : index
  // CHECK: %[[ROW:.+]] = arith.divui %[[RANK]], %[[FOUR]]
  // CHECK: return %[[ROW]]
  %row = shard.process_multi_index on @grid axes = [0] : index
  return %row : index
}

// -----

shard.grid @a(shape = 4)
// expected-error@+1 {{is on another grid: a program has one}}
shard.grid @b(shape = 2x2)

// -----

shard.grid @grid(shape = ?x2)
func.func @unknown(%x: tensor<4xf32>) -> tensor<?xf32> {
  // expected-error@+1 {{divides a tensor along an axis of the grid whose extent is unknown: give shard.grid the extent}}
  %r = shard.all_gather %x on @grid grid_axes = [0] gather_axis = 0 : tensor<4xf32> -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// -----

shard.grid @grid(shape = 4)
func.func @annotation(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'shard.sharding' is not supported; collectives of whole groups are}}
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %r = shard.shard %x to %s : tensor<4xf32>
  return %r : tensor<4xf32>
}
