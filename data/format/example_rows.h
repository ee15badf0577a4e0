// tf.train.Example to columns: a reader of the few protocol buffers that it is made of.
#pragma once
#include <memory>

#include "data/dataset/example_schema.h"
#include "data/format/row_stage.h"

namespace cairn {

// `schema` has features, and must outlive the decoder.
std::unique_ptr<RowDecoder> make_example_rows(const ExampleSchema& schema);

}  // namespace cairn
