#include "tests/chaos/recovery.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>

#include "core/base/error.h"
#include "core/base/json.h"
#include "tests/chaos/ps_harm.h"

namespace cairn::chaos {
namespace {
using Clock = std::chrono::system_clock;  // the exerciser's lines carry it

double now() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

// Reads the exerciser's lines as they come; those that are JSON are its reports.
class Reports {
 public:
  Reports(Cluster& cluster) : cluster_(cluster), file_(cluster.log("chief")) {}
  Json next(const std::string& event) {
    const double until = now() + 120;
    for (std::string line; now() < until;) {
      if (!std::getline(file_, line) || file_.eof()) {
        file_.clear();
        file_.seekg(at_);
        pollfd wait{.fd = cluster_.process("chief").pidfd(), .events = POLLIN};
        if (::poll(&wait, 1, 1) == 1)
          throw UnavailableError("the exerciser ended: " + cluster_.words(5));
        continue;
      }
      at_ = file_.tellg();
      if (!line.starts_with("{")) continue;
      Json report = parse_json(line, "a report");
      if (report.at("event") == event) return report;
    }
    throw DeadlineExceededError("no report of " + event + ": " + cluster_.words(5));
  }

 private:
  Cluster& cluster_;
  std::ifstream file_;
  std::streampos at_ = 0;
};

class Figures {
 public:
  void add(const std::string& part, double seconds) {
    if (!parts_.contains(part)) order_.push_back(part);
    parts_[part].push_back(seconds);
  }
  void print(const std::string& what) {
    std::printf("%s\n", what.c_str());
    for (const auto& part : order_) {
      auto& all = parts_[part];
      std::sort(all.begin(), all.end());
      std::printf("  %-44s median %7.1f ms  (%.1f to %.1f, n = %zu)\n", part.c_str(),
                  1e3 * all[all.size() / 2], 1e3 * all.front(), 1e3 * all.back(), all.size());
    }
    std::fflush(stdout);
  }

 private:
  std::vector<std::string> order_;
  std::map<std::string, std::vector<double>> parts_;
};

// Returns within 0.2 s of the moment when all are in sync: the status is as old as that at most.
void await_backups(Cluster& cluster) {
  const auto wait = [&](int milliseconds) {
    pollfd ended{.fd = cluster.process("chief").pidfd(), .events = POLLIN};
    if (::poll(&ended, 1, milliseconds) == 1)
      throw UnavailableError("the exerciser ended: " + cluster.words(5));
  };
  wait(250);
  for (const double until = now() + 120; !backups_in_sync(cluster); wait(20))
    if (now() > until)
      throw DeadlineExceededError("the backups are not in sync: " + cluster.words(5));
}

void server_dies(Cluster& cluster, Reports& reports, const std::string& name, Figures& figures) {
  const double killed = now();
  cluster.kill(name);
  cluster.start(name);
  const double started = now();
  const Json report = reports.next("recovered");
  const double noticed = report["noticed"], back = noticed + report["back_after"].get<double>(),
               pushed = noticed + report["first_push_after"].get<double>();
  figures.add("from the kill to the first push", pushed - killed);
  figures.add("  until its loss is noticed", noticed - killed);
  figures.add("  until its successor is started", started - killed);
  figures.add("  from there until it serves again", back - started);
  figures.add("  from there to the first push", pushed - back);
}

// The shards go on from their backups, so that the next push does not wait for the ps to be back.
void replicated_ps_dies(Cluster& cluster, Reports& reports, const std::string& name,
                        Figures& figures) {
  const double killed = now();
  cluster.kill(name);
  cluster.start(name);
  // A ps that had taken over from another one is told of once for the shards of each.
  Json report = reports.next("recovered");
  while (report["noticed"].get<double>() < killed) report = reports.next("recovered");
  const double noticed = report["noticed"],
               pushed = noticed + report["first_push_after"].get<double>();
  figures.add("from the kill to the first push", pushed - killed);
  figures.add("  until its loss is noticed", noticed - killed);
  figures.add("  from there to the first push", pushed - noticed);
  await_backups(cluster);
  figures.add("from the kill until its backups are in sync", now() - killed);
}

void coordinator_dies(Cluster& cluster, Reports& reports, Figures& figures) {
  const double killed = now();
  cluster.kill("chief");
  cluster.start("chief");
  const double begun = reports.next("begun")["at"], connected = reports.next("connected")["at"],
               pushed = reports.next("pushed")["at"];
  figures.add("from the kill to the first push", pushed - killed);
  figures.add("  until its successor's main() runs", begun - killed);
  figures.add("  from there until all are connected", connected - begun);
  figures.add("  from there until all is restored and pushed to", pushed - connected);
}

}  // namespace

int measure_recovery(const Options& options) {
  Cluster cluster(options.cluster);
  Reports reports(cluster);
  reports.next("pushed");
  Figures worker, ps, coordinator;
  auto pause = [&](int i) {
    pollfd wait{.fd = cluster.process("chief").pidfd(), .events = POLLIN};
    if (::poll(&wait, 1, 200 + 37 * (i % 8)) == 1)
      throw UnavailableError("the exerciser ended: " + cluster.words(5));
  };
  for (int i = 0; i < options.harm; ++i) {
    pause(i);
    server_dies(cluster, reports, "worker0", worker);
  }
  worker.print("worker");
  const bool replicated = options.replicas > 1;
  if (replicated) await_backups(cluster);
  for (int i = 0; i < options.harm; ++i) {
    pause(i);
    if (replicated)
      replicated_ps_dies(cluster, reports, str("ps", i % options.cluster.ps), ps);
    else
      server_dies(cluster, reports, "ps0", ps);
  }
  ps.print(replicated ? "ps, whose shards have backups" : "ps, which holds a part of a checkpoint");
  for (int i = 0; i < options.harm; ++i) {
    pause(i);
    coordinator_dies(cluster, reports, coordinator);
  }
  coordinator.print(options.journal ? "coordinator, which goes on with its journal"
                                    : "coordinator, which has all restored");
  return 0;
}

}  // namespace cairn::chaos
