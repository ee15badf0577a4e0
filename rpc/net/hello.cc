#include "rpc/net/hello.h"

#include <algorithm>
#include <cstring>

namespace cairn::rpc {
namespace {

constexpr std::array<std::uint8_t, 8> kMagic = {'C', 'A', 'I', 'R', 'N', 'R', 'P', 'C'};

// Numbers go byte by byte, least significant first, so that the order of the host does not matter.
class Writer {
 public:
  template <typename T>
  void number(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i)
      bytes_.push_back(static_cast<std::uint8_t>(std::uint64_t{value} >> (8 * i)));
  }
  void text(std::string_view value) {
    number(static_cast<std::uint16_t>(value.size()));
    bytes_.insert(bytes_.end(), value.begin(), value.end());
  }
  // The whole message: prefix, then what was written.
  std::vector<std::uint8_t> finish(std::uint16_t version) && {
    Writer prefix;
    prefix.bytes_.assign(kMagic.begin(), kMagic.end());
    prefix.number(version);
    prefix.number(static_cast<std::uint16_t>(bytes_.size()));
    prefix.bytes_.insert(prefix.bytes_.end(), bytes_.begin(), bytes_.end());
    return std::move(prefix.bytes_);
  }

 private:
  std::vector<std::uint8_t> bytes_;
};

// Reads what a stranger sent: every access goes through take(), which verifies the length first.
class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  template <typename T>
  T number() {
    auto from = take(sizeof(T));
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) value |= std::uint64_t{from[i]} << (8 * i);
    return static_cast<T>(value);
  }
  std::string text(std::size_t bytes_max) {
    std::size_t size = number<std::uint16_t>();
    if (size > bytes_max)
      throw InvalidArgumentError(
          str("the hello holds a text of ", size, " bytes, at most ", bytes_max, " are allowed"));
    auto from = take(size);
    return {from.begin(), from.end()};
  }
  Role role() {
    auto value = number<std::uint8_t>();
    if (value < 1 || value > static_cast<std::uint8_t>(Role::kReader))
      throw InvalidArgumentError(str("the hello names an unknown role, ", unsigned{value}));
    return static_cast<Role>(value);
  }
  void end() const {
    if (!bytes_.empty())
      throw InvalidArgumentError(str("the hello has ", bytes_.size(), " bytes too many"));
  }

 private:
  std::span<const std::uint8_t> take(std::size_t size) {
    if (size > bytes_.size()) throw InvalidArgumentError("the hello is cut short");
    auto taken = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return taken;
  }
  std::span<const std::uint8_t> bytes_;
};

void check_name(const char* what, const std::string& value) {
  if (value.size() <= kNameBytesMax) return;
  throw InvalidArgumentError(
      str(what, " has ", value.size(), " bytes; at most ", kNameBytesMax, " fit into the hello"));
}

void check_version(std::uint16_t version) {
  if (version == kProtocolVersion) return;
  throw InvalidArgumentError(str("protocol version ", version, " is not ", kProtocolVersion));
}

}  // namespace

std::string_view role_name(Role role) {
  switch (role) {
    case Role::kCoordinator: return "chief";
    case Role::kWorker: return "worker";
    case Role::kPs: return "ps";
    case Role::kDispatcher: return "dispatcher";
    case Role::kDataWorker: return "data_worker";
    case Role::kReader: return "reader";
    case Role::kTool: break;
  }
  return "tool";
}

std::string task_name(Role role, std::uint32_t index) {
  return str("/job:", role_name(role), "/task:", index);
}

std::vector<std::uint8_t> encode(const Hello& hello) {
  check_name("the cluster id", hello.cluster);
  check_name("the token", hello.token);
  Writer out;
  out.number(static_cast<std::uint8_t>(hello.role));
  out.number(hello.task);
  out.number(hello.session);
  out.number(hello.term.number);
  out.number(hello.incarnation.number);
  out.number(hello.endpoint);
  out.text(hello.cluster);
  out.text(hello.token);
  return std::move(out).finish(hello.version);
}

std::vector<std::uint8_t> encode(const HelloReply& reply) {
  Writer out;
  out.number(reply.accepted ? std::uint8_t{0} : static_cast<std::uint8_t>(reply.code));
  out.number(static_cast<std::uint8_t>(reply.role));
  out.number(reply.task);
  out.number(reply.session);
  out.number(reply.incarnation.number);
  out.number(reply.endpoints);
  out.number(static_cast<std::uint8_t>(reply.shares));
  out.text(std::string_view(reply.reason).substr(0, kReasonBytesMax));
  return std::move(out).finish(reply.version);
}

// The version is not judged here: the acceptor answers a foreign one with a refusal that names
// both.
HelloPrefix decode_prefix(std::span<const std::uint8_t, kHelloPrefixBytes> bytes) {
  if (!std::equal(kMagic.begin(), kMagic.end(), bytes.begin()))
    throw InvalidArgumentError("no Cairn hello: other bytes came");
  Reader in(bytes.subspan(kMagic.size()));
  HelloPrefix prefix;
  prefix.version = in.number<std::uint16_t>();
  prefix.rest = in.number<std::uint16_t>();
  if (prefix.rest > kHelloBytesMax - kHelloPrefixBytes)
    throw InvalidArgumentError(str("a hello of ", prefix.rest, " bytes is too long"));
  return prefix;
}

Hello decode_hello(std::uint16_t version, std::span<const std::uint8_t> rest) {
  check_version(version);
  Reader in(rest);
  Hello hello;
  hello.version = version;
  hello.role = in.role();
  hello.task = in.number<std::uint32_t>();
  hello.session = in.number<std::uint64_t>();
  hello.term = in.number<std::uint64_t>();
  hello.incarnation = in.number<std::uint64_t>();
  hello.endpoint = in.number<std::uint32_t>();
  hello.cluster = in.text(kNameBytesMax);
  hello.token = in.text(kNameBytesMax);
  in.end();
  return hello;
}

HelloReply decode_reply(std::uint16_t version, std::span<const std::uint8_t> rest) {
  // the reply keeps its layout over versions, so that a refusal can always be read
  Reader in(rest);
  HelloReply reply;
  reply.version = version;
  // A code that a later release has added reads as Unknown.
  auto code = in.number<std::uint8_t>();
  reply.accepted = code == 0;
  if (code > 0)
    reply.code =
        code_name(static_cast<Code>(code)) == "Unknown" ? Code::kUnknown : static_cast<Code>(code);
  reply.role = in.role();
  reply.task = in.number<std::uint32_t>();
  reply.session = in.number<std::uint64_t>();
  reply.incarnation = in.number<std::uint64_t>();
  reply.endpoints = in.number<std::uint32_t>();
  reply.shares = in.number<std::uint8_t>() != 0;
  reply.reason = in.text(kReasonBytesMax);
  in.end();
  return reply;
}

// Does not end at the first difference: an answer that comes sooner or later would tell a guesser
// how many bytes are right.
bool same_secret(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    auto other = b.empty() ? 0 : b[i % b.size()];
    difference |= static_cast<unsigned char>(a[i] ^ other);
  }
  return difference == 0;
}

}  // namespace cairn::rpc
