// Runs a cluster of real processes and does them harm, by a seed:
//
//   --mode once|flights  until cairn-exerciser has counted: workers are killed, any process is
//                        stopped, connections are cut or partitioned; with --replicas ps are
//                        killed too, and no update may be lost
//   --mode saving        the coordinator, a ps, a worker or all of them are killed, again and
//                        again, some twice in a row, while checkpoints are made; after each the
//                        newest one must be sound, what the coordinator restores from it must be
//                        one cut, and in the end each closure must have counted once
//   --mode checkpoints   the same with deltas, and with hashed rows of which half lie in the logs
//                        of the ps; what a file says was saved must be there after each kill
//   --mode failpoints    the process that passes each failpoint (core/base/failpoint.h) dies there
//   --mode recovery      how long until work goes on after a worker, a ps, the coordinator is
//                        killed, with a model of --megabytes
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "core/base/error.h"
#include "core/base/failpoint.h"
#include "core/base/program.h"
#include "core/base/random.h"
#include "core/disk/disk.h"
#include "storage/checkpoint_folder.h"
#include "storage/manifest.h"
#include "storage/row_store.h"
#include "tests/chaos/cluster.h"
#include "tests/chaos/options.h"
#include "tests/chaos/power.h"
#include "tests/chaos/ps_harm.h"
#include "tests/chaos/recovery.h"

namespace cairn::chaos {
namespace {

using std::chrono::milliseconds;

// The last whole line of the file, "CHECKPOINT ACKNOWLEDGED"; empty: nothing was saved yet.
std::string last_expected(const Options& options) {
  std::ifstream in(expected_of(options));
  std::string last, line;
  while (std::getline(in, line))
    if (!in.eof()) last = line;
  return last;
}

class Chaos {
 public:
  explicit Chaos(const Options& options)
      : options_(options), random_(random_key(options.seed, "chaos")), cluster_(options.cluster) {
    if (options.replicas > 1)
      ps_harm_.emplace(cluster_, options.cluster.ps, Random(random_key(options.seed, "ps")));
  }

  int count_once() {
    // Harm of odd seeds begins while the cluster is being put together.
    while (options_.seed % 2 == 0 && tail(100).find("running") == std::string::npos &&
           !chief_ended(milliseconds(5))) {
    }
    for (int i = 0; i < options_.harm && !chief_ended(milliseconds(between(10, 120))); ++i) {
      if (ps_harm_) ps_harm_->look();
      harm_once();
    }
    mend();
    std::ofstream(finish_of(options_)).put(10);
    if (!chief_ended(std::chrono::seconds(options_.patience_s)))
      throw DeadlineExceededError("the exerciser has not ended: " + tail());
    const int code = cluster_.process("chief").wait().shell_code();
    std::printf("%s, after %s\n", tail(1).c_str(), done().c_str());
    if (code != 0) std::printf("%s\n", tail().c_str());
    return code;
  }

  // With a journal: the victim, the coordinator, dies with the power of its machine, at that place.
  void expect_death(const std::string& victim, std::string_view place, const std::string& journal) {
    pollfd wait{.fd = cluster_.process(victim).pidfd(), .events = POLLIN};
    if (::poll(&wait, 1, 1000 * options_.patience_s) != 1)
      throw DeadlineExceededError(str(victim, " did not die: ", tail()));
    const auto status = cluster_.process(victim).wait();
    if (status.signal != SIGKILL)
      throw DataLossError(str(victim, " ended with ", status.str(), ": ", tail()));
    if (journal.empty())
      newest_is_sound();
    else if (place == "journal.written")  // elsewhere the records do not tell what was synced
      lose_unsynced(journal, static_cast<int>(between(0, 100)));
    cluster_.start(victim);
    if (!chief_ended(std::chrono::seconds(options_.patience_s)))
      throw DeadlineExceededError("the exerciser has not ended: " + tail());
    if (const int code = cluster_.process("chief").wait().shell_code(); code != 0)
      throw DataLossError(str("the exerciser ended with ", code, ": ", tail()));
    if (journal.empty() && newest_is_sound() == 0) throw DataLossError("there is no checkpoint");
  }

  int keep_saving() {
    int sound = 0;
    for (int i = 0; i < options_.harm; ++i) {
      if (chief_ended(milliseconds(between(20, 1500))))
        throw DataLossError("the exerciser ended: " + tail());
      sound += blow();
    }
    if (chief_ended(std::chrono::seconds(3))) throw DataLossError("the exerciser ended: " + tail());
    std::ofstream(finish_of(options_)).put(10);
    if (!chief_ended(std::chrono::seconds(options_.patience_s)))
      throw DeadlineExceededError("the exerciser has not ended: " + tail());
    const int code = cluster_.process("chief").wait().shell_code();
    std::printf("%s: %d checkpoints were sound; %s\n", done().c_str(), sound,
                tail(code == 0 ? 1 : 8).c_str());
    return code;
  }

 private:
  std::int64_t between(std::int64_t least, std::int64_t most) {
    return least +
           static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(most - least + 1)));
  }
  std::string pick(const std::vector<std::string>& jobs) {
    const std::string job =
        jobs[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(jobs.size()) - 1))];
    if (job == "chief") return job;
    return str(job, between(0, (job == "ps" ? options_.cluster.ps : options_.cluster.workers) - 1));
  }
  static std::string job_of(const std::string& name) {
    return name.substr(0, name.find_first_of("0123456789"));
  }
  bool chief_ended(milliseconds within) {
    pollfd wait{.fd = cluster_.process("chief").pidfd(), .events = POLLIN};
    return ::poll(&wait, 1, static_cast<int>(within.count())) == 1;
  }

  std::vector<std::string> everybody() const {
    std::vector<std::string> all{"chief"};
    for (int i = 0; i < options_.cluster.ps; ++i) all.push_back(str("ps", i));
    for (int i = 0; i < options_.cluster.workers; ++i) all.push_back(str("worker", i));
    return all;
  }

  // Harm to a run that saves. How many checkpoints were sound after it?
  int blow() {
    switch (between(0, 7)) {
      case 0: return kill_and_start("kill everybody", everybody());
      case 1: return kill_twice("kill ps twice", pick({"ps"}));
      case 2: return kill_twice("kill chief twice", "chief");
      case 3: return stop_for_long(pick({"chief", "ps", "worker"}));
      default: {
        const std::string victim = pick({"chief", "ps", "worker"});
        return kill_and_start("kill " + job_of(victim), {victim});
      }
    }
  }
  int kill_and_start(const std::string& what, const std::vector<std::string>& victims) {
    ++done_[what];
    for (const auto& victim : victims) cluster_.kill(victim);
    const bool chief = std::find(victims.begin(), victims.end(), "chief") != victims.end();
    // The check runs while no process makes or prunes checkpoints.
    if (!chief) cluster_.process("chief").send(SIGSTOP);
    const int sound = newest_is_sound();
    if (!chief) cluster_.process("chief").send(SIGCONT);
    for (const auto& victim : victims) cluster_.start(victim);
    return sound;
  }
  int kill_twice(const std::string& what, const std::string& victim) {
    cluster_.kill(victim);
    cluster_.start(victim);
    if (chief_ended(milliseconds(between(0, 400))))
      throw DataLossError("the exerciser ended: " + tail());
    return kill_and_start(what, {victim});
  }
  int stop_for_long(const std::string& victim) {
    ++done_["stop " + job_of(victim)];
    cluster_.process(victim).send(SIGSTOP);
    chief_ended(milliseconds(1500));  // it is taken for dead
    cluster_.process(victim).send(SIGCONT);
    return 0;
  }

  void harm_once() {
    std::vector<std::string> linked{"ps", "worker"}, standing{"chief", "ps", "worker"};
    // PsHarm strikes ps that have backups.
    if (ps_harm_) linked = {"worker"}, standing = {"chief", "worker"};
    const std::string worker = pick({"worker"}), anybody = pick(linked), still = pick(standing);
    Link* link = cluster_.link(anybody);
    if (options_.journal && between(0, 2) == 0) return replace_chief();
    if (ps_harm_ && between(0, 1) == 0) return strike_ps();
    switch (between(0, link == nullptr ? 1 : 4)) {
      case 0:
        ++done_["kill worker"];
        cluster_.kill(worker);
        cluster_.start(worker);
        break;
      case 1:  // it comes back and goes on with what others have done meanwhile
        ++done_["stop " + job_of(still)];
        cluster_.process(still).send(SIGSTOP);
        stopped_.push_back(still);
        if (stopped_.size() > 1) go_on();
        break;
      case 2:
        ++done_["cut"];
        link->cut();
        break;
      case 3:
        ++done_["partition"];
        link->partition(true, true);
        partitioned_.push_back(link);
        break;
      case 4:
        ++done_["one-way partition"];
        link->partition(between(0, 1) == 1, false);
        partitioned_.push_back(link);
        break;
    }
    if (partitioned_.size() > 2) heal();
  }
  // It goes on with its journal. One that ends at this moment is left alone.
  void replace_chief() {
    if (chief_ended(milliseconds(0))) return;
    ++done_["kill chief"];
    cluster_.kill("chief");
    cluster_.start("chief");
    if (ps_harm_) ps_harm_->disturb();
  }
  // Strikes a ps once every backup is in sync again. Other harm ends after 3 s of waiting: a
  // coordinator that stands still brings no backup back, nor does one that waits for all workers.
  void strike_ps() {
    const TimePoint began = system_clock().now();
    while (!ps_harm_->whole()) {
      if (chief_ended(milliseconds(50))) return;
      ps_harm_->look();
      const auto waited = system_clock().now() - began;
      while (waited > std::chrono::seconds(3) && !stopped_.empty()) go_on();
      while (waited > std::chrono::seconds(3) && !partitioned_.empty()) heal();
      if (waited > std::chrono::seconds(options_.patience_s))
        throw DeadlineExceededError("the backups are not in sync again: " + tail());
    }
    if (!chief_ended(milliseconds(0))) ++done_[ps_harm_->strike()];
  }
  void go_on() {
    if (ps_harm_ && stopped_.front() == "chief") ps_harm_->disturb();
    cluster_.process(stopped_.front()).send(SIGCONT);
    stopped_.erase(stopped_.begin());
  }
  void heal() {
    partitioned_.front()->heal();
    partitioned_.erase(partitioned_.begin());
  }
  void mend() {
    // long enough to be taken for dead
    if (!stopped_.empty() || !partitioned_.empty() || ps_harm_) chief_ended(milliseconds(1500));
    while (!stopped_.empty()) go_on();
    while (!partitioned_.empty()) heal();
    if (ps_harm_) ps_harm_->end();
  }

  int newest_is_sound() {
    if (!store_) store_ = storage::make_rocks_row_store();
    auto newest = storage::CheckpointFolder(system_disk(), checkpoints_of(options_)).latest();
    if (!newest) return 0;
    const auto report = storage::verify(system_disk(), *store_, newest->path);
    if (!report.problems.empty())
      throw DataLossError(str(newest->path, ": ", report.problems.front()));
    verify_expected(*newest);
    return 1;
  }

  // A checkpoint of which the program was told is there, or a newer one; and what was acknowledged
  // before that one was begun is acknowledged in it.
  void verify_expected(const storage::CheckpointEntry& newest) const {
    const std::string last = last_expected(options_);
    const std::size_t space = last.find(' ');
    if (space == std::string::npos) return;
    const auto id = storage::CheckpointFolder::parse_name(last.substr(0, space));
    const auto manifest = storage::read_manifest(system_disk(), newest.path);
    if (newest.id < id.value_or(0) ||
        std::stoll(manifest.metadata) < std::stoll(last.substr(space + 1)))
      throw DataLossError(str(last, " was saved, and the newest checkpoint is ", newest.path,
                              " with ", manifest.metadata, " acknowledged"));
  }
  std::string done() const {
    std::string all;
    for (const auto& [what, count] : done_) all += str(all.empty() ? "" : ", ", count, " x ", what);
    return all;
  }
  std::string tail(int lines = 8) const { return cluster_.words(lines); }

  const Options options_;
  Random random_;
  Cluster cluster_;
  std::unique_ptr<storage::RowStore> store_;
  std::map<std::string, int> done_;
  std::vector<std::string> stopped_;
  std::vector<Link*> partitioned_;
  std::optional<PsHarm> ps_harm_;  // without replicas: none
};

// Has the process that passes each failpoint die there, the second time (a checkpoint is there
// already); it is started again, and the newest checkpoint must be sound, and what follows must be
// complete.
// The second old checkpoint is pruned by the fifth save. At most 256 closures end between two saves
// (the exerciser schedules no further ahead), so 2,000 make at least seven, however long one takes.
// At the journal's failpoints nothing is saved, and the coordinator's machine loses the power: its
// successor goes on, and as many updates as it counts must be in the rows.
int die_everywhere(Options options) {
  const std::string folder = options.cluster.folder;
  for (const char* place : failpoints()) {
    if (!std::string_view(place).starts_with(options.places)) continue;
    options.cluster.folder = folder + "/" + place;
    options.cluster.exerciser = {"--ps",          std::to_string(options.cluster.ps),
                                 "--closures",    "2000",
                                 "--checkpoints", checkpoints_of(options)};
    if (std::string_view(place).starts_with("consolidate."))
      options.cluster.exerciser.insert(options.cluster.exerciser.end(),
                                       {"--consolidate-after", "1"});
    if (std::string_view(place).starts_with("files."))
      options.cluster.exerciser.insert(options.cluster.exerciser.end(), {"--full-every", "3"});
    const bool power = std::string_view(place).starts_with("journal.");
    const std::string journal = power ? options.cluster.folder + "/journal" : "";
    if (power)
      options.cluster.exerciser = {
          "--ps",   std::to_string(options.cluster.ps), "--closures", "2000", "--journal", journal,
          "--power"};
    const std::string victim = std::string_view(place).starts_with("rows.") ? "ps0" : "chief";
    // It is written for each message, and synced some times a second.
    const char* const pass = !power                                     ? ":2"
                             : std::string_view(place) == "journal.end" ? ":8"
                                                                        : ":25";
    options.cluster.die_at = {{victim, str(place, pass)}};
    Chaos chaos(options);
    chaos.expect_death(victim, place, journal);
    std::printf("%-20s %s died there; all went well after that\n", place, victim.c_str());
    std::fflush(stdout);
  }
  return 0;
}

int main(int argc, char** argv) {
  Options options;
  options.cluster.programs = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  CLI::App app("A cluster of real processes, and harm done to it", "cairn-chaos");
  add_flags(app, options);
  CLI11_PARSE(app, argc, argv);
  settle(options);
  if (options.mode == "recovery") return measure_recovery(options);
  if (options.mode == "failpoints") return die_everywhere(options);
  Chaos chaos(options);
  const bool saves = options.mode == "saving" || options.mode == "checkpoints";
  return saves ? chaos.keep_saving() : chaos.count_once();
}

}  // namespace
}  // namespace cairn::chaos

int main(int argc, char** argv) {
  return cairn::run_program("cairn-chaos", [&] { return cairn::chaos::main(argc, argv); });
}
