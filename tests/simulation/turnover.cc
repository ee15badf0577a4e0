#include "tests/simulation/turnover.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>

#include "core/base/random.h"
#include "core/disk/memory_disk.h"
#include "ps/server/checkpoint_tasks.h"
#include "ps/server/shard_service.h"
#include "rpc/loop/sim_offload.h"
#include "rpc/loop/sim_reactor.h"
#include "rpc/loop/task_group.h"
#include "storage/row_log/memory_cold_store.h"
#include "tests/simulation/part_follower.h"

namespace cairn::simulation {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kSession = 7, kSeed = 42;
constexpr std::int64_t kNumbers = std::int64_t{1} << 40;
constexpr const char* kFolder = "checkpoints";

// Drawn once for a scenario.
struct Drawn {
  RowPolicy policy;
  std::int64_t ids = 0, dim = 1;
  std::size_t batch_bytes = 0, run_bytes = 0;
  ps::SaveMemory save;
  bool limited = false;  // few rows in memory, the others in a store
};

Drawn draw(Random& random) {
  Drawn drawn;
  drawn.ids = 20 + static_cast<std::int64_t>(random.below(300));
  drawn.dim = 1 + static_cast<std::int64_t>(random.below(4));
  const std::uint64_t kind = random.below(6);
  if (kind < 2) {
    drawn.policy.admit_after = 1 + static_cast<std::uint32_t>(random.below(4));
    drawn.policy.sketch_rows = 256;
  } else if (kind == 2) {
    drawn.policy.admit_probability = 0.2 + 0.6 * random.uniform();
  }
  drawn.limited = kind == 1 || kind == 3;
  if (kind != 2 && random.below(3) > 0)
    drawn.policy.rows_max = 5 + static_cast<std::int64_t>(random.below(100));
  if (random.below(2) > 0)
    drawn.policy.steps_to_live = 4 + static_cast<std::int64_t>(random.below(60));
  drawn.policy.evictable = random.below(3) == 0;
  drawn.batch_bytes = 1 + random.below(2000);
  drawn.run_bytes = 20 + random.below(1000);
  // Sometimes rows that go have no room to be copied aside.
  if (random.below(3) == 0) drawn.save.bytes = ps::CopyPool::kSlabBytes;
  return drawn;
}

VariableSpec spec_of(const Drawn& drawn) {
  VariableSpec spec{
      .name = "rows", .shape = {kNumbers, drawn.dim}, .initializer = Initializer::uniform(-1, 1)};
  spec.hashed = true;
  spec.policy = drawn.policy;
  return spec;
}

using RowValues = std::vector<float>;

class PartOfRows {
 public:
  PartOfRows(rpc::SimReactor& reactor, rpc::SimOffload& offload, storage::RowStore& store,
             const Drawn& drawn, std::int64_t parts, std::int64_t part, std::uint64_t incarnation)
      : reactor_(reactor), drawn_(drawn), part_(static_cast<std::uint32_t>(part)) {
    const VariableSpec spec = spec_of(drawn);
    rows_ = split_rows(kNumbers, parts)[static_cast<std::size_t>(part)];
    ps::ShardOptions options{.lineage = incarnation, .save_memory = drawn.save};
    if (drawn.limited) {
      options.tiering.memory_bytes = 1;
      options.tiering.rows_min = 4;
      options.tiering.make_store = [this](const std::string&, std::size_t row_bytes,
                                          storage::Moved moved) {
        storage::MemoryColdStoreOptions own{.row_bytes = row_bytes, .moves_after = 5};
        own.later = [this](std::function<void()> work) {
          reactor_.schedule(1us, [work = std::move(work), host = std::weak_ptr(host_)] {
            work();  // nothing, of a shard that has gone
            if (const auto there = host.lock()) there->shard.store_went_on();
          });
        };
        return std::make_unique<storage::MemoryColdStore>(std::move(own), std::move(moved));
      };
    }
    host_ = std::make_shared<ps::ShardHost>(reactor, options, offload, 2 * part, 2 * part + 1,
                                            store, str("ps-", part, "-shard-0"));
    host_->save_batch_bytes = drawn.batch_bytes;
    host_->run_bytes = drawn.run_bytes;
    shard().configure(
        {kSession,
         1,
         kSeed,
         {{0, std::make_shared<const VariableSpec>(spec), rule(), {{part_, rows_}}}}});
    shard().announce(kSession, std::uint64_t{1} << 32, 0);
    shard().open();
  }
  ps::Shard& shard() { return host_->shard; }
  const std::shared_ptr<ps::ShardHost>& host() const { return host_; }
  RowRange rows() const { return rows_; }

  // One more to each of these rows of the variable that lie here, or they go for good.
  void push(const std::vector<std::int64_t>& ids, std::uint64_t closure, bool go) {
    std::vector<std::int64_t> local;
    for (const std::int64_t id : ids)
      if (id >= rows_.begin && id < rows_.end) local.push_back(id - rows_.begin);
    if (local.empty()) return;
    const std::vector<float> ones(local.size() * static_cast<std::size_t>(drawn_.dim), -1);
    const ps::UpdateHeader header{
        0,   part_, static_cast<std::uint32_t>(local.size()), false, go ? eviction_rule() : rule(),
        0.5f};
    const ps::PushResult result =
        shard().push({step(closure), {}, {&header, 1}, local, std::as_bytes(std::span(ones))});
    if (result.waits == 0) return;
    // Later pushes of the rows wait for it, and so does the next cut.
    bool done = false;
    shard().on_end(result.waits, [&done](const ps::WaitOutcome&) { done = true; });
    while (!done) reactor_.advance(1us);
  }
  void read(const std::vector<std::int64_t>& ids, RowValues& out) {
    for (const std::int64_t id : ids) {
      if (id < rows_.begin || id >= rows_.end) continue;
      const std::int64_t local = id - rows_.begin;
      const ps::ReadHeader header{0, part_, 1, false};
      const ps::PullRequest request{step(0), {&header, 1}, {&local, 1}};
      bool waited = false;
      std::uint64_t wait = 0;
      if (shard().must_wait(request)) {
        wait = shard().wait(request);
        shard().on_end(wait, [&waited](const ps::WaitOutcome&) { waited = true; });
        while (!waited) reactor_.advance(1us);
      }
      ps::VerifiedPull& pull = shard().pull(request);
      const std::size_t before = out.size();
      out.resize(before + static_cast<std::size_t>(drawn_.dim));
      pull.read(reinterpret_cast<std::byte*>(out.data() + before));
      if (waited) shard().answered(wait);
    }
  }

 private:
  static UpdateRule rule() { return {RuleKind::kAdagrad, {0.1f, 1e-7f}}; }
  static StepContext step(std::uint64_t closure) {
    StepContext step;
    step.sent_layout = 1;
    step.session = kSession;
    step.closure = closure;
    step.incarnation = 1;
    return step;
  }

  rpc::SimReactor& reactor_;
  const Drawn& drawn_;
  std::uint32_t part_;
  RowRange rows_;
  std::shared_ptr<ps::ShardHost> host_;
};

// A checkpoint that was committed, as a coordinator would.
struct Committed {
  std::vector<std::string> databases;
  RowValues values;  // at its cut
  std::uint64_t dropped = 0, mark = 0;
};

class TurnoverWorld {
 public:
  explicit TurnoverWorld(const Scenario& scenario)
      : scenario_(scenario),
        random_(random_key(scenario.seed, "turnover")),
        offload_(reactor_, random_.below(1 << 30), random_.below(2) == 0 ? 0us : 50us),
        drawn_(draw(random_)) {
    for (std::int64_t i = 0; i < drawn_.ids; ++i) ids_.push_back(i * (kNumbers / drawn_.ids));
    lay(1 + static_cast<std::int64_t>(random_.below(3)));
  }

  Verdict run() {
    try {
      for (int turn = 0; turn < 14; ++turn) {
        train(random_.below(40));
        catch_up();
        save();
        if (random_.below(4) == 0 && !committed_.empty()) go_back();
      }
      for (const Committed& one : committed_) check(one, 1 + turns_++ % 3);
    } catch (const std::exception& error) {
      verdict_.complaints.push_back(error.what());
    }
    verdict_.checkpoints = committed_.size();
    return verdict_;
  }

 private:
  void lay(std::int64_t parts) {
    parts_.clear();
    std::vector<PartFollower> before = std::exchange(followers_, {});
    ++laid_;
    for (std::int64_t part = 0; part < parts; ++part) {
      parts_.push_back(std::make_unique<PartOfRows>(reactor_, offload_, *store_, drawn_, parts,
                                                    part, 100 + laid_));
      if (!scenario_.followed) continue;
      const auto index = static_cast<std::size_t>(part);
      followers_.emplace_back(
          random_key(random_key(scenario_.seed, "follower"), laid_ * 10 + index),
          parts_.back()->rows(), drawn_.dim);
      if (index < before.size()) followers_.back().take_cursor(before[index]);
    }
    base_ = 0;
  }

  // ---- subscribers ----
  void follow() {
    for (std::size_t i = 0; i < followers_.size(); ++i) {
      reactor_.advance(1us);  // what is older than this moment is all that was pushed
      followers_[i].ask(parts_[i]->host()->subscriptions);
      if (followers_[i].settled()) compare(i);
    }
  }
  void catch_up() {
    for (std::size_t i = 0; i < followers_.size(); ++i) {
      bool settled = false;
      for (int asked = 0; asked < 3000 && !settled; ++asked) {
        reactor_.advance(3us);
        followers_[i].ask_well(parts_[i]->host()->subscriptions);
        settled = followers_[i].settled();
      }
      if (!settled) verdict_.complaints.push_back("a follower does not get to an end");
      compare(i);
    }
  }
  // Rows that are not in the copy are at their initial values.
  void compare(std::size_t part) {
    const auto dim = static_cast<std::size_t>(drawn_.dim);
    const VariableSpec spec = spec_of(drawn_);
    for (const std::int64_t id : ids_) {
      RowValues here, copy(dim);
      parts_[part]->read({id}, here);
      if (here.empty()) continue;
      if (const PartFollower::Row* const row = followers_[part].row(id))
        copy = *row;
      else
        initialize_rows(spec, kSeed, id, 1, drawn_.dim, reinterpret_cast<std::byte*>(copy.data()));
      if (here == copy) continue;
      verdict_.complaints.push_back(str("a follower's copy of row ", id, " begins with ", copy[0],
                                        ", on the shard it does with ", here[0]));
      return;
    }
  }

  std::vector<std::int64_t> some_ids() {
    std::set<std::int64_t> some;
    const std::uint64_t window = 1 + random_.below(ids_.size());
    for (std::uint64_t i = 1 + random_.below(6); i > 0; --i)
      some.insert(ids_[(closure_ / 3 + random_.below(window)) % ids_.size()]);
    return {some.begin(), some.end()};
  }
  void train(std::uint64_t closures) {
    for (; closures > 0; --closures) {
      train_once();
      follow();
    }
  }
  void train_once() {
    const std::vector<std::int64_t> ids = some_ids();
    ++closure_;
    const bool go = drawn_.policy.evicts() && random_.below(12) == 0;
    for (const auto& part : parts_) part->push(ids, closure_, go);
  }
  // Rows that are being looked at on a disk have gone, or not, before.
  RowValues values() {
    reactor_.advance(2us);
    RowValues all;
    for (const auto& part : parts_) part->read(ids_, all);
    return all;
  }
  std::uint64_t dropped() {
    std::uint64_t all = 0;
    for (const auto& part : parts_) all += part->shard().counters().turnover.dropped.load();
    return all;
  }

  // Pushes that come while a save is under way. Not where they might wait for it.
  rpc::Task<void> train_beside(std::uint64_t closures) {
    for (; closures > 0; --closures) {
      train_once();
      for (std::size_t i = 0; i < followers_.size(); ++i)
        followers_[i].ask(parts_[i]->host()->subscriptions);
      co_await reactor_.yield();
    }
  }

  void save() {
    Committed made;
    made.values = values();
    made.dropped = dropped();
    made.mark = ++mark_;
    ps::MarkOptions options{.base = base_, .track = random_.below(8) > 0};
    options.passing = random_.below(6) == 0;
    bool delta = true;
    for (const auto& part : parts_) delta = part->shard().mark(made.mark, options).delta && delta;
    const bool fails = random_.below(5) == 0;
    std::vector<kj::Promise<void>> all;
    std::vector<std::vector<ps::SavedDatabase>> saved(parts_.size());
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const auto& host = parts_[i]->host();
      host->database = str("ckpt-", made.mark, ".ps-", i, "-shard-0");
      all.push_back(ps::save_shard(host, made.mark, kFolder)
                        .start()
                        .then([&saved, i](std::vector<ps::SavedDatabase> databases) {
                          saved[i] = std::move(databases);
                        }));
    }
    // With rows on a disk, or with no room for copies, a push may wait for the save, and here it
    // would wait inside of it.
    if (!drawn_.limited && drawn_.save.bytes == 0)
      all.push_back(train_beside(random_.below(30)).start());
    reactor_.wait(rpc::all_ended(std::move(all)));
    if (fails) return;
    commit(std::move(made), saved, delta, options);
  }
  void commit(Committed made, const std::vector<std::vector<ps::SavedDatabase>>& saved, bool delta,
              const ps::MarkOptions& options) {
    if (delta)
      for (const Committed& base : committed_)
        if (base.mark == base_) made.databases = base.databases;
    for (const auto& part : saved)
      for (const ps::SavedDatabase& database : part) {
        const std::string& file = database.files.at(0).name;
        made.databases.push_back(file.substr(0, file.find('/')));
      }
    if (!options.passing) base_ = options.track ? made.mark : 0;
    committed_.push_back(std::move(made));
  }

  void check(const Committed& saved, std::int64_t parts) {
    lay(parts);
    train(random_.below(10));
    for (const auto& part : parts_) {
      // On demand it may be that all comes at once, as rows have gone.
      if (random_.below(2) == 0)
        reactor_.wait(ps::restore_on_demand(part->host(), kFolder, saved.databases, {}));
      else
        reactor_.wait(ps::restore_shard(part->host(), kFolder, saved.databases, {}));
      part->shard().open();
    }
    catch_up();
    if (values() != saved.values)
      verdict_.complaints.push_back(
          str("checkpoint ", saved.mark, " of ", saved.databases.size(), " databases restores to ",
              "other rows than it had at its cut, onto ", parts, " shards"));
    if (dropped() != saved.dropped)
      verdict_.complaints.push_back(str("checkpoint ", saved.mark, " counts ", dropped(),
                                        " gradients dropped, and there were ", saved.dropped));
  }
  void go_back() {
    const Committed& some = committed_[random_.below(committed_.size())];
    check(some, 1 + static_cast<std::int64_t>(random_.below(3)));
  }

  const Scenario scenario_;
  Random random_;
  rpc::SimReactor reactor_;
  rpc::SimOffload offload_;
  MemoryDisk disk_;
  const std::unique_ptr<storage::RowStore> store_ = storage::make_memory_row_store(disk_);
  const Drawn drawn_;
  std::vector<std::int64_t> ids_;
  std::vector<std::unique_ptr<PartOfRows>> parts_;
  std::vector<PartFollower> followers_;  // one a part, if there are any
  std::uint64_t laid_ = 0;
  std::uint64_t closure_ = 0, mark_ = 0;
  std::uint64_t base_ = 0;  // the mark of the last checkpoint that a delta may be of; 0: none
  std::vector<Committed> committed_;
  std::int64_t turns_ = 0;
  Verdict verdict_;
};

}  // namespace

Scenario turnover_scenario(std::uint64_t seed) {
  Scenario scenario;
  scenario.seed = seed;
  scenario.job = Job::kTurnover;
  return scenario;
}

Verdict run_turnover(const Scenario& scenario) { return TurnoverWorld(scenario).run(); }

}  // namespace cairn::simulation
