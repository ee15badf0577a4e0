#include "data/file/tfrecord_writer.h"
#include "tests/fuzz/read_dataset.h"

namespace cairn::fuzz {

// Bits of the choice: the input is one record, framed here with right checksums; records as they
// are; leaving bad ones out; stages above; only short records.
void tfrecord(Bytes input) {
  const unsigned choice = take_choice(input);
  const std::string one = (choice & 1) != 0 ? framed(text(input)) : std::string();
  const TemporaryFile file((choice & 1) != 0 ? std::as_bytes(std::span(one)) : input);
  ExampleSchema schema{{{"x", DType::kInt64, {2}},
                        {"i", DType::kInt64, {}, true},
                        {"f", DType::kFloat32, {2}, false, "0.5"},
                        {"g", DType::kFloat32, {}, true},
                        {"t", DType::kString, {}, false, "-"},
                        {"w", DType::kString, {}, true},
                        {"b", DType::kUint8, {2, 2}, false, "7"}}};
  if ((choice & 2) != 0) schema = {};
  TfRecordOptions options{policy_of(choice, 4)};
  if ((choice & 16) != 0) options.record_bytes_max = 64;
  read_or_refuse([&] { return Dataset::tfrecords(file.path(), schema, options); },
                 (choice & 8) != 0);
}

}  // namespace cairn::fuzz
