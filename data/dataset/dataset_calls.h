// Helpers of the calls of Dataset: each checks its arguments against what the stage below yields,
// and adds one stage.
#pragma once
#include <cstdint>

#include "data/dataset/dataset.h"
#include "data/dataset/stage_spec.h"

namespace cairn {

// The stage that a call stands on. The number of stages is bounded because opening and freeing a
// description recurse over it.
const StageSpec& input_of(const Dataset& input, const char* call);
// Stages share what is below them: a description is a list that grows at its head, as in functional
// languages.
Dataset over(const Dataset& input, StageKind kind, ElementSpec element, int batches);
Dataset same_elements(const Dataset& input, const char* call, StageKind kind);

void check_at_least(const char* what, std::int64_t value, std::int64_t least);
void check_batch_size(const char* call, std::int64_t n);
// Elements can be put together in batches: not those of batches with ragged columns.
void check_batchable(const StageSpec& below, const char* call);

}  // namespace cairn
