// The book of dataset positions: which elements were taken, which are committed, and from which
// state each can be reached.
//
// A pipeline is one stream of elements, numbered by ordinals. An element is taken when the closure
// that will read it is first sent, and committed with that closure; until then it belongs to that
// closure, on whichever lane it runs.
//   Thread  the engine's.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/cluster/closure.h"
#include "core/base/error.h"
#include "core/graph/function.h"
#include "data/dataset/dataset.h"

namespace cairn {

// The result of create_per_worker_dataset: a pipeline for each lane, or one that all lanes draw
// from. It is a description alone, and holds no open file: a lane opens the pipelines that its
// closures take from, and opens them anew wherever they have to go on. Immutable, and shared by all
// closures that name it.
class PerWorkerDataset final : public IteratorSource {
 public:
  PerWorkerDataset(std::string name, std::uint64_t first_pipeline,
                   std::vector<std::vector<std::byte>> descriptions, ElementSpec spec, bool shared)
      : name_(std::move(name)),
        first_pipeline_(first_pipeline),
        descriptions_(std::move(descriptions)),
        spec_(std::move(spec)),
        shared_(shared) {}
  const ElementSpec& element_spec() const override { return spec_; }
  const std::string& name() const { return name_; }
  // The pipeline that lane `lane` (of all the cluster's) draws from.
  std::uint64_t pipeline(std::size_t lane) const {
    return first_pipeline_ + (shared_ ? 0 : lane % descriptions_.size());
  }
  // Pipelines are numbered over all datasets of the engine, and those of one dataset follow one
  // another.
  std::uint64_t first_pipeline() const { return first_pipeline_; }
  std::size_t pipelines() const { return descriptions_.size(); }
  bool shared() const { return shared_; }
  // The serialised Dataset, as it is sent to a lane. std::out_of_range: the pipeline is another
  // dataset's.
  const std::vector<std::byte>& description(std::uint64_t pipeline) const {
    return descriptions_.at(pipeline - first_pipeline_);
  }

 private:
  std::string name_;
  std::uint64_t first_pipeline_;
  std::vector<std::vector<std::byte>> descriptions_;
  ElementSpec spec_;
  bool shared_;
};

// Where one pipeline stands, as a checkpoint holds it. What is below `next` and not open is
// committed.
struct PipelinePosition {
  // The dataset's name with the pipeline's number in it: a resumed run finds its positions by it.
  std::string name;
  // The first element that was never taken.
  std::uint64_t next = 0;
  // Elements that were taken and not committed: a run that goes on from here takes them again.
  struct Open {
    std::uint64_t ordinal;
    std::uint32_t count;
  };
  std::vector<Open> open;
  // ordinal -> iterator state there; the lowest reaches every open element
  std::map<std::uint64_t, std::vector<std::byte>> states;
};

struct RestoreOptions;
// Leaves those that a restore is to go on from.
void keep_wanted(std::vector<PipelinePosition>& positions, const RestoreOptions& options);
// Those of the dataset of this name.
std::vector<const PipelinePosition*> positions_of(const std::vector<PipelinePosition>& positions,
                                                  const std::string& dataset);
// Whether the position may be one in the dataset.
bool is_position_in(const Dataset& dataset, const PipelinePosition& position);
// The error where it is not: `name` is the dataset's.
InvalidArgumentError other_dataset(const std::string& name);

// The book of one pipeline. States are kept sparsely, and only from the highest one that still
// reaches every open element: anything lower can never be asked for again.
class Pipeline {
 public:
  explicit Pipeline(std::string name) : position_{std::move(name), 0, {}, {{0, {}}}} {}
  explicit Pipeline(PipelinePosition position, bool ended = false);

  // The next `count` elements: first those that a restore left open, then new ones.
  TakeRecord take(std::uint64_t id, std::uint32_t count);
  // These elements were taken, as a journal says. False: they had been taken before.
  bool take_again(const TakeRecord& take);
  // The known state from which `ordinal` is reached by the least skipping.
  std::pair<std::uint64_t, const std::vector<std::byte>*> base(std::uint64_t ordinal) const;
  // `state` is the iterator's after the elements; empty bytes: not known (a failed closure: its
  // elements are spent all the same).
  void commit(const TakeRecord& take, std::uint64_t state_ordinal, std::vector<std::byte> state);
  // The data ends before this take does: nothing is taken from here any more.
  void end(const TakeRecord& take);
  bool ended() const { return ended_; }
  bool any_open() const { return !position_.open.empty(); }
  PipelinePosition position() const;  // as of now
  std::uint64_t next() const { return position_.next; }
  const std::string& name() const { return position_.name; }

 private:
  void prune();
  PipelinePosition position_;
  std::vector<PipelinePosition::Open> revisit_;  // left open by the run before
  bool ended_ = false;
};

}  // namespace cairn
