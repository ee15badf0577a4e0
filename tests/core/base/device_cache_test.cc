// The texts by which a user sets the memory that tables take on a device.
#include "core/base/device_cache.h"

#include <gmock/gmock.h>

#include "core/base/error.h"

namespace cairn {
namespace {

TEST(DeviceCacheText, IsBytesWithAUnit) {
  EXPECT_EQ(parse_device_cache("8 GB").bytes, 8'000'000'000u);
  EXPECT_EQ(parse_device_cache("1.5GiB").bytes, std::size_t{3} << 29);
  EXPECT_EQ(parse_device_cache(" 64 KiB ").bytes, 65'536u);
  EXPECT_EQ(parse_device_cache("8 GB").bytes_of(100), 8'000'000'000u);
}

TEST(DeviceCacheText, IsAShareOfTheDevice) {
  EXPECT_EQ(parse_device_cache("0.25").share, 0.25);
  EXPECT_EQ(parse_device_cache("25 %").share, 0.25);
  EXPECT_EQ(parse_device_cache("1").bytes_of(1000), 1000u);
  EXPECT_EQ(parse_device_cache("0.25").bytes_of(1000), 250u);
}

TEST(DeviceCacheText, IsNothingByDefault) { EXPECT_FALSE(parse_device_cache("auto").given()); }

TEST(DeviceCacheText, RefusesWhatIsNeitherAndSaysWhatIs) {
  for (const char* text : {"", "8", "0", "-1 GB", "120%", "8 gb", "GB", "nan", "inf GB", "1e30 TB",
                           "0.1.2", "8 GB GB"})
    EXPECT_THAT([&] { parse_device_cache(text); },
                ::testing::ThrowsMessage<InvalidArgumentError>(::testing::HasSubstr("\"8 GB\"")))
        << text;
}

}  // namespace
}  // namespace cairn
