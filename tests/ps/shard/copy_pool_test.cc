// The memory of copies aside: handed out in slabs, taken ahead, given back as a whole.
#include "ps/snapshot/copy_pool.h"

#include <gtest/gtest.h>

#include <vector>

namespace cairn::ps {
namespace {

constexpr std::size_t kSlab = CopyPool::kSlabBytes, kChunk = CopyPool::kChunkBytes;

TEST(CopyPool, KnowsHowMuchIsTakenAndHowMuchRoomIsLeft) {
  CopyPool pool;
  pool.set_limit(3 * kSlab);
  std::byte* const one = pool.take(kSlab);
  std::byte* const large = pool.take(2 * kSlab + 1);  // copies that cannot wait pass the limit
  EXPECT_EQ(pool.taken(), 3 * kSlab + 1);
  EXPECT_EQ(pool.room(), 0u);
  pool.give_back(large, 2 * kSlab + 1);
  EXPECT_EQ(pool.room(), 2 * kSlab);
  pool.give_back(one, kSlab);
  EXPECT_EQ(pool.taken(), 0u);
}

TEST(CopyPool, HandsASlabOutAgain) {
  CopyPool pool;
  std::byte* const kept = pool.take(kSlab);
  std::byte* const slab = pool.take(kSlab);
  pool.give_back(slab, kSlab);
  EXPECT_EQ(pool.take(kSlab), slab);
  EXPECT_NE(kept, slab);
}

TEST(CopyPool, WantsAsMuchAheadAsHalfOfWhatIsTaken) {
  CopyPool pool;
  EXPECT_EQ(pool.wants_chunks(), 0u);
  std::vector<std::byte*> slabs;
  const auto take_chunks = [&](std::size_t count) {
    for (std::size_t i = 0; i < count * kChunk / kSlab; ++i) slabs.push_back(pool.take(kSlab));
  };
  take_chunks(8);
  EXPECT_EQ(pool.wants_chunks(), 4u);
  for (int i = 0; i < 4; ++i) pool.add(Arena(kChunk));
  EXPECT_EQ(pool.wants_chunks(), 0u);
  take_chunks(4);  // those that were added
  EXPECT_EQ(pool.wants_chunks(), 6u);
  pool.set_limit(pool.taken() + kChunk);
  EXPECT_EQ(pool.wants_chunks(), 1u) << "no more than there is room for";
  for (std::byte* slab : slabs) pool.give_back(slab, kSlab);
  EXPECT_EQ(pool.wants_chunks(), 0u);
}

}  // namespace
}  // namespace cairn::ps
