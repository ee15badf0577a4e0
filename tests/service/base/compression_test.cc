#include "service/base/compression.h"

#include <gtest/gtest.h>

#include <array>

#include "core/base/error.h"
#include "rpc/server/this_host.h"

namespace cairn::service {
namespace {

Element some_columns() {
  std::vector<float> zeros(10'000, 0.25f);
  return {Tensor::of<float>({100, 100}, zeros),
          Tensor::of<std::int64_t>({3}, std::array<std::int64_t, 3>{7, -1, 5})};
}

TEST(Compressed, AnElementComesBackAsItWasAndIsSmaller) {
  const Element element = some_columns();
  const PackedElement packed = pack(element);
  EXPECT_LT(packed.bytes.size(), packed.raw_bytes / 20);
  const Element back = unpack(packed.bytes.data(), packed.bytes.size(), packed.raw_bytes);
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[0].shape(), element[0].shape());
  EXPECT_TRUE(std::ranges::equal(back[0].values<float>(), element[0].values<float>()));
  EXPECT_TRUE(
      std::ranges::equal(back[1].values<std::int64_t>(), element[1].values<std::int64_t>()));
}

TEST(Compressed, WhatIsDamagedIsRefused) {
  PackedElement packed = pack(some_columns());
  const auto read = [&](std::size_t size, std::uint64_t raw) {
    return unpack(packed.bytes.data(), size, raw);
  };
  EXPECT_THROW(read(packed.bytes.size() - 1, packed.raw_bytes), InvalidArgumentError);
  EXPECT_THROW(read(packed.bytes.size(), packed.raw_bytes - 8), InvalidArgumentError);
  EXPECT_THROW(read(packed.bytes.size(), packed.raw_bytes + 8), InvalidArgumentError);
  EXPECT_THROW(read(packed.bytes.size(), packed.raw_bytes + 1), InvalidArgumentError);
  EXPECT_THROW(read(packed.bytes.size(), std::uint64_t{1} << 62), InvalidArgumentError);
  EXPECT_THROW(read(0, 0), InvalidArgumentError);
  packed.bytes[packed.bytes.size() / 2] ^= std::byte{0x55};
  EXPECT_THROW(read(packed.bytes.size(), packed.raw_bytes), InvalidArgumentError);
}

TEST(Compression, AutoIsOffWithinAMachine) {
  const auto chosen_for = [](const char* address) {
    return chosen(Compression::kAuto, rpc::Address::parse(address));
  };
  EXPECT_EQ(chosen_for("127.0.0.1:1"), Compression::kOff);
  EXPECT_EQ(chosen_for("localhost:1"), Compression::kOff);
  EXPECT_EQ(chosen_for("unix:/tmp/x"), Compression::kOff);
  EXPECT_EQ(chosen_for("192.0.2.1:1"), Compression::kZlib);
  EXPECT_EQ(chosen_for("elsewhere.example:1"), Compression::kZlib);
  EXPECT_EQ(chosen(Compression::kZlib, rpc::Address::parse("unix:/tmp/x")), Compression::kZlib);
  EXPECT_EQ(chosen(Compression::kOff, rpc::Address::parse("192.0.2.1:1")), Compression::kOff);
  EXPECT_THROW(compression_of(3), InvalidArgumentError);
}

}  // namespace
}  // namespace cairn::service
