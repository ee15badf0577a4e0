// Peers that mean no good, or are none of ours: each is refused, named in the log, and costs
// nothing else.
#include <gmock/gmock.h>

#include <sstream>

#include "core/base/random.h"
#include "rpc/net/hello_io.h"
#include "tests/rpc/echo_service.h"

namespace cairn::rpc {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Duration kForever = std::chrono::hours(1);

// A server whose log can be read, and strangers at its door.
struct Door {
  explicit Door(AcceptorOptions wanted = ps_options())
      : pair(Transport::kTcp, logging(std::move(wanted))) {}

  AcceptorOptions logging(AcceptorOptions options) {
    options.log = [this](LogLevel, const std::string& line) { said << line << '\n'; };
    return options;
  }
  kj::Own<ByteStream> stranger() {
    auto socket = pair.wait(pair.network->dial(*pair.reactor, pair.acceptor.address()));
    return socket->attach(*pair.reactor, kPlainStream);
  }
  // One with a right hello behind it.
  kj::Own<ByteStream> greeted() {
    auto stream = stranger();
    auto reply = greet(*stream, worker_hello(), "the door", nullptr);
    EXPECT_TRUE(pair.wait(reply.start()).accepted);
    return stream;
  }
  void say(ByteStream& stream, std::string_view bytes) {
    pair.wait(stream.write(bytes.data(), bytes.size()).catch_([](kj::Exception&&) {}));
  }
  // Reads on until the other side ends the stream.
  void expect_end(ByteStream& stream) {
    char waste[4096];
    for (;;) {
      auto got = stream.tryRead(waste, 1, sizeof waste).catch_([](kj::Exception&&) -> size_t {
        return 0;
      });
      if (pair.wait(kj::mv(got)) == 0) return;
    }
  }
  void expect_serves() {
    auto connection = pair.connect();
    EXPECT_EQ(pair.wait(echo(connection->bootstrap<Echo>(), 3)), 3u);
  }

  std::ostringstream said;
  EchoPair pair;
};

TEST(HostilePeer, AHalfOpenHelloIsCutOffAtItsDeadlineAndNamed) {
  auto options = ps_options();
  options.hello_deadline = 30ms;
  Door door(options);
  auto stranger = door.stranger();
  door.say(*stranger, "CAIRNR");
  door.expect_end(*stranger);
  EXPECT_THAT(door.said.str(), AllOf(HasSubstr("refused a connection from tcp://127.0.0.1"),
                                     HasSubstr("its hello")));
  door.expect_serves();
}

TEST(HostilePeer, SilentStreamsWithoutEndKeepNobodyOut) {
  auto options = ps_options();
  options.hello_deadline = kForever;  // it is not time that helps
  options.hellos_max = 16;
  Door door(options);
  std::vector<kj::Own<ByteStream>> silent;
  for (int i = 0; i < 100; ++i) {
    silent.push_back(door.stranger());
    if (i % 25 == 0) door.expect_serves();
  }
  door.expect_serves();
  door.expect_end(*silent.front());
  EXPECT_THAT(door.said.str(), HasSubstr("silent for longest"));
}

TEST(HostilePeer, AHugeDeclaredMessageEndsItsConnectionAlone) {
  Door door;
  auto good = door.pair.connect();
  auto rogue = door.greeted();
  door.say(*rogue, std::string_view("\0\0\0\0\xff\xff\xff\x7f", 8));  // one segment of 16 GiB
  door.expect_end(*rogue);
  EXPECT_EQ(door.pair.wait(echo(good->bootstrap<Echo>(), 4)), 4u);
  door.expect_serves();
}

TEST(HostilePeer, RandomBytesAfterTheHelloEndTheirConnectionAlone) {
  constexpr int kRounds = 50;
  Door door;
  auto good = door.pair.connect();
  Random random(2026);
  for (int round = 0; round < kRounds; ++round) {
    auto rogue = door.greeted();
    std::string bytes(8 + 8 * random.below(64), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random.bits());
    // a frame that may be whole
    if (round % 2 == 0)
      bytes[0] = bytes[1] = bytes[2] = bytes[3] = bytes[5] = bytes[6] = bytes[7] = 0;
    door.say(*rogue, bytes);
    rogue->shutdownWrite();
    door.expect_end(*rogue);
    EXPECT_EQ(door.pair.wait(echo(good->bootstrap<Echo>(), 4)), 4u)
        << "round " << round << " of seed 2026";
  }
  door.expect_serves();
}

TEST(HostilePeer, WhoeverLeavesItsAnswersUnreadIsCutOff) {
  Door door;
  ConnectionOptions little;
  little.unread_bytes_max = 0;
  auto connection = door.pair.connect(worker_hello(), little);
  auto call = echo(connection->bootstrap<Echo>(), 1);  // not yet handed to the system
  try {
    connection->verify_reading();
    ADD_FAILURE() << "nothing was queued";
  } catch (const ResourceExhaustedError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("/job:ps/task:1"), HasSubstr("unread")));
  }
  EXPECT_THROW(door.pair.wait(kj::mv(call)), UnavailableError);
}

}  // namespace
}  // namespace cairn::rpc
