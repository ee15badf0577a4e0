// A real cairn-ps among peers that mean no good, while a good one trains on it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <optional>

#include "core/base/random.h"
#include "core/graph/wire/wire.h"
#include "rpc/cairn.capnp.h"
#include "rpc/net/connection.h"
#include "rpc/net/hello_io.h"
#include "rpc/net/network.h"
#include "tests/tools/temp_folder.h"
#include "tools/launch/child_process.h"
#include "tools/launch/reserved_port.h"

namespace cairn {
namespace {

using ::testing::HasSubstr;

constexpr Duration kPatience = std::chrono::seconds(60);
constexpr std::uint64_t kSession = 7, kClosures = 1 << 20;
constexpr std::size_t kGrowthMbMax = 300;  // a sanitizer keeps some of what was freed

rpc::Hello good_hello(rpc::Role role = rpc::Role::kWorker) {
  rpc::Hello hello;
  hello.cluster = "test";
  hello.token = "secret";
  hello.role = role;
  hello.session = kSession;
  hello.incarnation = 5;
  hello.endpoint = 1;
  return hello;
}

class HostilePeers : public ::testing::Test {
 protected:
  HostilePeers() {
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = std::min<rlim_t>(files.rlim_max, 8192);
    ::setrlimit(RLIMIT_NOFILE, &files);
    ps_.emplace(tools::Command{
        .arguments = {std::string(CAIRN_PROGRAMS) + "/cairn-ps", "--listen", address_,
                      "--cluster-id", "test", "--token", "secret", "--transport", "tcp",
                      "--log-file", folder_.path() + "/ps.log"},
        .output_file = folder_.path() + "/output"});
    chief_ = connected(rpc::Role::kCoordinator);
    good_ = connected(rpc::Role::kWorker);
    shard_.emplace(good_->bootstrap<wire::Shard>());
    configure();
  }
  ~HostilePeers() noexcept override = default;  // although those of capabilities may throw

  template <typename T>
  T wait(kj::Promise<T> promise) {
    return reactor_->wait(reactor_->with_deadline(kj::mv(promise), kPatience, "the test's call"));
  }
  // Until the process listens.
  std::unique_ptr<rpc::Connection> connected(rpc::Role role) {
    for (const Duration until = reactor_->now() + kPatience;;) {
      try {
        return reactor_->wait(network_->connect(*reactor_, rpc::Address::parse(address_),
                                                good_hello(role), kPatience));
      } catch (const UnavailableError&) {
        if (reactor_->now() > until) throw;
      }
      wait(reactor_->yield());
    }
  }
  void configure() {
    auto shard = chief_->bootstrap<wire::Shard>();
    auto request = shard.configureRequest();
    request.setSession(kSession);
    auto table = request.initTables(1)[0];
    wire::write(table.initSpec(),
                VariableSpec{.name = "w", .shape = {}, .initializer = Initializer::zeros()});
    wire::write(table.initRule(), UpdateRule{});
    table.initParts(1)[0].setEnd(1);
    wait(request.send().ignoreResult());
    auto announced = shard.announceRequest();
    announced.setSession(kSession);
    announced.setClosuresBelow(kClosures);
    wait(announced.send().ignoreResult());
    wait(shard.openRequest().send().ignoreResult());
  }
  // A step of the good peer's: adds one.
  void train() {
    auto request = shard_->pushRequest();
    request.initStep().setSession(kSession);
    request.getStep().setIncarnation(5);
    request.getStep().setClosure(++closures_);
    auto header = request.initHeaders(1)[0];
    header.setWhole(true);
    wire::write(header.initRule(), UpdateRule{RuleKind::kAssignAdd, {}});
    const float one = 1;
    request.setValues({reinterpret_cast<const kj::byte*>(&one), sizeof one});
    wait(request.send().ignoreResult());
  }
  float trained() {
    auto request = shard_->pullRequest();
    request.initStep().setSession(kSession);
    request.initHeaders(1)[0].setWhole(true);
    kj::Promise<capnp::Response<wire::Shard::PullResults>> sent = request.send();
    const auto reply = wait(kj::mv(sent));
    float value = 0;
    std::memcpy(&value, reply.getValues().begin(), sizeof value);
    return value;
  }

  kj::Own<rpc::ByteStream> stranger() {
    auto socket = wait(network_->dial(*reactor_, rpc::Address::parse(address_)));
    return socket->attach(*reactor_, rpc::kPlainStream);
  }
  kj::Own<rpc::ByteStream> saying(std::string bytes) {
    auto stream = stranger();
    wait(stream->write(bytes.data(), bytes.size()).catch_([](kj::Exception&&) {}));
    return stream;
  }
  kj::Own<rpc::ByteStream> greeting(const rpc::Hello& hello, const std::string& then = "") {
    const auto bytes = rpc::encode(hello);
    return saying(std::string(bytes.begin(), bytes.end()) + then);
  }
  void expect_end(rpc::ByteStream& stream) {
    char waste[4096];
    while (wait(stream.tryRead(waste, 1, sizeof waste).catch_([](kj::Exception&&) -> size_t {
             return 0;
           })) > 0)
      train();
  }
  std::string log() const { return folder_.read("ps.log"); }
  std::size_t resident_mb() const {
    std::ifstream status("/proc/" + std::to_string(ps_->pid()) + "/status");
    std::string word;
    while (status >> word)
      if (word == "VmRSS:") break;
    std::size_t kilobytes = 0;
    status >> kilobytes;
    return kilobytes >> 10;
  }

  tools::TempFolder folder_;
  tools::ReservedPort port_;
  std::string address_ = str("127.0.0.1:", port_.port());
  std::unique_ptr<rpc::Reactor> reactor_ = rpc::make_reactor();
  std::unique_ptr<rpc::Network> network_ = rpc::make_socket_network(rpc::Transport::kTcp);
  std::optional<tools::ChildProcess> ps_;
  std::unique_ptr<rpc::Connection> chief_, good_;
  std::optional<wire::Shard::Client> shard_;
  std::uint64_t closures_ = 0;
};

TEST_F(HostilePeers, AreRefusedByNameAndCostNothingElse) {
  const std::size_t before = resident_mb();
  rpc::Hello hello = good_hello();
  hello.token = "guess";
  expect_end(*greeting(hello));
  hello = good_hello();
  hello.cluster = "another";
  expect_end(*greeting(hello));
  hello = good_hello();
  hello.version = 9;
  expect_end(*greeting(hello));
  Random random(4);
  std::string rubbish(100'000, '\0');
  for (char& byte : rubbish) byte = static_cast<char>(random.bits());
  expect_end(*saying(rubbish));
  expect_end(*greeting(good_hello(), rubbish));
  // a message of 16 GiB
  expect_end(*greeting(good_hello(), std::string("\0\0\0\0\xff\xff\xff\x7f", 8)));
  for (int i = 0; i < 50; ++i) train();

  EXPECT_EQ(trained(), static_cast<float>(closures_));
  for (const char* reason : {"the tokens differ", "belongs to cluster \"another\"",
                             "the dialler speaks 9", "no Cairn hello"})
    EXPECT_THAT(log(), HasSubstr(reason));
  EXPECT_THAT(log(), HasSubstr("refused a connection from tcp://127.0.0.1:"));
  EXPECT_LT(resident_mb(), before + kGrowthMbMax);
}

TEST_F(HostilePeers, AThousandIdleOnesAndAnEndlessHelloKeepNobodyOut) {
  const std::size_t before = resident_mb();
  auto endless = saying("CAIRNRPC");
  std::vector<kj::Own<rpc::ByteStream>> idle;
  for (int i = 0; i < 1000; ++i) {
    idle.push_back(stranger());
    if (i % 20 == 0) train();
  }
  EXPECT_TRUE(connected(rpc::Role::kWorker)->connected());  // at once: no idle stream is waited for
  expect_end(*endless);
  for (int i = 0; i < 50; ++i) train();

  EXPECT_EQ(trained(), static_cast<float>(closures_));
  EXPECT_THAT(log(), HasSubstr("had not greeted"));
  EXPECT_LT(resident_mb(), before + kGrowthMbMax);
}

// A declared message takes memory only for those of its bytes that come.
TEST_F(HostilePeers, DeclaredMessagesThatNeverComeTakeNoMemory) {
  constexpr int kRogues = 100;
  constexpr std::uint32_t kWords = (60u << 20) / 8;  // just below the limit of 64 MiB
  const std::size_t before = resident_mb();
  std::vector<kj::Own<rpc::ByteStream>> rogues;
  std::string head(8, '\0');
  std::memcpy(head.data() + 4, &kWords, sizeof kWords);
  for (int i = 0; i < kRogues; ++i) {
    rogues.push_back(greeting(good_hello(), head + std::string(64, 'x')));
    train();
  }
  EXPECT_EQ(trained(), static_cast<float>(closures_));
  EXPECT_LT(resident_mb(), before + kGrowthMbMax);
}

}  // namespace
}  // namespace cairn
