// RUN: fp8-opt %s -split-input-file --pass-pipeline='builtin.module(func.func(fp8-pack-scales))' | FileCheck %s

// Batches and rows in the order of the result, then K: the second operand is transposed first, its rows are one dimension.

module attributes {fp8.target = #fp8.chip<"sm_100a">} {
  // CHECK-LABEL: func.func @orders
  // CHECK-SAME: %[[SX:[^:]*]]: tensor<3x40x8xf8E8M0FNU>, %[[SW:[^:]*]]: tensor<8x3x2x150xf8E8M0FNU>
  // CHECK: %[[P:.*]] = fp8.pack_scales ins(%[[SX]] : tensor<3x40x8xf8E8M0FNU>) outs({{.*}} : tensor<3072xf8E8M0FNU>)
  // CHECK: %[[T:.*]] = linalg.transpose ins(%[[SW]] : {{.*}}) outs({{.*}} : tensor<3x2x150x8xf8E8M0FNU>) permutation = [1, 2, 3, 0]
  // CHECK: %[[C:.*]] = tensor.collapse_shape %[[T]] {{\[\[}}0], [1, 2], [3]] : tensor<3x2x150x8xf8E8M0FNU> into tensor<3x300x8xf8E8M0FNU>
  // CHECK: %[[Q:.*]] = fp8.pack_scales ins(%[[C]] : {{.*}}) outs({{.*}} : tensor<9216xf8E8M0FNU>)
  // CHECK: fp8.scaled_matmul {{.*}} scales(%[[P]], %[[Q]] : tensor<3072xf8E8M0FNU>, tensor<9216xf8E8M0FNU>)
  func.func @orders(%x: tensor<3x40x256xf8E4M3FN>, %w: tensor<256x3x2x150xf8E4M3FN>, %sx: tensor<3x40x8xf8E8M0FNU>,
                    %sw: tensor<8x3x2x150xf8E8M0FNU>, %o: tensor<3x40x2x150xf32>) -> tensor<3x40x2x150xf32> {
    %y = fp8.scaled_matmul fast ins(%x, %w : tensor<3x40x256xf8E4M3FN>, tensor<256x3x2x150xf8E4M3FN>)
        scales(%sx, %sw : tensor<3x40x8xf8E8M0FNU>, tensor<8x3x2x150xf8E8M0FNU>) outs(%o : tensor<3x40x2x150xf32>)
        {indexing_maps = [affine_map<(b, m, p, n, k) -> (b, m, k)>, affine_map<(b, m, p, n, k) -> (k, b, p, n)>,
                          affine_map<(b, m, p, n, k) -> (b, m, p, n)>],
         lhs_block = array<i64: 1, 1, 32>, rhs_block = array<i64: 32, 1, 1, 1>} -> tensor<3x40x2x150xf32>
    return %y : tensor<3x40x2x150xf32>
  }
}

// -----

// Other targets read scales as they are.

module {
  // CHECK-LABEL: func.func @cpu
  // CHECK-NOT: fp8.pack_scales
  func.func @cpu(%x: tensor<40x256xf8E4M3FN>, %w: tensor<24x256xf8E4M3FN>, %sx: tensor<40x8xf8E8M0FNU>,
                 %sw: tensor<24x8xf8E8M0FNU>, %o: tensor<40x24xf32>) -> tensor<40x24xf32> {
    %y = fp8.scaled_matmul fast ins(%x, %w : tensor<40x256xf8E4M3FN>, tensor<24x256xf8E4M3FN>)
        scales(%sx, %sw : tensor<40x8xf8E8M0FNU>, tensor<24x8xf8E8M0FNU>) outs(%o : tensor<40x24xf32>)
        {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
         lhs_block = array<i64: 1, 32>, rhs_block = array<i64: 1, 32>} -> tensor<40x24xf32>
    return %y : tensor<40x24xf32>
  }
}

// -----

// A scale of 32 x 32 elements is that of 32 rows, and the groups of rows are batches of the weights.

module attributes {fp8.target = #fp8.chip<"sm_120a">} {
  // CHECK-LABEL: func.func @grouped
  // CHECK-SAME: %[[SX:[^:]*]]: tensor<40x8xf8E8M0FNU>, %[[SW:[^:]*]]: tensor<5x3x8xf8E8M0FNU>
  // CHECK: %[[P:.*]] = fp8.pack_scales ins(%[[SX]] : tensor<40x8xf8E8M0FNU>) outs({{.*}} : tensor<1024xf8E8M0FNU>)
  // CHECK: %[[ROWS:.*]] = linalg.generic {{.*}} outs({{.*}} : tensor<5x70x8xf8E8M0FNU>)
  // CHECK: %[[ROW:.*]] = arith.divui {{.*}} : index
  // CHECK: tensor.extract %[[SW]][{{.*}}, %[[ROW]], {{.*}}]
  // CHECK: %[[Q:.*]] = fp8.pack_scales ins(%[[ROWS]] : tensor<5x70x8xf8E8M0FNU>) outs({{.*}} : tensor<5120xf8E8M0FNU>)
  // CHECK: fp8.scaled_grouped_matmul {{.*}} scales(%[[P]], %[[Q]] : tensor<1024xf8E8M0FNU>, tensor<5120xf8E8M0FNU>)
  // CHECK-SAME: rhs_block = array<i64: 1, 1, 32>
  func.func @grouped(%x: tensor<40x256xf8E4M3FN>, %w: tensor<5x70x256xf8E4M3FN>, %ends: tensor<5xi32>, %sx: tensor<40x8xf8E8M0FNU>,
                     %sw: tensor<5x3x8xf8E8M0FNU>, %o: tensor<40x70xf32>) -> tensor<40x70xf32> {
    %y = fp8.scaled_grouped_matmul fast ins(%x, %w, %ends : tensor<40x256xf8E4M3FN>, tensor<5x70x256xf8E4M3FN>, tensor<5xi32>)
        scales(%sx, %sw : tensor<40x8xf8E8M0FNU>, tensor<5x3x8xf8E8M0FNU>) outs(%o : tensor<40x70xf32>)
        {indexing_maps = [affine_map<(m, n, k, g) -> (m, k)>, affine_map<(m, n, k, g) -> (g, n, k)>, affine_map<(m, n, k, g) -> (m, n)>],
         lhs_block = array<i64: 1, 32>, rhs_block = array<i64: 1, 32, 32>} -> tensor<40x70xf32>
    return %y : tensor<40x70xf32>
  }
}

// -----

// An operand without rows has one, in tiles of its own for each batch.

module attributes {fp8.target = #fp8.chip<"sm_120a">} {
  // CHECK-LABEL: func.func @no_rows
  // CHECK-SAME: %[[SX:[^:]*]]: tensor<3x8xf8E8M0FNU>, %[[SW:[^:]*]]: tensor<3x24x8xf8E8M0FNU>
  // CHECK: %[[ROW:.*]] = tensor.expand_shape %[[SX]] {{\[\[}}0], [1, 2]] output_shape [3, 1, 8] : tensor<3x8xf8E8M0FNU> into tensor<3x1x8xf8E8M0FNU>
  // CHECK: fp8.pack_scales ins(%[[ROW]] : tensor<3x1x8xf8E8M0FNU>) outs({{.*}} : tensor<3072xf8E8M0FNU>)
  // CHECK: fp8.pack_scales ins(%[[SW]] : tensor<3x24x8xf8E8M0FNU>) outs({{.*}} : tensor<3072xf8E8M0FNU>)
  func.func @no_rows(%x: tensor<3x256xf8E4M3FN>, %w: tensor<3x24x256xf8E4M3FN>, %sx: tensor<3x8xf8E8M0FNU>,
                     %sw: tensor<3x24x8xf8E8M0FNU>, %o: tensor<3x24xf32>) -> tensor<3x24xf32> {
    %y = fp8.scaled_matmul fast ins(%x, %w : tensor<3x256xf8E4M3FN>, tensor<3x24x256xf8E4M3FN>)
        scales(%sx, %sw : tensor<3x8xf8E8M0FNU>, tensor<3x24x8xf8E8M0FNU>) outs(%o : tensor<3x24xf32>)
        {indexing_maps = [affine_map<(b, n, k) -> (b, k)>, affine_map<(b, n, k) -> (b, n, k)>, affine_map<(b, n, k) -> (b, n)>],
         lhs_block = array<i64: 1, 32>, rhs_block = array<i64: 1, 1, 32>} -> tensor<3x24xf32>
    return %y : tensor<3x24xf32>
  }
}

// -----

// A vector has one row, too.

module attributes {fp8.target = #fp8.chip<"sm_100a">} {
  // CHECK-LABEL: func.func @vector
  // CHECK-SAME: %[[SX:[^:]*]]: tensor<8xf8E8M0FNU>, %[[SW:[^:]*]]: tensor<24x8xf8E8M0FNU>
  // CHECK: %[[ROW:.*]] = tensor.expand_shape %[[SX]] {{\[\[}}0, 1]] output_shape [1, 8] : tensor<8xf8E8M0FNU> into tensor<1x8xf8E8M0FNU>
  // CHECK: %[[PX:.*]] = fp8.pack_scales ins(%[[ROW]] : tensor<1x8xf8E8M0FNU>) outs({{.*}} : tensor<1024xf8E8M0FNU>)
  // CHECK: %[[PW:.*]] = fp8.pack_scales ins(%[[SW]] : tensor<24x8xf8E8M0FNU>) outs({{.*}} : tensor<1024xf8E8M0FNU>)
  // CHECK: fp8.scaled_matmul {{.*}} scales(%[[PX]], %[[PW]]
  func.func @vector(%x: tensor<256xf8E4M3FN>, %w: tensor<24x256xf8E4M3FN>, %sx: tensor<8xf8E8M0FNU>,
                    %sw: tensor<24x8xf8E8M0FNU>, %o: tensor<24xf32>) -> tensor<24xf32> {
    %y = fp8.scaled_matmul fast ins(%x, %w : tensor<256xf8E4M3FN>, tensor<24x256xf8E4M3FN>)
        scales(%sx, %sw : tensor<8xf8E8M0FNU>, tensor<24x8xf8E8M0FNU>) outs(%o : tensor<24xf32>)
        {indexing_maps = [affine_map<(n, k) -> (k)>, affine_map<(n, k) -> (n, k)>, affine_map<(n, k) -> (n)>],
         lhs_block = array<i64: 32>, rhs_block = array<i64: 1, 32>} -> tensor<24xf32>
    return %y : tensor<24xf32>
  }
}
