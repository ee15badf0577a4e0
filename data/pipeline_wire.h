// The C++ side of data/pipeline.capnp: stage by stage.
#pragma once
#include "data/dataset.h"
#include "data/pipeline.capnp.h"
#include "data/stage_spec.h"

namespace cairn {

void write_stage(pipeline::Stage::Builder out, const StageSpec& spec);
// `below` with one more stage, made by the calls of Dataset and so checked as they check.
// InvalidArgument: it does not fit.
Dataset read_stage(const Dataset& below, pipeline::Stage::Reader in);

}  // namespace cairn
