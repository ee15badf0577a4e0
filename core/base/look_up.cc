#include "core/base/look_up.h"

namespace cairn {
namespace {
thread_local LookUp* innermost = nullptr;
}  // namespace

LookUp::LookUp(std::function<void()> look) : look_(std::move(look)), before_(innermost) {
  innermost = this;
}
LookUp::~LookUp() { innermost = before_; }

bool looks_up() { return innermost != nullptr; }
void look_up() {
  if (innermost == nullptr) return;
  const TimePoint now = system_clock().now();
  if (now < innermost->next_) return;
  innermost->next_ = now + kLookUpEvery / 2;  // a wait may end a little early
  innermost->look_();
}

}  // namespace cairn
