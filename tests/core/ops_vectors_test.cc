// Operations against the recorded reference on the CPU, and on a device with memory of its own that
// fuses or does not.
#include "tests/core/ops_vectors.h"

#include <gtest/gtest.h>

#include "tests/core/fake_device.h"

namespace cairn {
namespace {

TEST(OpsVectors, EveryCaseAgreesForwardAndBackward) { testing::check_all_ops(cpu_device()); }

TEST(OpsVectors, EveryCaseAgreesOnADeviceWithMemoryOfItsOwn) {
  testing::FakeDevice device;
  testing::check_all_ops(device);
  EXPECT_GT(device.counts().trees_prepared, 0);
}

TEST(OpsVectors, EveryCaseAgreesOnADeviceThatDoesNotFuse) {
  testing::FakeDevice device(testing::FakeDevice::Fuses::kNo);
  testing::check_all_ops(device);
  EXPECT_EQ(device.counts().trees_prepared, 0);
}

}  // namespace
}  // namespace cairn
