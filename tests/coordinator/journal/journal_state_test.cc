#include "coordinator/journal/journal_state.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "coordinator/cluster/shard_client.h"
#include "core/base/error.h"
#include "core/base/random.h"

namespace cairn::journal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::byte> some_bytes(std::uint64_t n) {
  return {static_cast<std::byte>(n), static_cast<std::byte>(n >> 8)};
}

// Elements of a pipeline that were taken and not committed, one by one, and where it goes on.
std::vector<std::uint64_t> open_elements(const Pipeline& pipeline) {
  const PipelinePosition position = pipeline.position();
  std::vector<std::uint64_t> all;
  for (const auto& open : position.open)
    for (std::uint32_t i = 0; i < open.count; ++i) all.push_back(open.ordinal + i);
  std::ranges::sort(all);
  all.push_back(position.next);
  return all;
}

// Its iterator states, but for the beginning, which is one as long as no other is needed.
std::map<std::uint64_t, std::vector<std::byte>> states_of(const Pipeline& pipeline) {
  auto states = pipeline.position().states;
  states.erase(0);
  return states;
}

// A run whose coordinator writes a journal, and keeps books of its own.
struct WrittenRun {
  explicit WrittenRun(std::uint64_t seed_of_run) : seed(seed_of_run) {
    note(Opened{"test", 7, 1, "somebody"});
    note(FunctionMade{.id = 0, .name = "step", .graph = some_bytes(5), .replicas = 1});
    note(Standing{.losses = losses.state()});
    for (int i = 0; i < 3; ++i) add_pipeline();
  }

  std::uint64_t draw(std::uint64_t below) { return random_key(seed, ++drawn) % below; }
  void note(Event event) { journal.push_back(std::move(event)); }

  void add_pipeline() {
    const PipelinePosition begin{str("data", pipelines.size(), "/0"), draw(5), {}, {}};
    note(DatasetMade{.name = str("data", pipelines.size()),
                     .first_pipeline = pipelines.size(),
                     .descriptions = {some_bytes(pipelines.size())},
                     .positions = {begin}});
    pipelines.emplace_back(begin);
  }
  void send() {
    ClosureSent closure{.sequence = next++, .oldest_layout = 1, .global_step = given};
    given += 2;
    closure.arguments = {Tensor::scalar(static_cast<float>(closure.sequence))};
    const std::uint64_t number = draw(pipelines.size());
    if (!pipelines[number].ended()) {
      closure.datasets = {number};
      closure.takes = {pipelines[number].take(number, 1 + static_cast<std::uint32_t>(draw(3)))};
    }
    note(closure);
    open[closure.sequence] = closure;
  }
  // Notes a round whose members are some of the open closures.
  void name_a_round() {
    RoundNamed named{.round = rounds + 1, .step = given};
    for (const auto& [sequence, closure] : open)
      if (draw(2) == 0)
        named.members.push_back({static_cast<std::int32_t>(draw(9)), sequence, layout});
    if (named.members.empty()) return;
    ++rounds;
    round = named.members;
    note(named);
  }
  void end() {
    if (open.empty()) return;
    const auto at = std::next(open.begin(), static_cast<std::ptrdiff_t>(draw(open.size())));
    std::erase_if(round, [&](const auto& member) { return member.sequence == at->first; });
    ClosureEnded ended{.sequence = at->first, .updated = draw(5) != 0, .sent_layout = layout};
    if (ended.updated) ended.steps = 2;
    for (const TakeRecord& take : at->second.takes) {
      const bool known = draw(2) == 0;
      ended.states.push_back(
          {take.ordinal + take.count, known ? some_bytes(take.ordinal) : std::vector<std::byte>()});
      pipelines[take.pipeline].commit(take, ended.states.back().ordinal, ended.states.back().bytes);
    }
    step += ended.steps;
    if (ended.updated) losses.commit(ended.sequence, ended.sent_layout);
    note(ended);
    open.erase(at);
  }
  // Its data has ended: another pipeline gives the elements, or none does.
  void end_data() {
    for (auto& [sequence, closure] : open) {
      if (closure.takes.empty()) continue;
      const TakeRecord dropped = closure.takes[0];
      pipelines[dropped.pipeline].end(dropped);
      const std::uint64_t other = (dropped.pipeline + 1) % pipelines.size();
      closure.takes = {pipelines[other].take(other, 1)};
      return note(closure);
    }
  }
  void lose_a_ps() {
    const auto ps = static_cast<std::uint32_t>(draw(2));
    PsRebuilt rebuilt{ps, ++layout, checkpoint, nullptr};
    if (draw(2) == 0)
      rebuilt.applied = std::make_shared<const AppliedClosures>(
          AppliedClosures{draw(next), {{draw(next) + 1, next + 1}}});
    losses.rebuilt(ps, {.layout_version = layout, .from = checkpoint, .has = rebuilt.applied});
    note(rebuilt);
  }
  void act() {
    switch (draw(13)) {
      case 0: return lose_a_ps();
      case 1: return end_data();
      case 2: return add_pipeline();
      case 3: checkpoint = losses.holdings(); return;
      case 12: return name_a_round();
      case 4:
        settled = open.empty() ? next : open.begin()->first;
        return note(Announced{announced += draw(100), settled});
      case 5:
      case 6:
      case 7: return end();
      default: return send();
    }
  }

  const std::uint64_t seed;
  std::uint64_t drawn = 0, next = 1, layout = 1, announced = 0, settled = 0, rounds = 0;
  std::int64_t given = 0, step = 0;
  std::vector<Pipeline> pipelines;
  LossLedger losses{2};
  LossLedger::Holdings checkpoint;
  std::map<std::uint64_t, ClosureSent> open;
  std::vector<RoundNamed::Member> round;  // those that are open of what is being applied
  std::vector<Event> journal;             // not yet applied
};

void expect_equal(const JournalState& state, const WrittenRun& run) {
  EXPECT_EQ(state.global_step(), run.step);
  EXPECT_EQ(state.closures_below(), run.announced);
  ASSERT_EQ(state.pipelines().size(), run.pipelines.size());
  for (std::size_t i = 0; i < run.pipelines.size(); ++i) {
    EXPECT_EQ(open_elements(state.pipelines()[i]), open_elements(run.pipelines[i]));
    EXPECT_EQ(states_of(state.pipelines()[i]), states_of(run.pipelines[i]));
  }
  EXPECT_EQ(state.known().low_watermark, run.settled);
  for (std::uint64_t sequence = 0; sequence < run.next + 3; ++sequence)
    EXPECT_EQ(state.known().contains(sequence),
              sequence < run.settled || (sequence > 0 && sequence < run.next));
  EXPECT_EQ(state.losses().lost_updates(), run.losses.lost_updates());
  EXPECT_EQ(state.losses().holdings().covers, run.losses.holdings().covers);
  EXPECT_EQ(state.losses().holdings().missing, run.losses.holdings().missing);
  EXPECT_EQ(state.round().has_value(), !run.round.empty());
  if (state.round()) {
    EXPECT_EQ(state.round()->round, run.rounds);
    EXPECT_EQ(state.round()->members, run.round);
  }
  ASSERT_EQ(state.open().size(), run.open.size());
  for (const auto& [sequence, closure] : run.open) {
    const ClosureSent& same = state.open().at(sequence);
    EXPECT_EQ(same.global_step, closure.global_step);
    EXPECT_EQ(same.arguments.at(0).values<float>()[0], static_cast<float>(sequence));
    ASSERT_EQ(same.takes.size(), closure.takes.size());
    for (std::size_t i = 0; i < same.takes.size(); ++i)
      EXPECT_EQ(same.takes[i].ordinal, closure.takes[i].ordinal);
  }
}

// By way of bytes, as a successor reads them.
void replay(JournalState& state, const std::vector<Event>& events) {
  for (Event& event : read_record(to_record(events), "the test")) state.apply(std::move(event));
}

TEST(JournalState, IsWhatTheCoordinatorHadWhateverHappenedAndHoweverOftenTheFileBeganAnew) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    WrittenRun run(seed);
    JournalState state;
    for (int i = 0; i < 120; ++i) {
      run.act();
      if (run.draw(4) == 0) {
        replay(state, run.journal);
        run.journal.clear();
      }
      if (run.draw(20) != 0) continue;
      replay(state, run.journal);
      run.journal.clear();
      JournalState next;
      replay(next, state.made());
      replay(next, state.standing());
      state = std::move(next);
    }
    replay(state, run.journal);
    expect_equal(state, run);
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

ShardsPlaced placed(std::uint64_t version, std::uint64_t first, std::uint64_t second) {
  return {version, 1, {{{0, "a", 1, first}, {}, 1}, {{1, "b", 1, second}, {}, 1}}};
}
std::vector<std::uint64_t> processes_of(const JournalState& state) {
  std::vector<std::uint64_t> all;
  for (const ShardLayout& shard : state.layout().shards)
    all.push_back(shard.primary.process.number);
  return all;
}

// Until then a successor has to rebuild it.
TEST(JournalState, APsThatIsNewHasItsProcessOnceItIsRebuilt) {
  JournalState state;
  state.apply(Standing{.losses = LossLedger(2).state()});
  state.apply(placed(1, 11, 21));
  EXPECT_THAT(processes_of(state), ElementsAre(11, 21));
  state.apply(placed(2, 12, 21));
  EXPECT_THAT(processes_of(state), ElementsAre(0, 21));
  state.apply(placed(3, 12, 22));
  JournalState next;
  replay(next, state.standing());
  EXPECT_THAT(processes_of(next), ElementsAre(0, 0));
  next.apply(PsRebuilt{.ps = 0, .layout_version = 2, .processes = {12}});
  EXPECT_THAT(processes_of(next), ElementsAre(12, 0));
  next.apply(placed(3, 12, 22));
  EXPECT_THAT(processes_of(next), ElementsAre(12, 0));
}

TEST(JournalState, KnowsOfClosuresThatItIsToldOfLater) {
  JournalState state;
  state.apply(Announced{100, 5});
  state.apply(Known{0, {{7, 9}, {20, 21}}});
  EXPECT_TRUE(state.known().contains(4));
  EXPECT_FALSE(state.known().contains(6));
  EXPECT_TRUE(state.known().contains(8));
  EXPECT_TRUE(state.known().contains(20));
}

// A closure that updates nothing may take elements that are not told of.
TEST(JournalState, GivesOutAgainWhatNobodyTellsOf) {
  WrittenRun run(1);
  JournalState state;
  replay(state, run.journal);
  const std::uint64_t next = run.pipelines[0].next();
  state.apply(ClosureSent{.sequence = 1, .datasets = {0}, .takes = {{0, next + 4, 2}}});
  EXPECT_EQ(state.pipelines()[0].next(), next + 6);
  state.apply(ClosureEnded{.sequence = 1});
  Pipeline pipeline = state.pipelines()[0];
  EXPECT_EQ(pipeline.take(0, 4).ordinal, next);
  EXPECT_EQ(pipeline.take(0, 1).ordinal, next + 6);
}

TEST(JournalState, RefusesWhatCannotHaveHappened) {
  WrittenRun run(1);
  JournalState state;
  replay(state, run.journal);
  state.apply(ClosureSent{.sequence = 1, .takes = {{0, 10, 2}}});
  EXPECT_THROW(state.apply(ClosureEnded{.sequence = 2}), DataLossError);
  EXPECT_THROW(state.apply(ClosureSent{.sequence = 2, .function = 9}), DataLossError);
  EXPECT_THROW(state.apply(ClosureSent{.sequence = 2, .takes = {{0, 11, 2}}}), DataLossError);
  EXPECT_THROW(state.apply(ClosureSent{.sequence = 3, .takes = {{9, 11, 2}}}), DataLossError);
  EXPECT_THROW(state.apply(DatasetMade{.name = "far", .first_pipeline = 9}), DataLossError);
  EXPECT_THROW(state.apply(PsRebuilt{.ps = 2}), DataLossError);
  EXPECT_THROW(state.apply(RoundNamed{.round = 1, .members = {{0, 1, 1}, {1, 4, 1}}}),
               DataLossError);
  EXPECT_THROW(state.apply(RoundNamed{.round = 1}), DataLossError);
  VariableLayout second;
  second.id = 1;
  EXPECT_THROW(state.apply(VariableMade{second}), DataLossError);
}

TEST(JournalEvent, IsReadAsItWasWritten) {
  VariableLayout variable;
  variable.id = 3;
  variable.spec = std::make_shared<const VariableSpec>(VariableSpec{.name = "w", .shape = {4}});
  variable.parts = {{0, {0, 4}}};
  ShardLayout shard{{1, "host:1", 2, 77}, {}, 5};
  ElementSpec spec{{{"x", {DType::kFloat32, {}}}}, "x"};
  ClosureSent sent{.sequence = 9, .function = 2, .oldest_layout = 4, .global_step = 8};
  sent.arguments = {Tensor::scalar(1.5f), Tensor::scalar(2.5f)};
  sent.per_worker = {nullptr, std::make_shared<const std::vector<Tensor>>(
                                  std::vector<Tensor>{Tensor::scalar(3.5f)})};
  const std::vector<Event> events = {
      Opened{"cluster", 11, 3, "host, process 4", "synchronous(1)"},
      FunctionMade{2, "step", some_bytes(300), true, 4},
      VariableMade{variable},
      DatasetMade{"data", 5, {some_bytes(1)}, spec, true, {{"data/0", 2, {{0, 1}}, {}}}},
      ShardsPlaced{6, 99, {shard}},
      sent,
      RoundNamed{7, 12, {{1, 9, 4}, {2, 11, 5}}}};
  const std::vector<Event> read = read_record(to_record(events), "the test");
  ASSERT_EQ(read.size(), events.size());
  EXPECT_EQ(std::get<Opened>(read[0]).cluster, "cluster");
  EXPECT_EQ(std::get<Opened>(read[0]).session, 11u);
  EXPECT_EQ(std::get<Opened>(read[0]).term, 3u);
  EXPECT_EQ(std::get<Opened>(read[0]).holder, "host, process 4");
  EXPECT_EQ(std::get<Opened>(read[0]).consistency, "synchronous(1)");
  const auto& function = std::get<FunctionMade>(read[1]);
  EXPECT_EQ(function.name, "step");
  EXPECT_EQ(function.graph, some_bytes(300));
  EXPECT_TRUE(function.takes_worker_index);
  EXPECT_EQ(function.replicas, 4);
  EXPECT_EQ(std::get<VariableMade>(read[2]).variable.id, 3u);
  EXPECT_EQ(std::get<VariableMade>(read[2]).variable.parts, variable.parts);
  const auto& dataset = std::get<DatasetMade>(read[3]);
  EXPECT_EQ(dataset.spec, spec);
  EXPECT_TRUE(dataset.shared);
  EXPECT_EQ(dataset.positions.at(0).name, "data/0");
  const auto& shards = std::get<ShardsPlaced>(read[4]);
  EXPECT_EQ(shards.seed, 99u);
  EXPECT_EQ(shards.shards.at(0).primary, shard.primary);
  EXPECT_EQ(shards.shards.at(0).epoch, 5u);
  const auto& closure = std::get<ClosureSent>(read[5]);
  EXPECT_EQ(closure.oldest_layout, 4u);
  EXPECT_EQ(closure.arguments.size(), 2u);
  ASSERT_EQ(closure.per_worker.size(), 2u);
  EXPECT_EQ(closure.per_worker[0], nullptr);
  EXPECT_EQ(closure.per_worker[1]->at(0).values<float>()[0], 3.5f);
  const auto& round = std::get<RoundNamed>(read[6]);
  EXPECT_EQ(round.round, 7u);
  EXPECT_EQ(round.step, 12);
  EXPECT_EQ(round.members, std::get<RoundNamed>(events[6]).members);
}

TEST(JournalEvent, BytesThatAreNoneAreDamage) {
  try {
    read_record("no record at all, of whole words", "journal-1-1, record 3");
    FAIL() << "it was read";
  } catch (const DataLossError& error) {
    EXPECT_THAT(error.what(), HasSubstr("journal-1-1, record 3"));
  }
}

}  // namespace
}  // namespace cairn::journal
