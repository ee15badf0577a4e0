#include "core/rows/id_index.h"

#include <gmock/gmock.h>

#include <unordered_map>
#include <vector>

#include "core/base/random.h"

namespace cairn {
namespace {

using Ids = std::vector<std::int64_t>;
using ::testing::Each;
using ::testing::ElementsAre;

Ids found(const IdIndex& index, const Ids& ids) {
  Ids places(ids.size());
  index.find(ids, places.data());
  return places;
}

Ids made(IdIndex& index, const Ids& ids) {
  Ids places(ids.size());
  index.find_or_add(ids, places.data());
  return places;
}

TEST(IdIndex, NumbersIdsInTheOrderInWhichTheyCome) {
  IdIndex index;
  EXPECT_THAT(found(index, {5, -1}), Each(IdIndex::kAbsent));
  EXPECT_THAT(made(index, {5, 1'000'000'000'000, 5, -3}), ElementsAre(0, 1, 0, 2));
  EXPECT_THAT(made(index, {-3, 0}), ElementsAre(2, 3));
  EXPECT_THAT(found(index, {0, 5, 6}), ElementsAre(3, 0, IdIndex::kAbsent));
  EXPECT_THAT(index.ids(), ElementsAre(5, 1'000'000'000'000, -3, 0));
  index.clear();
  EXPECT_EQ(index.size(), 0);
  EXPECT_THAT(found(index, {5}), ElementsAre(IdIndex::kAbsent));
}

TEST(IdIndex, RoomMadeAtAnyTimeChangesNoAnswerAndIsTheLastGrowth) {
  for (const std::int64_t there : {0, 1, 1000, 5000}) {
    IdIndex index;
    Ids ids(20'000);
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i) * 7919;
    made(index, Ids(ids.begin(), ids.begin() + there));
    index.reserve(20'000);
    const std::size_t bytes = index.bytes();
    const Ids places = made(index, ids);
    for (std::size_t i = 0; i < ids.size(); ++i)
      ASSERT_EQ(places[i], static_cast<std::int64_t>(i)) << there << " ids were there";
    EXPECT_EQ(index.bytes() - bytes,
              (ids.size() - static_cast<std::size_t>(there)) * sizeof(std::int64_t));
    EXPECT_EQ(found(index, ids), places);
  }
}

// Through many growths, in batches of every size, with ids that are dense, far apart and random.
TEST(IdIndex, AnswersAsAMapDoes) {
  for (const std::int64_t stride : {std::int64_t{1}, std::int64_t{1} << 40, std::int64_t{0}}) {
    IdIndex index;
    std::unordered_map<std::int64_t, std::int64_t> map;
    Random random(3);
    for (std::size_t round = 0; round < 300; ++round) {
      Ids ids(random.below(1000));
      for (std::int64_t& id : ids) {
        const auto number = static_cast<std::int64_t>(random.below(100'000));
        id = stride == 0 ? static_cast<std::int64_t>(mix_bits(static_cast<std::uint64_t>(number)))
                         : number * stride;
      }
      Ids wanted;
      for (const std::int64_t id : ids) {
        const auto at = map.find(id);
        wanted.push_back(at == map.end() ? IdIndex::kAbsent : at->second);
      }
      ASSERT_EQ(found(index, ids), wanted) << "round " << round;
      wanted.clear();
      for (const std::int64_t id : ids)
        wanted.push_back(map.emplace(id, static_cast<std::int64_t>(map.size())).first->second);
      ASSERT_EQ(made(index, ids), wanted) << "round " << round;
    }
    EXPECT_EQ(index.size(), static_cast<std::int64_t>(map.size()));
  }
}

TEST(IdIndex, TakesNoMoreBytesAnIdThanItSays) {
  IdIndex index;
  Ids ids(1000);
  for (std::int64_t next = 0; next < 2'000'000;) {
    for (std::int64_t& id : ids) id = next++;
    made(index, ids);
    if (next < 10'000) continue;
    ASSERT_LE(index.bytes(), IdIndex::kBytesAnId * static_cast<std::size_t>(next)) << next;
  }
}

TEST(IdIndex, ThePlaceOfAnErasedIdGoesToTheNextThatComes) {
  IdIndex index;
  made(index, {5, 6, 7});
  index.erase(1);
  EXPECT_THAT(found(index, {5, 6, 7}), ElementsAre(0, IdIndex::kAbsent, 2));
  EXPECT_THAT(index.ids(), ElementsAre(5, IdIndex::kFree, 7));
  EXPECT_EQ(index.used(), 2);
  EXPECT_THAT(made(index, {9, 6}), ElementsAre(1, 3));
  EXPECT_EQ(index.size(), 4);
  EXPECT_EQ(index.used(), 4);
}

// Ids come and go while the index grows, so that what is erased lies now in the smaller table, now
// in the larger one.
TEST(IdIndex, AnswersAsAMapDoesWhileIdsComeAndGo) {
  for (const std::int64_t range : {50, 3000, 100'000}) {
    IdIndex index;
    std::unordered_map<std::int64_t, std::int64_t> places;  // by id
    Random random(static_cast<std::uint64_t>(range));
    for (int round = 0; round < 1500; ++round) {
      Ids come(random.below(40));
      for (std::int64_t& id : come)
        id = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(range)));
      const Ids at = made(index, come);
      for (std::size_t i = 0; i < come.size(); ++i) {
        const auto [entry, is_new] = places.try_emplace(come[i], at[i]);
        ASSERT_EQ(entry->second, at[i]) << "id " << come[i];
        ASSERT_EQ(index.ids()[static_cast<std::size_t>(at[i])], come[i]);
      }
      for (std::uint64_t goes = random.below(round % 500 < 250 ? 20 : 60); goes > 0; --goes) {
        const auto id = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(range)));
        const auto entry = places.find(id);
        ASSERT_EQ(found(index, {id})[0], entry == places.end() ? IdIndex::kAbsent : entry->second);
        if (entry == places.end()) continue;
        index.erase(entry->second);
        places.erase(entry);
        ASSERT_EQ(found(index, {id})[0], IdIndex::kAbsent);
      }
      while (index.used() < index.size() && random.below(3) == 0) {
        const std::int64_t last = index.ids().back(), place = index.drop_last();
        if (last == IdIndex::kFree) {
          ASSERT_EQ(place, IdIndex::kAbsent);
        } else {
          ASSERT_EQ(index.ids()[static_cast<std::size_t>(place)], last);
          places[last] = place;
        }
      }
      ASSERT_EQ(index.used(), static_cast<std::int64_t>(places.size()));
    }
    for (const auto& [id, place] : places) ASSERT_EQ(found(index, {id})[0], place) << "id " << id;
  }
}

}  // namespace
}  // namespace cairn
