// Writing and reading the sources of data/file_schema.h, as data/pipeline_wire.cc does the others.
#pragma once
#include "data/dataset.h"
#include "data/pipeline.capnp.h"
#include "data/stage_spec.h"

namespace cairn {

void write_kind(pipeline::Stage::Builder stage, const TextSpec& spec);
void write_kind(pipeline::Stage::Builder stage, const LibsvmSpec& spec);
void write_kind(pipeline::Stage::Builder stage, const TfRecordsSpec& spec);
void write_kind(pipeline::Stage::Builder stage, const IdxSpec& spec);
// The stage of a data service contains a whole description, that of the service's dataset.
void write_kind(pipeline::Stage::Builder stage, const ServiceSpec& spec);
Dataset read_service(pipeline::Service::Reader in);

// Whether a kind of stage is one of them, and the dataset that it describes.
//   Errors  InvalidArgument: as parse_dataset().
bool is_file_source(pipeline::Stage::Which which);
Dataset read_file_source(pipeline::Stage::Reader in);

}  // namespace cairn
