// The kernels on a real device, against the recorded reference. Run by tools/test --gpu.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/kernels/cuda/library.h"
#include "tests/core/arrange_checks.h"
#include "tests/core/ops_vectors.h"

namespace cairn {
namespace {

TEST(Gpu, IsFound) { ASSERT_FALSE(gpus().devices.empty()) << gpus().absent; }

TEST(Gpu, EveryCaseOfTheOperationsAgrees) {
  // exp, log and their like are a few units in the last place from the CPU's.
  testing::check_all_ops(gpu(0), 4);
}

TEST(Gpu, WhatOrdersPicksAndPadsAgrees) { testing::check_arrange_ops(gpu(0)); }

}  // namespace
}  // namespace cairn
