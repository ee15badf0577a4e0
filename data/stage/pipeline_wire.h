// The C++ side of data/pipeline.capnp: one function per stage, each way. A field that is added
// there must be written and read here, and counts in the fingerprint.
#pragma once
#include <memory>
#include <vector>

#include "data/dataset/dataset.h"
#include "data/dataset/stage_spec.h"
#include "data/pipeline.capnp.h"

namespace cairn {

// All stages, the source first.
void write_description(pipeline::Description::Builder out,
                       const std::vector<std::shared_ptr<const StageSpec>>& stages);
std::vector<std::shared_ptr<const StageSpec>> stages_of(std::shared_ptr<const StageSpec> last);
//   Errors  InvalidArgument: no stages, too many, or as read_stage().
Dataset read_description(pipeline::Description::Reader in);

void write_stage(pipeline::Stage::Builder out, const StageSpec& spec);
// `below` with one more stage, made by the calls of Dataset and so checked as they check.
//   Errors  InvalidArgument: it does not fit, or names something that this program does not know.
Dataset read_stage(const Dataset& below, pipeline::Stage::Reader in);

}  // namespace cairn
