// Stage: one open step of a pipeline. DatasetIterator drives the last one; each drives the one
// below it.
//
// The one rule that makes iterators resumable: a stage never takes more from below than it was
// asked for, so its state is exact after every call. Shuffle, prefetch and a map() with parallel
// calls have to read ahead; they keep the state that the stage below had before they did.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>

#include "data/dataset/block.h"
#include "data/dataset/dataset_iterator.h"
#include "data/dataset/stage_spec.h"
#include "data/dataset/state.h"

namespace cairn {

// An open step.
//   Thread  one at a time. A call that throws may have moved the stage: call restart() and load()
//           before the next one.
class Stage {
 public:
  virtual ~Stage() = default;
  // From 1 to `most` elements; none at the end, however often it is asked.
  virtual Block next(std::int64_t most) = 0;
  // Drops up to `count` elements. Returns how many: fewer only at the end.
  virtual std::int64_t skip(std::int64_t count);
  // Goes back to the beginning. `epoch` is 0 at first, and differs for each pass that repeat()
  // stages above make. Shuffles draw their orders from it.
  virtual void restart(std::uint64_t epoch) = 0;
  // Where the stage stands, the stages below included, after what it handed out.
  virtual void save(StateWriter& out) const = 0;
  virtual void load(StateReader& in) = 0;    // called right after restart()
  virtual std::int64_t skipped() const = 0;  // lines left out
};

// A stage above another one: what most of them share. It passes everything on; a stage with a state
// of its own overrides restart(), save() and load() together.
class StageOver : public Stage {
 public:
  explicit StageOver(std::unique_ptr<Stage> input) : input_(std::move(input)) {}
  void restart(std::uint64_t epoch) override { input_->restart(epoch); }
  void save(StateWriter& out) const override { input_->save(out); }
  void load(StateReader& in) override { input_->load(in); }
  std::int64_t skipped() const override { return input_->skipped(); }

 protected:
  std::unique_ptr<Stage> input_;
};

using StagePtr = std::unique_ptr<Stage>;

// ---- The state of a stage that reads ahead ----
// The state below from before the elements that it hands out next, and how many of those are gone.
inline constexpr std::int64_t kExamplesAheadAtOnce = 256;  // no more are gone than that
void load_ahead(Stage& input, StateReader& in);
// Reads nothing ahead, and has states of that form, so that a stage which does can go on from them
// and the other way round: a checkpoint made by a worker can be read by a tool without threads.
StagePtr make_nothing_ahead_stage(StagePtr input);

StagePtr make_range_source(const RangeSpec& spec);
StagePtr make_generator_source(std::shared_ptr<const StageSpec> spec);
StagePtr make_tensors_source(std::shared_ptr<const StageSpec> spec);
// `open`, or what the description itself brought along.
//   Errors  FailedPrecondition: neither is there.
StagePtr make_service_stage(const StageSpec& spec, const OpenElements& open);

StagePtr make_features_stage(StagePtr input, std::shared_ptr<const StageSpec> spec);
StagePtr make_map_stage(StagePtr input, const StageSpec& spec, const OpenOptions& options);
// With several calls at once; `options` have an offload.
StagePtr make_parallel_map_stage(StagePtr input, const StageSpec& spec, const OpenOptions& options);
// `keep`: elements that do not pass are left out, and the rest goes on; else they are the end.
StagePtr make_filter_stage(StagePtr input, const std::vector<std::byte>& graph, bool keep);
StagePtr make_hash_split_stage(StagePtr input, const StageSpec& spec);
StagePtr make_unbatch_stage(StagePtr input, const StageSpec& spec);
StagePtr make_padded_batch_stage(StagePtr input, const StageSpec& spec, std::size_t bytes_max);
StagePtr make_window_stage(StagePtr input, const StageSpec& spec, std::size_t bytes_max);
StagePtr make_concatenate_stage(std::vector<StagePtr> inputs);
StagePtr make_zip_stage(std::vector<StagePtr> inputs, const ElementSpec& element);
StagePtr make_sample_stage(std::vector<StagePtr> inputs, const SampleSpec& spec);
StagePtr make_shuffle_stage(StagePtr input, const ShuffleSpec& spec, std::uint64_t salt,
                            std::size_t bytes_max);
StagePtr make_batch_stage(StagePtr input, const StageSpec& spec, std::size_t bytes_max);
// Whether all passes over the dataset have as many elements. False if an order that is drawn anew
// for each decides which ones there are, as below a filter(), or when a sample ends; or if they are
// a program's own.
bool passes_are_equal(const StageSpec& spec);
// `equal_passes`: those over the input are.
StagePtr make_repeat_stage(StagePtr input, const RepeatSpec& spec, bool equal_passes);
StagePtr make_take_stage(StagePtr input, const TakeSpec& spec);
StagePtr make_skip_stage(StagePtr input, const SkipSpec& spec);
StagePtr make_shard_stage(StagePtr input, const ShardSpec& spec);
StagePtr make_prefetch_stage(StagePtr input, const PrefetchSpec& spec, bool batched,
                             const OpenOptions& options);

// Opens the stages below interleave() on one of the files, at its beginning.
using OpenFile = std::function<StagePtr(std::size_t file)>;
StagePtr make_interleave_stage(std::size_t files, const InterleaveSpec& spec, OpenFile open);
// `batches`: what the input yields.
StagePtr make_deal_stage(StagePtr input, const DealSpec& spec, const ElementSpec& batches);
// `batches`: what the input yields.
StagePtr make_rebatch_stage(StagePtr input, const RebatchSpec& spec, const ElementSpec& batches);
StagePtr make_cache_stage(StagePtr input, const StageSpec& spec);

// Keeps in `lines` what happens; `lines` must outlive the stages. Only the first lines that were
// left out are kept; their number is Stage::skipped()'s.
LineEvents keep_in(LinesRead& lines);

// Opens the whole chain, at its beginning.
//   Errors  NotFound: a file is missing.
StagePtr open_stages(const std::shared_ptr<const StageSpec>& last, const OpenOptions& options);

}  // namespace cairn
