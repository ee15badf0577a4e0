#include "nn/losses/added_losses.h"

#include <algorithm>

#include "core/base/error.h"

namespace cairn::nn {
namespace {

thread_local AddedLosses* innermost = nullptr;

}  // namespace

AddedLosses::AddedLosses() : outer_(innermost) { innermost = this; }
AddedLosses::~AddedLosses() { innermost = outer_; }

void add_loss(const std::string& key, const Array& loss) {
  if (!loss.defined() || loss.rank() != 0 || loss.dtype() != DType::kFloat32)
    throw InvalidArgumentError(str("the loss \"", key, "\" must be a float32 scalar, it is ",
                                   loss.defined() ? loss.type().to_string() : "missing"));
  if (innermost == nullptr) return;
  auto& keys = innermost->keys_;
  if (std::ranges::find(keys, key) != keys.end()) return;
  keys.push_back(key);
  innermost->terms_.push_back(loss);
}

}  // namespace cairn::nn
