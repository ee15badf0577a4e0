// A consumer's calls to dispatcher and data workers, as values. For this room's .cc files.
#pragma once
#include <string>
#include <vector>

#include "core/tensor/element.h"
#include "rpc/loop/task.h"
#include "service/base/compression.h"
#include "service/dispatcher/dispatcher.h"
#include "service/service.capnp.h"

namespace cairn::service {

struct Counted {
  std::uint64_t elements = 0, handed = 0;
};

struct GotElement {
  std::uint64_t number = 0;
  Element columns;
};
struct Got {
  std::vector<GotElement> elements;
  std::string error;
};

rpc::Task<std::uint64_t> send_open_job(wire::DataDispatcher::Client client, std::string key,
                                       ProcessingMode mode, Bytes description, std::uint32_t group);
rpc::Task<Watched> send_watch(wire::DataDispatcher::Client client, std::uint64_t job,
                              std::uint64_t consumer, std::uint64_t handed, std::uint64_t seen);
rpc::Task<Counted> send_leave(wire::DataDispatcher::Client client, std::uint64_t job,
                              std::uint64_t consumer, std::uint64_t handed);
// Errors  InvalidArgument: elements that are not of `spec`.
rpc::Task<Got> send_get(wire::DataWorker::Client client, std::uint64_t job, std::uint64_t consumer,
                        std::uint32_t index, std::uint32_t most, Compression compression,
                        const ElementSpec* spec);
rpc::Task<RoundOrder> send_rounds(wire::DataDispatcher::Client client, std::uint64_t job,
                                  RoundReport report, bool wait);
rpc::Task<void> send_acknowledge(wire::DataWorker::Client client, std::uint64_t job,
                                 std::vector<std::uint64_t> numbers);

}  // namespace cairn::service
