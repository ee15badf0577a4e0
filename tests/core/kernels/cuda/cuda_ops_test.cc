// The kernels of CUDA devices against the recorded reference, compiled for the host: bodies, launch
// shapes, scratch and the order of work, over a driver that finds races and leaks.
#include <gtest/gtest.h>

#include "core/kernels/cuda/device.h"
#include "tests/core/arrange_checks.h"
#include "tests/core/kernels/cuda/runtime/fake_driver.h"
#include "tests/core/ops_vectors.h"

namespace cairn {
namespace {

TEST(CudaOps, EveryCaseAgreesOnTheHost) {
  testing::FakeDriver driver;
  const auto device = cuda::make_device("gpu:0", driver, cpu_device());
  testing::check_all_ops(*device);
  EXPECT_GT(driver.counts().sorts, 0);
  EXPECT_EQ(driver.blocks(), 0u);
}

TEST(CudaOps, WhatOrdersPicksAndPadsAgreesOnTheHost) {
  testing::FakeDriver driver;
  const auto device = cuda::make_device("gpu:0", driver, cpu_device());
  testing::check_arrange_ops(*device);
  EXPECT_EQ(driver.blocks(), 0u);
}

}  // namespace
}  // namespace cairn
