#include "service/dispatcher/splits.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <variant>
#include <vector>

#include "data/dataset/auto_shard.h"
#include "data/dataset/file_source.h"
#include "data/dataset/stage_spec.h"

namespace cairn::service {
namespace {

using SpecPtr = std::shared_ptr<const StageSpec>;

// Enough for dozens of workers to finish together, few enough to be dealt by one process.
constexpr std::int64_t kSplitsWanted = 128;
// Far enough from where counting on overflows.
constexpr std::int64_t kElementsMax = std::int64_t{1} << 60;

// The chain with `change` of each stage in its place; nullptr leaves the stage out.
SpecPtr rebuilt(const SpecPtr& last, const std::function<SpecPtr(const SpecPtr&)>& change) {
  const SpecPtr below = last->input ? rebuilt(last->input, change) : nullptr;
  const SpecPtr own = change(last);
  if (own == nullptr) return below;
  if (!last->input || own->input != last->input || below == last->input) return own;
  auto copy = std::make_shared<StageSpec>(*own);
  copy->input = below;
  return copy;
}

bool is_repeat(const StageSpec& spec) { return std::holds_alternative<RepeatSpec>(spec.kind); }

// The name of a stage that cannot be read split by split; nullptr if this one can.
const char* counts_over_all(const StageSpec& spec) {
  if (std::holds_alternative<TakeSpec>(spec.kind)) return "take()";
  if (std::holds_alternative<SkipSpec>(spec.kind)) return "skip()";
  if (std::holds_alternative<TakeWhileSpec>(spec.kind)) return "take_while()";
  if (std::holds_alternative<ShardSpec>(spec.kind)) return "shard()";
  if (std::holds_alternative<DealSpec>(spec.kind)) return "deal()";
  const auto* window = std::get_if<WindowSpec>(&spec.kind);
  if (window != nullptr && (window->shift != window->size || window->stride != 1))
    return "window() whose windows overlap";
  return nullptr;
}

void refuse_what_counts(const StageSpec& spec) {
  if (!spec.others.empty())
    throw InvalidArgumentError(
        "the dataset is made of several, and processing mode DYNAMIC deals out the elements of "
        "one source: read them as jobs of their own, or use mode OFF");
  const char* call = counts_over_all(spec);
  if (call == nullptr) return;
  throw InvalidArgumentError(
      str("the dataset has a ", call,
          ", which counts over all of its elements, and processing mode DYNAMIC cuts it into "
          "splits that are read apart: leave it out, or use mode OFF"));
}

// How many elements a stage makes into one; 0: it makes no batches.
std::int64_t batched_by(const StageSpec& spec) {
  if (const auto* batch = std::get_if<BatchSpec>(&spec.kind)) return batch->n;
  if (const auto* padded = std::get_if<PaddedBatchSpec>(&spec.kind)) return padded->n;
  if (const auto* window = std::get_if<WindowSpec>(&spec.kind)) return window->size;
  return 0;
}

// A split's elements should be a multiple of `whole`, and `least` or more; both at most `size`.
struct Grain {
  std::int64_t size, whole = 1, least = 1;
  std::vector<std::int64_t> scales{1};  // elements of the source in one of each level of batches

  void add(const StageSpec& spec) {
    if (const std::int64_t n = batched_by(spec); n > 0) {
      scales.push_back(bounded(scales.back(), n));
      whole = bounded(whole, scales.back() / std::gcd(whole, scales.back()));
    } else if (std::holds_alternative<UnbatchSpec>(spec.kind) && scales.size() > 1) {
      scales.pop_back();
    } else if (const auto* shuffle = std::get_if<ShuffleSpec>(&spec.kind)) {
      least = std::max(least, bounded(shuffle->buffer_size, scales.back()));
    }
  }
  // a * b, or as much as there is.
  std::int64_t bounded(std::int64_t a, std::int64_t b) const {
    const std::int64_t most = std::max<std::int64_t>(1, size);
    return a > most / b ? most : a * b;
  }
};

void count_passes(std::int64_t& passes, const StageSpec& spec) {
  const auto* repeat = std::get_if<RepeatSpec>(&spec.kind);
  if (repeat == nullptr || passes == 0) return;
  if (repeat->count <= 0 || passes < 0)
    passes = repeat->count == 0 ? 0 : -1;
  else
    passes = passes > std::numeric_limits<std::int32_t>::max() / repeat->count
                 ? -1
                 : passes * repeat->count;
}

// Where bad records are left out, only reading shows which record an element is.
std::int64_t elements_of(const SpecPtr& source) {
  const FileSource* const files = file_source_of(*source);
  const bool seekable = files != nullptr ? files->counts()
                                         : std::holds_alternative<RangeSpec>(source->kind) ||
                                               std::holds_alternative<TensorsSpec>(source->kind);
  return seekable ? cardinality(Dataset(source)) : -1;
}

}  // namespace

std::int64_t SplitPlan::tasks() const {
  if (splits() == 0) return 0;
  if (passes < 0 ||
      splits() > std::numeric_limits<std::int64_t>::max() / std::max<std::int64_t>(1, passes))
    return -1;
  return passes * splits();
}

Piece SplitPlan::piece(std::int64_t task) const {
  const std::int64_t begin = task % splits() * each;
  return {.of = of, .begin = begin, .end = begin + std::min(size - begin, each), .order = task};
}

SplitPlan plan_splits(const Dataset& dataset, std::int64_t together) {
  dataset.element_spec();  // refuses an empty one
  SplitPlan plan;
  std::vector<SpecPtr> chain;  // the last stage first
  bool interleaved = false;
  for (SpecPtr spec = dataset.last(); spec; spec = spec->input) {
    refuse_what_counts(*spec);
    count_passes(plan.passes, *spec);
    interleaved |= std::holds_alternative<InterleaveSpec>(spec->kind);
    chain.push_back(spec);
  }
  const auto files = static_cast<std::int64_t>(file_count(*chain.back()));
  plan.size = interleaved || files > 1 ? -1 : elements_of(chain.back());
  if (plan.size > kElementsMax)
    throw InvalidArgumentError(str("the dataset has ", plan.size,
                                   " elements, and splits are made of at most 2^60: use mode OFF"));
  if (plan.size < 0) return {Piece::Of::kFile, files, 1, plan.passes};
  Grain grain{plan.size};
  for (auto spec = chain.rbegin(); spec != chain.rend(); ++spec) grain.add(**spec);
  grain.whole = grain.bounded(grain.whole, together);
  const std::int64_t wanted = std::max({std::int64_t{1}, plan.size / kSplitsWanted, grain.least});
  plan.each = (wanted / grain.whole + (wanted % grain.whole != 0 ? 1 : 0)) * grain.whole;
  return plan;
}

Dataset dataset_of(const Dataset& dataset, const Piece& piece, ProcessingMode mode) {
  if (piece.of == Piece::Of::kAll) return dataset.for_pipeline(piece.order);
  if (piece.of == Piece::Of::kShard) {
    AutoShardPolicy policy = AutoShardPolicy::kAuto;
    if (mode == ProcessingMode::kFile) policy = AutoShardPolicy::kFile;
    if (mode == ProcessingMode::kData) policy = AutoShardPolicy::kData;
    if (mode == ProcessingMode::kHint) policy = AutoShardPolicy::kHint;
    return auto_shard(dataset, policy, piece.workers, piece.worker)
        .dataset.for_pipeline(piece.order);
  }
  const auto change = [&](const SpecPtr& spec) -> SpecPtr {
    if (is_repeat(*spec)) return nullptr;
    if (spec->input) return spec;
    if (piece.of == Piece::Of::kFile) {
      if (piece.begin < 0 || piece.begin >= static_cast<std::int64_t>(file_count(*spec)))
        throw InvalidArgumentError(str("a split names file ", piece.begin, " of a dataset with ",
                                       file_count(*spec), " files"));
      return source_of_file(*spec, static_cast<std::size_t>(piece.begin));
    }
    return Dataset(spec)
        .skip(piece.begin)
        .take(std::max<std::int64_t>(0, piece.end - piece.begin))
        .last();
  };
  // for_pipeline() first: below a take() it would take the order for one that decides which
  // elements there are, and shuffles stand above the split.
  return Dataset(rebuilt(dataset.for_pipeline(piece.order).last(), change));
}

}  // namespace cairn::service
