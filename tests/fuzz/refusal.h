// The errors that a target may end with, and the envelope of those that read Cap'n Proto structs.
#pragma once
#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/exception.h>

#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "tests/fuzz/targets.h"

namespace cairn::fuzz {

// Runs `read`. A typed refusal is an answer; Internal is a broken promise of our own and goes on
// up.
template <typename Read>
void may_refuse(Read read) {
  try {
    read();
  } catch (const Error& error) {
    if (error.code() == Code::kInternal) throw;
  }
}

// The same for what runs inside a server method, where rpc/ turns the reader's own exceptions into
// a reply.
template <typename Read>
void may_refuse_call(Read read) {
  try {
    may_refuse(read);
  } catch (const kj::Exception&) {
  }
}

inline std::string_view text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The first byte chooses; none: 0.
inline unsigned take_choice(Bytes& input) {
  if (input.empty()) return 0;
  const auto choice = static_cast<unsigned>(input.front());
  input = input.subspan(1);
  return choice;
}

// The rest of an input as a Cap'n Proto message, as it would come out of a connection.
class Message {
 public:
  explicit Message(Bytes bytes) : words_(bytes.size() / sizeof(capnp::word)) {
    if (!words_.empty())
      std::memcpy(words_.data(), bytes.data(), words_.size() * sizeof(capnp::word));
    reader_.emplace(kj::ArrayPtr<const capnp::word>(words_.data(), words_.size()),
                    options(words_.size()));
  }
  template <typename T>
  typename T::Reader root() {
    return reader_->getRoot<T>();
  }

 private:
  static capnp::ReaderOptions options(std::size_t words) {
    capnp::ReaderOptions options;
    options.traversalLimitInWords = 1024 * (words + 1);  // as rpc/net/message_stream.cc has it
    return options;
  }
  std::vector<capnp::word> words_;
  std::optional<capnp::FlatArrayMessageReader> reader_;
};

}  // namespace cairn::fuzz
