// ProcessingMode: which part of the dataset each data worker of a job reads.
//   Source  tf.data.experimental.service.ShardingPolicy, whose names these are, and the older
//           "parallel_epochs" (OFF) and "distributed_epoch" (DYNAMIC).
//   Thread  any.
#pragma once
#include <cstdint>
#include <string_view>

namespace cairn::service {

enum class ProcessingMode : std::uint8_t {
  kOff,      // each worker reads all of it
  kDynamic,  // splits, dealt by the dispatcher to the worker that asks first
  // by the dispatcher's list of workers, as data/dataset/auto_shard.h deals a dataset out
  kFile,
  kData,
  kFileOrData,
  kHint,
};

std::string_view name_of(ProcessingMode mode);  // "DYNAMIC"
// Errors  InvalidArgument: there is no such mode; lists them.
ProcessingMode parse_processing_mode(std::string_view text);
ProcessingMode processing_mode(std::uint8_t number);  // of the wire and of the journal
// Task i of a job is for worker i of the dispatcher's list.
constexpr bool deals_by_list(ProcessingMode mode) { return mode >= ProcessingMode::kFile; }

}  // namespace cairn::service
