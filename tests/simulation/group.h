// GroupWorld: one run of a scenario of workers in step, without ps or coordinator: the workers,
// the loops that start them again, the faults, and the judge.
//
// A worker is a process of MultiWorkerMirroredStrategy in small: it joins its group, takes the
// chief's newest checkpoint, and in each step has the others' shares added to its own and to its
// copy of the variable. An error ends it, and it is started again.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "collective/network/peer_group.h"
#include "core/base/random.h"
#include "rpc/net/sim_network.h"
#include "tests/simulation/run.h"

namespace cairn::simulation {

class GroupWorld {
 public:
  explicit GroupWorld(const Scenario& scenario);
  ~GroupWorld();
  Verdict run();

 private:
  using Values = std::vector<std::int64_t>;
  struct Worker {
    std::unique_ptr<PeerGroup> group;
    kj::Promise<void> lives = nullptr;  // from start to end of the job, or to a kill
    std::uint64_t process = 0;          // counts those of all workers; 0: there is none
    bool formed = false, done = false;
    std::int64_t step = 0;
    Values values;
  };

  // ---- a worker ----
  void start(int rank);
  rpc::Task<void> keep(int rank);
  rpc::Task<void> live(int rank);
  rpc::Task<void> restore(int rank);
  rpc::Task<void> train(int rank);
  rpc::Task<void> save(int rank);
  Tensor share(int rank, std::int64_t step, std::int64_t begin, std::int64_t end) const;
  Worker& worker(int rank) { return workers_[static_cast<std::size_t>(rank)]; }
  bool somebody_is_done() const;
  int size() const { return static_cast<int>(workers_.size()); }

  // ---- faults ----
  void progressed(std::int64_t step);
  void later(Duration delay, std::function<void()> work);
  void strike(const Fault& fault);
  void kill(int rank, Duration away);

  // ---- the judge ----
  void complain(std::string what) { verdict_.complaints.push_back(std::move(what)); }
  void suspect(int rank, Duration from_now);
  void ended_by(int rank, const ErrorParts& error);
  void judge_values(int rank, const char* when);
  const Values& expected(std::int64_t step);

  const Scenario scenario_;
  Random random_;
  rpc::SimReactor reactor_;
  rpc::SimNetwork network_;
  NetworkGroupOptions options_;
  std::deque<Worker> workers_;
  std::vector<Fault> pending_;
  std::uint64_t processes_ = 0;
  std::int64_t furthest_ = 0;  // step
  struct Saved {
    std::int64_t step = 0;
    Values values;
  };
  Saved saved_;                              // the newest checkpoint
  std::map<std::int64_t, Values> expected_;  // by step, those that were asked for
  std::map<int, Duration> suspects_;         // until when each may be named as lost
  Duration quiet_after_{0}, disturbed_until_{0};
  bool ended_ = false;
  Verdict verdict_;
};

}  // namespace cairn::simulation
