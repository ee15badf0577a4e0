// The data service over sockets, on threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "rpc/reactor_thread.h"
#include "service/data_service_reader.h"
#include "service/data_worker_server.h"
#include "service/dispatcher_server.h"

namespace cairn::service {
namespace {

// A dispatcher with two data workers on one thread, and readers on threads of their own.
class OverSockets : public testing::Test {
 protected:
  OverSockets() {
    thread_.run([this] {
      here_ = std::make_unique<Here>();
      DispatcherOptions options;
      options.journal = folder_;
      options.log = [](LogLevel, const std::string&) {};
      here_->dispatcher = std::make_unique<DispatcherServer>(
          thread_.reactor(), *network_, *offload_, system_disk(),
          Door{.address = rpc::Address::parse("127.0.0.1:0")}, options);
      address_ = here_->dispatcher->address();
      for (auto& worker : here_->workers) {
        DataWorkerOptions wanted;
        wanted.dispatcher = address_;
        wanted.log = options.log;
        worker = std::make_unique<DataWorkerServer>(
            thread_.reactor(), *network_, *offload_,
            Door{.address = rpc::Address::parse("127.0.0.1:0")}, wanted);
      }
    });
  }
  ~OverSockets() override {
    thread_.run([this] { here_.reset(); });
    offload_.reset();  // finishes what is being written
    thread_.stop();
    std::filesystem::remove_all(folder_);
  }
  DataServiceOptions options(ProcessingMode mode) const {
    return {.dispatcher = address_, .job_name = "job", .mode = mode};
  }

 private:
  struct Here {
    std::unique_ptr<DispatcherServer> dispatcher;
    std::unique_ptr<DataWorkerServer> workers[2];
  };
  const std::string folder_ = testing::TempDir() + str("data_service_", random_number());
  std::unique_ptr<rpc::Network> network_ = rpc::make_socket_network();
  std::unique_ptr<Offload> offload_ = make_thread_offload(2);
  rpc::ReactorThread thread_{"servers"};
  std::unique_ptr<Here> here_;
  rpc::Address address_;
};

TEST_F(OverSockets, TwoReadersShareAJob) {
  const Dataset dataset = Dataset::range(5000).batch(10);
  DataServiceReader first(dataset, options(ProcessingMode::kDynamic));
  DataServiceReader second(dataset, options(ProcessingMode::kDynamic));
  std::vector<std::int64_t> all;
  const auto take = [&](DataServiceReader& reader) {
    const auto element = reader.next();
    if (!element) return false;
    const auto values = element->at(0).values<std::int64_t>();
    all.insert(all.end(), values.begin(), values.end());
    return true;
  };
  for (int i = 0; i < 20; ++i) take(first), take(second);
  // A reader's end waits for what the other one has: both read on, each on a thread.
  std::thread other([&] {
    while (second.next()) {
    }
  });
  while (take(first)) {
  }
  other.join();
  EXPECT_EQ(first.statistics().handed + second.statistics().handed, 500u);
  EXPECT_EQ(first.statistics().duplicates(), 0u);
  std::ranges::sort(all);
  EXPECT_EQ(std::ranges::unique(all).begin(), all.end()) << "an element came twice";
}

TEST_F(OverSockets, AReaderIsToldWhatIsWrong) {
  DataServiceReader reader(Dataset::range(10).take(3).batch(2), options(ProcessingMode::kDynamic));
  EXPECT_THROW(reader.next(), InvalidArgumentError);
  EXPECT_THROW(reader.next(), InvalidArgumentError) << "again";
}

TEST_F(OverSockets, AReaderThatGoesEarlyLeavesNothingBehind) {
  DataServiceReader reader(Dataset::range(1000).batch(2), options(ProcessingMode::kDynamic));
  EXPECT_TRUE(reader.next().has_value());
}

}  // namespace
}  // namespace cairn::service
