// A shard that has few rows in memory and the others in a store: beside one that has all in memory.
#include "ps/shard/tiered_rows.h"

#include <gmock/gmock.h>

#include <map>

#include "core/base/random.h"
#include "tests/ps/shard/tiered_shard.h"

namespace cairn::ps {
namespace {

constexpr std::int64_t kDim = 3;

std::shared_ptr<const VariableSpec> hashed(const std::string& name) {
  return hashed_variable(name, kDim);
}

using CheckpointRows = std::map<std::pair<std::string, std::int64_t>, std::vector<std::byte>>;

void add(CheckpointRows& to, const std::string& variable, const storage::StoredRows& rows) {
  for (std::size_t i = 0; i < rows.offsets.size(); ++i) {
    const auto row = rows.data.begin() + static_cast<std::ptrdiff_t>(i * rows.row_bytes());
    const std::int64_t number = rows.first_row + static_cast<std::int64_t>(rows.offsets[i]);
    EXPECT_TRUE(
        to.try_emplace({variable, number}, row, row + static_cast<std::ptrdiff_t>(rows.row_bytes()))
            .second)
        << variable << " row " << number << " comes twice";
  }
}

// Pushes and pulls of random rows, the store's answers and saves in any order, and after each what
// the shard says is what the other one says.
class Compared {
 public:
  Compared(std::uint64_t seed, SaveMemory save)
      : random_(seed), tiered_(tables(), save), plain_(tables()) {}

  void go_on(int steps) {
    for (int step = 0; step < steps; ++step) {
      const std::uint64_t what = random_.below(20);
      if (what < 8)
        push();
      else if (what < 13)
        pull();
      else if (what == 13)
        answer();
      else if (what < 18 && !tiered_.later.work.empty())
        do_later();
      else if (what == 18)
        save_some();
      else if (random_.below(40) == 0)
        restore_all();
    }
    while (!tiered_.later.work.empty() || saving_ || !unanswered_.empty()) {
      answer();
      save_some();
      if (!tiered_.later.work.empty()) do_later();
    }
    EXPECT_EQ(waiting_, 0);
    tiered_.harness.shard.store_went_on();
    EXPECT_EQ(tiered_.harness.shard.counters().rows + rows_elsewhere(),
              plain_.shard.counters().rows);
  }
  int saves() const { return saves_; }
  std::uint64_t rows_elsewhere() const { return tiered_.rows_elsewhere(); }

 private:
  static std::vector<TableConfig> tables() {
    return {whole_table(0, hashed("a"), adagrad()), whole_table(1, hashed("b"), sgd())};
  }
  void do_later() {
    tiered_.later.do_one(random_.below(tiered_.later.work.size()));
    tiered_.harness.shard.store_went_on();
  }
  // Low ids are more frequent.
  Ids ids(bool ascending) {
    std::set<std::int64_t> some;
    const std::uint64_t bound = 1 + random_.below(500);
    for (std::uint64_t i = random_.below(8) + 1; i > 0; --i)
      some.insert(static_cast<std::int64_t>(random_.below(bound) << 20));
    Ids all(some.begin(), some.end());
    if (!ascending && all.size() > 1) std::swap(all.front(), all.back());
    return all;
  }

  void push() {
    const auto variable = static_cast<VariableId>(random_.below(2));
    const Ids rows = ids(true);
    Floats values(rows.size() * kDim);
    for (float& value : values) value = random_.uniform() - 0.5f;
    const StepContext step = tiered_.harness.step(++closure_);
    const UpdateRule rule = variable == 0 ? adagrad() : sgd();
    const auto apply = [this, step, variable, rows, values, rule] {
      plain_.push(step, variable, rows, values, rule, {}, 0.1f);
    };
    const PushResult result = tiered_.harness.push(step, variable, rows, values, rule, {}, 0.1f);
    if (result.waits == 0) return apply();
    ++waiting_;
    tiered_.harness.shard.on_end(result.waits, [this, apply](const WaitOutcome& outcome) {
      --waiting_;
      if (outcome.error == nullptr) apply();
    });
  }

  void pull() {
    const auto variable = static_cast<VariableId>(random_.below(2));
    const auto rows = std::make_shared<Ids>(ids(false));
    const ReadHeader header{variable, 0, static_cast<std::uint32_t>(rows->size()), false};
    const PullRequest request{tiered_.harness.step(0), {&header, 1}, *rows};
    if (!tiered_.harness.shard.must_wait(request)) return compare(variable, *rows);
    ++waiting_;
    const std::uint64_t wait = tiered_.harness.shard.wait(request);
    tiered_.harness.shard.on_end(wait, [this, variable, rows, wait](const WaitOutcome& outcome) {
      --waiting_;
      if (outcome.error != nullptr) return;
      unanswered_.push_back([this, variable, rows, wait] {
        compare(variable, *rows);
        tiered_.harness.shard.answered(wait);
      });
    });
  }
  // A read has had its turn, and is answered a little later.
  void answer() {
    for (const auto& one : std::exchange(unanswered_, {})) one();
  }
  void compare(VariableId variable, const Ids& rows) {
    ASSERT_EQ(tiered_.harness.pull(variable, rows), plain_.pull(variable, rows));
  }

  // A save goes on a little at a time; the other shard's is of the same moment.
  void save_some() {
    Shard& shard = tiered_.harness.shard;
    if (!saving_) {
      saving_ = true;
      elsewhere_ = reading_ = false;
      saved_.clear();
      expected_.clear();
      shard.mark(++attempt_);
      plain_.shard.mark(attempt_);
      for (const auto& [key, record] : plain_.frozen(attempt_))
        if (const auto* rows = std::get_if<storage::StoredRows>(&record))
          add(expected_, key.variable, *rows);
      plain_.shard.drop_mark(attempt_);
      shard.begin_save(attempt_);
      while (shard.next_frozen(attempt_)) {
      }
      return;
    }
    if (!elsewhere_) {
      const auto rows = shard.next_unordered(attempt_);
      if (rows.has_value()) return add(saved_, rows->table.variable, rows->rows);
      elsewhere_ = true;
    }
    if (reading_) return;
    reading_ = shard.next_elsewhere(attempt_, 10, [this](const RowsElsewhere& rows) {
      reading_ = false;
      add_elsewhere(rows);
    });
    if (reading_) return;
    EXPECT_EQ(saved_, expected_) << "save " << attempt_;
    ++saves_;
    shard.drop_mark(attempt_);
    saving_ = false;
  }
  void add_elsewhere(const RowsElsewhere& rows) {
    for (std::size_t i = 0; i < rows.read.keys.size(); ++i) {
      storage::StoredRows one = rows.layout;
      one.first_row = static_cast<std::int64_t>(rows.read.keys[i]);
      one.offsets = {0};
      const auto row = rows.read.rows.begin() + static_cast<std::ptrdiff_t>(i * one.row_bytes());
      one.data.assign(row, row + static_cast<std::ptrdiff_t>(one.row_bytes()));
      add(saved_, rows.table.variable, one);
    }
  }

  void restore(Shard& shard, const storage::StoredRows& rows, const std::string& variable) {
    bool placed = false;
    const auto place = [&](std::exception_ptr) {
      shard.restore(rows, variable, 0);
      placed = true;
    };
    if (!shard.bring_restored(rows, variable, 0, place)) place(nullptr);
    while (!placed) do_later();
  }
  // Both begin anew, in the middle of whatever goes on, from what was saved last.
  void restore_all() {
    if (saving_) return;
    answer();
    for (Shard* shard : {&tiered_.harness.shard, &plain_.shard}) {
      shard->begin_restore();
      for (const TableConfig& table : tables()) {
        storage::TableRecord record{
            table.spec->name,       DType::kFloat32, table.spec->shape, table.rule, {},
            {0, table.spec->rows()}};
        for (const SlotSpec& slot : rule_slots(table.rule)) record.slots.emplace_back(slot.name);
        shard->restore(record);
      }
      // First those of an older database, which are others.
      for (const bool older : {true, false}) {
        for (const auto& [name, row] : saved_) {
          const UpdateRule rule = name.first == "a" ? adagrad() : sgd();
          storage::StoredRows rows{.rule = rule.kind,
                                   .slots = static_cast<std::uint32_t>(rule_slots(rule).size()),
                                   .dim = kDim,
                                   .first_row = name.second,
                                   .offsets = {0},
                                   .data = row};
          if (older) std::ranges::fill(rows.data, std::byte{0x3f});
          restore(*shard, rows, name.first);
        }
      }
      shard->end_restore({});
      shard->open();
    }
  }

  Random random_;
  TieredShard tiered_;
  ShardHarness plain_;
  std::uint64_t closure_ = 0, attempt_ = 0;
  int waiting_ = 0, saves_ = 0;
  std::vector<std::function<void()>> unanswered_;
  bool saving_ = false, elsewhere_ = false, reading_ = false;
  CheckpointRows saved_, expected_;
};

TEST(TieredRows, AnswersAndSavesAsIfAllRowsWereInMemory) {
  int saves = 0;
  std::uint64_t elsewhere = 0;
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    SCOPED_TRACE(seed);
    Compared compared(seed, {});
    compared.go_on(3000);
    saves += compared.saves();
    elsewhere += compared.rows_elsewhere();
    if (HasFailure()) return;
  }
  EXPECT_GE(saves, 25);
  EXPECT_GE(elsewhere, 25u * 200);
}

TEST(TieredRows, RowsLeaveOnlyWhereTheirCopiesForASaveHaveRoom) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    Compared compared(seed, {.bytes = CopyPool::kSlabBytes});
    compared.go_on(3000);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace cairn::ps
