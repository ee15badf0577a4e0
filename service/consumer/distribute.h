// distribute(): a dataset whose elements come from a data service, for training like any other.
//
//   const Dataset train = service::distribute(
//       Dataset::csv(files, schema).features(columns).batch(256),
//       {.dispatcher = "host:5050", .job_name = "train", .mode = ProcessingMode::kDynamic});
//   auto batches = coordinator.create_per_worker_dataset(train);
//
//   Source  tf.data.experimental.service.distribute.
//   Who reads   each process that opens it is one consumer of the job: a worker, or, under a
//           strategy without workers, this program. A job without a name is one per process.
//   Position    there is none. A run that goes on from a checkpoint reads on from what the job has
//           left, and counts on. A worker that is lost loses the elements that its closures had;
//           what it had not handed to one goes to the job's other consumers. A closure that is run
//           again reads the same elements, if they are one of its lane's last four takes, and else
//           others. One that finds fewer elements than it takes, at the end of the job, loses them.
//   Above it    Put batch(), shuffle() and prefetch() into the dataset that the service reads:
//           above it, the elements that they hold are lost with the worker. A repeat() above it has
//           no effect.
#pragma once
#include <cstdint>
#include <string>

#include "data/dataset/dataset.h"
#include "service/base/compression.h"
#include "service/base/processing_mode.h"

namespace cairn::service {

struct DistributeOptions {
  std::string dispatcher;  // its address; empty: that of CAIRN_DATA_SERVICE
  std::string job_name;    // empty: each process that reads has a job of its own
  ProcessingMode mode = ProcessingMode::kOff;
  Compression compression = Compression::kAuto;
  // The service's id. Empty: the reading process's; this program's is CAIRN_CLUSTER_ID, or "cairn".
  std::string cluster;
  std::int64_t buffer_elements = 16;  // that a consumer has ahead
  // Coordinated reads: so many consumers of the named job read it in rounds, of as many consecutive
  // elements of one data worker, and each, by its index, is given one of every round.
  std::uint32_t num_consumers = 0, consumer_index = 0;  // 0 consumers: each reads for itself
  // For reading in this program; workers use their own. Empty: CAIRN_TOKEN_FILE, or CAIRN_TOKEN.
  std::string token;
};

// Errors  InvalidArgument: no dispatcher, a dataset that comes from a service already, or options
//         that do not fit.
Dataset distribute(const Dataset& dataset, DistributeOptions options);

}  // namespace cairn::service
