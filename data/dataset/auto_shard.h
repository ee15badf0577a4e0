// How a dataset of global batches becomes what each of several workers, and each of its replicas,
// reads: which part of the data is a worker's, and how batches are cut. Descriptions only: nothing
// is read here.
//   Source  tf.data's AutoShardPolicy and both of its ways to rebatch, whose names these are.
//   Thread  any.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset/dataset.h"

namespace cairn {

// Which part of the data a worker reads.
enum class AutoShardPolicy : std::uint8_t {
  kAuto,  // kFile, where there is a file for every worker; otherwise kData
  kFile,  // files worker, worker + workers, and so on
  kData,  // all of it, and keeps its pieces of every batch
  kOff,   // all of it
  kHint,  // the shard that shard_hint() in the pipeline leaves to it
};

// How a global batch becomes pieces, one for each replica of all workers.
enum class BatchSplitter : std::uint8_t {
  // Each batch on its own, in pieces of ceil(size / replicas): the last pieces may be shorter, or
  // empty. A step sees the examples of one batch, as it does on one device.
  kCut,
  // The stream of examples, whatever batches it came in, by sizes that differ by one at most: the
  // larger ones first. Of a dataset whose batch size is not in its description: kCut.
  kSizes,
  // As the reference chooses: kCut where the data is dealt out by kData, else kSizes.
  kByPolicy,
};

std::string name_of(AutoShardPolicy policy);  // "FILE"

// One of the workers that share a dataset. Each has as many replicas.
struct WorkerShare {
  std::int64_t workers = 1, worker = 0, replicas = 1;
};

struct ShardedDataset {
  Dataset dataset;
  AutoShardPolicy applied = AutoShardPolicy::kOff;  // never kAuto
  std::string warning;                              // empty: there is none
};

// Worker `worker`'s part of the data, in batches as they are.
//   Errors  InvalidArgument: kFile, and fewer files than workers; kHint without a hint; a hint, and
//           another policy. NotFound: kFile, several workers, and a source that is no files.
ShardedDataset auto_shard(const Dataset& dataset, AutoShardPolicy policy, std::int64_t workers,
                          std::int64_t worker);

// The pieces for a worker's replicas: as many elements per step as it has replicas, and at the end
// perhaps fewer.
struct ReplicaPieces {
  Dataset dataset;
  AutoShardPolicy applied = AutoShardPolicy::kOff;  // never kAuto
  std::string warning;                              // empty: there is none
  // The batches of which `dataset` are this worker's pieces, where every worker reads the same ones
  // and each is cut on its own; else undefined. For readers that cut by themselves.
  Dataset cut_batches;
};
//   Errors  those of auto_shard(). InvalidArgument: the dataset's elements are single examples.
ReplicaPieces pieces_of_worker(const Dataset& dataset, AutoShardPolicy policy,
                               BatchSplitter splitter, const WorkerShare& share);

// By which sizes BatchSplitter::kSizes cuts on a worker: those of all replicas, beginning with its
// first one's.
std::vector<std::int64_t> batch_sizes_for_worker(std::int64_t global_batch_size,
                                                 const WorkerShare& share);

// The size of a batch, as the last batch() in the description has it; 0: it does not say.
std::int64_t described_batch_size(const Dataset& dataset);

}  // namespace cairn
