// This file is part of fp8-mlir, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A compiled library for several ranks, written by hand: what tests of ranks run. One step of data-parallel
// training: w = w - mean over the ranks of x (its part on this rank), the loss is the mean of the sums of x,
// and the amaxes of all ranks go into the state. With OTHER_PROGRAM another column has another format.

#include "fp8rt/call.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

#ifdef OTHER_PROGRAM
#define FORMAT "E5M2"
#else
#define FORMAT "E4M3"
#endif

static char text[] =
    "{'version':1,'call':2,'recipe':'delayed','target':'cpu','program_hash':'" FORMAT "',"
    "'grid':{'shape':[null],'axes':['dp']},'entries':["
    "{'name':'main','collectives':[{'name':'grads','kind':'all_reduce mean','axes':['dp']},"
    "{'name':'amaxes','kind':'all_reduce max','axes':['dp']}],"
    "'arguments':["
    "{'name':'w','type':'f32','shape':[2],'carry':0,'written':true},"
    "{'name':'x','type':'f32','shape':[null,2],'batch':true,'shard':{'axis':0,'dim':0}},"
    "{'name':'amax','type':'f32','shape':[1],'kind':'state','written':true}],"
    "'results':[{'name':'w','type':'f32','shape':[2],'alias':0},"
    "{'name':'loss','type':'f32','shape':[]},"
    "{'name':'own','type':'f32','shape':[2],'shard':{'axis':0,'dim':0}},"
    "{'name':'amax','type':'f32','shape':[1],'kind':'state','alias':2}]},"
    "{'name':'drifting','arguments':[{'name':'w','type':'f32','shape':[2],'carry':0,'written':true}],"
    "'results':[{'name':'w','type':'f32','shape':[2],'alias':0}]},"
    "{'name':'failing','arguments':[],'results':[]}],"
    "'state':{'layout_hash':'" FORMAT
    "','columns':[{'index':0,'sites':['h0/fc'],'tensor':'input','format':'E4M3'},"
    "{'index':1,'sites':['h1/fc','h1/fc2'],'tensor':'weight','format':'" FORMAT "'}],"
    "'tensors':[{'name':'amax','type':'f32','shape':[1],'initial':0.0}]}}";

__attribute__((constructor)) static void makeText(void) {
  for (char *at = text; *at; ++at)
    *at = *at == '\'' ? '"' : *at;
}

EXPORT const char *fp8_manifest(void) { return text; }

static int failWith(fp8rt_call *call, const char *reason) {
  if (call->error_capacity)
    snprintf(call->error, call->error_capacity, "%s", reason);
  return 1;
}

static float *dataOf(DLTensor *tensor) { return (float *)((char *)tensor->data + tensor->byte_offset); }

static const int64_t grid[] = {0};
static const fp8rt_group everyone = {grid, 1, 1};

/// All-reduces in place; on one rank there is nothing to do.
static int allReduce(fp8rt_call *call, uint32_t reduction, float *data, uint64_t count, const char *name) {
  const fp8rt_communicator *ranks = call->communicator;
  if (!ranks)
    return 0;
  fp8rt_collective collective = {
      FP8RT_ALL_REDUCE, reduction, FP8RT_F32, 0, &everyone, data, data, count, name};
  uint64_t ticket;
  if (ranks->start(ranks->context, &collective, call->stream, &ticket) ||
      ranks->wait(ranks->context, ticket, call->stream))
    return failWith(call, ranks->error(ranks->context));
  return 0;
}

EXPORT int fp8_call_main(fp8rt_call *call) {
  float *w = dataOf(call->arguments[0]), *x = dataOf(call->arguments[1]), *amax = dataOf(call->arguments[2]);
  int64_t rows = call->arguments[1]->shape[0];
  float sums[3] = {0, 0, 0}; // of both columns, and of all
  float largest = 0;
  for (int64_t i = 0; i < 2 * rows; ++i) {
    sums[i % 2] += x[i];
    largest = fmaxf(largest, fabsf(x[i]));
  }
  sums[2] = sums[0] + sums[1];
  memcpy(dataOf(call->results[2]), sums, 8);
  if (allReduce(call, FP8RT_MEAN, sums, 3, "grads") || allReduce(call, FP8RT_MAX, &largest, 1, "amaxes"))
    return 1;
  w[0] -= sums[0];
  w[1] -= sums[1];
  *dataOf(call->results[1]) = sums[2];
  *amax = largest;
  return 0;
}

/// A mistake that a program must not make: ranks get different values of a carried argument.
EXPORT int fp8_call_drifting(fp8rt_call *call) {
  dataOf(call->arguments[0])[1] += call->communicator ? (float)call->communicator->rank : 0;
  return 0;
}

EXPORT int fp8_call_failing(fp8rt_call *call) {
  if (!call->communicator || call->communicator->rank == 1)
    return failWith(call, "it fails");
  float one = 1;
  return allReduce(call, FP8RT_SUM, &one, 1, "late");
}
