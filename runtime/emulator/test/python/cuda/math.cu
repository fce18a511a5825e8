// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CUDA's mathematical functions of float and double: libdevice's code, with its tables,
// slow paths and rounding modes.

#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void float_functions(int n, const float *x, float *y) {
  int i = INDEX;
  if (i >= n)
    return;
  float v = x[i], a = fabsf(v);
  y[0 * n + i] = expf(v);
  y[1 * n + i] = logf(a);
  y[2 * n + i] = sinf(v);
  y[3 * n + i] = cosf(v);
  y[4 * n + i] = tanhf(v);
  y[5 * n + i] = erff(v);
  y[6 * n + i] = powf(a, 1.7f);
  y[7 * n + i] = cbrtf(v);
  y[8 * n + i] = log1pf(a);
  y[9 * n + i] = expm1f(v);
  y[10 * n + i] = atan2f(v, 0.7f);
  y[11 * n + i] = exp2f(v);
  y[12 * n + i] = log2f(a);
  y[13 * n + i] = fmodf(v, 0.3f);
  y[14 * n + i] = hypotf(v, 3.0f);
  y[15 * n + i] = lgammaf(a);
}

// Correctly rounded or exact: bit for bit.
extern "C" __global__ void float_exact(int n, const float *x, const float *z, float *y) {
  int i = INDEX;
  if (i >= n)
    return;
  float a = x[i], b = z[i];
  y[0 * n + i] = a / b;
  y[1 * n + i] = sqrtf(fabsf(a));
  y[2 * n + i] = fmaf(a, b, 1.0f);
  y[3 * n + i] = __fadd_rz(a, b);
  y[4 * n + i] = __fmul_ru(a, b);
  y[5 * n + i] = __fdiv_rd(a, b);
  y[6 * n + i] = __frcp_rn(b);
  y[7 * n + i] = rintf(a);
  y[8 * n + i] = floorf(a);
  y[9 * n + i] = truncf(b);
  y[10 * n + i] = copysignf(a, b);
  y[11 * n + i] = fminf(a, b);
  y[12 * n + i] = fmaxf(a, b);
  y[13 * n + i] = nextafterf(a, b);
  y[14 * n + i] = ldexpf(a, 5);
  y[15 * n + i] = roundf(a);
}

// The hardware's approximations: ex2, lg2, sin, cos, rcp, rsqrt, sqrt, tanh, div.
extern "C" __global__ void float_approximate(int n, const float *x, float *y) {
  int i = INDEX;
  if (i >= n)
    return;
  float v = x[i], a = fabsf(v), tanh;
  y[0 * n + i] = __expf(v);
  y[1 * n + i] = __log2f(a);
  y[2 * n + i] = __sinf(v);
  y[3 * n + i] = __cosf(v);
  y[4 * n + i] = __fdividef(v, 3.0f);
  y[5 * n + i] = rsqrtf(a);
  y[6 * n + i] = __powf(a, 0.5f);
  asm("tanh.approx.f32 %0, %1;" : "=f"(tanh) : "f"(v));
  y[7 * n + i] = tanh;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y[8 * n + i]) : "f"(v));
  asm("sqrt.approx.f32 %0, %1;" : "=f"(y[9 * n + i]) : "f"(a));
}

extern "C" __global__ void double_functions(int n, const double *x, double *y) {
  int i = INDEX;
  if (i >= n)
    return;
  double v = x[i], a = fabs(v);
  y[0 * n + i] = exp(v);
  y[1 * n + i] = log(a);
  y[2 * n + i] = sin(v);
  y[3 * n + i] = cos(v);
  y[4 * n + i] = tanh(v);
  y[5 * n + i] = erf(v);
  y[6 * n + i] = pow(a, 1.7);
  y[7 * n + i] = 1.0 / v;
  y[8 * n + i] = sqrt(a);
  y[9 * n + i] = fma(v, v, 1.0);
  y[10 * n + i] = v / 3.0;
  y[11 * n + i] = rsqrt(a);
}

// Conversions between floats and integers in all roundings, out-of-range values too.
extern "C" __global__ void float_to_integers(int n, const float *x, int *y, long long *wide) {
  int i = INDEX;
  if (i >= n)
    return;
  y[0 * n + i] = __float2int_rz(x[i]);
  y[1 * n + i] = __float2int_rn(x[i]);
  y[2 * n + i] = __float2int_rd(x[i]);
  y[3 * n + i] = __float2int_ru(x[i]);
  y[4 * n + i] = __float2uint_rz(x[i]);
  y[5 * n + i] = __float2uint_ru(x[i]);
  y[6 * n + i] = __double2int_rn((double)x[i] * 0.1);
  y[7 * n + i] = __float_as_int(__int2float_rz(__float_as_int(x[i])));
  wide[0 * n + i] = __float2ll_rn(x[i]);
  wide[1 * n + i] = __float2ull_rz(x[i]);
  wide[2 * n + i] = __double2ll_rd((double)x[i] * 7.3);
  wide[3 * n + i] = __double_as_longlong((double)x[i] + (double)__float_as_int(x[i]));
  wide[4 * n + i] = __double_as_longlong(__ll2double_ru(wide[2 * n + i] * 1000003));
}
