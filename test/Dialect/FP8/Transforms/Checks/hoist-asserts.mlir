// RUN: fp8-opt %s --split-input-file --verify-diagnostics --fp8-hoist-asserts | FileCheck %s -enable-var-scope

#id = affine_map<(i, j) -> (i)>
#jd = affine_map<(i, j) -> (j)>
#all = affine_map<(i, j) -> (i, j)>

// An index of its own needs an operand that says how far it goes.
// CHECK-DAG: #[[$COLUMNS:.*]] = affine_map<(d0) -> (d0)>
// CHECK-DAG: #[[$NONE:.*]] = affine_map<(d0) -> ()>
// CHECK-LABEL: func @own_index
// CHECK-SAME: (%{{.*}}: tensor<?xi64>, %[[LIMITS:.*]]: tensor<?xindex>, %{{.*}}: index,
// CHECK: %[[TRUE:.*]] = arith.constant dense<true> : tensor<i1>
// CHECK: %[[ALL:.*]] = linalg.generic {indexing_maps = [#[[$COLUMNS]], #[[$NONE]]], iterator_types = ["reduction"]}
// CHECK-SAME: ins(%[[LIMITS]] : tensor<?xindex>) outs(%[[TRUE]] : tensor<i1>)
// CHECK: %[[J:.*]] = linalg.index 0
// CHECK: %[[GOOD:.*]] = arith.cmpi ult, %[[J]], %{{.*}} : index
// CHECK: arith.andi %{{.*}}, %[[GOOD]]
// CHECK: %[[HOLDS:.*]] = tensor.extract %[[ALL]][]
// CHECK: cf.assert %[[HOLDS]], "column"
// CHECK: linalg.generic
// CHECK-NOT: cf.assert
func.func @own_index(%ids: tensor<?xi64>, %limits: tensor<?xindex>, %n: index, %e: tensor<?x?xi64>) -> tensor<?x?xi64> {
  %y = linalg.generic {indexing_maps = [#id, #jd, #all], iterator_types = ["parallel", "parallel"]}
      ins(%ids, %limits : tensor<?xi64>, tensor<?xindex>) outs(%e : tensor<?x?xi64>) {
  ^bb0(%id: i64, %limit: index, %out: i64):
    %j = linalg.index 1 : index
    %good = arith.cmpi ult, %j, %n : index
    cf.assert %good, "column"
    linalg.yield %id : i64
  } -> tensor<?x?xi64>
  return %y : tensor<?x?xi64>
}

// -----

// Two in one body keep their order: the second may rely on the first.
// CHECK-LABEL: func @two
// CHECK: cf.assert %{{.*}}, "low"
// CHECK: cf.assert %{{.*}}, "high"
func.func @two(%ids: tensor<4xi64>, %e: tensor<4xi64>) -> tensor<4xi64> {
  %c0 = arith.constant 0 : i64
  %c9 = arith.constant 9 : i64
  %y = linalg.map ins(%ids : tensor<4xi64>) outs(%e : tensor<4xi64>)
    (%id: i64, %out: i64) {
      %low = arith.cmpi sge, %id, %c0 : i64
      cf.assert %low, "low"
      %high = arith.cmpi slt, %id, %c9 : i64
      cf.assert %high, "high"
      linalg.yield %id : i64
    }
  return %y : tensor<4xi64>
}

// -----

func.func @sum(%x: tensor<4xf32>, %e: tensor<f32>) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %y = linalg.reduce ins(%x : tensor<4xf32>) outs(%e : tensor<f32>) dimensions = [0]
    (%in: f32, %out: f32) {
      %s = arith.addf %in, %out : f32
      %good = arith.cmpf oge, %s, %zero : f32
      // expected-error @below {{what is asserted in the body of an operation must follow from its inputs and indices; compute and assert it before the operation instead: sum}}
      cf.assert %good, "sum"
      linalg.yield %s : f32
    }
  return %y : tensor<f32>
}

// -----

// In a branch: it holds where the branch is not taken. Only what it follows from is computed.
// CHECK-LABEL: func @branch
// CHECK: %[[ALL:.*]] = linalg.generic
// CHECK: %[[GOOD:.*]] = scf.if %{{.*}} -> (i1) {
// CHECK-NEXT: arith.constant true
// CHECK-NEXT: scf.yield
// CHECK-NEXT: } else {
// CHECK-NOT: math.exp
// CHECK: %[[LESS:.*]] = arith.cmpi
// CHECK-NEXT: scf.yield %[[LESS]]
// CHECK-NEXT: }
// CHECK-NEXT: arith.andi %{{.*}}, %[[GOOD]]
// CHECK: tensor.extract %[[ALL]][]
// CHECK: cf.assert %{{.*}}, "in range"
// CHECK: linalg.map
// CHECK-NOT: (i1)
// CHECK: math.exp
// CHECK-NOT: cf.assert
func.func @branch(%ids: tensor<4xi64>, %x: tensor<4xf32>, %e: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : i64
  %c9 = arith.constant 9 : i64
  %y = linalg.map ins(%ids, %x : tensor<4xi64>, tensor<4xf32>) outs(%e : tensor<4xf32>)
    (%id: i64, %in: f32, %out: f32) {
      %low = arith.cmpi slt, %id, %c0 : i64
      %v = scf.if %low -> f32 {
        scf.yield %in : f32
      } else {
        %good = arith.cmpi slt, %id, %c9 : i64
        cf.assert %good, "in range"
        %w = math.exp %in : f32
        scf.yield %w : f32
      }
      linalg.yield %v : f32
    }
  return %y : tensor<4xf32>
}

// -----

// CHECK-LABEL: func @generate
// CHECK: cf.assert %{{.*}}, "small"
// CHECK: linalg.generic
// CHECK-NOT: tensor.generate
// CHECK-NOT: cf.assert
func.func @generate(%ids: tensor<4xi64>) -> tensor<4xi64> {
  %c9 = arith.constant 9 : i64
  %y = tensor.generate {
  ^bb0(%i: index):
    %id = tensor.extract %ids[%i] : tensor<4xi64>
    %good = arith.cmpi slt, %id, %c9 : i64
    cf.assert %good, "small"
    tensor.yield %id : i64
  } : tensor<4xi64>
  return %y : tensor<4xi64>
}
