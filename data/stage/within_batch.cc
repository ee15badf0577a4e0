#include "data/stage/within_batch.h"

#include "core/base/error.h"

namespace cairn {

void WithinBatch::restart(std::uint64_t epoch) {
  StageOver::restart(epoch);
  forget();
}

void WithinBatch::save(StateWriter& out) const {
  const bool within = used_ < size_;
  out.number(within ? static_cast<std::uint64_t>(used_) : 0);
  out.blob(within ? before_ : state_below());
}

void WithinBatch::load(StateReader& in) {
  forget();
  const std::int64_t used = in.number_up_to(kCountMax, str("the ", rows_, " used of a batch"));
  StateReader below(in.blob());
  StageOver::load(below);
  below.expect_end();
  if (used == 0) return;
  if (!read() || used > size_)
    throw InvalidArgumentError(
        str("a state of ", call_, " names ", rows_, " that its batch has not"));
  used_ = used;
}

std::vector<std::byte> WithinBatch::state_below() const {
  StateWriter below;
  StageOver::save(below);
  return below.take();
}

bool WithinBatch::read() {
  for (forget(); size_ == 0;) {
    before_ = state_below();
    const Block block = input_->next(1);
    if (block.empty()) return false;
    size_ = hold(block.element(0));
  }
  return true;
}

void WithinBatch::forget() {
  drop();
  size_ = used_ = 0;
}

}  // namespace cairn
