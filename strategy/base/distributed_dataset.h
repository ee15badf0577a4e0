// DistributedDataset: a dataset as a strategy's replicas read it, and DistributedIterator, a pass
// over it.
//
//   auto batches = strategy.experimental_distribute_dataset(dataset.batch(64));
//   auto pass = strategy.iterate(batches);
//   while (...) strategy.run(step, {pass});              // step(Iterator): get_next() within
//   for (const DistributedElement& batch : batches)      // or the program draws the batches itself
//     strategy.run(step, {batch["x"], batch.label()});   // step(Array x, Array label)
//
// Nothing can be appended to it: map(), batch() and all the rest belong before the distribution.
//   Thread  one at a time, as its strategy, which outlives both.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/function.h"
#include "data/dataset/auto_shard.h"
#include "data/dataset/dataset.h"
#include "data/dataset/input_context.h"
#include "strategy/base/distributed_values.h"

namespace cairn {

class Strategy;

// Makes the dataset of one input pipeline.
using DatasetFunction = std::function<Dataset(const InputContext&)>;

enum class InputReplicationMode : std::uint8_t { kPerWorker, kPerReplica };

// How often the workers of a cluster come to an element.
enum class Visitation : std::uint8_t {
  kByPolicy,     // as the autoshard policy has it: under kOff each worker comes to it
  kExactlyOnce,  // one closure takes it, whatever is lost; a fast worker takes more of them
};

struct InputOptions {
  // Which part of the data each of several workers reads. Under parameter servers it is for the
  // pipelines of a per-worker dataset, and kAuto is kOff there, as in the reference: each worker
  // reads everything.
  AutoShardPolicy auto_shard_policy = AutoShardPolicy::kAuto;
  // How often an element of a per-worker dataset is read. kExactlyOnce: each worker has its own
  // files where the policy is FILE or AUTO comes to it; if these are too few, all share one stream.
  // A worker that has finished its own part takes over some of the others'. When no elements are
  // left and all are committed, the program's wait ends with OutOfRange.
  Visitation visitation = Visitation::kByPolicy;
  // How a global batch is cut for the replicas. By default a step sees the examples of one batch,
  // under every strategy; the reference does otherwise where the data is files (kByPolicy).
  BatchSplitter batch_splitter = BatchSplitter::kCut;
  // How many steps are read ahead; 0: as many as the dataset's own prefetch() says.
  std::int64_t experimental_per_replica_buffer_size = 0;
  // A processor's memory is its replicas' own, so that these change nothing there; but what means
  // nothing is refused. Strategies whose replicas have GPUs read the next step's elements, and send
  // them there, while a step computes, unless experimental_fetch_to_device is false.
  bool experimental_fetch_to_device = true;
  InputReplicationMode experimental_replication_mode = InputReplicationMode::kPerWorker;
  bool experimental_place_dataset_on_device = false;
};

// The dataset, read ahead by as many steps as the options say, of so many elements each.
Dataset read_ahead(const Dataset& dataset, const InputOptions& options, std::int64_t elements);

class DistributedIterator;

class DistributedDataset {
 public:
  // The spec of what a replica gets. Made of a dataset: a batch has a known size where no other can
  // come. Made of a dataset function: the columns, and what the function says of sizes; under
  // parameter servers, where the function is called for each pipeline: FailedPrecondition.
  const ElementSpec& element_spec() const;

  // A new pass over it, element by element.
  DistributedIterator begin() const;
  std::default_sentinel_t end() const { return {}; }

  // ---- for strategies ----
  // The distributed dataset, or the function's result; undefined: the function was not called yet.
  const Dataset& dataset() const { return dataset_; }
  const DatasetFunction& function() const { return function_; }  // empty: of a dataset
  const InputOptions& options() const { return options_; }

 private:
  friend class Strategy;
  Strategy* strategy_ = nullptr;
  Dataset dataset_;
  DatasetFunction function_;
  InputOptions options_;
  std::optional<ElementSpec> spec_;
};

// The elements that the replicas of this process take in one step, one for each.
class DistributedElement {
 public:
  DistributedElement(std::shared_ptr<const ElementSpec> spec, std::vector<Element> of_replicas)
      : spec_(std::move(spec)), of_replicas_(std::move(of_replicas)) {}

  // The column by name; bare with one replica.
  //   Errors  InvalidArgument: there is none; names the nearest.
  PerReplica operator[](const std::string& column) const;
  //   Errors  FailedPrecondition: the dataset names no label.
  PerReplica label() const;
  const std::vector<Element>& of_replicas() const { return of_replicas_; }

 private:
  PerReplica column(std::size_t place) const;
  std::shared_ptr<const ElementSpec> spec_;
  std::vector<Element> of_replicas_;
};

// Copies are the same pass.
class DistributedIterator {
 public:
  using value_type = DistributedElement;
  using difference_type = std::ptrdiff_t;

  DistributedIterator(Strategy& strategy, std::shared_ptr<const IteratorSource> source);

  //   Errors  OutOfRange: the data has ended. FailedPrecondition: under parameter servers, where
  //           elements go from the data to the workers: pass the iterator to run() there. Those of
  //           reading.
  DistributedElement get_next();
  // Empty at the end, however often it is asked.
  std::optional<DistributedElement> get_next_as_optional();
  // The spec of the elements that a replica gets.
  const ElementSpec& element_spec() const { return *spec_; }

  // To be passed to run() and call(), where the step takes its own elements.
  const std::shared_ptr<const IteratorSource>& source() const { return source_; }
  operator std::shared_ptr<const IteratorSource>() const {  // NOLINT(google-explicit-constructor)
    return source_;
  }

  // For range-for: the element at hand, which the first look draws.
  const DistributedElement& operator*() const { return *at_hand_; }
  DistributedIterator& operator++() {
    at_hand_ = get_next_as_optional();
    return *this;
  }
  void operator++(int) { ++*this; }
  bool operator==(std::default_sentinel_t) const { return !at_hand_; }

 private:
  friend class DistributedDataset;
  Strategy* strategy_;
  std::shared_ptr<const IteratorSource> source_;
  std::shared_ptr<const ElementSpec> spec_;
  std::optional<DistributedElement> at_hand_;
};

}  // namespace cairn
