
#include "core/base/log.h"
#include "tests/fuzz/refusal.h"
#include "tests/fuzz/served_ps.h"

namespace cairn::fuzz {

// The input is the bytes after the hello. Whatever they are, the ps goes on serving others.
void rpc_stream(Bytes input) {
  set_log_level(LogLevel::kOff);
  ServedPs ps;
  auto stream = ps.greeted_stream(rpc::Role::kCoordinator);  // who may make the most calls
  auto written = stream->write(input.data(), input.size())
                     .catch_([](kj::Exception&&) {})
                     .eagerlyEvaluate(nullptr);
  ps.reactor.advance(std::chrono::milliseconds(20));
  stream->shutdownWrite();
  ps.reactor.advance(std::chrono::milliseconds(20));
  stream = nullptr;
  CAIRN_CHECK(ps.answers());
}

}  // namespace cairn::fuzz
