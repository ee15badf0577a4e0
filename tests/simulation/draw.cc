#include "tests/simulation/draw.h"

#include "core/base/error.h"

namespace cairn::simulation {

using Kind = Fault::Kind;
using std::chrono::microseconds;

std::string host(Draw& draw, const Scenario& scenario) {
  int which = draw.index(1 + scenario.ps + scenario.workers);
  if (which == 0) return "chief";
  if (which <= scenario.ps) return cairn::str("ps", which - 1);
  return cairn::str("worker", which - 1 - scenario.ps);
}

Fault draw_fault(Draw& draw, const Scenario& scenario, const std::vector<Kind>& kinds) {
  Fault fault;
  fault.kind = kinds[static_cast<std::size_t>(draw.index(static_cast<int>(kinds.size())))];
  fault.at_closure = draw.between(0, scenario.closures - 1);
  fault.then = draw.time(microseconds(1), microseconds(5'000));
  fault.lasts = draw.time(microseconds(100), microseconds(4'000'000));
  if (fault.kind == Kind::kKillPs || fault.kind == Kind::kKillUnheard)
    fault.a = draw.index(scenario.ps);
  if (fault.kind == Kind::kKillWorker) fault.a = draw.index(scenario.workers);
  if (fault.kind == Kind::kPowerLoss) fault.a = draw.index(3) == 0 ? 0 : draw.index(101);
  if (fault.kind == Kind::kChiefDiesStarting) fault.a = draw.index(30);
  if (fault.kind == Kind::kWallJump) fault.a = draw.index(7200) - 3600;
  fault.from = host(draw, scenario);
  do fault.to = host(draw, scenario);
  while (fault.to == fault.from);
  if (fault.kind == Kind::kZombie) {
    fault.a = draw.index(scenario.workers);
    fault.to = cairn::str("ps", draw.index(scenario.ps));
    fault.lasts = draw.time(microseconds(1'300'000), microseconds(2'500'000));
  }
  if (fault.kind == Kind::kStop) {
    fault.from = cairn::str("ps", draw.index(scenario.ps));
    fault.lasts = draw.time(microseconds(10'000), microseconds(4'000'000));
  }
  if (fault.kind == Kind::kSlow) {
    fault.from = cairn::str("worker", draw.index(scenario.workers));
    fault.a = 2 + draw.index(30);
  }
  return fault;
}

std::vector<Fault> draw_blow(Draw& draw, const Scenario& scenario) {
  Fault first{.kind = Kind::kKillChief, .at_closure = draw.between(0, scenario.closures - 1)};
  first.then = draw.time(microseconds(1), microseconds(5'000));
  first.lasts = draw.time(microseconds(100), microseconds(400'000));
  std::vector<Fault> blow;
  auto add = [&](Kind kind, int a) {
    blow.push_back(first);
    blow.back().kind = kind;
    blow.back().a = a;
  };
  const int what = draw.index(4);
  if (what == 0) {  // all processes
    for (int i = 0; i < scenario.ps; ++i) add(Kind::kKillPs, i);
    for (int i = 0; i < scenario.workers; ++i) add(Kind::kKillWorker, i);
  } else if (what == 1) {
    add(Kind::kKillPs, draw.index(scenario.ps));
  }
  if (what != 1) add(Kind::kKillChief, 0);
  if (what != 0) {  // and again, soon after it is back
    blow.push_back(blow.back());
    blow.back().then += first.lasts + draw.time(microseconds(10), microseconds(300'000));
  }
  return blow;
}

}  // namespace cairn::simulation
