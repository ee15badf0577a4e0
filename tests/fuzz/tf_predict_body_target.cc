#include <iterator>
#include <utility>

#include "serving/api/tf_json.h"
#include "tests/fuzz/refusal.h"

namespace cairn::fuzz {
namespace {

// Columns of most dtypes and of three ranks, one of them ragged; or one column of texts, which
// needs no name.
serving::Signature predicted(bool bare) {
  constexpr std::int64_t kAny = Shape::kUnknown;
  serving::Signature made;
  made.model = "m";
  made.outputs = {{"y", {DType::kFloat32, {kAny}}}};
  if (bare) {
    made.input.columns = {{"x", {DType::kString, {kAny, kAny}}}};
    return made;
  }
  made.input.columns = {
      {"f", {DType::kFloat32, {kAny, 2}}}, {"i", {DType::kInt64, {kAny}}},
      {"s", {DType::kString, {kAny}}},     {"m", {DType::kFloat16, {kAny, 1, 2}}},
      {"b", {DType::kBool, {kAny}}},       {"u", {DType::kUint8, {kAny, kAny}}},
      {"r", {DType::kInt32, {kAny}}},      {"r/row_splits", {DType::kInt64, {kAny}}}};
  return made;
}

}  // namespace

// Bits of the choice: one input or several; the examples of classify; numbers that are not finite;
// queries to recommend for.
void tf_predict_body(Bytes input) {
  const unsigned choice = take_choice(input);
  serving::TfDecoder decoder(predicted((choice & 1) != 0));
  const serving::DecodeLimits limits{.examples_max = 1000,
                                     .elements_max = 10'000,
                                     .bytes_max = std::size_t{1} << 20,
                                     .allow_nan = (choice & 4) != 0};
  // Twice: a decoder that has refused a body reads the next as if it were new.
  for (int round = 0; round < 2; ++round)
    may_refuse([&] {
      serving::Examples read;
      if ((choice & 8) != 0) {
        serving::TfRecommend wanted = decoder.recommend(text(input), limits);
        CAIRN_CHECK(wanted.k > 0, "no candidate is wanted");
        CAIRN_CHECK(wanted.exclude.empty() || std::ssize(wanted.exclude) == wanted.queries.examples,
                    "lists that are not one per query");
        read = std::move(wanted.queries);
      } else if ((choice & 2) != 0) {
        read = decoder.classify(text(input), limits);
      } else {
        read = decoder.predict(text(input), limits).examples;
      }
      CAIRN_CHECK(read.examples > 0, "no examples");
      for (const Tensor& column : read.columns) column.to_string();
    });
}

}  // namespace cairn::fuzz
