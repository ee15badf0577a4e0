// cairn-storm: peers that mean no good at a living ps, a living worker and a living chief,
// thousands of connections of them.
//
//   cairn-storm --connections 200000 [--seed 1] [--corpus tests/fuzz/corpus/sequence]
//
// Starts the programs (of its own folder), plays sequences like those of the fuzz target `sequence`
// over sockets and shared memory, and ends with exit status 1 if one of the programs dies, no
// longer answers an honest peer, or holds more memory than it may. To be built with a sanitizer:
// the asan preset.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/base/error.h"
#include "core/base/program.h"
#include "core/base/random.h"
#include "rpc/net/connection.h"
#include "tests/fuzz/player/sequence_player.h"
#include "tools/launch/child_process.h"
#include "tools/launch/reserved_port.h"

namespace cairn::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr Duration kPatience = std::chrono::seconds(60);    // for an honest peer's answer
constexpr Duration kLastBreath = std::chrono::seconds(20);  // of a process that was asked to end
constexpr std::uint64_t kCheckedEach = 25;                  // sequences
// of the last sequences, where one has done harm
constexpr std::size_t kNoted = 12;

struct Options {
  std::uint64_t connections = 200'000, seed = 1, memory_mb_max = 4096;
  std::string corpus, folder;
};

std::vector<std::byte> bytes_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::vector<char> chars{std::istreambuf_iterator<char>(in), {}};
  const auto bytes = std::as_bytes(std::span(chars));
  return {bytes.begin(), bytes.end()};
}

std::size_t resident_mb(pid_t process) {
  std::ifstream status(str("/proc/", process, "/status"));
  std::string word;
  while (status >> word)
    if (word == "VmRSS:") break;
  std::size_t kilobytes = 0;
  status >> kilobytes;
  return kilobytes >> 10;
}

class LivingProgram {
 public:
  LivingProgram(const std::string& program, const std::string& folder,
                const std::vector<std::string>& more)
      : name_(program),
        command_{
            .arguments = {fs::read_symlink("/proc/self/exe").parent_path() / program, "--listen",
                          port_.address(), "--cluster-id", "test", "--token", "secret"},
            .output_file = folder + "/" + program + ".output"},
        process_(with(more)) {}
  rpc::Address address() const { return rpc::Address::parse(port_.address()); }
  const std::string& name() const { return name_; }
  std::size_t memory_mb() const { return resident_mb(process_.pid()); }
  int restarts() const { return restarts_; }
  // Why it is no longer what it should be; empty: it is.
  std::string trouble(std::size_t memory_mb_max) {
    if (const auto status = process_.poll()) {
      if (status->shell_code() != 0) return str(name_, " has ended: ", status->str());
      // it was asked to end, perhaps by a byte that made this of another call
      process_ = tools::ChildProcess(command_);
      ++restarts_;
    }
    if (const std::size_t held = memory_mb(); held > memory_mb_max)
      return str(name_, " holds ", held, " MB, more than ", memory_mb_max);
    return "";
  }

 private:
  const tools::Command& with(const std::vector<std::string>& more) {
    command_.arguments.insert(command_.arguments.end(), more.begin(), more.end());
    return command_;
  }
  tools::ReservedPort port_;
  std::string name_;
  tools::Command command_;
  tools::ChildProcess process_;
  int restarts_ = 0;
};

class Storm {
 public:
  explicit Storm(Options options) : options_(std::move(options)) {
    if (!options_.corpus.empty())
      for (const auto& entry : fs::directory_iterator(options_.corpus))
        corpus_.push_back(bytes_of(entry.path()));
    attacked_.ps = ps_.address();
    attacked_.worker = worker_.address();
    attacked_.chief = chief_.address();
    attacked_.checkpoints = options_.folder + "/checkpoints";
  }

  // The trouble that was found; empty: none.
  std::string run() {
    meet_all();
    for (std::uint64_t i = 0; connections_ < options_.connections; ++i) {
      play(options_.seed + i);
      std::string trouble = this->trouble();
      if (trouble.empty() && i % kCheckedEach == 0) trouble = unanswered();
      if (!trouble.empty()) return trouble + last_sequences();
      if (i % 1000 == 999) tell(i + 1);
    }
    return unanswered();
  }
  void tell(std::uint64_t sequences) const {
    std::printf("%llu sequences, %llu connections; ", static_cast<unsigned long long>(sequences),
                static_cast<unsigned long long>(connections_));
    for (const LivingProgram* program : programs_)
      std::printf("%s %zu MB, ", program->name().c_str(), program->memory_mb());
    std::printf("asked to end and started again %d times\n", restarts());
    std::fflush(stdout);
  }
  std::uint64_t connections() const { return connections_; }

 private:
  std::vector<std::byte> script(std::uint64_t number) {
    Random random(random_key(number, "storm"));
    std::vector<std::byte> bytes(20 + random.bits() % 400);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.bits());
    if (corpus_.empty() || random.bits() % 4 == 0) return bytes;
    bytes = corpus_[random.bits() % corpus_.size()];
    const auto& other = corpus_[random.bits() % corpus_.size()];
    if (random.bits() % 2 == 0) bytes.insert(bytes.end(), other.begin(), other.end());
    for (std::uint64_t i = 0; i < random.bits() % 8 && !bytes.empty(); ++i)
      bytes[random.bits() % bytes.size()] = static_cast<std::byte>(random.bits());
    return bytes;
  }

  void play(std::uint64_t number) {
    last_.push_back(number);
    if (last_.size() > kNoted) last_.pop_front();
    attacked_.session = 1000 + number / 3;  // some meet what the one before left
    const std::vector<std::byte> bytes = script(number);
    SequencePlayer player(*reactor_, *network_, attacked_, bytes);
    try {
      player.begin();
      while (player.step()) reactor_->wait(reactor_->yield());
    } catch (const UnavailableError&) {  // trouble() reports it
    } catch (const DeadlineExceededError&) {
    }
    connections_ += player.connections();
  }

  int restarts() const {
    int all = 0;
    for (const LivingProgram* program : programs_) all += program->restarts();
    return all;
  }
  void meet_all() {
    for (const LivingProgram* program : programs_) incarnation_of(*program);
    attacked_.ps_incarnation = incarnation_of(ps_);
  }
  // The programs that died or hold too much; empty: none. Those asked to end run again.
  std::string trouble() {
    const int before = restarts();
    std::string all;
    for (LivingProgram* program : programs_) all += program->trouble(options_.memory_mb_max);
    if (all.empty() && restarts() != before) meet_all();
    return all;
  }

  rpc::Hello honest(std::uint32_t endpoint) const {
    rpc::Hello hello;
    hello.cluster = attacked_.cluster;
    hello.token = attacked_.token;
    hello.role = rpc::Role::kCoordinator;
    hello.session = 3;
    hello.endpoint = endpoint;
    return hello;
  }
  std::unique_ptr<rpc::Connection> connect(const LivingProgram& to, std::uint32_t endpoint) {
    return reactor_->wait(network_->connect(*reactor_, to.address(), honest(endpoint), kPatience));
  }
  std::uint64_t incarnation_of(const LivingProgram& to) {
    for (const Duration until = reactor_->now() + kPatience;;) {
      try {
        return connect(to, 0)->peer().incarnation.number;
      } catch (const UnavailableError&) {
        if (reactor_->now() > until) throw;
      }
      reactor_->wait(reactor_->sleep(std::chrono::milliseconds(20)));
    }
  }
  // The reason why an honest peer gets no answer; empty: all programs answer. A program that was
  // asked to end may still accept a connection.
  std::string unanswered() {
    for (;;) {
      const std::string silent = ask_all();
      if (silent.empty()) return "";
      const int before = restarts();
      for (const Duration until = reactor_->now() + kLastBreath; restarts() == before;) {
        if (const std::string worse = trouble(); !worse.empty()) return worse;
        if (reactor_->now() > until) return silent;
        reactor_->wait(reactor_->sleep(std::chrono::milliseconds(20)));
      }
    }
  }
  // Each endpoint is asked something; an error is an answer.
  std::string ask_all() {
    try {
      auto to_chief = connect(chief_, 0);
      auto status =
          to_chief->bootstrap<wire::CoordinatorControl>().statusRequest().send().ignoreResult();
      reactor_->wait(reactor_->with_deadline(kj::mv(status), kPatience, "a chief's answer"));
      for (const std::uint32_t endpoint : {1u, 2u}) {
        auto to_shard = connect(ps_, endpoint), to_lane = connect(worker_, endpoint);
        auto opened =
            to_shard->bootstrap<wire::Shard>().dropMarkRequest().send().ignoreResult().catch_(
                [](kj::Exception&&) {});
        auto released =
            to_lane->bootstrap<wire::Lane>().releasePushesRequest().send().ignoreResult().catch_(
                [](kj::Exception&&) {});
        reactor_->wait(reactor_->with_deadline(kj::mv(opened), kPatience, "a shard's answer"));
        reactor_->wait(reactor_->with_deadline(kj::mv(released), kPatience, "a lane's answer"));
        if (!to_shard->connected() || !to_lane->connected())
          return str("endpoint ", endpoint, " ends an honest connection");
      }
    } catch (const Error& error) {
      return str("no honest answer: ", error.what());
    }
    return "";
  }
  std::string last_sequences() const {
    std::string all = "; the last sequences:";
    for (const std::uint64_t number : last_) all += str(" ", number);
    return all + str("; logs in ", options_.folder);
  }

  Options options_;
  std::unique_ptr<rpc::Reactor> reactor_ = rpc::make_reactor();
  std::unique_ptr<rpc::Network> network_ = rpc::make_socket_network();
  LivingProgram ps_{
      "cairn-ps", options_.folder, {"--shards", "2", "--log-file", options_.folder + "/ps.log"}};
  LivingProgram worker_{"cairn-worker",
                        options_.folder,
                        {"--lanes", "2", "--log-file", options_.folder + "/worker.log"}};
  LivingProgram chief_{"cairn-storm-chief", options_.folder, {"--folder", options_.folder}};
  const std::vector<LivingProgram*> programs_{&ps_, &worker_, &chief_};
  Attacked attacked_;
  std::vector<std::vector<std::byte>> corpus_;
  std::deque<std::uint64_t> last_;
  std::uint64_t connections_ = 0;
};

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Peers that mean no good, at a living ps, worker and chief", "cairn-storm");
  app.add_option("--connections", options.connections, "How many at least")->capture_default_str();
  app.add_option("--seed", options.seed, "Of the first sequence; the next has the next one")
      ->capture_default_str();
  app.add_option("--corpus", options.corpus, "A folder of inputs to begin from")
      ->check(CLI::ExistingDirectory);
  app.add_option("--memory-mb", options.memory_mb_max, "What each program may hold")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  options.folder = (fs::temp_directory_path() / "cairn-storm-XXXXXX").string();
  if (::mkdtemp(options.folder.data()) == nullptr) return 1;
  Storm storm(options);
  const std::string trouble = storm.run();
  std::printf("%llu connections: %s\n", static_cast<unsigned long long>(storm.connections()),
              trouble.empty() ? "all programs live and answer" : trouble.c_str());
  if (!trouble.empty()) return 1;
  fs::remove_all(options.folder);
  return 0;
}

}  // namespace
}  // namespace cairn::fuzz

int main(int argc, char** argv) {
  return cairn::run_program("cairn-storm", [&] { return cairn::fuzz::main(argc, argv); });
}
