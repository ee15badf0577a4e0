#include "coordinator/dispatch/shard_tables.h"

#include "tests/coordinator/engine/part_fixture.h"

namespace cairn {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Two ps of one shard. Scalars are dealt out to them in turns.
struct Syncing : PartTest {
  Syncing() {
    start(2, 1);
    forget_calls();
  }
  ~Syncing() override { stop(); }

  void create(const std::string& name) {
    tables.registry().create({.name = name, .shape = {}});
    created = tables.registry().version();
  }
  void sync() {
    tables.sync();
    settle();
  }
  // A closure that needs the newest variable.
  std::shared_ptr<Closure> schedule_for_newest() {
    auto closure = std::make_shared<Closure>();
    closure->function = function;
    closure->oldest_layout = created;
    session.queue.put(closure);
    send();
    return closure;
  }
  std::shared_ptr<CheckpointView> checkpoint(const std::string& folder,
                                             const std::vector<std::string>& names,
                                             const Shape& shape = {}) {
    auto view = std::make_shared<CheckpointView>();
    view->folder = folder;
    view->databases = {{.name = "0"}, {.name = "1"}};
    SavedVariables saved;
    for (const std::string& name : names) saved[name] = {{DType::kFloat32, shape}, UpdateRule{}};
    view->plan = std::make_shared<const RestorePlan>(std::move(saved), folder);
    return view;
  }
  void forget_calls() {
    for (std::size_t i : {0u, 1u}) {
      fake_ps(i).calls.clear();
      fake_ps(i).tables.clear();
    }
  }
  std::uint64_t created = 0;
};

TEST_F(Syncing, MakesTablesAndOpensEachShardLast) {
  create("v");
  create("w");
  EXPECT_FALSE(tables.have(created));
  sync();
  EXPECT_TRUE(tables.have(created));
  for (std::size_t i : {0u, 1u}) EXPECT_THAT(fake_ps(i).calls, ElementsAre("configure", "open"));
  EXPECT_THAT(fake_ps(0).tables, ElementsAre(ElementsAre(0u)));
  EXPECT_THAT(fake_ps(1).tables, ElementsAre(ElementsAre(1u)));
}

TEST_F(Syncing, SendsTablesThatAShardHasNotAgain) {
  create("v");
  sync();
  forget_calls();
  create("w");
  create("x");
  sync();
  EXPECT_THAT(fake_ps(0).tables, ElementsAre(ElementsAre(2u)));
  EXPECT_THAT(fake_ps(1).tables, ElementsAre(ElementsAre(1u)));
}

TEST_F(Syncing, SendsAVariableAgainThatGotSlots) {
  create("v");
  create("w");
  sync();
  forget_calls();
  tables.registry().add_slots("w", {RuleKind::kMomentum, {0.9f}});
  sync();
  EXPECT_THAT(fake_ps(0).tables, ElementsAre(IsEmpty()));
  EXPECT_THAT(fake_ps(1).tables, ElementsAre(ElementsAre(1u)));
}

TEST_F(Syncing, IsBegunForAClosureThatNeedsIt) {
  create("v");
  schedule_for_newest();
  EXPECT_TRUE(tables.have(created));
  EXPECT_THAT(received(0), ElementsAre(1));
}

TEST_F(Syncing, HoldsBackOtherClosuresMeanwhile) {
  create("v");
  fake_ps(1).script.stall("open");
  sync();
  EXPECT_TRUE(lock.held());
  schedule_and_send();
  EXPECT_THAT(received(0), IsEmpty());
  fake_ps(1).script.let_go("open");
  settle();
  EXPECT_FALSE(lock.held());
  EXPECT_THAT(received(0), ElementsAre(1));
}

TEST_F(Syncing, IsPutOffWhileTheLockIsHeld) {
  create("v");
  const TableLock::Hold hold(lock);
  sync();
  EXPECT_THAT(fake_ps(0).calls, IsEmpty());
}

TEST_F(Syncing, IsPutOffWhileAPsIsAway) {
  create("v");
  ps(1).ready = false;
  sync();
  EXPECT_THAT(fake_ps(0).calls, IsEmpty());
}

TEST_F(Syncing, ThatMeetsALossIsBegunAgainOnceThePsIsBack) {
  watch();
  create("v");
  fake_ps(0).script.stall("configure");
  const auto closure = schedule_for_newest();
  fake_ps(0).process.cut_off();
  settle();
  EXPECT_FALSE(tables.have(created));
  fake_ps(0).script.let_go("configure");
  ground.run_for(seconds(1));
  EXPECT_TRUE(tables.have(created));
  EXPECT_THAT(received(0), ElementsAre(1));
  EXPECT_EQ(queue_error(), "");
}

TEST_F(Syncing, ThatAShardRefusesIsTheProgramsError) {
  create("v");
  fake_ps(0).script.fail<ResourceExhaustedError>("configure", "no memory for v");
  schedule_for_newest();
  EXPECT_THAT(queue_error(), HasSubstr("no memory for v"));
  EXPECT_FALSE(lock.held());
}

TEST_F(Syncing, GivesNewVariablesTheirRowsOfTheRestoredCheckpoint) {
  create("v");
  sync();
  sources.restored = checkpoint("/c/1", {"v", "w"});
  forget_calls();
  create("w");
  create("x");  // not in the checkpoint: it begins at its initial value
  sync();
  EXPECT_THAT(fake_ps(0).calls, ElementsAre("configure", "open"));
  EXPECT_THAT(fake_ps(1).calls, ElementsAre("configure", "restore /c/1", "open"));
}

TEST_F(Syncing, MakesNoneOfSeveralVariablesIfOneDoesNotFitTheCheckpoint) {
  sources.restored = checkpoint("/c/1", {"w"}, {7});
  create("v");
  create("w");
  schedule_for_newest();
  EXPECT_THAT(queue_error(), ::testing::AllOf(HasSubstr("w"), HasSubstr("/c/1")));
  for (std::size_t i : {0u, 1u}) EXPECT_THAT(fake_ps(i).calls, IsEmpty());
}

TEST_F(Syncing, WaitsForACheckpointThatIsBeingWrittenBeforeItRestores) {
  sources.restored = checkpoint("/c/1", {"v"});
  sources.writing = true;
  create("v");
  sync();
  EXPECT_THAT(fake_ps(0).calls, IsEmpty());
  sources.writing = false;
  session.changed.notify_all();
  settle();
  EXPECT_TRUE(tables.have(created));
}

TEST_F(Syncing, ARebuiltPsTakesEachVariableFromTheFirstSourceThatHoldsIt) {
  for (const char* name : {"a", "b", "c", "d"}) create(name);
  sync();
  forget_calls();
  auto newest = checkpoint("/c/2", {"a"});
  sources.restored = checkpoint("/c/1", {"a", "b", "c"});
  ps(0).set_needs_rows(true);
  ps(1).set_needs_rows(true);
  ground.reactor.wait(tables.rebuild(&ps(0), tables.synced(), newest));  // a and c
  EXPECT_THAT(fake_ps(0).calls, ElementsAre("restore /c/2", "restore /c/1"));
  ground.reactor.wait(tables.rebuild(&ps(1), tables.synced(), newest));  // b and d
  // Rows of d, which neither has, are those of before the restore that was cut short.
  EXPECT_THAT(fake_ps(1).calls, ElementsAre("restore /c/1", "begin anew"));
}

TEST_F(Syncing, ADamagedCheckpointIsNamedWithTheCure) {
  create("v");
  sync();
  fake_ps(0).script.fail<DataLossError>("restore", "block 7: checksum");
  ps(0).set_needs_rows(true);
  try {
    ground.reactor.wait(tables.rebuild(&ps(0), tables.synced(), checkpoint("/c/1", {"v"})));
    FAIL() << "it was rebuilt";
  } catch (const DataLossError& error) {
    EXPECT_THAT(error.what(), ::testing::AllOf(HasSubstr("restoring shard 0 from /c/1"),
                                               HasSubstr("`cairn ckpt verify /c/1`")));
  }
}

}  // namespace
}  // namespace cairn
