// The fixed binary greeting before RPC starts, pure encoding: docs/wire-protocol.md has the byte
// table.
//
// The dialler sends a Hello, the acceptor answers a HelloReply, and only then does either side
// speak Cap'n Proto. Both are at most kHelloBytesMax long. Decoding is total: any bytes give a
// value or InvalidArgumentError.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/incarnation.h"

namespace cairn::rpc {

inline constexpr std::uint16_t kProtocolVersion = 2;
inline constexpr std::size_t kHelloBytesMax = 1024;
inline constexpr std::size_t kHelloPrefixBytes = 12;  // magic, version, length of the rest
inline constexpr std::size_t kNameBytesMax = 255;     // cluster id, token
inline constexpr std::size_t kReasonBytesMax = 700;

enum class Role : std::uint8_t {
  kCoordinator = 1,
  kWorker = 2,
  kPs = 3,
  kTool = 4,
  kDispatcher = 5,  // of the data service
  kDataWorker = 6,
  kReader = 7,  // follows the rows of ps, and changes nothing
};

// "chief", "worker", "ps", "tool", as TF_CONFIG has them; "dispatcher", "data_worker", "reader"
std::string_view role_name(Role role);
std::string task_name(Role role, std::uint32_t index);  // "/job:ps/task:1"

inline constexpr std::uint32_t kControlEndpoint = 0;  // endpoint 1 + i is shard or lane i

struct Hello {
  std::string cluster;             // both sides must be started with the same
  std::uint64_t session = 0;       // the coordinator's; 0: none known yet
  Term term;                       // of a coordinator: every call on the connection is of it
  Role role = Role::kTool;         // the role of the process that dials
  std::uint32_t task = 0;          // its index
  ProcessIncarnation incarnation;  // new at each start of the process
  std::uint32_t endpoint = kControlEndpoint;
  std::string token;
  std::uint16_t version = kProtocolVersion;
};

struct HelloReply {
  bool accepted = false;
  Code code = Code::kFailedPrecondition;  // of a refusal: the error that the dialler raises
  std::string reason;                     // of a refusal: names both sides
  std::uint64_t session = 0;
  Role role = Role::kTool;  // the role of the process that answers
  std::uint32_t task = 0;
  ProcessIncarnation incarnation;
  std::uint32_t endpoints = 0;  // how many the acceptor has, the control endpoint included
  bool shares = false;          // the acceptor uses the memory that came with the hello
  std::uint16_t version = kProtocolVersion;
};

// Errors  InvalidArgument: a name or token above kNameBytesMax. A reason is cut to size.
std::vector<std::uint8_t> encode(const Hello& hello);
std::vector<std::uint8_t> encode(const HelloReply& reply);

struct HelloPrefix {
  std::uint16_t version = 0;
  std::uint16_t rest = 0;  // bytes that follow
};
// Errors InvalidArgument: not the magic word, or `rest` above the bound. A foreign version is no
// error here.
HelloPrefix decode_prefix(std::span<const std::uint8_t, kHelloPrefixBytes> bytes);
// The rest of a message of this protocol version. Errors InvalidArgument: short, long, or an
// unknown role.
Hello decode_hello(std::uint16_t version, std::span<const std::uint8_t> rest);
HelloReply decode_reply(std::uint16_t version, std::span<const std::uint8_t> rest);

// In time that depends on the lengths only.
bool same_secret(std::string_view a, std::string_view b);

}  // namespace cairn::rpc
