// From a description to open stages, and the iterator over them.
#include <algorithm>

#include "data/dataset/dataset.h"
#include "data/dataset/file_source.h"
#include "data/dataset/stage.h"
#include "data/file/byte_source.h"
#include "data/stage/dataset_wire.h"

namespace cairn {
namespace {

using Chain = std::vector<std::shared_ptr<const StageSpec>>;

Chain chain_of(const std::shared_ptr<const StageSpec>& last) {
  Chain chain;
  for (auto spec = last; spec; spec = spec->input) chain.push_back(spec);
  std::reverse(chain.begin(), chain.end());
  return chain;
}

template <typename Spec>
bool holds(const Chain& chain, std::size_t at) {
  return at < chain.size() && std::holds_alternative<Spec>(chain[at]->kind);
}

void require_no_hint(const ShardSpec& shard) {
  if (shard.is_hint())
    throw FailedPreconditionError(
        "the dataset has a shard_hint(), which says where it is to be dealt out, and nobody has: "
        "distribute it with AutoShardPolicy::kHint, or use shard()");
}

// A source of files takes over a shard() directly above it, and some a features(), in either order.
// `at` moves past the stages that it took over.
StagePtr open_files(const Chain& chain, std::size_t& at, const SourceOptions& how) {
  const FileSource& source = *file_source_of(*chain[0]);
  if (how.open_bytes && !source.is_text())
    throw UnimplementedError(str("files of the format \"", source.format(),
                                 "\" are read from disk alone: only text is read from memory"));
  const TakesOver takes = source.takes_over();
  SourceRequest request{.stage = chain[0], .options = how};
  bool sharded = takes == TakesOver::kNothing;
  for (at = 1; at < chain.size(); ++at) {
    if (holds<ShardSpec>(chain, at) && !sharded) {
      request.shard = std::get<ShardSpec>(chain[at]->kind);
      require_no_hint(request.shard);
      sharded = true;
    } else if (holds<FeaturesSpec>(chain, at) && !request.features &&
               takes == TakesOver::kShardAndFeatures) {
      request.features = chain[at];
    } else {
      break;
    }
  }
  return source.open(std::move(request));
}

StagePtr open_stages_with(const std::shared_ptr<const StageSpec>& last, const OpenOptions& options,
                          std::uint64_t salt);

struct OpenOver {
  StagePtr input;
  const std::shared_ptr<const StageSpec>& spec;
  const OpenOptions& options;
  std::uint64_t salt;
  // Also below a prefetch(): a map() waits for no job that has not begun.
  const OpenOptions& map_options;

  StagePtr operator()(const FeaturesSpec&) { return make_features_stage(std::move(input), spec); }
  StagePtr operator()(const MapSpec&) {
    return make_map_stage(std::move(input), *spec, map_options);
  }
  StagePtr operator()(const ShuffleSpec& shuffle) {
    return make_shuffle_stage(std::move(input), shuffle, spec->depth + salt,
                              options.buffer_bytes_max);
  }
  StagePtr operator()(const BatchSpec&) {
    return make_batch_stage(std::move(input), *spec, options.buffer_bytes_max);
  }
  StagePtr operator()(const RepeatSpec& repeat) {
    return make_repeat_stage(std::move(input), repeat, passes_are_equal(*spec->input));
  }
  StagePtr operator()(const TakeSpec& take) { return make_take_stage(std::move(input), take); }
  StagePtr operator()(const SkipSpec& skip) { return make_skip_stage(std::move(input), skip); }
  StagePtr operator()(const ShardSpec& shard) {
    require_no_hint(shard);
    return make_shard_stage(std::move(input), shard);
  }
  StagePtr operator()(const PrefetchSpec& prefetch) {
    return make_prefetch_stage(std::move(input), prefetch, spec->batched(), options);
  }
  StagePtr operator()(const CacheSpec&) { return make_cache_stage(std::move(input), *spec); }
  StagePtr operator()(const DealSpec& deal) {
    return make_deal_stage(std::move(input), deal, spec->input->element);
  }
  StagePtr operator()(const RebatchSpec& rebatch) {
    return make_rebatch_stage(std::move(input), rebatch, spec->input->element);
  }
  StagePtr operator()(const FilterSpec& filter) {
    return make_filter_stage(std::move(input), filter.graph, true);
  }
  StagePtr operator()(const TakeWhileSpec& take) {
    return make_filter_stage(std::move(input), take.graph, false);
  }
  StagePtr operator()(const HashSplitSpec&) {
    return make_hash_split_stage(std::move(input), *spec);
  }
  StagePtr operator()(const UnbatchSpec&) { return make_unbatch_stage(std::move(input), *spec); }
  StagePtr operator()(const PaddedBatchSpec&) {
    return make_padded_batch_stage(std::move(input), *spec, options.buffer_bytes_max);
  }
  StagePtr operator()(const WindowSpec&) {
    return make_window_stage(std::move(input), *spec, options.buffer_bytes_max);
  }
  StagePtr operator()(const ConcatenateSpec&) { return make_concatenate_stage(inputs()); }
  StagePtr operator()(const ZipSpec&) { return make_zip_stage(inputs(), spec->element); }
  StagePtr operator()(const SampleSpec& sample) { return make_sample_stage(inputs(), sample); }
  // The others are read within whatever reads the input, and read nothing ahead themselves. Their
  // shuffles have other keys than the input's.
  std::vector<StagePtr> inputs() {
    OpenOptions without_offload = options;
    without_offload.offload = nullptr;
    std::vector<StagePtr> all;
    all.push_back(std::move(input));
    for (const auto& other : spec->others)
      all.push_back(open_stages_with(other, without_offload,
                                     salt + (static_cast<std::uint64_t>(all.size()) << 16)));
    return all;
  }
  template <typename Source>
  StagePtr operator()(const Source&) {
    CAIRN_CHECK(false, "a source above another stage");
  }
};

StagePtr open_source(const Chain& chain, std::size_t& at, const OpenOptions& options) {
  if (holds<FilesSpec>(chain, 0))
    return open_files(chain, at, {options.line_events, options.pipes, options.open_bytes});
  at = 1;
  if (holds<ServiceSpec>(chain, 0)) return make_service_stage(*chain[0], options.open_elements);
  if (holds<GeneratorSpec>(chain, 0)) return make_generator_source(chain[0]);
  if (holds<TensorsSpec>(chain, 0)) return make_tensors_source(chain[0]);
  return make_range_source(std::get<RangeSpec>(chain[0]->kind));
}

// Only the last prefetch() reads ahead. Its job runs all stages below on the offload's lane; a
// second prefetch() there would wait, within that job, for a job on the same lane.
bool prefetches_above(const Chain& chain, std::size_t at) {
  for (++at; at < chain.size(); ++at)
    if (holds<PrefetchSpec>(chain, at)) return true;
  return false;
}

// Opens the stages from `at` up over `stage`. `salt` gives the shuffles of each file orders of
// their own. A shuffle's own key is its depth, so that two shuffles of one chain with one seed
// differ.
StagePtr open_over(StagePtr stage, const Chain& chain, std::size_t at, const OpenOptions& options,
                   std::uint64_t salt = 0) {
  OpenOptions without_offload = options;
  without_offload.offload = nullptr;
  for (; at < chain.size(); ++at) {
    const OpenOptions& which = prefetches_above(chain, at) ? without_offload : options;
    stage =
        std::visit(OpenOver{std::move(stage), chain[at], which, salt, options}, chain[at]->kind);
  }
  return stage;
}

std::size_t place_of_interleave(const Chain& chain) {  // 0: there is none
  for (std::size_t at = chain.size(); at-- > 1;)
    if (holds<InterleaveSpec>(chain, at)) return at;
  return 0;
}

// The stages below interleave() over one file. They get no Offload: what reads ahead does so above
// interleave().
StagePtr open_one_file(const Chain& chain, std::size_t file, const SourceOptions& how) {
  Chain one = chain;
  one[0] = source_of_file(*chain[0], file);
  std::size_t at = 0;
  StagePtr stage = open_source(
      one, at, {.line_events = how.events, .pipes = how.pipes, .open_bytes = how.open_bytes});
  return open_over(std::move(stage), one, at, {}, (static_cast<std::uint64_t>(file) + 1) << 32);
}

StagePtr open_interleaved(const Chain& chain, std::size_t at, const SourceOptions& how) {
  // A missing file is reported now, not hours into the run when its turn comes.
  if (!how.open_bytes)
    for (const std::string& path : paths_of(*chain[0])) verify_file(path, how.pipes);
  Chain below(chain.begin(), chain.begin() + static_cast<std::ptrdiff_t>(at));
  OpenFile open = [below = std::move(below), how](std::size_t file) {
    return open_one_file(below, file, how);
  };
  return make_interleave_stage(file_count(*chain[0]), std::get<InterleaveSpec>(chain[at]->kind),
                               std::move(open));
}

constexpr std::uint64_t kStateVersion = 1;

StagePtr open_stages_with(const std::shared_ptr<const StageSpec>& last, const OpenOptions& options,
                          std::uint64_t salt) {
  const Chain chain = chain_of(last);
  if (const std::size_t at = place_of_interleave(chain))
    return open_over(
        open_interleaved(chain, at, {options.line_events, options.pipes, options.open_bytes}),
        chain, at + 1, options, salt);
  std::size_t at = 0;
  StagePtr stage = open_source(chain, at, options);
  return open_over(std::move(stage), chain, at, options, salt);
}

}  // namespace

LineEvents keep_in(LinesRead& lines) {
  const auto keep_row = [&lines](const std::string& why) {
    if (lines.first_skipped.size() < kSkippedRowsTold) lines.first_skipped.push_back(why);
  };
  return {keep_row, [&lines](const std::string& path) { lines.empty_files.push_back(path); },
          [&lines](std::int64_t rows) { lines.filtered += rows; },
          [&lines](std::int64_t rows) { lines.unlabelled += rows; }};
}

StagePtr open_stages(const std::shared_ptr<const StageSpec>& last, const OpenOptions& options) {
  return open_stages_with(last, options, 0);
}

DatasetIterator::DatasetIterator(std::unique_ptr<Stage> last, std::uint64_t fingerprint,
                                 ElementSpec spec)
    : last_(std::move(last)), fingerprint_(fingerprint), spec_(std::move(spec)) {}
DatasetIterator::~DatasetIterator() = default;

IteratorState DatasetIterator::capture() const {
  StateWriter stages, all;
  if (!once_) last_->save(stages);
  all.number(kStateVersion);
  all.number(fingerprint_);
  all.number(static_cast<std::uint64_t>(ordinal_));
  all.blob(stages.bytes());
  return {all.take()};
}

// States travel over the wire and lie in checkpoints, so nothing in them is trusted: size, version
// and the description's fingerprint are checked here, and every stage checks its own numbers.
void DatasetIterator::restore(const IteratorState& state) {
  if (state.bytes.size() > kIteratorStateBytesMax)
    throw InvalidArgumentError(str("an iterator state of ", state.bytes.size(), " bytes, at most ",
                                   kIteratorStateBytesMax, " are possible"));
  last_->restart(0);
  ordinal_ = 0;
  if (state.bytes.empty()) return;
  StateReader in(state.bytes);
  std::uint64_t version = in.number();
  if (version != kStateVersion)
    throw InvalidArgumentError(str("an iterator state of version ", version,
                                   ", this program knows version ", kStateVersion));
  if (in.number() != fingerprint_)
    throw InvalidArgumentError(
        "the iterator state belongs to another dataset; begin anew, or use the description it was "
        "taken from");
  ordinal_ = in.number_up_to(kCountMax, "the ordinal");
  StateReader stages(in.blob());
  in.expect_end();
  if (once_) return;
  last_->load(stages);
  stages.expect_end();
}

void DatasetIterator::mend() {
  if (!broken_) return;
  restore(state_);
  broken_ = false;
}

// broken_ is set first and cleared last: if a stage throws, the stages stand anywhere, and the next
// call puts them back to state_. So an error costs no element, and a call may be repeated after the
// cure.
std::optional<Element> DatasetIterator::next() {
  mend();
  broken_ = true;  // unless all goes well
  Block block = last_->next(1);
  std::optional<Element> element;
  if (!block.empty()) {
    element = block.element(0);
    ++ordinal_;
    state_ = capture();
  }
  broken_ = false;
  return element;
}

// Going back means beginning anew: stages only move forward.
void DatasetIterator::skip_to(std::int64_t ordinal) {
  if (ordinal < 0)
    throw InvalidArgumentError(str("skip_to: ordinal is ", ordinal, ", it must be at least 0"));
  mend();
  if (once_) {
    ordinal_ = ordinal;
    state_ = capture();
    return;
  }
  broken_ = true;
  std::int64_t before = ordinal_;
  if (ordinal < before) last_->restart(0);
  std::int64_t from = ordinal < before ? 0 : before;
  ordinal_ = from + last_->skip(ordinal - from);
  state_ = capture();
  broken_ = false;
}

std::int64_t DatasetIterator::skipped() const { return last_->skipped(); }

std::int64_t ordinal(const IteratorState& state) {
  StateReader in(state.bytes);
  in.number();
  in.number();
  return in.number_up_to(kCountMax, "the ordinal");
}

std::unique_ptr<DatasetIterator> open(const Dataset& dataset, const IteratorState& state,
                                      const OpenOptions& options) {
  if (!dataset.defined())
    throw InvalidArgumentError(
        "open(): the dataset is empty; begin with Dataset::csv(), range(), ...");
  auto iterator = std::make_unique<DatasetIterator>(open_stages(dataset.last(), options),
                                                    fingerprint(dataset), dataset.element_spec());
  iterator->once_ = reads_once(*dataset.last());
  iterator->restore(state);
  iterator->state_ = iterator->capture();
  return iterator;
}

}  // namespace cairn
