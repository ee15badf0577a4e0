// Writing and reading feature columns, as data/pipeline_wire.cc does the other stages.
#pragma once
#include "data/dataset.h"
#include "data/pipeline.capnp.h"
#include "data/stage_spec.h"

namespace cairn {

void write_kind(pipeline::Stage::Builder stage, const FeaturesSpec& spec);
// The features over `below`.
//   Errors  InvalidArgument: as parse_dataset().
Dataset read_features(const Dataset& below, capnp::List<pipeline::Feature>::Reader in);

}  // namespace cairn
