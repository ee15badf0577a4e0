// Options of Dataset::tfrecords() about its files. They are values that describe, like a Dataset,
// whose calls check them.
//   Source  TFRecord files and tf.train.Example are described in "TFRecord and tf.train.Example",
//           tensorflow.org/tutorials/load_data/tfrecord; the protocol buffers' encoding in
//           protobuf.dev/programming-guides/encoding.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "data/dataset/schema.h"

namespace cairn {

// One feature of a tf.train.Example. Those that no ExampleFeature names are read past.
struct ExampleFeature {
  std::string name;
  // By the list that the feature is: float32 a float_list, int64 an int64_list, string a
  // bytes_list. uint8 is the bytes of a bytes_list's only value, as of an image.
  DType dtype = DType::kFloat32;
  Shape shape = {};     // of each example's values, which must be as many; {}: one value
  bool ragged = false;  // any number of values instead (core/tensor/element.h); not for uint8
  // Stands for each value of a feature that is missing or has no values. Without it that is an
  // error, but of a ragged one, which then has none.
  std::optional<std::string> default_value = std::nullopt;
  IdRange ids = {};  // of int64: another number makes a bad record
  bool operator==(const ExampleFeature&) const = default;
};

struct ExampleSchema {
  // Empty: the records as they are, one string column "record".
  std::vector<ExampleFeature> features = {};
  std::string label = "";  // the feature that is the label; empty: none
  // A record whose label lies outside [0, 1], NaN too, is a bad one.
  bool binary_label = false;
  // Above 0, instead: one whose label is not a whole number from 0 to label_classes - 1. At most
  // 65,535.
  std::int64_t label_classes = 0;
  // So is one with a NaN or an infinity. false: they are read as they are.
  bool finite = true;
  bool operator==(const ExampleSchema&) const = default;
};

struct TfRecordOptions {
  // Says how a record is treated that is damaged or does not fit. If the damage hides where the
  // next record begins, the rest of the file counts as one.
  OnError on_error = OnError::kFail;
  std::int64_t record_bytes_max = 64 << 20;  // a longer one is damage; at most 1 GB
  EmptyFiles empty_files = EmptyFiles::kFail;
  bool operator==(const TfRecordOptions&) const = default;
};

}  // namespace cairn
