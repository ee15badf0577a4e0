// A call that seldom waits, and is made so often that letting go of the GIL each time costs too
// much.
#pragma once
#include <optional>

#include "interpreter.h"

namespace cairn::python {

// While it lives, a call that has waited for 100 ms lets go of the GIL until it ends, and looks for
// Ctrl-C as Released does.
class LazilyReleased {
 public:
  LazilyReleased();
  ~LazilyReleased();
  LazilyReleased(const LazilyReleased&) = delete;
  LazilyReleased& operator=(const LazilyReleased&) = delete;

 private:
  void look();

  const int depth_;  // of calls into Python
  std::optional<WithoutGil> gil_;
  std::optional<LookUp> look_up_;
};

}  // namespace cairn::python
