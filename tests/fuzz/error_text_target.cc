#include "rpc/loop/error_wire.h"
#include "tests/fuzz/refusal.h"

namespace cairn::fuzz {

void error_text(Bytes input) {
  const auto type = static_cast<kj::Exception::Type>(take_choice(input) % 4);
  const std::string_view said = text(input);
  const kj::Exception came(type, "somewhere", 1, kj::heapString(said.data(), said.size()));
  const ErrorParts parts = rpc::from_kj(came);
  rpc::describe(parts);
  const ErrorParts again = rpc::from_kj(rpc::to_kj(parts));
  CAIRN_CHECK(again.code == parts.code && again.message == parts.message,
              "an error changes when it is passed on: ", parts.message);
  try {
    throw_error(parts);
  } catch (const Error& error) {
    // the peer's code, Internal too: here it is no check of ours that failed
    CAIRN_CHECK(error.code() == parts.code, "an error of code ", code_name(parts.code),
                " is thrown with code ", code_name(error.code()));
  }
}

}  // namespace cairn::fuzz
