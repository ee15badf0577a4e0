// Thousands of random operations against what a map says, on both roads, by seed.
#include <algorithm>
#include <deque>
#include <optional>

#include "core/base/error.h"
#include "tests/effort.h"
#include "tests/storage/row_log/fixture.h"

namespace cairn::storage {
namespace {

class RowLogModel : public RowLogRoads {};
INSTANTIATE_TEST_SUITE_P(Roads, RowLogModel,
                         testing::Values(IoRoad::kUringOrThreads, IoRoad::kThreads), road_name);

constexpr std::uint64_t kKeys = 1500;

// A cut and what the map said at its moment.
struct Moment {
  Cut cut;
  std::map<std::uint64_t, LogOwner::Held> held;
};

class Model {
 public:
  Model(std::uint64_t seed, IoQueueOptions io) : random_(seed), owner_(options(), io) {}

  void step() {
    const std::uint64_t choice = random_.below(100);
    if (choice < 40)
      put();
    else if (choice < 70)
      read();
    else if (choice < 85)
      remove();
    else if (choice < 95)
      owner_.io().poll();
    else if (choice < 97)
      moments_.push_back({owner_.log().freeze(), owner_.held});
    else if (!moments_.empty())
      read_moment();
    if (moments_.size() > 3) moments_.pop_front();
  }
  void end() {
    run_until_idle(owner_.io());
    EXPECT_EQ(reads_ended_, reads_);
    while (!moments_.empty()) {
      read_moment();
      moments_.pop_front();
    }
    owner_.expect_all_readable();
    EXPECT_EQ(owner_.log().counters().live_rows, owner_.held.size());
    EXPECT_GT(owner_.log().counters().moved_rows, 0u);
    for (const std::uint64_t key : owner_.keys()) owner_.remove(key);
    run_until_idle(owner_.io());
    EXPECT_LE(owner_.log().counters().disk_bytes, 3 * small_segments().segment_bytes);
  }

 private:
  static RowLogOptions options() {
    RowLogOptions options = small_segments();
    options.max_bytes = 60 * options.segment_bytes;
    return options;
  }
  std::vector<std::uint64_t> some_keys() {
    std::vector<std::uint64_t> keys;
    for (std::uint64_t i = random_.below(60); i-- > 0;) keys.push_back(random_.below(kKeys));
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    return keys;
  }
  void put() {
    try {
      owner_.put(some_keys(), ++version_);
    } catch (const UnavailableError&) {  // behind: nothing was added
    } catch (const ResourceExhaustedError&) {
      moments_.clear();  // what cuts hold comes back
    }
  }
  void remove() {
    for (const std::uint64_t key : some_keys())
      if (owner_.held.count(key) > 0) owner_.remove(key);
  }
  // Not waited for: what happens to the rows meanwhile does not change what is read.
  void read() {
    std::vector<std::uint64_t> keys, versions;
    std::vector<Place> places;
    for (const std::uint64_t key : some_keys()) {
      const auto at = owner_.held.find(key);
      if (at == owner_.held.end()) continue;
      keys.push_back(key);
      versions.push_back(at->second.version);
      places.push_back(at->second.place);
    }
    ++reads_;
    owner_.log().read(places, keys, [this, keys, versions](ReadRows rows) {
      ++reads_ended_;
      ASSERT_FALSE(rows.error);
      for (std::size_t i = 0; i < keys.size(); ++i)
        LogOwner::expect_row(rows, i, keys[i], versions[i]);
    });
  }
  void read_moment() {
    Moment& moment = moments_[random_.below(moments_.size())];
    std::vector<std::uint64_t> keys, versions;
    std::vector<Place> places;
    const std::uint64_t stride = 1 + random_.below(16);
    for (const auto& [key, each] : moment.held) {
      if (key % stride != 0) continue;
      keys.push_back(key);
      versions.push_back(each.version);
      places.push_back(each.place);
    }
    const ReadRows rows =
        owner_.wait_for([&](RowsDone done) { moment.cut.read(places, keys, std::move(done)); });
    ASSERT_FALSE(rows.error);
    for (std::size_t i = 0; i < keys.size(); ++i)
      LogOwner::expect_row(rows, i, keys[i], versions[i]);
  }

  Random random_;
  LogOwner owner_;
  std::deque<Moment> moments_;
  std::uint64_t version_ = 0;
  int reads_ = 0, reads_ended_ = 0;
};

TEST_P(RowLogModel, RandomOperationsAgreeWithAMap) {
  for (std::uint64_t seed = 1; seed <= effort(6); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Model model(seed, road());
    for (int i = 0; i < 3000; ++i) model.step();
    model.end();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace cairn::storage
