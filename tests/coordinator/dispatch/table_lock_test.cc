#include "coordinator/dispatch/table_lock.h"

#include <gtest/gtest.h>

#include <memory>

#include "rpc/loop/sim_reactor.h"
#include "rpc/loop/task_group.h"

namespace cairn {
namespace {

struct Tables : ::testing::Test {
  std::unique_ptr<rpc::SimReactor> reactor = std::make_unique<rpc::SimReactor>();
  rpc::Signal changed;
  TableLock lock{changed};
};

// Takes the lock once it is free, and keeps it until `done`.
rpc::Task<void> talk(TableLock* lock, rpc::Signal* changed, rpc::Signal* done, bool* holds) {
  while (lock->held()) co_await changed->wait();
  const TableLock::Hold hold(*lock);
  *holds = true;
  co_await done->wait();
  *holds = false;
}

TEST_F(Tables, AreTalkedAboutByOneAtATime) {
  rpc::Signal first_done, second_done;
  bool first = false, second = false;
  rpc::TaskGroup tasks;
  tasks.spawn("first", talk(&lock, &changed, &first_done, &first));
  tasks.spawn("second", talk(&lock, &changed, &second_done, &second));
  reactor->run_ready();
  EXPECT_TRUE(first);
  EXPECT_FALSE(second);

  first_done.notify_all();
  reactor->run_ready();

  EXPECT_FALSE(first);
  EXPECT_TRUE(second);
}

TEST_F(Tables, AreFreeAgainWhenWhoeverTalksIsCancelled) {
  rpc::Signal never;
  bool holds = false;
  rpc::TaskGroup tasks;
  tasks.spawn("talk", talk(&lock, &changed, &never, &holds));
  ASSERT_TRUE(lock.held());
  tasks.cancel_all();
  EXPECT_FALSE(lock.held());
}

TEST_F(Tables, CannotBeTakenWithoutLookingFirst) {
  const TableLock::Hold hold(lock);
  EXPECT_THROW(TableLock::Hold{lock}, InternalError);
  EXPECT_TRUE(lock.held());
}

}  // namespace
}  // namespace cairn
