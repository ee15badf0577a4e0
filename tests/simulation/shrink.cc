#include "tests/simulation/run.h"

namespace cairn::simulation {

Scenario shrink(Scenario failing, const std::function<bool(const Scenario&)>& fails) {
  bool smaller = true;
  while (smaller) {
    smaller = false;
    for (std::size_t i = failing.faults.size(); i-- > 0;) {
      Scenario without = failing;
      without.faults.erase(without.faults.begin() + static_cast<std::ptrdiff_t>(i));
      if (!fails(without)) continue;
      failing = std::move(without);
      smaller = true;
    }
    for (std::int64_t closures :
         {failing.closures / 2, failing.closures * 3 / 4, failing.closures - 1}) {
      if (closures < 1 || closures == failing.closures) continue;
      Scenario shorter = failing;
      shorter.closures = closures;
      if (!fails(shorter)) continue;
      failing = std::move(shorter);
      smaller = true;
      break;
    }
  }
  return failing;
}

}  // namespace cairn::simulation
