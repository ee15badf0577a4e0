// A snapshot against a model that copies every row at the freeze, under random writes.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/base/random.h"
#include "ps/snapshot/snapshot.h"
#include "tests/effort.h"
#include "tests/ps/shard/shard_fixture.h"

namespace cairn::ps {
namespace {

using SavedRows = std::map<std::int64_t, std::vector<std::byte>>;  // with their slots

// Two slots, where Adagrad has one.
UpdateRule ftrl() { return {RuleKind::kFtrl, {0.1f, 0.01f, 0.01f}}; }

class RandomTable {
 public:
  RandomTable(std::uint64_t seed, bool hashed)
      : hashed_(hashed),
        random_(seed),
        dim_(std::int64_t{4} << (4 * random_.below(3))),  // 4, 64 or 1,024 elements
        rows_(1 + static_cast<std::int64_t>(random_.below(600))),
        memory_(make()) {}

  void one_thing() {
    switch (random_.below(16)) {
      case 0: return freeze();
      case 1: return thaw();
      case 2: return write_all();
      case 3: return write_some(Before::kAll);
      case 4: return random_.below(4) == 0 ? lay_anew() : write_some();
      case 5:
      case 6:
      case 7: return take_some(1 + random_.below(4));
      default: return write_some();
    }
  }
  // The rest of the frozen state comes, and no copy stays.
  void take_the_rest() {
    if (!snapshot_.frozen()) return;
    take_some(UINT64_MAX);
    SavedRows found = below_;
    for (const auto& [row, bytes] : taken_) found[row] = bytes;
    EXPECT_EQ(found, frozen_);
    EXPECT_EQ(snapshot_.copied_bytes(), 0u);
    EXPECT_EQ(pool_.taken(), 0u);
    EXPECT_EQ(snapshot_.taken(), snapshot_.blocks());
    small_delta_ |= delta_ && taken_.size() < frozen_.size();
    kept_ = kept_ || random_.below(2) == 0;
    if (kept_) base_ = frozen_;
  }
  bool grew() const { return grew_; }
  bool had_a_small_delta() const { return small_delta_; }

 private:
  RowMemory make() {
    VariableSpec spec{.name = "w", .shape = {rows_, dim_}};
    spec.hashed = hashed_;
    return {std::make_shared<const VariableSpec>(std::move(spec)), adagrad(), {0, rows_}, 42};
  }
  SavedRows all_rows() {
    SavedRows rows;
    for (std::int64_t place = 0; place < memory_.held(); ++place) {
      const std::int64_t row = memory_.row_at(place);
      if (!hashed_ && !touched_.contains(row)) continue;
      std::vector<std::byte>& bytes = rows[row];
      bytes.resize(memory_.layout().saved_row_bytes());
      memory_.save(std::span(&place, 1), bytes.data());
    }
    return rows;
  }

  // A checkpoint of all rows, or of those that changed since the last one that was kept. One that
  // was not kept has to be held by the next.
  void freeze() {
    const bool delta = base_.has_value() && (kept_ || delta_) && random_.below(3) > 0;
    using Rows = Snapshot::Rows;
    snapshot_.freeze(!delta  ? Rows::kAll
                     : kept_ ? Rows::kChanged
                             : Rows::kChangedBefore,
                     Snapshot::Tracking::kAnew);
    frozen_ = all_rows();
    below_ = delta ? *base_ : SavedRows();
    delta_ = delta;
    kept_ = false;
    taken_.clear();
    more_ = true;
  }
  void thaw() {
    take_the_rest();
    snapshot_.thaw();
    EXPECT_EQ(pool_.taken(), 0u);
  }
  void take_some(std::uint64_t count) {
    if (!snapshot_.frozen()) return;
    for (; count > 0 && more_; --count) {
      if (random_.below(4) == 0) snapshot_.prepare();
      const auto block = snapshot_.take();
      more_ = block.has_value();
      if (!more_) return;
      const auto* bytes = block->data.data();
      for (const std::uint64_t offset : block->offsets) {
        const auto row = block->first_row + static_cast<std::int64_t>(offset);
        EXPECT_TRUE(taken_.empty() || taken_.rbegin()->first < row) << "rows ascend";
        EXPECT_TRUE(taken_.emplace(row, std::vector(bytes, bytes + block->row_bytes())).second);
        bytes += block->row_bytes();
      }
    }
  }
  // As a table does: the rows are made, those that are frozen copied, all noted, and then changed.
  // A rule of tables changes other rows than are named, and all are copied first.
  enum class Before : std::uint8_t { kThese, kAll };
  void write_some(Before before = Before::kThese) {
    std::set<std::int64_t> chosen;
    for (std::uint64_t n = 1 + random_.below(40); n > 0; --n)
      chosen.insert(static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(rows_))));
    const Ids rows(chosen.begin(), chosen.end());
    const std::int64_t held = memory_.held();
    const bool all = before == Before::kAll;
    const std::size_t copied =
        all ? snapshot_.rows_to_copy_of_all() : snapshot_.rows_to_copy(memory_.find(rows));
    const std::size_t room = snapshot_.room_for(copied);
    const std::size_t taken = pool_.taken();
    const Places places = memory_.make(memory_.find(rows));
    snapshot_.grew();
    grew_ |= snapshot_.frozen() && memory_.held() > held;
    if (all)
      snapshot_.before_write_all();
    else
      snapshot_.before_write(places.at);
    EXPECT_EQ(pool_.taken() - taken, room);
    snapshot_.touch(places);
    touched_.insert(rows.begin(), rows.end());
    const Floats values(rows.size() * static_cast<std::size_t>(dim_), next_value());
    memory_.update(memory_.rule(), 1, places, reinterpret_cast<const std::byte*>(values.data()));
  }
  void write_all() {
    const std::size_t room = snapshot_.room_for(snapshot_.rows_to_copy_of_all()),
                      taken = pool_.taken();
    snapshot_.before_write_all();
    EXPECT_EQ(pool_.taken() - taken, room);
    EXPECT_EQ(snapshot_.rows_to_copy_of_all(), 0u);
    snapshot_.touch_all();
    for (std::int64_t row = 0; row < rows_; ++row) touched_.insert(row);
    const std::vector<std::byte> bytes(memory_.layout().saved_row_bytes(),
                                       static_cast<std::byte>(random_.below(256)));
    for (std::int64_t place = 0; place < memory_.held(); ++place)
      memory_.restore(place, bytes.data(), memory_.layout().slots);
  }
  void lay_anew() {
    snapshot_.before_new_layout();
    EXPECT_EQ(pool_.taken(), 0u);
    memory_.set_rule(memory_.layout().slots == 1 ? ftrl() : adagrad());
    snapshot_.laid_anew();
  }
  float next_value() { return static_cast<float>(1 + random_.below(1000)) / 100; }

  bool hashed_;
  Random random_;
  std::int64_t dim_, rows_;
  RowMemory memory_;
  CopyPool pool_;
  Snapshot snapshot_{memory_, pool_};
  std::set<std::int64_t> touched_;
  SavedRows frozen_, taken_;
  bool more_ = false;                  // may be taken
  std::optional<SavedRows> base_;      // the last checkpoint that was kept
  SavedRows below_;                    // what the frozen state is a delta of
  bool delta_ = false, kept_ = false;  // the last one
  bool grew_ = false, small_delta_ = false;
};

class SnapshotModel : public testing::TestWithParam<bool> {};

TEST_P(SnapshotModel, TheWriterGetsEveryRowAsItWasAtTheFreezeWhateverIsWrittenMeanwhile) {
  bool grew = false, small_delta = false;
  for (std::uint64_t seed = 1; seed <= effort(150); ++seed) {
    SCOPED_TRACE(seed);
    RandomTable table(seed, GetParam());
    for (int i = 0; i < 120 && !testing::Test::HasFailure(); ++i) table.one_thing();
    table.take_the_rest();
    grew |= table.grew();
    small_delta |= table.had_a_small_delta();
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_EQ(grew, GetParam());
  EXPECT_TRUE(small_delta);
}
INSTANTIATE_TEST_SUITE_P(, SnapshotModel, testing::Bool(),
                         [](const auto& kind) { return kind.param ? "Hashed" : "Dense"; });

}  // namespace
}  // namespace cairn::ps
