// The data service as a program sees it: what consumers are given, whatever is lost.
#include <gmock/gmock.h>

#include <cstdio>
#include <fstream>

#include "service/service.capnp.h"
#include "tests/service/simulated_service.h"

namespace cairn::service {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::int64_t> sorted(std::vector<std::int64_t> values) {
  std::ranges::sort(values);
  return values;
}

std::vector<std::int64_t> counted(std::int64_t n, int times = 1) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < n; ++i)
    for (int each = 0; each < times; ++each) all.push_back(i);
  return all;
}

TEST(DataService, InModeDynamicEachElementIsHandedOutOnce) {
  SimulatedService service({.workers = 3});
  const auto reading = service.read(Dataset::range(1000).batch(3), ProcessingMode::kDynamic);
  ASSERT_TRUE(service.finish({reading})) << reading->error;
  EXPECT_EQ(reading->error, "");
  EXPECT_EQ(sorted(reading->values()), counted(1000));
  EXPECT_EQ(reading->statistics.handed, 334u);
  EXPECT_EQ(reading->statistics.job_elements, 334u);
  EXPECT_EQ(reading->statistics.duplicates(), 0u);
}

TEST(DataService, ConsumersOfANamedJobShareItsElements) {
  SimulatedService service({.workers = 2});
  const Dataset dataset = Dataset::range(200).batch(2);
  const auto first = service.read(dataset, ProcessingMode::kDynamic, "shared", 1ms);
  const auto second = service.read(dataset, ProcessingMode::kDynamic, "shared", 1ms);
  ASSERT_TRUE(service.finish({first, second})) << first->error << second->error;
  auto all = first->values();
  const auto others = second->values();
  EXPECT_FALSE(all.empty());
  EXPECT_FALSE(others.empty());
  all.insert(all.end(), others.begin(), others.end());
  EXPECT_EQ(sorted(all), counted(200));
}

TEST(DataService, JobsWithoutANameAreIndependent) {
  SimulatedService service({.workers = 2});
  const Dataset dataset = Dataset::range(50).batch(5);
  const auto first = service.read(dataset, ProcessingMode::kDynamic);
  const auto second = service.read(dataset, ProcessingMode::kDynamic);
  ASSERT_TRUE(service.finish({first, second}));
  EXPECT_EQ(sorted(first->values()), counted(50));
  EXPECT_EQ(sorted(second->values()), counted(50));
}

TEST(DataService, AConsumerOfAJobThatHasEndedIsGivenNothing) {
  SimulatedService service({.workers = 1});
  const Dataset dataset = Dataset::range(10).batch(5);
  ASSERT_TRUE(service.finish({service.read(dataset, ProcessingMode::kDynamic, "job")}));
  const auto late = service.read(dataset, ProcessingMode::kDynamic, "job");
  ASSERT_TRUE(service.finish({late}));
  EXPECT_EQ(late->error, "");
  EXPECT_TRUE(late->elements.empty());
}

TEST(DataService, ByTheListOfWorkersEachReadsItsPart) {
  SimulatedService service({.workers = 2, .listed = true});
  const auto reading = service.read(Dataset::range(9).batch(2), ProcessingMode::kData);
  ASSERT_TRUE(service.finish({reading})) << reading->error;
  EXPECT_EQ(sorted(reading->values()), counted(9));
}

TEST(DataService, WithoutAListOfWorkersTheDataIsNotDealtOutByIt) {
  SimulatedService service({.workers = 2});
  const auto refused = service.read(Dataset::range(9).batch(2), ProcessingMode::kData);
  ASSERT_TRUE(service.finish({refused}));
  EXPECT_THAT(refused->error, HasSubstr("NotFound: mode DATA deals the data out by"));
}

TEST(DataService, AHintSaysWhereTheDataIsDealtOut) {
  SimulatedService service({.workers = 3, .listed = true});
  const auto reading =
      service.read(Dataset::range(10).shard_hint().batch(2), ProcessingMode::kHint);
  ASSERT_TRUE(service.finish({reading})) << reading->error;
  EXPECT_EQ(sorted(reading->values()), counted(10));
}

TEST(DataService, ARepeatedDatasetIsDealtOutInPasses) {
  SimulatedService service({.workers = 2});
  const auto reading =
      service.read(Dataset::range(10).repeat(3).batch(4), ProcessingMode::kDynamic);
  ASSERT_TRUE(service.finish({reading})) << reading->error;
  EXPECT_EQ(sorted(reading->values()), counted(10, 3));
}

TEST(DataService, AnEndlessJobGoesOnForAsLongAsItIsRead) {
  SimulatedService service({.workers = 2});
  const auto reading = service.read(Dataset::range(10).repeat().batch(5), ProcessingMode::kDynamic);
  EXPECT_TRUE(service.run_until([&] { return reading->elements.size() > 500; }));
}

TEST(DataService, AnEmptyDatasetEndsAtOnce) {
  SimulatedService service({.workers = 2});
  const auto reading = service.read(Dataset::range(0).batch(5), ProcessingMode::kDynamic);
  const auto off = service.read(Dataset::range(0).batch(5), ProcessingMode::kOff);
  ASSERT_TRUE(service.finish({reading, off})) << reading->error << off->error;
  EXPECT_TRUE(reading->elements.empty());
  EXPECT_EQ(reading->error + off->error, "");
}

TEST(DataService, WhatCountsOverAllElementsIsRefusedInModeDynamic) {
  SimulatedService service({.workers = 1});
  const auto reading = service.read(Dataset::range(10).take(3).batch(2), ProcessingMode::kDynamic);
  ASSERT_TRUE(service.finish({reading}));
  EXPECT_THAT(reading->error, HasSubstr("InvalidArgument: the dataset has a take()"));
}

TEST(DataService, AnErrorOfThePipelineNamesTheDataWorker) {
  SimulatedService service({.workers = 1});
  const auto reading =
      service.read(Dataset::text_lines("/nowhere/lines.txt").batch(2), ProcessingMode::kOff);
  ASSERT_TRUE(service.finish({reading}));
  EXPECT_THAT(reading->error, HasSubstr("NotFound: the data worker at sim://worker0: "));
  EXPECT_THAT(reading->error, HasSubstr("/nowhere/lines.txt"));
}

TEST(DataService, AJobWhosePipelineHasFailedIsReadWhenItWasMended) {
  const std::string path = ::testing::TempDir() + "data_service_lines.txt";
  std::remove(path.c_str());
  SimulatedService service({.workers = 1});
  const Dataset dataset = Dataset::csv(path, CsvSchema{.columns = {{"value", DType::kInt64}}});
  const auto failed = service.read(dataset.batch(2), ProcessingMode::kOff, "job");
  ASSERT_TRUE(service.finish({failed}));
  EXPECT_THAT(failed->error, HasSubstr("NotFound"));
  std::ofstream(path) << "3\n4\n";
  service.reactor.advance(10s);
  const auto mended = service.read(dataset.batch(2), ProcessingMode::kOff, "job");
  ASSERT_TRUE(service.finish({mended})) << mended->error;
  EXPECT_THAT(mended->values(), ElementsAre(3, 4)) << mended->error;
  std::remove(path.c_str());
}

TEST(DataService, AJobOfAnotherDatasetIsNotJoined) {
  SimulatedService service({.workers = 1});
  ASSERT_TRUE(
      service.finish({service.read(Dataset::range(4).batch(2), ProcessingMode::kDynamic, "job")}));
  const auto other = service.read(Dataset::range(5).batch(2), ProcessingMode::kDynamic, "job");
  ASSERT_TRUE(service.finish({other}));
  EXPECT_THAT(other->error, HasSubstr("FailedPrecondition: job \"job\" reads another dataset"));
}

TEST(DataService, WithoutADataWorkerTheWaitEndsAndNamesTheCure) {
  SimulatedService service({.workers = 0});
  const auto reading = service.read(Dataset::range(4).batch(2), ProcessingMode::kDynamic, "job");
  ASSERT_TRUE(service.finish({reading}, 2min));
  EXPECT_THAT(reading->error, HasSubstr("Unavailable: job \"job\": the dispatcher at "
                                        "sim://dispatcher has had no data worker for 60 s"));
}

TEST(DataService, WithoutADispatcherTheWaitEndsAndNamesIt) {
  SimulatedService service({.workers = 1});
  service.kill_dispatcher();
  const auto reading = service.read(Dataset::range(4).batch(2), ProcessingMode::kDynamic);
  ASSERT_TRUE(service.finish({reading}, 2min));
  EXPECT_THAT(reading->error, HasSubstr("Unavailable: beginning a job: the dispatcher at "
                                        "sim://dispatcher has been away for 60 s"));
}

TEST(DataService, AConsumerThatHoldsElementsKeepsOthersWaitingOnlyForSoLong) {
  SimulatedService service({.workers = 1});
  const Dataset dataset = Dataset::range(8).batch(1);
  auto holder = service.consumer(
      dataset, DataServiceOptions{.job_name = "job", .mode = ProcessingMode::kDynamic, .idle = 1h});
  service.reactor.advance(1s);
  const auto other = service.read(dataset, ProcessingMode::kDynamic, "job");
  ASSERT_TRUE(service.finish({other}, 15min));
  EXPECT_THAT(other->error, HasSubstr("DeadlineExceeded: job \"job\" gave no element for 600 s"));
}

TEST(DataService, AConsumerThatNobodyAsksGivesBackWhatItHasAhead) {
  SimulatedService service({.workers = 2});
  const Dataset dataset = Dataset::range(8).batch(1);
  auto holder = service.consumer(dataset, ProcessingMode::kDynamic, "job");
  service.reactor.advance(1s);
  const auto other = service.read(dataset, ProcessingMode::kDynamic, "job");
  ASSERT_TRUE(service.finish({other}, 15s)) << "after ten seconds";
  EXPECT_EQ(sorted(other->values()), counted(8));
  const auto late = service.read(std::move(holder));
  ASSERT_TRUE(service.finish({late})) << late->error;
  EXPECT_THAT(late->values(), ::testing::IsEmpty());
}

TEST(DataService, WhatAConsumerThatGoesDidNotTakeIsGivenToOthers) {
  SimulatedService service({.workers = 1});
  const Dataset dataset = Dataset::range(8).batch(1);
  auto holder = service.consumer(dataset, ProcessingMode::kDynamic, "job");
  service.reactor.advance(1s);
  const auto other = service.read(dataset, ProcessingMode::kDynamic, "job");
  service.reactor.advance(1s);
  EXPECT_LT(other->elements.size(), 8u);
  holder.reset();
  ASSERT_TRUE(service.finish({other})) << other->error;
  EXPECT_EQ(sorted(other->values()), counted(8));
}

TEST(DataService, ADispatcherThatIsStartedAgainGoesOnFromItsJournal) {
  SimulatedService service({.workers = 2});
  const Dataset dataset = Dataset::range(400).batch(1);
  const auto reading = service.read(dataset, ProcessingMode::kDynamic, "job", 2ms);
  ASSERT_TRUE(service.run_until([&] { return reading->elements.size() > 100; }));
  service.kill_dispatcher();
  service.reactor.advance(2s);
  service.start_dispatcher();
  ASSERT_TRUE(service.finish({reading})) << reading->error;
  EXPECT_EQ(reading->error, "");
  EXPECT_EQ(sorted(reading->values()), counted(400)) << "none is lost, and none comes again";
  EXPECT_EQ(reading->statistics.duplicates(), 0u);
}

TEST(DataService, SplitsOfADataWorkerThatDiesAreReadByAnother) {
  SimulatedService service({.workers = 2});
  const auto reading =
      service.read(Dataset::range(400).batch(2), ProcessingMode::kDynamic, "job", 1ms);
  ASSERT_TRUE(service.run_until([&] { return reading->elements.size() > 50; }));
  service.kill_worker(0);
  ASSERT_TRUE(service.finish({reading})) << reading->error;
  std::vector<std::int64_t> distinct = sorted(reading->values());
  const auto all = static_cast<std::uint64_t>(distinct.size());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  EXPECT_EQ(distinct, counted(400));
  EXPECT_EQ(reading->statistics.duplicates(), (all - 400) / 2);
}

TEST(DataService, ABrokenConnectionBringsNothingTwice) {
  SimulatedService service({.workers = 1});
  const auto reading =
      service.read(Dataset::range(300).batch(1), ProcessingMode::kDynamic, "job", 1ms);
  for (int i = 0; i < 4; ++i) {
    const std::size_t before = reading->elements.size();
    ASSERT_TRUE(service.run_until([&] { return reading->elements.size() > before + 20; }));
    service.network.cut("consumers", "worker0");
    service.reactor.advance(5ms);
    service.network.heal("consumers", "worker0");
  }
  ASSERT_TRUE(service.finish({reading})) << reading->error;
  EXPECT_EQ(sorted(reading->values()), counted(300));
}

// A stranger's connection to the dispatcher, in a role of its choice.
auto connect_as(SimulatedService& service, rpc::Role role) {
  rpc::Hello hello;
  hello.cluster = "cairn";
  hello.role = role;
  return service.reactor.wait(
      service.network.host("stranger")
          .connect(service.reactor, rpc::Address::parse("sim://dispatcher"), hello, 5s));
}

TEST(DataService, OnlyADataWorkerMayTakeSplits) {
  SimulatedService service({.workers = 1});
  const auto connection = connect_as(service, rpc::Role::kPs);
  auto client = connection->bootstrap<wire::DataDispatcher>();
  const auto refused = [&](auto request) {
    try {
      service.reactor.wait(request.send().ignoreResult());
    } catch (const PermissionDeniedError& error) {
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  };
  EXPECT_THAT(refused(client.nextTaskRequest()), HasSubstr("DataDispatcher.nextTask is for the"));
  EXPECT_THAT(refused(client.reportRequest()), HasSubstr("DataDispatcher.report is for the"));
  EXPECT_THAT(refused(client.openJobRequest()), HasSubstr("DataDispatcher.openJob is for the"));
}

TEST(DataService, AnAddressThatNobodyCouldDialIsRefusedWhereItIsReported) {
  SimulatedService service({.workers = 1});
  const auto connection = connect_as(service, rpc::Role::kDataWorker);
  auto request = connection->bootstrap<wire::DataDispatcher>().reportRequest();
  request.setAddress("tcp://nowhere");
  EXPECT_THROW(service.reactor.wait(request.send().ignoreResult()), InvalidArgumentError);
}

TEST(Dispatcher, AListThatNamesOneDataWorkerTwiceIsRefused) {
  rpc::SimReactor reactor;
  MemoryDisk disk;
  const auto offload = make_inline_offload();
  DispatcherOptions options;
  options.workers = {"h:1", "tcp://h:1"};
  EXPECT_THROW(Dispatcher(reactor, *offload, disk, options), InvalidArgumentError);
}

}  // namespace
}  // namespace cairn::service
