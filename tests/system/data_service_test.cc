// cairn-data as processes, which are killed.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "core/base/json.h"
#include "service/consumer/data_service_reader.h"
#include "service/dispatcher/dispatcher_server.h"
#include "tools/launch/child_process.h"

namespace cairn {
namespace {

using namespace std::chrono_literals;
using tools::ChildProcess;

class DataServiceProcesses : public testing::Test {
 protected:
  DataServiceProcesses() { std::filesystem::create_directories(folder_); }
  ~DataServiceProcesses() override {
    processes_.clear();
    std::filesystem::remove_all(folder_);
  }
  std::string address(const std::string& name) const { return "unix:" + folder_ + "/" + name; }
  // Does not wait until the process listens: its callers try again.
  void start(const std::string& name, std::vector<std::string> flags) {
    tools::Command command;
    command.arguments = {CAIRN_PROGRAMS "/cairn-data", "--listen", address(name)};
    command.arguments.insert(command.arguments.end(), flags.begin(), flags.end());
    command.output_file = folder_ + "/" + name + ".log." + std::to_string(started_++);
    processes_.insert_or_assign(name, ChildProcess(command));
  }
  void start_dispatcher() {
    start("dispatcher",
          {"--role", "dispatcher", "--journal", folder_ + "/journal", "--silence", "2"});
  }
  void start_worker(const std::string& name) {
    start(name, {"--role", "worker", "--dispatcher", address("dispatcher")});
  }
  service::DataServiceOptions of_job() const {
    service::DataServiceOptions options;
    options.dispatcher = rpc::Address::parse(address("dispatcher"));
    options.job_name = "job";
    options.mode = service::ProcessingMode::kDynamic;
    return options;
  }
  void kill(const std::string& name) {
    processes_.at(name).send(SIGKILL);
    processes_.at(name).wait();
  }

  const std::string folder_ =
      std::filesystem::temp_directory_path().string() + "/cairn-data-" + std::to_string(getpid());
  int started_ = 0;
  std::map<std::string, ChildProcess> processes_;
};

TEST_F(DataServiceProcesses, EveryElementComesThoughAWorkerAndTheDispatcherAreKilled) {
  start_dispatcher();
  start_worker("first");
  start_worker("second");
  service::DataServiceReader reader(Dataset::range(4000).batch(4), of_job());
  std::set<std::int64_t> values;
  std::uint64_t elements = 0;
  while (auto element = reader.next()) {
    for (const std::int64_t value : element->at(0).values<std::int64_t>()) values.insert(value);
    ++elements;
    if (elements == 200) kill("first");
    if (elements == 400) {
      kill("dispatcher");
      start_dispatcher();
    }
  }
  EXPECT_EQ(values.size(), 4000u);
  EXPECT_EQ(elements, reader.statistics().handed);
  EXPECT_EQ(reader.statistics().job_elements, 1000u);
  EXPECT_EQ(reader.statistics().duplicates(), elements - 1000);
}

// The elements that several consumers of one job were handed, counted by value.
class Consumed {
 public:
  // On a thread of its own, to the end.
  void read(const Dataset& dataset, const service::DataServiceOptions& options) {
    service::DataServiceReader reader(dataset, options);
    while (auto element = reader.next()) add(element->at(0).values<std::int64_t>());
    std::lock_guard hold(mutex_);
    if (reader.statistics().job_handed > statistics_.job_handed) statistics_ = reader.statistics();
  }
  void wait_for(std::uint64_t elements) {
    std::unique_lock hold(mutex_);
    ASSERT_TRUE(changed_.wait_for(hold, 120s, [&] { return handed_ >= elements; }));
  }
  std::uint64_t handed() const { return handed_; }
  const std::map<std::int64_t, int>& values() const { return values_; }
  const service::DataServiceStatistics& statistics() const {
    return statistics_;
  }  // the last one's

 private:
  void add(std::span<const std::int64_t> values) {
    std::lock_guard hold(mutex_);
    for (const std::int64_t value : values) ++values_[value];
    ++handed_;
    changed_.notify_all();
  }
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::map<std::int64_t, int> values_;
  std::uint64_t handed_ = 0;
  service::DataServiceStatistics statistics_;
};

// Two consumers of one job, and `meanwhile` beside them.
void read_twice(Consumed& consumed, const service::DataServiceOptions& options,
                const std::function<void()>& meanwhile) {
  const Dataset dataset = Dataset::range(8000).batch(4);
  std::thread first([&] { consumed.read(dataset, options); });
  std::thread second([&] { consumed.read(dataset, options); });
  meanwhile();
  first.join();
  second.join();
}

TEST_F(DataServiceProcesses, TwoConsumersGetEveryElementThoughAWorkerAndTheDispatcherAreKilled) {
  start_dispatcher();
  start_worker("first");
  start_worker("second");
  Consumed consumed;
  read_twice(consumed, of_job(), [&] {
    consumed.wait_for(400);
    kill("first");
    consumed.wait_for(800);
    kill("dispatcher");
    start_dispatcher();
  });
  EXPECT_EQ(consumed.values().size(), 8000u) << "every value";
  EXPECT_EQ(consumed.statistics().job_elements, 2000u);
  EXPECT_EQ(consumed.statistics().job_handed, consumed.handed());
  std::uint64_t again = 0;
  for (const auto& [value, times] : consumed.values())
    again += static_cast<std::uint64_t>(times - 1);
  EXPECT_EQ(consumed.statistics().duplicates() * 4, again) << "duplicates are counted";
}

TEST_F(DataServiceProcesses, TwoConsumersGetEachElementOnceWhileNobodyDies) {
  start_dispatcher();
  start_worker("first");
  start_worker("second");
  Consumed consumed;
  read_twice(consumed, of_job(), [] {});
  EXPECT_EQ(consumed.values().size(), 8000u);
  EXPECT_EQ(consumed.handed(), 2000u);
  EXPECT_EQ(consumed.statistics().duplicates(), 0u);
}

TEST_F(DataServiceProcesses, UpStartsThemShowsThemAndBringsThemBack) {
  tools::Command command;
  const std::string dir = folder_ + "/run";
  command.arguments = {CAIRN_PROGRAMS "/cairn",
                       "up",
                       "--workers",
                       "1",
                       "--data-workers",
                       "2",
                       "--dir",
                       dir,
                       "--",
                       CAIRN_PROGRAMS "/read_data_service"};
  command.output_file = folder_ + "/up.log";
  ChildProcess up(command);
  EXPECT_EQ(up.wait().code, 0) << tools::last_lines(command.output_file, 20);
  const std::string said = tools::last_lines(command.output_file, 40);
  EXPECT_NE(said.find("1000 elements, 1000 values"), std::string::npos) << said;
  EXPECT_NE(said.find("/job:dispatcher/task:0"), std::string::npos) << said;
  EXPECT_NE(said.find("/job:data_worker/task:1"), std::string::npos) << said;
  EXPECT_NE(said.find("data_worker 0"), std::string::npos) << said;
}

// A job over four files that a model can learn, on one ps and two workers.
class JobsOverADataService : public DataServiceProcesses {
 protected:
  JobsOverADataService() {
    for (int file = 0; file < 4; ++file) {
      std::ofstream out(folder_ + "/train-" + std::to_string(file) + ".csv");
      for (int i = 0; i < 500; ++i) out << i % 10 << "," << (i % 10 < 5 ? 1 : 0) << "\n";
    }
  }
  // `service`: what the job says under [data.service].
  int train(const std::string& service, const std::vector<std::string>& more,
            const std::vector<std::string>& environment = {}) {
    std::ofstream(folder_ + "/job.toml")
        << "[data]\ntrain = 'train-*.csv'\ntest = 'train-0.csv'\nbatch = 50\nepochs = 20\n"
           "shuffle = 100\n[data.csv]\ncolumns = ['x:float32', 'y:float32']\nlabel = {column = "
           "'y'}\n"
        << service
        << "[features]\nnumeric = 'x'\n[model]\nkind = 'deep'\nhidden = []\n"
           "[optimizer]\nkind = 'sgd'\nlearning_rate = 0.5\n";
    tools::Command command;
    command.arguments = {CAIRN_PROGRAMS "/cairn",
                         "train",
                         folder_ + "/job.toml",
                         "--ps",
                         "1",
                         "--workers",
                         "2",
                         "--dir",
                         folder_ + "/run",
                         "--report",
                         folder_ + "/report",
                         "--overwrite"};
    command.arguments.insert(command.arguments.end(), more.begin(), more.end());
    command.environment = environment;
    command.output_file = folder_ + "/train.log";
    return ChildProcess(command).wait().code;
  }
  std::string said() const { return tools::last_lines(folder_ + "/train.log", 40); }
  Json json(const std::string& name) const {
    std::ifstream file(folder_ + "/" + name);
    return parse_json(std::string(std::istreambuf_iterator<char>(file), {}), name);
  }
};

TEST_F(JobsOverADataService, TrainStartsOneReadsThroughItAndOutlivesADataWorker) {
  ASSERT_EQ(train("", {"--data-workers", "2", "--kill", "data_worker:0@30%"}), 0) << said();
  const Json report = json("report");
  EXPECT_GT(report["metrics"]["auc"].get<double>(), 0.99);
  EXPECT_EQ(report["steps"], 800);
  EXPECT_EQ(report["data_service"]["mode"], "dynamic");
  EXPECT_EQ(report["restarts"]["data_worker"], 1);
  EXPECT_EQ(report["restarts"]["dispatcher"], 0);
  std::set<std::string> roles;
  const Json description = json("run/cluster.json");
  for (const Json& task : description["tasks"]) roles.insert(task["role"].get<std::string>());
  EXPECT_TRUE(roles.contains("dispatcher") && roles.contains("data_worker"));
  EXPECT_NE(said().find("2 data workers"), std::string::npos) << said();
}

TEST_F(JobsOverADataService, ARunThatIsResumedTellsThatItsPlaceInTheDataIsNotKept) {
  ASSERT_EQ(train("", {"--data-workers", "1", "--steps", "100"}), 0) << said();
  ASSERT_EQ(train("", {"--data-workers", "1", "--steps", "200", "--resume", "latest"}), 0)
      << said();
  EXPECT_NE(said().find("a data service keeps no positions"), std::string::npos) << said();
  EXPECT_EQ(json("report")["steps"], 200);
}

TEST_F(JobsOverADataService, AServiceThatRunsIsJoinedByItsAddressAndItsToken) {
  start("dispatcher", {"--role", "dispatcher", "--token", "secret"});
  start("worker", {"--role", "worker", "--dispatcher", address("dispatcher"), "--token", "secret"});
  const std::string service =
      "[data.service]\naddress = '" + address("dispatcher") + "'\njob = 'shared'\n";
  EXPECT_EQ(train(service, {}, {"CAIRN_TOKEN="}), 1) << said();
  EXPECT_NE(said().find("CAIRN_TOKEN_FILE"), std::string::npos) << said();
  ASSERT_EQ(train(service, {}, {"CAIRN_TOKEN=secret"}), 0) << said();
  EXPECT_EQ(json("report")["data_service"]["job"], "shared");
  EXPECT_GT(json("report")["metrics"]["auc"].get<double>(), 0.99);
}

TEST_F(DataServiceProcesses, ASecondDispatcherOnTheSameJournalIsRefused) {
  start_dispatcher();
  start_worker("worker");
  service::DataServiceOptions options;
  options.dispatcher = rpc::Address::parse(address("dispatcher"));
  // An element: the first one has opened its journal.
  ASSERT_TRUE(service::DataServiceReader(Dataset::range(1), options).next().has_value());
  tools::Command command;
  command.arguments = {CAIRN_PROGRAMS "/cairn-data",
                       "--role",
                       "dispatcher",
                       "--listen",
                       address("other"),
                       "--journal",
                       folder_ + "/journal"};
  command.output_file = folder_ + "/other.log";
  ChildProcess other(command);
  EXPECT_EQ(other.wait().code, 1);
  EXPECT_NE(tools::last_lines(command.output_file, 5).find("is in use by"), std::string::npos);
}

}  // namespace
}  // namespace cairn
