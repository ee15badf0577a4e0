// The answers of the Open Inference Protocol.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "serving/api/infer.h"
#include "tests/serving/api/signatures.h"

namespace cairn::serving {
namespace {

using testing::HasSubstr;

InferAnswer answered(std::vector<InferOutput> outputs, std::string id = "") {
  InferRequest request;
  request.id = std::move(id);
  request.outputs = std::move(outputs);
  const std::vector<float> values = {1, 1.1f, 2, 2.1f};
  const std::vector<Tensor> tensors = {Tensor::of<float>({2, 2}, values),
                                       Tensor::strings({2}, {"a", "b\"c"})};
  return infer_answer(two_inputs(), 3, request, tensors);
}

TEST(Infer, AnswersInJson) {
  const InferAnswer answer = answered({{0, false}, {1, false}}, "42");
  EXPECT_EQ(answer.header_length, std::nullopt);
  EXPECT_EQ(nlohmann::json::parse(answer.body), nlohmann::json::parse(R"({
    "model_name": "m", "model_version": "3", "id": "42", "outputs": [
      {"name": "output0", "datatype": "FP32", "shape": [2, 2], "data": [1.0, 1.1, 2.0, 2.1]},
      {"name": "label", "datatype": "BYTES", "shape": [2], "data": ["a", "b\"c"]}]})"));
}

TEST(Infer, AnswersInBytesBehindTheJson) {
  const InferAnswer answer = answered({{1, true}, {0, true}});
  ASSERT_TRUE(answer.header_length);
  EXPECT_EQ(nlohmann::json::parse(answer.body.substr(0, *answer.header_length)),
            nlohmann::json::parse(R"({"model_name": "m", "model_version": "3", "outputs": [
      {"name": "label", "datatype": "BYTES", "shape": [2], "parameters": {"binary_data_size": 12}},
      {"name": "output0", "datatype": "FP32", "shape": [2, 2],
       "parameters": {"binary_data_size": 16}}]})"));
  EXPECT_EQ(answer.body.substr(*answer.header_length),
            std::string("\1\0\0\0a\3\0\0\0b\"c", 12) + bytes_of<float>({1, 1.1f, 2, 2.1f}));
}

TEST(Infer, AStringThatIsNotUtf8IsAnsweredInBytesAlone) {
  InferRequest request;
  request.outputs = {{0, false}};
  Signature strings = two_inputs();
  strings.outputs = {{"s", {DType::kString, {kAny}}}};
  const std::vector<Tensor> tensors = {Tensor::strings({1}, {"\xFF"})};
  EXPECT_THAT(refusal([&] { infer_answer(strings, 1, request, tensors); }),
              HasSubstr("the output \"s\" has a string that is not UTF-8"));
  request.outputs[0].binary = true;
  EXPECT_NE(infer_answer(strings, 1, request, tensors).header_length, std::nullopt);
}

TEST(Infer, MetadataHasWhatTheProtocolNames) {
  EXPECT_EQ(nlohmann::json::parse(infer_server_metadata("0.1.0")), nlohmann::json::parse(R"({
    "name": "cairn", "version": "0.1.0", "extensions": ["binary_tensor_data"]})"));
  const std::vector<std::int64_t> versions = {1, 3};
  EXPECT_EQ(nlohmann::json::parse(infer_model_metadata(two_inputs(), versions)),
            nlohmann::json::parse(R"({
    "name": "m", "versions": ["1", "3"], "platform": "cairn",
    "inputs": [{"name": "input0", "datatype": "INT64", "shape": [-1, 2]},
               {"name": "input1", "datatype": "BOOL", "shape": [-1]}],
    "outputs": [{"name": "output0", "datatype": "FP32", "shape": [-1, 2]},
                {"name": "label", "datatype": "BYTES", "shape": [-1]}]})"));
  EXPECT_EQ(nlohmann::json::parse(infer_model_ready("m", true)),
            nlohmann::json::parse(R"({"name": "m", "ready": true})"));
  EXPECT_EQ(nlohmann::json::parse(infer_server_live(true)).at("live"), true);
  EXPECT_EQ(nlohmann::json::parse(infer_server_ready(false)).at("ready"), false);
}

}  // namespace
}  // namespace cairn::serving
