// A shard some of whose rows are held back, and requests that may have to wait for them.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "tests/ps/shard/held_rows.h"
#include "tests/ps/shard/shard_fixture.h"

namespace cairn::ps {

inline const UpdateRule kSet{RuleKind::kAssign, {}};

// A request, and how its wait has ended, if it has.
struct Asked {
  std::uint64_t wait = 0;
  std::optional<Floats> rows;        // of a pull
  std::optional<PushResult> pushed;  // of a push
  std::exception_ptr error;

  bool waits() const { return !rows.has_value() && !pushed.has_value() && error == nullptr; }
  Code code() const {
    try {
      if (error != nullptr) std::rethrow_exception(error);
    } catch (const Error& refusal) {
      return refusal.code();
    }
    return Code::kInternal;  // no error
  }
};

// Two variables of eight rows of one number, 0 at first, some of them held back.
class RowWaitsTest : public testing::Test {
 protected:
  std::unique_ptr<Asked> pull(const Ids& ids, VariableId variable = 0) {
    const ReadHeader header{variable, 0, static_cast<std::uint32_t>(ids.size()), false};
    return pull_request({shard.step(0), {&header, 1}, ids});
  }
  std::unique_ptr<Asked> pull_whole(VariableId variable = 0) {
    const ReadHeader header{variable, 0, 0, true};
    return pull_request({shard.step(0), {&header, 1}, {}});
  }
  std::unique_ptr<Asked> pull_request(const PullRequest& request) {
    auto asked = std::make_unique<Asked>();
    if (!shard.shard.must_wait(request)) {
      asked->rows = shard.pull_request(request);
      return asked;
    }
    asked->wait = shard.shard.wait(request);
    const std::vector<ReadHeader> headers(request.headers.begin(), request.headers.end());
    const Ids ids(request.ids.begin(), request.ids.end());
    shard.shard.on_end(asked->wait, [this, to = asked.get(), headers, ids,
                                     step = request.step](const WaitOutcome& outcome) {
      to->error = outcome.error;
      if (to->error == nullptr) to->rows = shard.pull_request({step, headers, ids});
    });
    return asked;
  }
  std::unique_ptr<Asked> push(const StepContext& step, const Ids& ids, float value,
                              VariableId variable = 0, UpdateRule rule = kSet) {
    return pushed(shard.push(step, variable, ids, Floats(ids.size(), value), rule));
  }
  std::unique_ptr<Asked> pushed(const PushResult& result) {
    auto asked = std::make_unique<Asked>();
    asked->wait = result.waits;
    if (result.waits == 0)
      asked->pushed = result;
    else
      shard.shard.on_end(result.waits, [to = asked.get()](const WaitOutcome& outcome) {
        to->error = outcome.error;
        if (to->error == nullptr) to->pushed = outcome.pushed;
      });
    return asked;
  }

  HeldRows source;
  ShardHarness shard{
      {whole_table(0, variable("a", {8, 1}), sgd()), whole_table(1, variable("b", {8, 1}), adam())},
      {.lineage = 100, .row_source = &source, .waits = {.requests_max = 20}}};
};

}  // namespace cairn::ps
