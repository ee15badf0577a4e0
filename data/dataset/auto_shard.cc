#include "data/dataset/auto_shard.h"

#include <algorithm>
#include <functional>

#include "core/base/error.h"
#include "data/dataset/stage_spec.h"

namespace cairn {
namespace {

using SpecPtr = std::shared_ptr<const StageSpec>;

// The same description, but that `change` may put another stage in place of each. What is as it was
// is shared.
SpecPtr changed(const SpecPtr& last, const std::function<SpecPtr(const SpecPtr&)>& change) {
  SpecPtr own = change(last);
  if (!own->input) return own;
  auto copy = std::make_shared<StageSpec>(*own);
  copy->input = changed(own->input, change);
  for (SpecPtr& other : copy->others) other = changed(other, change);
  return copy->input == own->input && copy->others == own->others ? own : copy;
}

bool is_hint(const StageSpec& spec) {
  const auto* shard = std::get_if<ShardSpec>(&spec.kind);
  return shard != nullptr && shard->is_hint();
}

bool has_hint(const StageSpec& spec) {
  if (is_hint(spec) || (spec.input && has_hint(*spec.input))) return true;
  return std::ranges::any_of(spec.others, [](const SpecPtr& other) { return has_hint(*other); });
}

Dataset with_hints_replaced(const Dataset& dataset, std::int64_t workers, std::int64_t worker) {
  return Dataset(changed(dataset.last(), [&](const SpecPtr& spec) -> SpecPtr {
    if (!is_hint(*spec)) return spec;
    auto shard = std::make_shared<StageSpec>(*spec);
    shard->kind = ShardSpec{workers, worker};
    return shard;
  }));
}

// How many files can be dealt out: 0 if several datasets make this one, as they belong together.
std::size_t files_of(const Dataset& dataset) {
  const StageSpec* spec = dataset.last().get();
  for (; spec->input; spec = spec->input.get())
    if (!spec->others.empty()) return 0;
  return file_count(*spec);
}

Dataset with_own_files(const Dataset& dataset, std::int64_t workers, std::int64_t worker) {
  return Dataset(changed(dataset.last(), [&](const SpecPtr& spec) -> SpecPtr {
    if (spec->input) return spec;
    std::vector<std::size_t> own;
    for (auto i = static_cast<std::size_t>(worker); i < file_count(*spec);
         i += static_cast<std::size_t>(workers))
      own.push_back(i);
    return source_of_files(*spec, own);
  }));
}

std::string too_few(std::size_t files, std::int64_t workers) {
  return files == 0
             ? "its source is no files, or several datasets"
             : str("it has ", files, files == 1 ? " file" : " files", " for ", workers, " workers");
}

AutoShardPolicy by_files_or_data(const Dataset& dataset, AutoShardPolicy policy,
                                 std::int64_t workers, std::string& warning) {
  if (reads_once(*dataset.last())) {
    if (policy == AutoShardPolicy::kAuto || policy == AutoShardPolicy::kOff)
      return AutoShardPolicy::kOff;
    throw InvalidArgumentError(
        str("AutoShardPolicy ", name_of(policy), " deals out a dataset whose elements a data ",
            "service deals out already: use kAuto or kOff, and the mode of the service"));
  }
  const std::size_t files = files_of(dataset);
  const bool enough = files >= static_cast<std::size_t>(workers);
  if (policy == AutoShardPolicy::kAuto) {
    if (enough && files > 0) return AutoShardPolicy::kFile;
    // A source without files is in memory, where reading all of it costs nothing.
    if (files > 0)
      warning =
          str("the data is dealt out by examples and not by files, since ", too_few(files, workers),
              ": every worker reads all of it and keeps its part; with as many files as workers "
              "each reads its own only");
    return AutoShardPolicy::kData;
  }
  if (policy != AutoShardPolicy::kFile || workers == 1 || enough) return policy;
  const std::string why =
      str("AutoShardPolicy::kFile cannot deal the dataset out: ", too_few(files, workers),
          "; use kData, or as many files as workers");
  if (files == 0) throw NotFoundError(why);
  throw InvalidArgumentError(why);
}

}  // namespace

std::string name_of(AutoShardPolicy policy) {
  switch (policy) {
    case AutoShardPolicy::kAuto: return "AUTO";
    case AutoShardPolicy::kFile: return "FILE";
    case AutoShardPolicy::kData: return "DATA";
    case AutoShardPolicy::kOff: return "OFF";
    case AutoShardPolicy::kHint: return "HINT";
  }
  return "?";
}

namespace {

// Which policy it comes to, when all that was asked fits.
ShardedDataset chosen(const Dataset& dataset, AutoShardPolicy policy, std::int64_t workers) {
  dataset.element_spec();  // refuses an empty one
  const bool hinted = has_hint(*dataset.last());
  if (hinted && policy != AutoShardPolicy::kHint)
    throw InvalidArgumentError(
        str("the dataset has a shard_hint(), and AutoShardPolicy ", name_of(policy),
            " does not use it: distribute it with kHint, or leave the hint out"));
  if (!hinted && policy == AutoShardPolicy::kHint)
    throw InvalidArgumentError(
        "AutoShardPolicy::kHint wants a shard_hint() in the dataset, and there is none: put it "
        "where the data is to be dealt out, or use another policy");
  ShardedDataset made{dataset, policy, ""};
  made.applied = by_files_or_data(dataset, policy, workers, made.warning);
  return made;
}

ShardedDataset without_data(ShardedDataset made, std::int64_t workers, std::int64_t worker) {
  if (made.applied == AutoShardPolicy::kHint)
    made.dataset = with_hints_replaced(made.dataset, workers, worker);
  else if (made.applied == AutoShardPolicy::kFile && workers > 1)
    made.dataset = with_own_files(made.dataset, workers, worker);
  return made;
}

}  // namespace

ShardedDataset auto_shard(const Dataset& dataset, AutoShardPolicy policy, std::int64_t workers,
                          std::int64_t worker) {
  ShardedDataset made = without_data(chosen(dataset, policy, workers), workers, worker);
  if (made.applied == AutoShardPolicy::kData && workers > 1)
    made.dataset = made.dataset.shard(workers, worker);
  return made;
}

// Piece j of a batch is worker j modulo their number's, as in the reference.
ReplicaPieces pieces_of_worker(const Dataset& dataset, AutoShardPolicy policy,
                               BatchSplitter splitter, const WorkerShare& share) {
  const auto [whole, applied, warning] =
      without_data(chosen(dataset, policy, share.workers), share.workers, share.worker);
  ReplicaPieces made{whole, applied, warning, {}};
  const bool data = applied == AutoShardPolicy::kData;
  const std::int64_t size = described_batch_size(dataset);
  const bool cut = splitter == BatchSplitter::kCut || size == 0 ||
                   (splitter == BatchSplitter::kByPolicy && data);
  if (cut && (data || share.workers == 1)) made.cut_batches = whole;
  const WorkerShare all{share.workers, data ? 0 : share.worker, share.replicas};
  made.dataset = cut ? whole.deal(share.workers * share.replicas, Deal::kCut)
                     : whole.rebatch(batch_sizes_for_worker(size, all));
  if (data && share.workers > 1) made.dataset = made.dataset.shard(share.workers, share.worker);
  return made;
}

std::vector<std::int64_t> batch_sizes_for_worker(std::int64_t global_batch_size,
                                                 const WorkerShare& share) {
  const std::int64_t replicas = share.workers * share.replicas;
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(replicas), global_batch_size / replicas);
  for (std::int64_t i = 0; i < global_batch_size % replicas; ++i)
    ++sizes[static_cast<std::size_t>(i)];
  std::rotate(sizes.begin(), sizes.begin() + share.worker * share.replicas, sizes.end());
  return sizes;
}

std::int64_t described_batch_size(const Dataset& dataset) {
  for (const StageSpec* spec = dataset.last().get(); spec != nullptr; spec = spec->input.get()) {
    if (const auto* batch = std::get_if<BatchSpec>(&spec->kind)) return batch->n;
    if (std::holds_alternative<RebatchSpec>(spec->kind) ||
        std::holds_alternative<DealSpec>(spec->kind))
      return 0;
  }
  return 0;
}

}  // namespace cairn
