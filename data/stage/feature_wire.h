// Writing and reading feature columns, as data/stage/pipeline_wire.cc does the other stages.
#pragma once
#include "data/dataset/dataset.h"
#include "data/dataset/stage_spec.h"
#include "data/pipeline.capnp.h"

namespace cairn {

void write_kind(pipeline::Stage::Builder stage, const FeaturesSpec& spec);
// The features over `below`.
//   Errors  InvalidArgument: as parse_dataset().
Dataset read_features(const Dataset& below, capnp::List<pipeline::Feature>::Reader in);

}  // namespace cairn
