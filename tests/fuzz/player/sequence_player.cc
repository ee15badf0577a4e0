#include "tests/fuzz/player/sequence_player.h"

#include <array>
#include <cstring>

#include "core/base/error.h"
#include "core/graph/wire/wire.h"
#include "data/dataset/dataset.h"
#include "rpc/net/hello_io.h"
#include "rpc/net/shared_memory.h"
#include "tests/fuzz/player/sequence_parts.h"

namespace cairn::fuzz {
namespace {

constexpr std::size_t kLinesMax = 12, kCallsMax = 256;
constexpr std::size_t kSharedBytes = 1 << 16;
constexpr Duration kPatience = std::chrono::seconds(5);

}  // namespace

// ---- the script ----

unsigned Script::byte() {
  if (rest_.empty()) return 0;
  const auto first = static_cast<unsigned>(rest_.front());
  rest_ = rest_.subspan(1);
  return first;
}

std::uint64_t Script::number(std::uint64_t honest) {
  if (!lies()) return honest;
  static constexpr std::array<std::uint64_t, 12> kOdd = {0,
                                                         1,
                                                         2,
                                                         7,
                                                         255,
                                                         65535,
                                                         65536,
                                                         UINT32_MAX,
                                                         std::uint64_t{1} << 62,
                                                         UINT64_MAX,
                                                         UINT64_MAX - 7,
                                                         INT64_MAX};
  const unsigned choice = byte();
  if (choice < kOdd.size()) return kOdd[choice];
  if (choice < 128) return honest + choice - 64;
  std::uint64_t drawn = 0;
  for (unsigned i = 0; i < choice % 8 + 1; ++i) drawn = drawn << 8 | byte();
  return drawn;
}

std::string Script::name(std::string honest) {
  if (!lies()) return honest;
  static const std::array<std::string, 8> kOdd = {"",
                                                  "/",
                                                  "../x",
                                                  "/checkpoints/../y",
                                                  "relative",
                                                  std::string(5000, 'n'),
                                                  std::string("a\0b", 3),
                                                  "\xff\xfe"};
  return kOdd[below(kOdd.size())];
}

// ---- connections ----

SequencePlayer::SequencePlayer(rpc::Reactor& reactor, rpc::Network& network, Attacked attacked,
                               Bytes script)
    : reactor_(reactor), network_(network), attacked_(std::move(attacked)), script_(script) {
  variables_ = static_cast<unsigned>(played_variables().size()) - (script_.below(8) == 1 ? 0 : 1);
}

SequencePlayer::~SequencePlayer() { drop_all(); }

void SequencePlayer::drop_all() {
  calls_.clear();
  lines_.clear();
}

namespace {

struct Greeted {
  kj::Own<rpc::ByteStream> stream;
  rpc::PeerInfo peer;
};

rpc::Task<Greeted> greeted(rpc::Network& network, rpc::Reactor& reactor, rpc::Address address,
                           rpc::Hello hello, bool shares) {
  auto socket = co_await network.dial(reactor, address);
  auto stream = socket->attach(reactor, rpc::kPlainStream);
  auto shared = shares && stream->can_share() ? rpc::SharedMemory::create(kSharedBytes) : nullptr;
  const rpc::HelloReply reply = co_await rpc::greet(*stream, hello, "the attacked", shared);
  if (!reply.accepted) throw_error(reply.code, reply.reason);
  socket = stream->detach();
  rpc::PeerInfo peer{.role = reply.role,
                     .task = reply.task,
                     .incarnation = reply.incarnation,
                     .session = reply.session,
                     .term = {},
                     .endpoint = hello.endpoint,
                     .endpoints = reply.endpoints,
                     .address = "the attacked",
                     .shared = reply.shares ? shared : nullptr};
  Greeted done{socket->attach(reactor, {}), std::move(peer)};
  co_return done;
}

}  // namespace

void SequencePlayer::connect(Kind kind, rpc::Role role, std::uint32_t endpoint, bool shares) {
  const bool ps = kind == Kind::kShard || kind == Kind::kPs;
  const rpc::Address& address = kind == Kind::kChief ? attacked_.chief
                                : ps                 ? attacked_.ps
                                                     : attacked_.worker;
  if (address.host.empty()) return;
  rpc::Hello hello;
  hello.cluster = attacked_.cluster;
  hello.token = attacked_.token;
  hello.session = script_.number(attacked_.session);
  hello.role = role;
  hello.incarnation = incarnation_;
  hello.endpoint = endpoint;
  ++connections_;
  auto dialled = greeted(network_, reactor_, address, hello, shares);
  Greeted there =
      reactor_.wait(reactor_.with_deadline(std::move(dialled), kPatience, "a peer's greeting"));
  if (lines_.size() >= kLinesMax) lines_.erase(lines_.begin());
  Line line{kind, std::make_shared<Changes>(), nullptr};
  auto stream = kj::heap<MutatingStream>(kj::mv(there.stream), line.changes);
  line.connection =
      std::make_unique<rpc::Connection>(reactor_, kj::mv(stream), rpc::Side::kDialler,
                                        std::move(there.peer), "a peer", rpc::ConnectionOptions{});
  lines_.push_back(std::move(line));
}

SequencePlayer::Line* SequencePlayer::line(Kind kind) {
  std::vector<Line*> fit;
  for (Line& one : lines_)
    if (one.kind == kind) fit.push_back(&one);
  return fit.empty() ? nullptr : fit[script_.below(static_cast<unsigned>(fit.size()))];
}

void SequencePlayer::pass_time() {
  static constexpr std::array<Duration, 4> kPauses = {
      std::chrono::microseconds(100), std::chrono::milliseconds(1), std::chrono::milliseconds(5),
      std::chrono::seconds(70)};
  const Duration pause = kPauses[script_.below(kPauses.size())];
  reactor_.wait(reactor_.sleep(
      reactor_.simulated() ? pause : std::min<Duration>(pause, std::chrono::milliseconds(2))));
}

void SequencePlayer::settle() { reactor_.wait(reactor_.sleep(std::chrono::milliseconds(2))); }

void SequencePlayer::begin() {
  using rpc::Role;
  for (const std::uint32_t endpoint : {1u, 2u}) {
    connect(Kind::kShard, Role::kCoordinator, endpoint, false);
    auto shard = service<wire::Shard>(lines_.back());
    configure_shard(shard, endpoint - 1);
    announce(shard);
    open_shard(shard);
  }
  for (const std::uint32_t endpoint : {1u, 2u})
    connect(Kind::kShard, Role::kWorker, endpoint, true);
  for (const std::uint32_t endpoint : {1u, 2u}) {
    connect(Kind::kLane, Role::kCoordinator, endpoint, false);
    auto lane = service<wire::Lane>(lines_.back());
    configure_lane(lane);
    set_layout(lane);
    for (std::uint32_t id = 0; id < kFunctions; ++id) add_function(lane, id);
    open_pipeline(lane);
  }
  settle();
}

bool SequencePlayer::step() {
  if (script_.empty()) return false;
  try {
    do_something(script_.byte());
  } catch (const Error& error) {
    if (error.code() == Code::kInternal) throw;
  } catch (const kj::Exception&) {
  }
  if (calls_.size() > kCallsMax) calls_.erase(calls_.begin(), calls_.begin() + kCallsMax / 2);
  return true;
}

void SequencePlayer::do_something(unsigned what) {
  using rpc::Role;
  static constexpr std::array<Role, 4> kRoles = {Role::kCoordinator, Role::kWorker, Role::kPs,
                                                 Role::kTool};
  static constexpr std::array<Kind, 5> kKinds = {Kind::kShard, Kind::kLane, Kind::kPs,
                                                 Kind::kWorker, Kind::kChief};
  switch (what % 16) {
    case 0:
    case 1: {
      const Kind kind = kKinds[script_.below(kKinds.size())];
      const Role role = kRoles[script_.below(kRoles.size())];
      const bool data = kind == Kind::kShard || kind == Kind::kLane;
      return connect(kind, role,
                     static_cast<std::uint32_t>(script_.number(data ? 1 + script_.below(2) : 0)),
                     script_.below(2) == 0);
    }
    case 2:
      if (!lines_.empty())
        lines_.erase(lines_.begin() + script_.below(static_cast<unsigned>(lines_.size())));
      return;
    case 3:
      if (!calls_.empty())
        calls_.erase(calls_.begin() + script_.below(static_cast<unsigned>(calls_.size())));
      return;
    case 4: return pass_time();
    case 5:
      if (!lines_.empty()) {  // bytes of what leaves next
        Line& victim = lines_[script_.below(static_cast<unsigned>(lines_.size()))];
        const std::uint64_t from = victim.connection->traffic().bytes_out;
        (*victim.changes)[from + script_.number(script_.byte())] =
            static_cast<std::uint8_t>(script_.byte());
      }
      return;
    case 6:
      if (Line* at = line(Kind::kShard)) {
        auto shard = service<wire::Shard>(*at);
        switch (script_.below(4)) {
          case 0: return configure_shard(shard, script_.below(2));
          case 1: return open_shard(shard);
          case 2: return announce(shard);
          case 3: return fence(shard);
        }
      }
      return;
    case 7:
      if (Line* at = line(Kind::kShard)) checkpoint(service<wire::Shard>(*at));
      return;
    case 8:
    case 9:
      if (Line* at = line(Kind::kShard)) push(*at);
      return;
    case 10:
      if (Line* at = line(Kind::kShard)) pull(*at);
      return;
    case 11:
      if (Line* at = line(Kind::kLane)) {
        auto lane = service<wire::Lane>(*at);
        switch (script_.below(4)) {
          case 0: return configure_lane(lane);
          case 1: return set_layout(lane);
          case 2: return add_function(lane, script_.below(kFunctions));
          case 3: return open_pipeline(lane);
        }
      }
      return;
    case 12:
    case 13:
      if (Line* at = line(Kind::kLane)) run(service<wire::Lane>(*at));
      return;
    case 14:
      if (Line* at = line(Kind::kLane)) hold(service<wire::Lane>(*at));
      return;
    case 15:
      if (Line* at = line(kKinds[2 + script_.below(3)])) control(*at);
      return;
  }
}

}  // namespace cairn::fuzz
