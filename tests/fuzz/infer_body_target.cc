#include <algorithm>
#include <memory>

#include "serving/api/infer.h"
#include "tests/fuzz/refusal.h"

namespace cairn::fuzz {

// Bits of the choice: numbers that are not finite; the JSON ends at the first line's end, behind
// which there are tensors.
void infer_body(Bytes input) {
  constexpr std::int64_t kAny = Shape::kUnknown;
  const unsigned choice = take_choice(input);
  serving::Signature signature;
  signature.model = "m";
  signature.input.columns = {
      {"f", {DType::kFloat32, {kAny, 2}}}, {"h", {DType::kBfloat16, {kAny}}},
      {"s", {DType::kString, {kAny}}},     {"b", {DType::kBool, {kAny, kAny}}},
      {"r", {DType::kInt64, {kAny}}},      {"r/row_splits", {DType::kInt64, {kAny}}}};
  signature.outputs = signature.input.columns;
  const auto body = std::make_shared<const std::string>(text(input));
  std::optional<std::size_t> header_length;
  if ((choice & 2) != 0) header_length = std::min(body->find('\n') + 1, body->size());
  const serving::DecodeLimits limits{.examples_max = 1000,
                                     .elements_max = 10'000,
                                     .bytes_max = std::size_t{1} << 20,
                                     .allow_nan = (choice & 1) != 0};
  serving::InferDecoder decoder(signature);
  may_refuse([&] {
    const serving::InferRequest read = decoder.decode(body, header_length, limits);
    // The values that were read are also an answer, in the forms that the request asked for.
    serving::infer_answer(signature, 1, read, read.examples.columns);
  });
}

}  // namespace cairn::fuzz
