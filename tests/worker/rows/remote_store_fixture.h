// A RemoteStore on fake ps, and what became of its calls.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/worker/rows/fake_ps.h"
#include "worker/rows/remote_step.h"

namespace cairn::worker {

inline const UpdateRule kSgd{RuleKind::kSgd, {}};
inline const UpdateRule kAdam{RuleKind::kAdam, {0.9f, 0.999f, 1e-7f}};

class RemoteStoreTest : public testing::Test {
 protected:
  void use(std::size_t ps, std::vector<std::pair<std::string, Shape>> variables,
           RowEncoding encoding = RowEncoding::kRaw, ShardLinkOptions link = {}) {
    cluster = std::make_unique<FakeCluster>(ps, std::move(variables));
    store = std::make_unique<RemoteStore>(cluster->reactor, cluster->network.host("worker0"), link);
    LaneIdentity identity;
    identity.hello.cluster = "test";
    identity.hello.session = 5;
    identity.hello.role = rpc::Role::kWorker;
    identity.encoding = encoding;
    store->identify(identity);
    store->set_layout(cluster->layout);
    context.session = 5;
    context.closure = 7;
  }

  // The error of a call: empty when it went well.
  std::string outcome(rpc::Task<void> call) {
    bool finished = false;
    std::exception_ptr failure;
    auto ended = note(std::move(call), finished, failure).start();
    if (!cluster->run_until([&] { return finished; })) return "never answered";
    if (!failure) return "";
    const auto parts = error_parts(failure);
    return str(code_name(parts.code), ": ", parts.message);
  }
  std::string pull(RemoteStep& step, std::vector<Read>& reads) {
    return outcome(step.pull(context, reads));
  }
  std::string push(RemoteStep& step, std::vector<Update>& updates) {
    return outcome(step.push(context, updates));
  }
  // Counts it in `ended` once it has ended well.
  static kj::Promise<void> counted(rpc::Task<void> call, int& ended) {
    return call.start().then([&ended] { ++ended; }).eagerlyEvaluate([](kj::Exception&&) {});
  }
  std::vector<float> expected(VariableId variable, const std::vector<std::int64_t>& rows,
                              std::int64_t dim) const {
    std::vector<float> all;
    for (std::int64_t row : rows)
      for (std::int64_t c = 0; c < dim; ++c) all.push_back(initial_value(variable, row, c));
    return all;
  }

  static rpc::Task<void> note(rpc::Task<void> call, bool& finished, std::exception_ptr& failure) {
    try {
      co_await std::move(call);
    } catch (...) {
      failure = std::current_exception();
    }
    finished = true;
  }

  std::unique_ptr<FakeCluster> cluster;
  std::unique_ptr<RemoteStore> store;
  StepContext context;
};

}  // namespace cairn::worker
