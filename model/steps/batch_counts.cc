#include "model/steps/batch_counts.h"

#include <algorithm>

#include "core/base/error.h"
#include "data/dataset/stage_spec.h"

namespace cairn {
namespace {

void verify_batches(const Dataset& data) {
  if (!data.batched())
    throw InvalidArgumentError(
        "the dataset yields single examples, and a model takes batches: "
        "append batch(n)");
}

template <typename Kind>
bool is(const StageSpec& stage) {
  return std::holds_alternative<Kind>(stage.kind);
}

// Element generators and data services count as finite: their length is not known here.
bool has_no_end(const StageSpec& stage) {
  const auto endless = [](const auto& input) { return has_no_end(*input); };
  if (!stage.input || is<TakeSpec>(stage) || is<TakeWhileSpec>(stage)) return false;
  if (const auto* repeat = std::get_if<RepeatSpec>(&stage.kind))
    return repeat->count < 0 || (repeat->count > 0 && has_no_end(*stage.input));
  const auto* sample = std::get_if<SampleSpec>(&stage.kind);
  if (is<ZipSpec>(stage) || (sample != nullptr && sample->stop_on_empty))
    return has_no_end(*stage.input) && std::ranges::all_of(stage.others, endless);
  return has_no_end(*stage.input) || std::ranges::any_of(stage.others, endless);
}

}  // namespace

bool has_no_end(const Dataset& data) { return has_no_end(*data.last()); }

std::int64_t batches_of(const Dataset& data, std::int64_t wanted, const char* option) {
  verify_batches(data);
  if (wanted > 0) return wanted;
  const std::int64_t count = has_no_end(data) ? kInfiniteCardinality : cardinality(data);
  if (count == kInfiniteCardinality)
    throw InvalidArgumentError(
        str("the dataset has no end: say by `", option, "` how many of its batches are taken"));
  if (count == 0) throw InvalidArgumentError("the dataset holds no examples");
  return count;
}

std::int64_t batches_to_judge(const Dataset& data, std::int64_t wanted, const char* option) {
  if (wanted < 0)
    throw InvalidArgumentError(str("`", option, "` must be at least 0, got ", wanted));
  const std::int64_t batches = batches_of(data, wanted, option);
  if (wanted == 0 || has_no_end(data) || reads_once(*data.last())) return batches;
  const std::int64_t there = cardinality(data.take(wanted));
  if (there < wanted)
    throw InvalidArgumentError(str("`", option, "` asks for ", wanted,
                                   " batches, and the data has ", there,
                                   ": leave it out to take all of them, or repeat() the data"));
  return batches;
}

void verify_to_predict(const Dataset& data) {
  verify_batches(data);
  if (has_no_end(data))
    throw InvalidArgumentError("predict: the data has no end; take() as much of it as is wanted");
}

}  // namespace cairn
