// cairn-data as processes, which are killed.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "service/data_service_reader.h"
#include "service/dispatcher_server.h"
#include "tools/child_process.h"

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
  // Waits until it listens: a process says so in its first line.
  void start(const std::string& name, std::vector<std::string> flags) {
    tools::Command command;
    command.arguments = {CAIRN_PROGRAMS "/cairn-data", "--listen", address(name)};
    command.arguments.insert(command.arguments.end(), flags.begin(), flags.end());
    command.output_file = folder_ + "/" + name + ".log." + std::to_string(started_++);
    processes_.insert_or_assign(name, ChildProcess(command));
    const auto until = std::chrono::steady_clock::now() + 30s;
    while (tools::last_lines(command.output_file, 5).find("listening on") == std::string::npos) {
      ASSERT_FALSE(processes_.at(name).poll().has_value())
          << tools::last_lines(command.output_file, 5);
      ASSERT_LT(std::chrono::steady_clock::now(), until) << name << " does not listen";
      std::this_thread::sleep_for(10ms);
    }
  }
  void start_dispatcher() {
    start("dispatcher",
          {"--role", "dispatcher", "--journal", folder_ + "/journal", "--silence", "2"});
  }
  void start_worker(const std::string& name) {
    start(name, {"--role", "worker", "--dispatcher", address("dispatcher")});
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
  service::DataServiceOptions options;
  options.dispatcher = rpc::Address::parse(address("dispatcher"));
  options.job_name = "job";
  options.mode = service::ProcessingMode::kDynamic;
  service::DataServiceReader reader(Dataset::range(4000).batch(4), options);
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

TEST_F(DataServiceProcesses, ASecondDispatcherOnTheSameJournalIsRefused) {
  start_dispatcher();
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
