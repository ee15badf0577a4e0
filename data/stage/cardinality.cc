// How many elements a dataset has, from its description where it says so. Only files of
// lines or records must be read: how many rows one has is known to its line ends alone, and where
// bad lines are skipped, to what is in them.
#include <algorithm>
#include <functional>

#include "data/dataset/dataset.h"
#include "data/dataset/file_source.h"
#include "data/dataset/stage.h"

namespace cairn {
namespace {

using SpecPtr = std::shared_ptr<const StageSpec>;

std::int64_t count_stage(const SpecPtr& spec, LinesRead& lines);
std::int64_t count_by_reading(const SpecPtr& spec, LinesRead& lines);
bool is_read_to_count(const SpecPtr& spec);

// A source of lines takes over a shard() above it, and CSV also features() (data/stage/open.cc), so
// they are counted together: the shard deals out lines, bad ones included.
bool is_of_lines(const SpecPtr& spec) {
  if (const FileSource* source = file_source_of(*spec)) return !source->counts();
  bool passes = std::holds_alternative<ShardSpec>(spec->kind) ||
                std::holds_alternative<FeaturesSpec>(spec->kind);
  return passes && is_of_lines(spec->input);
}

// A copy of the chain `last` over a source that can be changed; `source` is set to that source.
// Descriptions are immutable and shared, so the original must stay as it is.
std::shared_ptr<StageSpec> copy_of(const SpecPtr& last, std::shared_ptr<StageSpec>& source) {
  auto copy = std::make_shared<StageSpec>(*last);
  if (last->input) {
    copy->input = copy_of(last->input, source);
  } else {
    source = copy;
  }
  return copy;
}

// The stages below interleave() are counted file by file, because each file goes through them on
// its own: a take(10) there takes ten elements per file.
std::int64_t count_files(const SpecPtr& last, LinesRead& lines) {
  std::shared_ptr<StageSpec> source;
  const SpecPtr one = copy_of(last, source);
  const StageSpec all = *source;
  std::int64_t sum = 0;
  for (std::size_t file = 0; file < file_count(all); ++file) {
    source->kind = source_of_file(all, file)->kind;
    const std::int64_t n = count_stage(one, lines);
    if (n == kInfiniteCardinality) return n;
    sum += n;
  }
  return sum;
}

// One rule per kind of stage. kInfiniteCardinality is negative, so every rule that computes with a
// count looks for it first.
struct Count {
  const SpecPtr& spec;
  LinesRead& lines;
  std::int64_t below() const { return count_stage(spec->input, lines); }

  std::int64_t operator()(const FilesSpec& files) { return files.source->count(keep_in(lines)); }
  std::int64_t operator()(const GeneratorSpec&) { return count_by_reading(spec, lines); }
  std::int64_t operator()(const RangeSpec& range) { return range.n; }
  std::int64_t operator()(const TensorsSpec& tensors) {
    return tensors.columns.front().second.shape()[0];
  }
  std::int64_t operator()(const ServiceSpec& service) {
    throw InvalidArgumentError(
        str("how many elements the data service at ", service.source.dispatcher,
            " gives to one consumer is known at the end alone: count the dataset that it reads"));
  }
  std::int64_t operator()(const FeaturesSpec&) { return below(); }
  std::int64_t operator()(const MapSpec&) { return below(); }
  std::int64_t operator()(const ShuffleSpec&) { return below(); }
  std::int64_t operator()(const PrefetchSpec&) { return below(); }
  std::int64_t operator()(const CacheSpec&) { return below(); }
  std::int64_t operator()(const InterleaveSpec&) { return count_files(spec->input, lines); }
  std::int64_t operator()(const BatchSpec& batch) {
    std::int64_t n = below();
    if (n == kInfiniteCardinality) return n;
    return n / batch.n + (n % batch.n != 0 && !batch.drop_remainder ? 1 : 0);
  }
  std::int64_t operator()(const PaddedBatchSpec& batch) {
    return (*this)(BatchSpec{batch.n, batch.drop_remainder});
  }
  std::int64_t operator()(const WindowSpec& window) {
    const std::int64_t n = below(), span = (window.size - 1) * window.stride + 1;
    if (n == kInfiniteCardinality) return n;
    if (!window.drop_remainder) return n / window.shift + (n % window.shift != 0 ? 1 : 0);
    return n < span ? 0 : (n - span) / window.shift + 1;
  }
  // Which elements pass, or how many rows batches have, is known to their reader alone.
  std::int64_t operator()(const FilterSpec&) { return read(); }
  std::int64_t operator()(const HashSplitSpec&) { return read(); }
  std::int64_t operator()(const UnbatchSpec&) { return read(); }
  // It may be the end of what has none.
  std::int64_t operator()(const TakeWhileSpec&) { return count_by_reading(spec, lines); }
  std::int64_t operator()(const ConcatenateSpec&) { return sum(); }
  std::int64_t operator()(const SampleSpec& sample) {
    return sample.stop_on_empty ? read() : sum();
  }
  std::int64_t operator()(const ZipSpec&) {
    std::int64_t least = below();
    for (const SpecPtr& other : spec->others) {
      const std::int64_t n = count_stage(other, lines);
      if (least == kInfiniteCardinality || (n != kInfiniteCardinality && n < least)) least = n;
    }
    return least;
  }
  // The pass over the input only asks whether it ends, so its events are dropped: the pass over all
  // stages reports them.
  std::int64_t read() {
    LinesRead untold;
    const bool is_infinite = count_stage(spec->input, untold) == kInfiniteCardinality;
    return is_infinite ? kInfiniteCardinality : count_by_reading(spec, lines);
  }
  std::int64_t sum() {
    std::int64_t sum = below();
    for (const SpecPtr& other : spec->others) {
      const std::int64_t n = count_stage(other, lines);
      if (sum == kInfiniteCardinality || n == kInfiniteCardinality) return kInfiniteCardinality;
      sum = n > INT64_MAX - sum ? INT64_MAX : sum + n;
    }
    return sum;
  }
  std::int64_t operator()(const DealSpec& deal) {
    const std::int64_t n = below(), replicas = deal.replicas;
    if (n == kInfiniteCardinality) return n;
    if (n > INT64_MAX / replicas) return INT64_MAX;
    return deal.cut ? n * replicas : (n + replicas - 1) / replicas * replicas;
  }
  // How many examples the batches below have together is known to their reader alone.
  std::int64_t operator()(const RebatchSpec&) { return read(); }
  std::int64_t operator()(const RepeatSpec& repeat) {
    if (repeat.count > 1 && !passes_are_equal(*spec->input)) return read();
    std::int64_t n = repeat.count == 0 ? 0 : below();
    if (n <= 0 || repeat.count < 0) return n == 0 ? 0 : kInfiniteCardinality;
    return n > INT64_MAX / repeat.count ? INT64_MAX : n * repeat.count;
  }
  // Data that must be read to be counted is read only as far as it is taken.
  std::int64_t operator()(const TakeSpec& take) {
    if (take.count > 0 && is_read_to_count(spec->input)) return count_by_reading(spec, lines);
    std::int64_t n = take.count == 0 ? 0 : below();
    return n == kInfiniteCardinality ? take.count : std::min(n, take.count);
  }
  std::int64_t operator()(const SkipSpec& skip) {
    std::int64_t n = below();
    return n == kInfiniteCardinality ? n : std::max<std::int64_t>(0, n - skip.count);
  }
  std::int64_t operator()(const ShardSpec& shard) {
    std::int64_t n = below();
    if (shard.is_hint()) return n;
    if (n == kInfiniteCardinality) return n;
    return n <= shard.index ? 0 : (n - shard.index - 1) / shard.num + 1;
  }
};

bool is_read_to_count(const SpecPtr& spec) {
  const StageKind& kind = spec->kind;
  return is_of_lines(spec) || std::holds_alternative<GeneratorSpec>(kind) ||
         std::holds_alternative<FilterSpec>(kind) || std::holds_alternative<HashSplitSpec>(kind) ||
         std::holds_alternative<UnbatchSpec>(kind) || std::holds_alternative<RebatchSpec>(kind) ||
         std::holds_alternative<TakeWhileSpec>(kind) ||
         (spec->input && is_read_to_count(spec->input)) ||
         std::ranges::any_of(spec->others, is_read_to_count);
}

std::int64_t count_by_reading(const SpecPtr& spec, LinesRead& lines) {
  const StagePtr stage = open_stages(spec, {.line_events = keep_in(lines)});
  const std::int64_t count = stage->skip(INT64_MAX);
  lines.skipped += stage->skipped();
  return count;
}

std::int64_t count_stage(const SpecPtr& spec, LinesRead& lines) {
  if (is_of_lines(spec)) return count_by_reading(spec, lines);
  return std::visit(Count{spec, lines}, spec->kind);
}

// ---- passes that differ ----

bool any_below(const StageSpec& spec, const std::function<bool(const StageSpec&)>& is) {
  return is(spec) || (spec.input && any_below(*spec.input, is)) ||
         std::ranges::any_of(spec.others, [&](const auto& other) { return any_below(*other, is); });
}

bool draws_an_order(const StageSpec& spec) {
  return std::holds_alternative<ShuffleSpec>(spec.kind) ||
         std::holds_alternative<SampleSpec>(spec.kind);
}

// How many elements it gives depends on which ones it is given, and in which order.
bool counts_by_content(const StageSpec& spec) {
  const StageKind& kind = spec.kind;
  return std::holds_alternative<FilterSpec>(kind) || std::holds_alternative<TakeWhileSpec>(kind) ||
         std::holds_alternative<HashSplitSpec>(kind) || std::holds_alternative<UnbatchSpec>(kind) ||
         std::holds_alternative<RebatchSpec>(kind);
}

bool may_differ(const StageSpec& spec) {
  if (std::holds_alternative<GeneratorSpec>(spec.kind)) return true;
  if (const auto* sample = std::get_if<SampleSpec>(&spec.kind)) return sample->stop_on_empty;
  return counts_by_content(spec) && any_below(spec, draws_an_order);
}

}  // namespace

bool passes_are_equal(const StageSpec& spec) { return !any_below(spec, may_differ); }

std::int64_t cardinality(const Dataset& dataset, LinesRead* lines) {
  dataset.element_spec();  // refuses an empty one
  LinesRead unasked;
  return count_stage(dataset.last(), lines != nullptr ? *lines : unasked);
}

}  // namespace cairn
