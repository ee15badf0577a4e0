// How long a request's JSON takes to become tensors, and an answer's tensors to become JSON:
//   ninja -C build/release cairn-bench-serving-codec && build/release/bin/cairn-bench-serving-codec
// Bodies are of Adult's shape: 8 floats, 8 ids and 10 ids per example.
#include <benchmark/benchmark.h>

#include <charconv>
#include <memory>
#include <optional>
#include <string>

#include "serving/api/infer.h"
#include "serving/api/tf_json.h"

namespace cairn::serving {
namespace {

Signature adult() {
  Signature made;
  made.model = "adult";
  made.input.columns = {{"numeric", {DType::kFloat32, {Shape::kUnknown, 8}}},
                        {"deep_id", {DType::kInt64, {Shape::kUnknown, 8}}},
                        {"wide_id", {DType::kInt64, {Shape::kUnknown, 10}}}};
  made.outputs = {{"probability", {DType::kFloat32, {Shape::kUnknown}}}};
  return made;
}

// Floats as a client prints them: the shortest text of a float32.
std::string list_of(int n, bool floats, unsigned& state) {
  std::string out = "[";
  for (int i = 0; i < n; ++i) {
    state = state * 1664525U + 1013904223U;
    if (i > 0) out += ",";
    char text[32];
    if (floats) {
      const float value = static_cast<float>(state >> 8) / 16777216.0f * 4 - 2;
      out.append(text, std::to_chars(text, text + sizeof text, value).ptr);
    } else {
      out.append(text, std::to_chars(text, text + sizeof text, state >> 15).ptr);
    }
  }
  return out += "]";
}

std::string body_of(std::int64_t examples) {
  unsigned state = 7;
  std::string out = "{\"instances\":[";
  for (std::int64_t i = 0; i < examples; ++i) {
    out += i == 0 ? "" : ",";
    out += "{\"numeric\":" + list_of(8, true, state) + ",\"deep_id\":" + list_of(8, false, state) +
           ",\"wide_id\":" + list_of(10, false, state) + "}";
  }
  return out + "]}";
}

void decode_rows(benchmark::State& state) {
  const std::string body = body_of(state.range(0));
  TfDecoder decoder(adult());
  for (auto _ : state) benchmark::DoNotOptimize(decoder.predict(body));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(body.size()));
  state.counters["body"] = static_cast<double>(body.size());
}
BENCHMARK(decode_rows)->Arg(1)->Arg(64);

void encode_rows(benchmark::State& state) {
  Tensor out(DType::kFloat32, {state.range(0)});
  unsigned random = 7;
  for (float& value : out.mutable_values<float>()) {
    random = random * 1664525U + 1013904223U;
    value = static_cast<float>(random >> 8) / 16777216.0f;
  }
  const Signature signature = adult();
  for (auto _ : state)
    benchmark::DoNotOptimize(tf_predictions(signature, std::span(&out, 1), TfForm::kRows));
}
BENCHMARK(encode_rows)->Arg(1)->Arg(64);

// The same examples as an infer request, in JSON or behind it.
struct Inferred {
  std::shared_ptr<const std::string> body;
  std::optional<std::size_t> header_length;
};
Inferred inferred(std::int64_t examples, bool binary) {
  const Signature signature = adult();
  TfDecoder decoder(signature);
  const Element columns = decoder.predict(body_of(examples)).examples.columns;
  Signature echo = signature;
  echo.outputs = signature.input.columns;
  InferRequest all;
  for (std::size_t i = 0; i < columns.size(); ++i) all.outputs.push_back({i, binary});
  InferAnswer answer = infer_answer(echo, 1, all, columns);
  answer.body.replace(answer.body.find("\"outputs\""), 9, "\"inputs\"");
  if (answer.header_length) --*answer.header_length;
  return {std::make_shared<const std::string>(answer.body), answer.header_length};
}

void decode_infer(benchmark::State& state) {
  const Inferred request = inferred(state.range(0), state.range(1) != 0);
  InferDecoder decoder(adult());
  for (auto _ : state)
    benchmark::DoNotOptimize(decoder.decode(request.body, request.header_length));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(request.body->size()));
  state.counters["body"] = static_cast<double>(request.body->size());
}
BENCHMARK(decode_infer)->ArgNames({"examples", "binary"})->ArgsProduct({{1, 64}, {0, 1}});

}  // namespace
}  // namespace cairn::serving

BENCHMARK_MAIN();
