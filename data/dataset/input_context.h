// Which part of the input a dataset function is asked for. A strategy calls the function once per
// input pipeline, each time with another context; the function passes it to
// Dataset::shard(context).
//   Source  tf.distribute.InputContext, whose names and messages these are.
#pragma once
#include <cstdint>

#include "core/base/error.h"

namespace cairn {

// Pipelines 0 .. num_input_pipelines - 1 together read the data once. The defaults are those of a
// program without a strategy.
struct InputContext {
  std::int64_t num_input_pipelines = 1;   // how many pipelines read the data between them
  std::int64_t input_pipeline_id = 0;     // which of them this one is: [0, num_input_pipelines)
  std::int64_t num_replicas_in_sync = 1;  // replicas that a global batch is dealt out to

  // The part of a global batch that one replica gets: global_batch_size / num_replicas_in_sync.
  //   Errors  InvalidArgument: it does not divide evenly.
  std::int64_t get_per_replica_batch_size(std::int64_t global_batch_size) const {
    if (num_replicas_in_sync < 1 || global_batch_size % num_replicas_in_sync != 0)
      throw InvalidArgumentError(str("The `global_batch_size` ", global_batch_size,
                                     " is not divisible by `num_replicas_in_sync` ",
                                     num_replicas_in_sync, "; choose a multiple of it"));
    return global_batch_size / num_replicas_in_sync;
  }
};

}  // namespace cairn
