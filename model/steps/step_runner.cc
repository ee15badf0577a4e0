#include "model/steps/step_runner.h"

#include <algorithm>
#include <functional>

namespace cairn {
namespace {

// How long a loop that waits for results stays away from the user's signals.
constexpr Duration kLook = std::chrono::milliseconds(100);

void add(std::vector<Tensor>& sums, const std::vector<Tensor>& values) {
  for (std::size_t i = 0; i < sums.size(); ++i) {
    sums[i] = sums[i].clone();
    const auto sum = sums[i].mutable_values<float>();
    std::transform(sum.begin(), sum.end(), values.at(i).values<float>().begin(), sum.begin(),
                   std::plus<>());
  }
}

}  // namespace

bool StepResult::ready() const {
  return std::all_of(shares_.begin(), shares_.end(),
                     [](const RemoteValue& share) { return share.ready(); });
}

bool StepResult::ready_soon() const {
  for (const RemoteValue& share : shares_) {
    if (share.ready()) continue;
    try {
      share.get_all(kLook);
    } catch (const DeadlineExceededError&) {
      return false;
    }
  }
  return true;
}

std::vector<Tensor> StepResult::get_all() const {
  if (shares_.empty()) return values_;
  std::vector<Tensor> sums = shares_.front().get_all();
  for (std::size_t i = 1; i < shares_.size(); ++i) add(sums, shares_[i].get_all());
  return sums;
}

}  // namespace cairn
