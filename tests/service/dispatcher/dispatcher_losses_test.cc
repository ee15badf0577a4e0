// The data service while processes, connections or programs are away for a while.
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "data/stage/dataset_wire.h"
#include "tests/service/simulated_service.h"

namespace cairn::service {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

std::multiset<std::int64_t> values_of(const std::vector<std::shared_ptr<Reading>>& readings) {
  std::multiset<std::int64_t> all;
  for (const auto& reading : readings)
    for (const std::int64_t value : reading->values()) all.insert(value);
  return all;
}

std::size_t distinct(const std::multiset<std::int64_t>& values) {
  return std::set<std::int64_t>(values.begin(), values.end()).size();
}

std::multiset<std::int64_t> take(SimulatedService& service, DataServiceIterator& iterator,
                                 std::size_t count) {
  std::multiset<std::int64_t> taken;
  while (taken.size() < count)
    taken.insert(service.reactor.wait(iterator.next())->at(0).values<std::int64_t>()[0]);
  return taken;
}

TEST(Losses, WhatADeadWorkerSentIsNotAcknowledgedToItsSuccessor) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    SimulatedService service({.workers = 1, .seed = seed});
    const Dataset dataset = Dataset::range(60).batch(1);
    const DataServiceOptions wanted{.job_name = "job", .mode = ProcessingMode::kDynamic};
    const auto first = service.read(service.consumer(dataset, wanted, "first"), 1ms);
    ASSERT_TRUE(service.run_until([&] { return first->elements.size() > 8; }));
    // It cannot acknowledge the elements it takes now, nor learn that the worker is another one.
    service.network.partition_both("first", "dispatcher");
    service.network.cut("first", "worker0");
    service.reactor.advance(10ms);
    service.kill_worker(0);
    service.start_worker(0);
    const auto second = service.read(service.consumer(dataset, wanted, "second"), 20ms);
    service.reactor.advance(200ms);
    service.network.heal("first", "worker0");
    service.reactor.advance(3s);
    service.network.heal_all();
    ASSERT_TRUE(service.finish({first, second}));
    EXPECT_EQ(first->error + second->error, "");
    EXPECT_EQ(distinct(values_of({first, second})), 60u) << "every element is handed out";
  }
}

TEST(Losses, AWorkerWhoseDialIsSwallowedIsNotLost) {
  SimulatedService service({.workers = 2});
  const Dataset dataset = Dataset::range(400).batch(1);
  const auto reading =
      service.read(service.consumer(dataset, ProcessingMode::kDynamic, "job"), 20ms);
  ASSERT_TRUE(service.run_until([&] { return reading->elements.size() > 8; }));
  // The connection breaks, and the dial that follows within half a second goes unanswered.
  service.network.cut("worker0", "dispatcher");
  service.network.heal("worker0", "dispatcher");
  service.network.partition("dispatcher", "worker0");
  service.reactor.advance(1500ms);
  service.network.heal("worker0", "dispatcher");
  ASSERT_TRUE(service.finish({reading})) << reading->error;
  EXPECT_EQ(reading->error, "");
  EXPECT_EQ(reading->elements.size(), 400u);
  EXPECT_EQ(reading->statistics.duplicates(), 0u);
}

// The dispatcher gives the worker up about five seconds after its end: before settle() begins,
// during it, or later.
TEST(Losses, AWorkerIsGivenUpWhileItsElementsAreStillToBeAcknowledged) {
  for (Duration before = 4s; before < 6s; before += 200ms) {
    SCOPED_TRACE(str(before.count(), " ns"));
    SimulatedService service({.workers = 2});
    const Dataset dataset = Dataset::range(40).batch(1);
    auto iterator = service.consumer(dataset, ProcessingMode::kDynamic, "job", 4);
    service.reactor.advance(1s);  // two elements of each worker are here
    service.network.partition_both("consumers", "worker0");
    auto all = take(service, *iterator, 4);
    service.kill_worker(0);
    service.reactor.advance(before);
    service.reactor.wait(iterator->settle());
    iterator.reset();
    service.network.heal_all();
    const auto rest = service.read(dataset, ProcessingMode::kDynamic, "job");
    ASSERT_TRUE(service.finish({rest})) << rest->error;
    EXPECT_EQ(rest->error, "");
    all.merge(values_of({rest}));
    EXPECT_EQ(distinct(all), 40u);
    EXPECT_LE(all.size(), 42u) << "of the other worker none comes again";
  }
}

TEST(Losses, AnIteratorOfTheSameJobWithoutANameReadsOnInIt) {
  SimulatedService service({.workers = 2});
  const Dataset dataset = Dataset::range(40).batch(1);
  const DataServiceOptions own{.mode = ProcessingMode::kDynamic, .own_job = 7};
  auto before = service.consumer(dataset, own);
  auto all = take(service, *before, 10);
  service.reactor.wait(before->settle());
  before.reset();
  const auto after = service.read(service.consumer(dataset, own));
  ASSERT_TRUE(service.finish({after})) << after->error;
  EXPECT_EQ(after->elements.size(), 30u);
  all.merge(values_of({after}));
  EXPECT_EQ(distinct(all), 40u);
}

TEST(Losses, TheEndOfTheDataIsTheEndHoweverLateItIsAskedFor) {
  SimulatedService service({.workers = 1});
  const auto reading =
      service.read(Dataset::range(1).batch(1), ProcessingMode::kDynamic, "job", 11min);
  ASSERT_TRUE(service.finish({reading}, 15min));
  EXPECT_EQ(reading->error, "") << "although the dispatcher has forgotten the job";
  EXPECT_EQ(reading->elements.size(), 1u);
}

TEST(Losses, AfterARestAWorkerThatIsBeingStartedAgainIsWaitedFor) {
  SimulatedService service({.workers = 1});
  const Dataset dataset = Dataset::range(8).batch(1);
  auto rests = service.consumer(dataset, ProcessingMode::kDynamic, "job");
  service.reactor.advance(5min);
  service.kill_worker(0);
  service.reactor.advance(8s);
  const auto reading = service.read(std::move(rests));
  service.reactor.advance(2s);
  service.start_worker(0);
  ASSERT_TRUE(service.finish({reading}));
  EXPECT_EQ(reading->error, "");
  EXPECT_EQ(reading->elements.size(), 8u);
}

TEST(Losses, AConsumersNewConnectionIsGivenWhatItsOldOneWaitedFor) {
  rpc::SimReactor reactor;
  rpc::SimOffload offload(reactor, 1, 1ms);
  bool dealt = false;
  WorkerJobHost host{reactor,
                     offload,
                     0,
                     1,
                     [&](std::vector<std::uint64_t>) -> rpc::Task<NextTask> {
                       co_await reactor.sleep(100ms);
                       if (std::exchange(dealt, true)) co_return NextTask{{}, true};
                       co_return NextTask{DealtTask{0, {}}, false};
                     },
                     [](std::uint64_t, std::uint64_t) -> rpc::Task<void> { co_return; }};
  Described described;
  described.mode = ProcessingMode::kOff;
  described.description =
      std::make_shared<const std::vector<std::byte>>(serialize(Dataset::range(3).batch(1)));
  const auto job = std::make_shared<WorkerJob>(std::move(host), described, WorkerJobOptions());
  job->begin();
  std::vector<std::size_t> given(2);
  const auto ask = [&](std::size_t connection) -> rpc::Task<void> {
    const Sent sent = co_await job->get(connection + 1, 7, 0, 8);
    given[connection] = sent.elements.size();
  };
  rpc::TaskGroup tasks([](const std::string&, const ErrorParts&) {});
  tasks.spawn("on a connection that is lost", ask(0));
  reactor.advance(10ms);
  tasks.spawn("on the next one", ask(1));
  reactor.advance(500ms);
  EXPECT_THAT(given, testing::ElementsAre(0, 3));
}

TEST(Losses, AWorkerOfAllAddressesHasToSayWhereItIs) {
  rpc::SimReactor reactor;
  rpc::SimNetwork network(reactor, {});
  rpc::SimOffload offload(reactor, 1, 1ms);
  DataWorkerOptions options;
  options.dispatcher = rpc::Address::parse("sim://dispatcher");
  for (const char* everywhere : {"tcp://0.0.0.0:5051", "tcp://[::]:5051"}) {
    try {
      DataWorkerServer server(reactor, network.host("worker"), offload,
                              Door{.address = rpc::Address::parse(everywhere)}, options);
      ADD_FAILURE() << everywhere << " is not refused";
    } catch (const InvalidArgumentError& error) {
      EXPECT_THAT(error.what(), HasSubstr("give --advertise HOST:PORT"));
    }
  }
}

}  // namespace
}  // namespace cairn::service
