// RUN: fp8-opt %s --split-input-file --fp8-check-sizes --canonicalize --cse | FileCheck %s -enable-var-scope

// Sizes that follow from one argument fit, by whatever operations.
// CHECK-LABEL: func @same
// CHECK-NOT: cf.assert
func.func @same(%x: tensor<?x?x8xf32>, %w: tensor<8x4xf32>) -> tensor<?x?x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %b = tensor.dim %x, %c0 : tensor<?x?x8xf32>
  %s = tensor.dim %x, %c1 : tensor<?x?x8xf32>
  %flat = tensor.collapse_shape %x [[0, 1], [2]] : tensor<?x?x8xf32> into tensor<?x8xf32>
  %n = tensor.dim %flat, %c0 : tensor<?x8xf32>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  %m = linalg.matmul ins(%flat, %w : tensor<?x8xf32>, tensor<8x4xf32>) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
  %y = tensor.expand_shape %m [[0, 1], [2]] output_shape [%b, %s, 4] : tensor<?x4xf32> into tensor<?x?x4xf32>
  %z = arith.addf %y, %y : tensor<?x?x4xf32>
  return %z : tensor<?x?x4xf32>
}

// -----

// Static programs stay as they are.
// CHECK-LABEL: func @static
// CHECK-NEXT: arith.addf
// CHECK-NEXT: return
func.func @static(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = arith.addf %x, %x : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// Once for all its uses, and what follows from it is known too.
// CHECK-LABEL: func @once
// CHECK-DAG: %[[X:.*]] = tensor.dim %arg0
// CHECK-DAG: %[[T:.*]] = tensor.dim %arg1
// CHECK: %[[SAME:.*]] = arith.cmpi eq, %[[X]], %[[T]]
// CHECK: cf.assert %[[SAME]], "argument 1 't': size 0 must be size 0 of argument 0 'x'"
// CHECK: %[[U:.*]] = tensor.dim %arg2
// CHECK: %[[AND:.*]] = arith.cmpi eq, %[[T]], %[[U]]
// CHECK: cf.assert %[[AND]], "argument 2 'u': size 0 must be size 0 of argument 1 't'"
// CHECK-NOT: cf.assert
func.func @once(%x: tensor<?xf32> loc("x"), %t: tensor<?xf32> loc("t"), %u: tensor<?xf32> loc("u")) -> tensor<?xf32> {
  %a = arith.addf %x, %t : tensor<?xf32>
  %b = arith.mulf %t, %a : tensor<?xf32>
  %c = arith.addf %b, %u : tensor<?xf32>
  %d = arith.addf %u, %t : tensor<?xf32>
  %e = arith.addf %c, %d : tensor<?xf32>
  return %e : tensor<?xf32>
}

// -----

// CHECK-LABEL: func @cast
// CHECK: cf.assert %{{.*}}, "argument 0 'x': size 1 must be 8"
func.func @cast(%x: tensor<4x?xf32> loc("x")) -> tensor<4x8xf32> {
  %y = tensor.cast %x : tensor<4x?xf32> to tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// Sizes that are computed, and sizes in a branch that may not be taken, are checked where they are needed.
// CHECK-LABEL: func @branch
// CHECK: scf.if
// CHECK: cf.assert %{{.*}}, "argument 1 't': size 0 must be size 0 of argument 0 'x'"
// CHECK: arith.addf
func.func @branch(%x: tensor<?xf32> loc("x"), %t: tensor<?xf32> loc("t"), %c: i1) -> tensor<?xf32> {
  %y = scf.if %c -> tensor<?xf32> {
    %a = arith.addf %x, %t : tensor<?xf32>
    scf.yield %a : tensor<?xf32>
  } else {
    scf.yield %x : tensor<?xf32>
  }
  return %y : tensor<?xf32>
}

// -----

// Sizes of several arguments together; an index expression that is no dimension.
// CHECK-LABEL: func @together
// CHECK: cf.assert %{{.*}}, "sizes do not fit together, which follow from argument 0 'x', argument 1 't', argument 2 'y'"
// CHECK: cf.assert %{{.*}}, "an operand is too small for the indices at which it is read"
func.func @together(%x: tensor<?xf32> loc("x"), %t: tensor<?xf32> loc("t"), %y: tensor<?xf32> loc("y"),
                    %f: tensor<3xf32>, %e: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %both = tensor.concat dim(0) %x, %t : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %s = arith.addf %both, %y : tensor<?xf32>
  %c = linalg.conv_1d ins(%x, %f : tensor<?xf32>, tensor<3xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %s, %c : tensor<?xf32>, tensor<?xf32>
}
