// A cluster of fake ps with a lane beside it, and functions to run there.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/graph/function.h"
#include "core/graph/ops.h"
#include "core/graph/variable.h"
#include "tests/worker/rows/fake_ps.h"
#include "worker/lane/lane.h"

namespace cairn::worker {

inline const UpdateRule kSgdRule{RuleKind::kSgd, {}};

// A closure under way in a test.
struct Started {
  ClosureResult result;
  std::string error;  // "Code: message"
  bool finished = false;
  kj::Promise<void> promise = nullptr;
};

inline std::string text_of(const kj::Exception& exception) {
  const auto parts = rpc::from_kj(exception);
  return str(code_name(parts.code), ": ", parts.message);
}

class LaneHarness {
 public:
  static constexpr std::uint64_t kSession = 5;

  explicit LaneHarness(FakeCluster& cluster, std::uint32_t depth = 2,
                       LaneIncarnation incarnation = 11)
      : cluster_(cluster), lane(cluster.reactor, cluster.network.host("worker0"), options()) {
    lane.configure({kSession, 0, depth, RowEncoding::kRaw, incarnation});
    lane.set_layout(cluster.layout);
  }

  template <typename F>
  void add_function(FunctionId id, const std::vector<SignatureEntry>& signature, F body,
                    StoreKind kind = StoreKind::kParameterServers) {
    auto traced = trace(
        [&](const std::vector<TraceArgument>& arguments) { return body(arguments); }, signature);
    lane.register_function(id, parse_graph(traced.bytes), traced.bytes.size(), kind);
  }
  Variable variable(VariableId id) const {
    return Variable(cluster_.layout->variables.at(id).spec);
  }

  // Function 1: reads the rows of its argument, takes half of them away, and gives what it read.
  void add_halving() {
    add_function(1, {TensorType{DType::kInt64, {Shape::kUnknown}}},
                 [&](const std::vector<TraceArgument>& arguments) {
                   const Array ids = std::get<Array>(arguments[0]);
                   const Variable w = variable(0);
                   const Array rows = w.gather(ids);
                   w.update(kSgdRule, IndexedSlices{ids, rows, w.shape()}, Array(0.5f));
                   return Outputs{{"", rows}};
                 });
  }

  std::shared_ptr<Started> start(ClosureRun closure, const void* caller = nullptr) {
    auto started = std::make_shared<Started>();
    started->promise = lane.run(std::move(closure), caller)
                           .start()
                           .then(
                               [raw = started.get()](ClosureResult&& result) {
                                 raw->result = std::move(result);
                                 raw->finished = true;
                               },
                               [raw = started.get()](kj::Exception&& error) {
                                 raw->error = text_of(error);
                                 raw->finished = true;
                               })
                           .eagerlyEvaluate(nullptr);
    return started;
  }
  std::shared_ptr<Started> start(std::uint64_t sequence, FunctionId function,
                                 std::vector<Tensor> arguments, std::vector<Take> takes = {},
                                 const void* caller = nullptr) {
    ClosureRun closure;
    closure.sequence = sequence;
    closure.function = function;
    closure.arguments = std::move(arguments);
    closure.takes = std::move(takes);
    closure.sent_layout = 1;
    return start(std::move(closure), caller);
  }
  // Runs it to its end; what it gave.
  ClosureResult run(std::uint64_t sequence, FunctionId function, std::vector<Tensor> arguments,
                    std::vector<Take> takes = {}) {
    auto started = start(sequence, function, std::move(arguments), std::move(takes));
    finish({started});
    if (!started->error.empty()) throw UnknownError(started->error);
    return started->result;
  }
  std::string error_of(std::uint64_t sequence, FunctionId function, std::vector<Tensor> arguments,
                       std::vector<Take> takes = {}) {
    auto started = start(sequence, function, std::move(arguments), std::move(takes));
    finish({started});
    return started->error;
  }
  bool finish(const std::vector<std::shared_ptr<Started>>& all) {
    return cluster_.run_until([&] {
      return std::all_of(all.begin(), all.end(), [](const auto& one) { return one->finished; });
    });
  }

 private:
  static LaneOptions options() {
    LaneOptions options;
    options.cluster = "test";
    return options;
  }
  FakeCluster& cluster_;

 public:
  Lane lane;
};

}  // namespace cairn::worker
