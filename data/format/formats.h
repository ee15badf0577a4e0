// All formats of files that a description can have.
#pragma once
#include "data/dataset/dataset.h"
#include "data/pipeline.capnp.h"

namespace cairn {

// Whether a stage on the wire is a source of files, and the dataset that it describes.
bool is_file_source(pipeline::Stage::Reader stage);
//   Errors  InvalidArgument: as parse_dataset(); a format that this program does not know.
Dataset read_file_source(pipeline::Stage::Reader stage);

}  // namespace cairn
