// RUN: fp8-opt %s --split-input-file --fp8-check-sizes | FileCheck %s -enable-var-scope

#id = affine_map<(i, j) -> (i)>
#jd = affine_map<(i, j) -> (j)>
#all = affine_map<(i, j) -> (i, j)>
#one = affine_map<(i) -> (i)>

// An index that may be anything: both ends in one comparison, in the body.
// CHECK-LABEL: func @gather
// CHECK: %[[ROW:.*]] = arith.index_cast
// CHECK: %[[SIZE:.*]] = arith.constant 9 : index
// CHECK: %[[GOOD:.*]] = arith.cmpi ult, %[[ROW]], %[[SIZE]] : index
// CHECK: cf.assert %[[GOOD]], "an index is outside of dimension 0 of argument 1 'table', of size 9; it follows from argument 0 'ids'"
// CHECK-NOT: cf.assert
func.func @gather(%ids: tensor<4xi64> loc("ids"), %table: tensor<9x8xf32> loc("table"), %e: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = linalg.generic {indexing_maps = [#id, #all], iterator_types = ["parallel", "parallel"]}
      ins(%ids : tensor<4xi64>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%id: i64, %out: f32):
    %row = arith.index_cast %id : i64 to index
    %column = linalg.index 1 : index
    %v = tensor.extract %table[%row, %column] : tensor<9x8xf32>
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

#id = affine_map<(i, j) -> (i)>
#all = affine_map<(i, j) -> (i, j)>
#scalar = affine_map<() -> ()>

// As JAX writes it: the index is clamped, and the slice begins there; or the other way about,
// clamped as a tensor before.
// CHECK-LABEL: func @clamped
// CHECK-NOT: cf.assert
func.func @clamped(%ids: tensor<4xi32>, %table: tensor<9x8xf32>, %e: tensor<4x8xf32>, %x: tensor<5x3xf32>, %start: tensor<i32>)
    -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<2x3xf32>, tensor<5x3xf32>) {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %c8 = arith.constant 8 : index
  %least = arith.constant 0 : i32
  %most = arith.constant dense<8> : tensor<4xi32>
  %y = linalg.generic {indexing_maps = [#id, #all], iterator_types = ["parallel", "parallel"]}
      ins(%ids : tensor<4xi32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%id: i32, %out: f32):
    %any = arith.index_cast %id : i32 to index
    %high = arith.maxsi %any, %c0 : index
    %row = arith.minsi %high, %c8 : index
    %column = linalg.index 1 : index
    %v = tensor.extract %table[%row, %column] : tensor<9x8xf32>
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  %ei = tensor.empty() : tensor<4xi32>
  %low = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%ids : tensor<4xi32>) outs(%ei : tensor<4xi32>) {
  ^bb0(%id: i32, %out: i32):
    %v = arith.maxsi %id, %least : i32
    linalg.yield %v : i32
  } -> tensor<4xi32>
  %both = arith.minsi %low, %most : tensor<4xi32>
  %column_of = tensor.expand_shape %both [[0, 1]] output_shape [4, 1] : tensor<4xi32> into tensor<4x1xi32>
  %z = linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel"]} outs(%e : tensor<4x8xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %zero = arith.constant 0 : index
    %id = tensor.extract %column_of[%i, %zero] : tensor<4x1xi32>
    %row = arith.index_cast %id : i32 to index
    %v = tensor.extract %table[%row, %j] : tensor<9x8xf32>
    linalg.yield %v : f32
  } -> tensor<4x8xf32>
  %s = tensor.extract %start[] : tensor<i32>
  %si = arith.index_cast %s : i32 to index
  %from = arith.maxsi %si, %c0 : index
  %first = arith.minsi %from, %c3 : index
  %slice = tensor.extract_slice %x[%first, 0] [2, 3] [1, 1] : tensor<5x3xf32> to tensor<2x3xf32>
  %update = tensor.insert_slice %slice into %x[%first, 0] [2, 3] [1, 1] : tensor<2x3xf32> into tensor<5x3xf32>
  return %y, %z, %slice, %update : tensor<4x8xf32>, tensor<4x8xf32>, tensor<2x3xf32>, tensor<5x3xf32>
}

// -----

// A concatenation as jaxlib lowers it.
// CHECK-LABEL: func @concatenate
// CHECK-NOT: cf.assert
func.func @concatenate(%a: tensor<4xf32>, %b: tensor<8xf32>, %c: tensor<2xf32>, %e: tensor<14xf32>) -> tensor<14xf32> {
  %c4 = arith.constant 4 : index
  %c12 = arith.constant 12 : index
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<14xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %first = arith.cmpi ult, %i, %c4 : index
    %v = scf.if %first -> f32 {
      %in = tensor.extract %a[%i] : tensor<4xf32>
      scf.yield %in : f32
    } else {
      %second = arith.cmpi ult, %i, %c12 : index
      %w = scf.if %second -> f32 {
        %j = arith.subi %i, %c4 : index
        %in = tensor.extract %b[%j] : tensor<8xf32>
        scf.yield %in : f32
      } else {
        %k = arith.subi %i, %c12 : index
        %in = tensor.extract %c[%k] : tensor<2xf32>
        scf.yield %in : f32
      }
      scf.yield %w : f32
    }
    linalg.yield %v : f32
  } -> tensor<14xf32>
  return %y : tensor<14xf32>
}

// -----

// One off in the same: index 4 of the second.
// CHECK-LABEL: func @concatenate_wrong
// CHECK: cf.assert %{{.*}}, "an index is outside of dimension 0 of argument 1 'b', of size 4"
// CHECK-NOT: cf.assert
func.func @concatenate_wrong(%a: tensor<4xf32>, %b: tensor<4xf32> loc("b"), %e: tensor<9xf32>) -> tensor<9xf32> {
  %c4 = arith.constant 4 : index
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<9xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %first = arith.cmpi ult, %i, %c4 : index
    %v = scf.if %first -> f32 {
      %in = tensor.extract %a[%i] : tensor<4xf32>
      scf.yield %in : f32
    } else {
      %j = arith.subi %i, %c4 : index
      %in = tensor.extract %b[%j] : tensor<4xf32>
      scf.yield %in : f32
    }
    linalg.yield %v : f32
  } -> tensor<9xf32>
  return %y : tensor<9xf32>
}

// -----

// As PyTorch writes it: asserted in the body, about the integer and the index.
// CHECK-LABEL: func @asserted
// CHECK: cf.assert %{{.*}}, "low"
// CHECK: cf.assert %{{.*}}, "high"
// CHECK-NOT: cf.assert
func.func @asserted(%ids: tensor<4xi64>, %table: tensor<9xf32>, %e: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = arith.constant 0 : i64
  %c9 = arith.constant 9 : index
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%ids : tensor<4xi64>) outs(%e : tensor<4xf32>) {
  ^bb0(%id: i64, %out: f32):
    %row = arith.index_cast %id : i64 to index
    %low = arith.cmpi sge, %id, %c0 : i64
    cf.assert %low, "low"
    %high = arith.cmpi slt, %row, %c9 : index
    cf.assert %high, "high"
    %v = tensor.extract %table[%row] : tensor<9xf32>
    linalg.yield %v : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// Loops' indices, also over sizes known only at run time; one more than that.
// CHECK-LABEL: func @loops
// CHECK: scf.for
// CHECK-NOT: cf.assert
// CHECK: scf.for
// CHECK: cf.assert %{{.*}}, "an index is outside of dimension 0 of argument 1 'd'"
// CHECK: linalg.generic
// CHECK-NOT: cf.assert
func.func @loops(%s: tensor<4x2xf32>, %d: tensor<?xf32> loc("d"), %e: tensor<?xf32>) -> (tensor<2xf32>, f32, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %d, %c0 : tensor<?xf32>
  %row = tensor.extract_slice %s[0, 0] [1, 2] [1, 1] : tensor<4x2xf32> to tensor<2xf32>
  %last = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = %row) -> tensor<2xf32> {
    %r = tensor.extract_slice %s[%i, 0] [1, 2] [1, 1] : tensor<4x2xf32> to tensor<2xf32>
    scf.yield %r : tensor<2xf32>
  }
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zero) -> f32 {
    %here = tensor.extract %d[%i] : tensor<?xf32>
    %j = arith.addi %i, %c1 : index
    %next = tensor.extract %d[%j] : tensor<?xf32>
    %both = arith.addf %here, %next : f32
    scf.yield %both : f32
  }
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%d : tensor<?xf32>) {
  ^bb0(%out: f32):
    %i = linalg.index 0 : index
    %v = tensor.extract %d[%i] : tensor<?xf32>
    linalg.yield %v : f32
  } -> tensor<?xf32>
  return %last, %sum, %y : tensor<2xf32>, f32, tensor<?xf32>
}

// -----

// The place of the greatest element, and a byte: never beyond.
// CHECK-LABEL: func @argmax
// CHECK-NOT: cf.assert
func.func @argmax(%x: tensor<7xf32>, %byte: tensor<i8>, %table: tensor<7xf32>, %bytes: tensor<256xf32>) -> (f32, f32) {
  %c0 = arith.constant 0 : i64
  %none = arith.constant 0xFF800000 : f32
  %ev = tensor.empty() : tensor<f32>
  %ei = tensor.empty() : tensor<i64>
  %v0 = linalg.fill ins(%none : f32) outs(%ev : tensor<f32>) -> tensor<f32>
  %i0 = linalg.fill ins(%c0 : i64) outs(%ei : tensor<i64>) -> tensor<i64>
  %m:2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>, affine_map<(i) -> ()>],
                         iterator_types = ["reduction"]}
      ins(%x : tensor<7xf32>) outs(%v0, %i0 : tensor<f32>, tensor<i64>) {
  ^bb0(%in: f32, %most: f32, %place: i64):
    %i = linalg.index 0 : index
    %i64 = arith.index_cast %i : index to i64
    %more = arith.cmpf ogt, %in, %most : f32
    %v = arith.select %more, %in, %most : f32
    %p = arith.select %more, %i64, %place : i64
    linalg.yield %v, %p : f32, i64
  } -> (tensor<f32>, tensor<i64>)
  %place = tensor.extract %m#1[] : tensor<i64>
  %i = arith.index_cast %place : i64 to index
  %a = tensor.extract %table[%i] : tensor<7xf32>
  %b8 = tensor.extract %byte[] : tensor<i8>
  %b32 = arith.extui %b8 : i8 to i32
  %bi = arith.index_cast %b32 : i32 to index
  %b = tensor.extract %bytes[%bi] : tensor<256xf32>
  return %a, %b : f32, f32
}

// -----

// An iteration over everything: the assertion stands where one may.
// CHECK-LABEL: func @forall
// CHECK: scf.forall
// CHECK: cf.assert %{{.*}}, "a slice is outside of dimension 0, of size 5; it follows from argument 0 'start'"
// CHECK: scf.forall.in_parallel
// CHECK-NEXT: tensor.parallel_insert_slice
func.func @forall(%start: index loc("start"), %x: tensor<2xf32>, %e: tensor<5xf32>) -> tensor<5xf32> {
  %y = scf.forall (%i) in (2) shared_outs(%o = %e) -> tensor<5xf32> {
    %one = tensor.extract_slice %x[%i] [1] [1] : tensor<2xf32> to tensor<1xf32>
    %at = arith.addi %i, %start : index
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %one into %o[%at] [1] [1] : tensor<1xf32> into tensor<5xf32>
    }
  }
  return %y : tensor<5xf32>
}
