// Shards whose variables do not keep all rows: what they save and restore.
#include <gtest/gtest.h>

#include <set>

#include "core/base/random.h"
#include "core/disk/memory_disk.h"
#include "ps/server/checkpoint_tasks.h"
#include "ps/server/shard_service.h"
#include "tests/ps/shard/shard_fixture.h"

namespace cairn::ps {
namespace {

constexpr std::uint64_t kRun = 7;
constexpr const char* kFolder = "checkpoints";
constexpr std::int64_t kDim = 3, kNumbers = std::int64_t{1} << 40, kIds = 600;

// Part `part` of `parts` of a variable.
TableConfig cut_table(const RowPolicy& policy, std::int64_t parts, std::int64_t part) {
  VariableSpec spec{
      .name = "rows", .shape = {kNumbers, kDim}, .initializer = Initializer::uniform(-1, 1)};
  spec.hashed = true;
  spec.policy = policy;
  return {0,
          std::make_shared<const VariableSpec>(spec),
          adagrad(),
          {{static_cast<std::uint32_t>(part),
            split_rows(kNumbers, parts)[static_cast<std::size_t>(part)]}}};
}

// Spread over all that ids may be.
std::int64_t id_of(std::int64_t i) { return i * (kNumbers / kIds); }

// Where shards run and save, on one thread.
struct Place {
  MemoryDisk disk;
  const std::unique_ptr<storage::RowStore> store = storage::make_memory_row_store(disk);
  const std::unique_ptr<Offload> offload = make_thread_offload(1);
  const std::unique_ptr<rpc::Reactor> reactor = rpc::make_reactor();
};

class PolicyShard {
 public:
  PolicyShard(Place& place, const RowPolicy& policy, std::int64_t parts = 1, std::int64_t part = 0)
      : table_(cut_table(policy, parts, part)),
        place_(place),
        host_(std::make_shared<ShardHost>(*place.reactor, ShardOptions{.lineage = 100},
                                          *place.offload, 0, 1, *place.store, "ps-0-shard-0")) {
    shard().configure({kRun, 1, 42, {table_}});
    shard().announce(kRun, std::uint64_t{1} << 32, 0);
    shard().open();
  }
  Shard& shard() { return host_->shard; }

  // Ids of a window that goes on with the closures, and now and then others.
  void train(std::uint64_t closures) {
    for (; closures > 0; --closures) {
      Random random(++closure_);
      std::set<std::int64_t> some;
      for (int i = 0; i < 8; ++i) {
        const std::int64_t bound = i == 0 ? kIds : 40;
        const auto drawn = static_cast<std::int64_t>(random.below(bound));
        some.insert(id_of((static_cast<std::int64_t>(closure_) + drawn) % kIds));
      }
      Floats values(some.size() * kDim);
      for (float& value : values) value = static_cast<float>(random.uniform() - 0.5);
      push_now({some.begin(), some.end()}, values);
    }
  }
  void push(const Ids& ids) {
    ++closure_;
    push_now(ids, Floats(ids.size() * kDim, 1));
  }
  // All rows of the part, by their ids.
  Floats values() {
    const RowRange part = table_.parts[0].rows;
    Ids ids;
    for (std::int64_t i = 0; i < kIds; ++i)
      if (id_of(i) >= part.begin && id_of(i) < part.end) ids.push_back(id_of(i) - part.begin);
    const ReadHeader header{0, table_.parts[0].index, static_cast<std::uint32_t>(ids.size()),
                            false};
    VerifiedPull& pull = shard().pull({step(), {&header, 1}, ids});
    Floats out(pull.bytes() / sizeof(float));
    pull.read(reinterpret_cast<std::byte*>(out.data()));
    return out;
  }
  // Marks, trains on, and then saves: what was at the mark. The databases' names.
  std::vector<std::string> save(std::uint64_t mark, const MarkOptions& options) {
    shard().mark(mark, options);
    train(30);
    host_->database = str("ckpt-", mark, ".ps-0-shard-0");
    std::vector<std::string> names;
    for (const SavedDatabase& saved : place_.reactor->wait(save_shard(host_, mark, kFolder))) {
      const std::string& file = saved.files.at(0).name;
      names.push_back(file.substr(0, file.find('/')));
      bytes_ += saved.bytes;
      rows_ += saved.rows;
    }
    return names;
  }
  void restore(const std::vector<std::string>& databases) {
    place_.reactor->wait(restore_shard(host_, kFolder, databases, {}));
    shard().open();
  }
  std::uint64_t rows() { return shard().counters().rows.load(); }
  std::uint64_t gone() { return shard().counters().turnover.gone.load(); }
  std::uint64_t dropped() { return shard().counters().turnover.dropped.load(); }
  std::uint64_t saved_rows() const { return rows_; }

 private:
  void push_now(const Ids& ids, const Floats& values) {
    const UpdateHeader header{0,     0,           static_cast<std::uint32_t>(ids.size()),
                              false, table_.rule, 0.1f};
    shard().push({step(), {}, {&header, 1}, ids, std::as_bytes(std::span(values))});
  }
  StepContext step() const {
    StepContext step;
    step.sent_layout = 1;
    step.session = kRun;
    step.closure = closure_;
    step.incarnation = 1;
    return step;
  }
  TableConfig table_;
  Place& place_;
  std::shared_ptr<ShardHost> host_;
  std::uint64_t closure_ = 0, bytes_ = 0, rows_ = 0;
};

struct Saved {
  std::vector<std::string> databases;
  Floats values;  // at the mark
  std::uint64_t dropped = 0;
};

class Turnover : public testing::TestWithParam<RowPolicy> {
 protected:
  PolicyShard shard(std::int64_t parts = 1, std::int64_t part = 0) {
    return {place_, GetParam(), parts, part};
  }
  // A full checkpoint, and deltas on it.
  std::vector<Saved> save_chain(PolicyShard& trained, std::uint64_t marks) {
    std::vector<Saved> chain;
    for (std::uint64_t mark = 1; mark <= marks; ++mark) {
      trained.train(40);
      Saved saved;
      if (mark > 1) saved.databases = chain.back().databases;
      saved.values = trained.values();
      saved.dropped = trained.dropped();
      for (const std::string& name : trained.save(mark, {.base = mark - 1, .track = true}))
        saved.databases.push_back(name);
      chain.push_back(std::move(saved));
    }
    return chain;
  }

  Place place_;
};

TEST_P(Turnover, ACheckpointHasTheRowsOfItsMomentAndNoneThatHadGone) {
  PolicyShard trained = shard();
  const std::vector<Saved> chain = save_chain(trained, 6);
  EXPECT_EQ(GetParam().evicts(), trained.gone() > 50);
  EXPECT_EQ(!GetParam().admits_all(), trained.dropped() > 50);
  for (const Saved& saved : chain) {
    PolicyShard restored = shard();
    restored.train(20);
    restored.restore(saved.databases);
    EXPECT_EQ(restored.values(), saved.values) << saved.databases.size() << " databases";
    EXPECT_EQ(restored.dropped(), saved.dropped);
  }
}

TEST_P(Turnover, ADeltaRestoresOntoAnyNumberOfParts) {
  PolicyShard trained = shard();
  const Saved saved = save_chain(trained, 4).back();
  for (const std::int64_t parts : {2, 5}) {
    Floats all;
    std::uint64_t dropped = 0;
    for (std::int64_t part = 0; part < parts; ++part) {
      PolicyShard restored = shard(parts, part);
      restored.restore(saved.databases);
      const Floats values = restored.values();
      all.insert(all.end(), values.begin(), values.end());
      dropped += restored.dropped();
    }
    EXPECT_EQ(all, saved.values) << parts << " parts";
    EXPECT_EQ(dropped, saved.dropped) << parts << " parts";
  }
}

// The second one after a base that came to nothing holds what went before it, too.
TEST_P(Turnover, ADeltaAfterOneThatFailedKnowsWhatWent) {
  PolicyShard trained = shard();
  std::vector<Saved> chain = save_chain(trained, 1);
  trained.train(60);
  trained.shard().mark(8, {.base = 1, .track = true});
  trained.shard().drop_mark(8);
  trained.train(60);
  const Floats values = trained.values();
  std::vector<std::string> databases = chain[0].databases;
  for (const std::string& name : trained.save(9, {.base = 1, .track = true}))
    databases.push_back(name);
  PolicyShard restored = shard();
  restored.restore(databases);
  EXPECT_EQ(restored.values(), values);
}

INSTANTIATE_TEST_SUITE_P(Policies, Turnover,
                         testing::Values(RowPolicy{.admit_after = 2, .sketch_rows = 4096},
                                         RowPolicy{.admit_probability = 0.3},
                                         RowPolicy{.rows_max = 100}, RowPolicy{.steps_to_live = 20},
                                         RowPolicy{.admit_after = 2,
                                                   .sketch_rows = 4096,
                                                   .rows_max = 60,
                                                   .steps_to_live = 25}),
                         [](const auto& info) { return str("Policy", info.index); });

TEST(RowsMax, BoundsTheRowsThatAStreamOfNewIdsLeaves) {
  Place place;
  PolicyShard shard(place, {.rows_max = 50});
  for (int i = 0; i < 40; ++i) {
    shard.train(25);
    EXPECT_LE(shard.rows(), 50u);
  }
  EXPECT_GT(shard.gone(), 500u);
}

// Ids pass once, and do not come back.
TEST(RowsThatStay, AreThoseOfATableThatKeepsAllOfThem) {
  Place place;
  PolicyShard evicts(place, {.steps_to_live = 30}), keeps(place, {}), untouched(place, {});
  for (std::int64_t i = 0; i < 500; ++i) {
    for (PolicyShard* shard : {&evicts, &keeps}) shard->push({id_of(i), id_of(i + 10)});
  }
  const Floats some = evicts.values(), all = keeps.values(), initial = untouched.values();
  std::size_t differ = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    differ += some[i] != all[i] ? 1 : 0;
    ASSERT_TRUE(some[i] == all[i] || some[i] == initial[i]) << "row " << i / kDim;
  }
  EXPECT_EQ(differ, evicts.gone() * kDim);
  EXPECT_GT(evicts.gone(), 400u);
}

TEST(RowsThatWent, AreFewerBytesInADeltaThanTheWholeTable) {
  Place place;
  PolicyShard shard(place, {.rows_max = 400});
  shard.train(2000);
  shard.save(1, {.track = true});
  const std::uint64_t whole = shard.saved_rows();
  shard.save(2, {.base = 1, .track = true});
  EXPECT_LT(shard.saved_rows() - whole, whole / 2);
}

}  // namespace
}  // namespace cairn::ps
