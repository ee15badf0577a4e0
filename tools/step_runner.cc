#include "tools/step_runner.h"

namespace cairn::tools {
namespace {

// How long a loop that waits for results stays away from the user's signals.
constexpr Duration kLook = std::chrono::milliseconds(100);

}  // namespace

bool StepResult::ready() const {
  const auto* remote = std::get_if<RemoteValue>(&value_);
  return remote == nullptr || remote->ready();
}

bool StepResult::ready_soon() const {
  if (ready()) return true;
  try {
    std::get<RemoteValue>(value_).get_all(kLook);
    return true;
  } catch (const DeadlineExceededError&) {
    return false;
  }
}

std::vector<Tensor> StepResult::get_all() const {
  if (const auto* remote = std::get_if<RemoteValue>(&value_)) return remote->get_all();
  return std::get<std::vector<Tensor>>(value_);
}

}  // namespace cairn::tools
