#include "core/base/look_up.h"

namespace cairn {
namespace {
thread_local LookUp* innermost = nullptr;
}  // namespace

LookUp::LookUp(std::function<void()> look, Duration apart)
    : look_(std::move(look)), apart_(apart), before_(innermost) {
  innermost = this;
}
LookUp::~LookUp() { innermost = before_; }

bool looks_up() { return innermost != nullptr; }
void look_up() {
  if (innermost == nullptr) return;
  LookUp& here = *innermost;
  const TimePoint now = system_clock().now();
  if (now < here.next_) return;
  here.next_ = now + here.apart_;  // before, for what it calls may look up, too
  here.look_();
  here.next_ = system_clock().now() + here.apart_;  // and after, for it may have waited
}

}  // namespace cairn
