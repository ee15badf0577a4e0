#include "tests/simulation/data_service.h"

#include <algorithm>

#include "core/base/random.h"
#include "service/worker/data_worker.h"
#include "tests/service/simulated_service.h"

namespace cairn::simulation {
namespace {

using namespace std::chrono_literals;
using Kind = Fault::Kind;
using service::ProcessingMode;
using service::Reading;
using service::SimulatedService;

constexpr int kConsumers = 2;
constexpr Duration kServicePatience = 2min;

std::int64_t between(Random& random, std::int64_t least, std::int64_t most) {
  return least +
         static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most - least + 1)));
}

std::string consumer_host(int i) { return str("consumer", i); }

// The data worker that the dispatcher does not hear meanwhile; empty if there is none.
std::string unheard(const Fault& fault) {
  if (fault.from != "dispatcher" && fault.to != "dispatcher") return "";
  const std::string& other = fault.from == "dispatcher" ? fault.to : fault.from;
  return other.starts_with("worker") ? other : "";
}

// The longest time for which the dispatcher may hear nothing of a data worker: that of all faults
// between them, one after the other. Once one has ended their connection, a partition may swallow a
// dial, which is given up some time after the partition.
Duration silence_of(const std::string& worker, const std::vector<Fault>& faults) {
  const service::DataWorkerOptions options;
  const auto ends_connection = [&](const Fault& fault) {
    return unheard(fault) == worker && (fault.kind == Kind::kCut || fault.kind == Kind::kDropNext);
  };
  const bool dials = std::ranges::any_of(faults, ends_connection);
  Duration silence = options.report_interval;
  for (const Fault& fault : faults) {
    if (unheard(fault) != worker || fault.kind == Kind::kDropNext) continue;
    silence += fault.lasts;
    if (dials) silence += options.report_interval;
    if (dials && fault.kind != Kind::kCut) silence += options.link.connect_deadline;
  }
  return silence;
}

// Whether nothing may come twice for it: no data worker is lost, nor taken for lost by the
// dispatcher, which waits five seconds, nor is an acknowledgement on its way lost with a
// connection.
bool is_harmless(const Fault& fault, const std::vector<Fault>& faults) {
  if (fault.kind == Kind::kKillChief) return true;
  if (fault.kind == Kind::kKillWorker) return false;
  if (fault.from == "dispatcher" || fault.to == "dispatcher") {
    const std::string worker = unheard(fault);
    return worker.empty() || silence_of(worker, faults) < 4500ms;
  }
  return fault.kind == Kind::kPartition || fault.kind == Kind::kPartitionBoth;
}

// Two processes that speak to each other.
void draw_pair(Random& random, const Scenario& scenario, Fault& fault) {
  const std::string worker =
      SimulatedService::worker_name(static_cast<int>(between(random, 0, scenario.workers - 1)));
  const std::string consumer = consumer_host(static_cast<int>(between(random, 0, kConsumers - 1)));
  const std::int64_t what = between(random, 0, 2);
  fault.from = what == 0 ? worker : what == 1 ? consumer : "dispatcher";
  fault.to = what == 0 ? "dispatcher" : what == 1 ? worker : consumer;
  if (between(random, 0, 1) == 0) std::swap(fault.from, fault.to);
}

class ServiceWorld {
 public:
  explicit ServiceWorld(const Scenario& scenario)
      : scenario_(scenario),
        service_({.workers = scenario.workers,
                  .seed = scenario.seed,
                  .job = {.elements_max = 24},
                  .offload_delay_max = std::max(Duration(1us), scenario.delays.disk)}),
        pending_(scenario.faults) {}

  Verdict run();

 private:
  std::int64_t handed() const;
  void strike(const Fault& fault);
  void strike_due();
  void later(Duration delay, std::function<void()> work);
  void judge();
  void complain(std::string what) { verdict_.complaints.push_back(std::move(what)); }

  const Scenario scenario_;
  SimulatedService service_;
  std::vector<Fault> pending_;
  std::vector<std::shared_ptr<Reading>> readings_;
  Duration quiet_after_{0};
  bool ended_ = false;
  Verdict verdict_;
};

std::int64_t ServiceWorld::handed() const {
  std::int64_t sum = 0;
  for (const auto& reading : readings_) sum += static_cast<std::int64_t>(reading->elements.size());
  return sum;
}

void ServiceWorld::later(Duration delay, std::function<void()> work) {
  quiet_after_ = std::max(quiet_after_, service_.reactor.now() + delay);
  service_.reactor.schedule(delay, [this, work = std::move(work)] {
    if (!ended_) work();
  });
}

void ServiceWorld::strike_due() {
  const std::int64_t now = handed();
  std::erase_if(pending_, [&](const Fault& fault) {
    if (fault.at_closure > now) return false;
    later(fault.then, [this, fault] { strike(fault); });
    return true;
  });
}

void ServiceWorld::strike(const Fault& fault) {
  ++verdict_.losses;
  if (fault.kind == Kind::kKillWorker) {
    if (!service_.worker_lives(fault.a)) return;
    service_.kill_worker(fault.a);
    return later(fault.lasts, [this, fault] { service_.start_worker(fault.a); });
  }
  if (fault.kind == Kind::kKillChief) {
    if (!service_.dispatcher_lives()) return;
    service_.kill_dispatcher();
    return later(fault.lasts, [this] { service_.start_dispatcher(); });
  }
  if (fault.kind == Kind::kDropNext) return service_.network.drop_next(fault.from, fault.to);
  if (fault.kind == Kind::kCut) service_.network.cut(fault.from, fault.to);
  if (fault.kind == Kind::kPartition) service_.network.partition(fault.from, fault.to);
  if (fault.kind == Kind::kPartitionBoth) service_.network.partition_both(fault.from, fault.to);
  later(fault.lasts, [this, fault] { service_.network.heal(fault.from, fault.to); });
}

Verdict ServiceWorld::run() {
  const Dataset dataset = Dataset::range(scenario_.closures).batch(1);
  for (int i = 0; i < kConsumers; ++i)
    readings_.push_back(service_.read(
        service_.consumer(dataset, {.job_name = "job", .mode = ProcessingMode::kDynamic},
                          consumer_host(i)),
        1ms * (1 + i)));
  const auto all_ended = [this] {
    return std::ranges::all_of(readings_, [](const auto& reading) { return reading->ended; });
  };
  while (!all_ended() && service_.reactor.now() < quiet_after_ + kServicePatience) {
    strike_due();
    service_.reactor.advance(1ms);
  }
  ended_ = true;
  judge();
  verdict_.fingerprint = service_.network.fingerprint();
  verdict_.virtual_seconds = std::chrono::duration<double>(service_.reactor.now()).count();
  return verdict_;
}

void ServiceWorld::judge() {
  std::map<std::int64_t, std::uint64_t> times;
  std::uint64_t counted = 0;
  bool ended = true;
  for (std::size_t i = 0; i < readings_.size(); ++i) {
    const Reading& reading = *readings_[i];
    for (const std::int64_t value : reading.values()) ++times[value];
    if (!reading.error.empty()) complain(str("consumer ", i, " ended with ", reading.error));
    if (!reading.ended) complain(str("consumer ", i, " waits for ever"));
    ended = ended && reading.ended && reading.error.empty();
    counted = std::max(counted, reading.statistics.duplicates());
  }
  std::uint64_t again = 0;
  for (std::int64_t value = 0; value < scenario_.closures; ++value) {
    if (!times.contains(value))
      complain(str("element ", value, " was not handed out"));
    else
      again += times[value] - 1;
  }
  if (times.size() > static_cast<std::size_t>(scenario_.closures))
    complain("elements were handed out that the dataset has not");
  verdict_.retried = again;
  // The consumer that ends last learns of all that were counted.
  if (ended && counted != again)
    complain(str(again, " elements were handed out again, and ", counted, " were counted"));
  const auto harmless = [&](const Fault& fault) { return is_harmless(fault, scenario_.faults); };
  if (again > 0 && std::ranges::all_of(scenario_.faults, harmless))
    complain(str(again, " elements were handed out again, and no data worker was lost"));
}

}  // namespace

Scenario data_service_scenario(std::uint64_t seed) {
  Random random(random_key(seed, "scenario of a data service"));
  Scenario scenario;
  scenario.seed = seed;
  scenario.job = Job::kDataService;
  scenario.ps = 0;
  scenario.workers = 2;
  scenario.closures = between(random, 100, 600);
  scenario.delays.disk = Duration(between(random, 10'000, 5'000'000));
  const auto add = [&](Kind kind) -> Fault& {
    Fault& fault = scenario.faults.emplace_back();
    fault.kind = kind;
    fault.at_closure = between(random, 0, scenario.closures - 1);
    fault.then = Duration(between(random, 1'000, 5'000'000));
    // now and then for longer than it takes to be lost
    fault.lasts = Duration(between(random, 1'000'000, 12'000'000'000));
    return fault;
  };
  // Nothing, the dispatcher, a data worker too, all kinds, or connections alone.
  const std::uint64_t what = seed % 5;
  if (what == 0) return scenario;
  if (what < 4) add(Kind::kKillChief);
  if (what == 1) return scenario;
  if (what < 4)
    add(Kind::kKillWorker).a = static_cast<int>(between(random, 0, scenario.workers - 1));
  if (what == 2) return scenario;
  constexpr Kind kKinds[] = {Kind::kCut, Kind::kPartition, Kind::kPartitionBoth, Kind::kDropNext,
                             Kind::kKillWorker};
  for (std::int64_t i = between(random, 1, 4); i > 0; --i) {
    Fault& fault = add(kKinds[between(random, 0, what == 4 ? 3 : 4)]);
    fault.a = static_cast<int>(between(random, 0, scenario.workers - 1));
    draw_pair(random, scenario, fault);
  }
  return scenario;
}

Verdict run_data_service(const Scenario& scenario) { return ServiceWorld(scenario).run(); }

}  // namespace cairn::simulation
