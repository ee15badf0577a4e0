#include "core/memory/bulk_copy.h"

#include <gtest/gtest.h>

#include <vector>

namespace cairn {
namespace {

TEST(CopyBulk, CopiesThatAndNothingElseWhateverItsSizeAndPlace) {
  constexpr std::size_t kLarge = 2 << 20;
  std::vector<unsigned char> from(2 * kLarge + 300);
  for (std::size_t i = 0; i < from.size(); ++i)
    from[i] = static_cast<unsigned char>(i * 7 % 251 + 1);
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, kLarge - 1,
                                  kLarge, kLarge + 1, kLarge + 100, 2 * kLarge - 100})
    for (const std::size_t begin : {0, 1, 63}) {
      std::vector<unsigned char> to(bytes + 200);
      copy_bulk(to.data() + begin, from.data() + 3, bytes);
      std::vector<unsigned char> want(to.size());
      std::copy_n(from.begin() + 3, bytes, want.begin() + static_cast<std::ptrdiff_t>(begin));
      EXPECT_EQ(to, want) << bytes << " bytes to " << begin;
    }
}

}  // namespace
}  // namespace cairn
