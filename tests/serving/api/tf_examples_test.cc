// :classify and :regress, and the answers of all verbs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "serving/api/json_text.h"
#include "serving/api/tf_json.h"
#include "tests/serving/api/signatures.h"

namespace cairn::serving {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Signature images() {
  return signature_of(
      {{"image", {DType::kString, {kAny}}}, {"caption", {DType::kString, {kAny, 1}}}});
}

Signature wide() {
  return signature_of({{"price", {DType::kFloat32, {kAny, 1}}},
                       {"pair", {DType::kInt64, {kAny, 2}}},
                       {"tags", {DType::kInt64, {kAny}}},
                       {"tags/row_splits", {DType::kInt64, {kAny}}}});
}

std::string not_regressed(const Signature& signature, const std::string& body,
                          const DecodeLimits& limits = {}) {
  TfDecoder decoder(signature);
  return refusal([&] { decoder.regress(body, limits); });
}

// The documented request, but for its signature, which no model has here.
TEST(TfExamples, ReadsTheDocumentedClassification) {
  std::string body = R"({
  "signature_name": "classify_objects",
  "examples": [
    {
      "image": { "b64": "aW1hZ2UgYnl0ZXM=" },
      "caption": "seaside"
    },
    {
      "image": { "b64": "YXdlc29tZSBpbWFnZSBieXRlcw==" },
      "caption": "mountains"
    }
  ]
})";
  TfDecoder decoder(images());
  EXPECT_THAT(refusal([&] { decoder.classify(body); }),
              HasSubstr("no signature \"classify_objects\"; did you mean \"classify\"? There are "
                        "\"serving_default\", \"classify\", \"tensorflow/serving/classify\""));
  body.replace(body.find("classify_objects"), 16, "tensorflow/serving/classify");
  const Examples read = decoder.classify(body);
  EXPECT_EQ(read.examples, 2);
  EXPECT_THAT(read.columns[0].string_values(), ElementsAre("image bytes", "awesome image bytes"));
  EXPECT_THAT(read.columns[1].string_values(), ElementsAre("seaside", "mountains"));
  EXPECT_EQ(read.columns[1].shape(), Shape({2, 1}));
}

TEST(TfExamples, ReadsTheDocumentedRegressionOfHalfPlusThree) {
  TfDecoder decoder(signature_of({{"x", {DType::kFloat32, {kAny}}}}));
  const Examples read = decoder.regress(
      R"({"signature_name": "tensorflow/serving/regress", "examples": [{"x": 1.0}, {"x": 2.0}]})");
  EXPECT_THAT(texts(read.columns), ElementsAre("float32[2]{1, 2}"));
}

TEST(TfExamples, FeaturesAreValuesOrFlatLists) {
  TfDecoder decoder(wide());
  EXPECT_THAT(texts(decoder
                        .regress(R"({"examples": [{"price": 1, "pair": [1, true], "tags": 5},
                                     {"price": [2], "pair": [3, 4], "tags": []}]})")
                        .columns),
              ElementsAre("float32[2, 1]{1, 2}", "int64[2, 2]{1, 1, 3, 4}", "int64[1]{5}",
                          "int64[3]{0, 1, 1}"));
  EXPECT_THAT(not_regressed(wide(), R"({"examples": [{"pair": 1}]})"),
              HasSubstr("example 0, input \"pair\": a list of 1 is there, and one of 2"));
  EXPECT_THAT(not_regressed(wide(), R"({"examples": [{"pair": [[1, 2]]}]})"),
              HasSubstr("a list is there, and a whole number is wanted"));
  EXPECT_THAT(not_regressed(wide(), R"({"examples": [1]})"), HasSubstr("an example is an object"));
}

TEST(TfExamples, TheContextsFeaturesStandInEveryExampleWhereverItComes) {
  TfDecoder decoder(wide());
  const std::string context = R"("context": {"pair": [7, 8], "tags": [1, 2]})",
                    examples = R"("examples": [{"price": 1}, {"price": 2}, {"price": 3}])";
  for (const std::string& body :
       {"{" + context + ", " + examples + "}", "{" + examples + ", " + context + "}"})
    EXPECT_THAT(texts(decoder.regress(body).columns),
                ElementsAre("float32[3, 1]{1, 2, 3}", "int64[3, 2]{7, 8, 7, 8, 7, 8}",
                            "int64[6]{1, 2, 1, 2, 1, 2}", "int64[4]{0, 2, 4, 6}"))
        << body;
}

TEST(TfExamples, AContextOfTextsStandsInEveryExample) {
  TfDecoder decoder(images());
  const Examples read = decoder.classify(
      R"({"context": {"caption": "same"}, "examples": [{"image": "a"}, {"image": "b"}]})");
  EXPECT_THAT(read.columns[1].string_values(), ElementsAre("same", "same"));
}

TEST(TfExamples, RefusesFeaturesThatAreMissingOrThereTwice) {
  EXPECT_THAT(not_regressed(wide(), R"({"examples": [{"price": 1, "pair": [1, 2]}]})"),
              HasSubstr("example 0: the input \"tags\" is missing"));
  EXPECT_THAT(not_regressed(wide(), R"({"examples": [{"price": 1}], "context": {"tags": 1}})"),
              HasSubstr("example 0: the input \"pair\" is missing"));
  EXPECT_THAT(
      not_regressed(wide(), R"({"examples": [{"price": 1}, {"price": 1, "pair": [1, 2]}]})"),
      HasSubstr("the input is missing from example 0"));
  EXPECT_THAT(not_regressed(wide(), R"({"context": {"tags": 1}, "examples": [{"tags": 1}]})"),
              HasSubstr("the feature is in the context and in an example"));
  EXPECT_THAT(not_regressed(wide(), R"({"examples": [{"price": 1}], "context": {"price": 1}})"),
              HasSubstr("the feature is in the context and in an example"));
  EXPECT_THAT(not_regressed(wide(), R"({"context": {"tags": 1, "tags": 1}})"), HasSubstr("twice"));
  EXPECT_THAT(not_regressed(wide(), R"({"instances": [{"price": 1}]})"),
              HasSubstr("no key \"examples\"; \"instances\" is for :predict"));
  EXPECT_THAT(not_regressed(wide(), R"({"examples": []})"), HasSubstr("there are no examples"));
}

TEST(TfExamples, AContextIsRepeatedOnlyWithinTheLimits) {
  std::string body = R"({"context": {"pair": [7, 8], "tags": [1, 2, 3, 4]}, "examples": [)";
  for (int i = 0; i < 100; ++i) body += i == 0 ? R"({"price": 1})" : R"(,{"price": 1})";
  body += "]}";
  EXPECT_EQ(not_regressed(wide(), body, {.elements_max = 700}), "");
  EXPECT_THAT(not_regressed(wide(), body, {.elements_max = 699}), HasSubstr("too many values"));
  EXPECT_THAT(not_regressed(wide(), body, {.elements_max = 199}), HasSubstr("may have"));
}

// ---- answers ----

Signature with_outputs(std::vector<ColumnSpec> outputs) {
  Signature made = signature_of({{"x", {DType::kFloat32, {kAny}}}});
  made.outputs = std::move(outputs);
  return made;
}

template <typename T>
Tensor tensor(Shape shape, std::vector<T> values) {
  return Tensor::of<T>(std::move(shape), values);
}

TEST(TfAnswers, APredictionOfOneOutputHasNoName) {
  const Signature one = with_outputs({{"y", {DType::kFloat32, {kAny}}}});
  const std::vector<Tensor> outputs = {tensor<float>({3}, {3.5f, 4, 5.5f})};
  EXPECT_EQ(tf_predictions(one, outputs, TfForm::kRows), R"({"predictions": [3.5, 4.0, 5.5]})");
  EXPECT_EQ(tf_predictions(one, outputs, TfForm::kColumns), R"({"outputs": [3.5, 4.0, 5.5]})");
}

TEST(TfAnswers, PredictionsOfSeveralOutputsAreObjects) {
  const Signature two =
      with_outputs({{"a", {DType::kInt64, {kAny}}}, {"image_bytes", {DType::kString, {kAny, 1}}}});
  const std::vector<Tensor> outputs = {tensor<std::int64_t>({2}, {-1, 2}),
                                       Tensor::strings({2, 1}, {"hi", ""})};
  EXPECT_EQ(tf_predictions(two, outputs, TfForm::kRows),
            R"({"predictions": [{"a": -1, "image_bytes": [{"b64": "aGk="}]}, )"
            R"({"a": 2, "image_bytes": [{"b64": ""}]}]})");
  EXPECT_EQ(tf_predictions(two, outputs, TfForm::kColumns),
            R"({"outputs": {"a": [-1, 2], "image_bytes": [[{"b64": "aGk="}], [{"b64": ""}]]}})");
}

TEST(TfAnswers, WritesNumbersThatReadBackAsTheSame) {
  const Signature one = with_outputs({{"y", {DType::kFloat32, {kAny}}}});
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<Tensor> outputs = {tensor<float>(
      {8},
      {0.1f, 1e20f, -0.0f, 16777216, 1e-45f, std::numeric_limits<float>::quiet_NaN(), inf, -inf})};
  EXPECT_EQ(tf_predictions(one, outputs, TfForm::kRows),
            R"({"predictions": [0.1, 1e+20, -0.0, 16777216.0, 1e-45, NaN, Infinity, -Infinity]})");
}

TEST(TfAnswers, RowsNeedOneOfEachOutputForEachInstance) {
  const Signature two =
      with_outputs({{"a", {DType::kInt64, {kAny}}}, {"loss", {DType::kFloat32, {}}}});
  const std::vector<Tensor> outputs = {tensor<std::int64_t>({2}, {1, 2}), Tensor::scalar(0.5f)};
  EXPECT_THAT(refusal([&] { tf_predictions(two, outputs, TfForm::kRows); }),
              HasSubstr("\"loss\" is float32[]"));
  EXPECT_EQ(tf_predictions(two, outputs, TfForm::kColumns),
            R"({"outputs": {"a": [1, 2], "loss": 0.5}})");
}

TEST(TfAnswers, ClassificationsOfAProbabilityHaveBothClasses) {
  const Signature one = with_outputs({{"p", {DType::kFloat32, {kAny}}}});
  for (const Shape& shape : {Shape({2}), Shape({2, 1})})
    EXPECT_EQ(tf_classifications(one, std::vector{tensor<float>(shape, {0.25f, 1})}),
              R"({"results": [[["0", 0.75], ["1", 0.25]], [["0", 0.0], ["1", 1.0]]]})");
  EXPECT_EQ(tf_classifications(one, std::vector{tensor<float>({1, 3}, {0.5f, 0.25f, 0.125f})}),
            R"({"results": [[["0", 0.5], ["1", 0.25], ["2", 0.125]]]})");
  EXPECT_THAT(
      refusal([&] { tf_classifications(one, std::vector{tensor<std::int64_t>({1}, {1})}); }),
      HasSubstr(":classify answers for one of floats"));
}

TEST(TfAnswers, RegressionsAreOneNumberForEachExample) {
  const Signature one = with_outputs({{"y", {DType::kFloat32, {kAny}}}});
  EXPECT_EQ(tf_regressions(one, std::vector{tensor<float>({2, 1}, {3.5f, 4})}),
            R"({"results": [3.5, 4.0]})");
  EXPECT_THAT(refusal([&] {
                tf_regressions(one, std::vector{tensor<float>({1, 2}, {1, 2})});
              }),
              HasSubstr("the model's output is float32[1, 2]"));
  const Signature two =
      with_outputs({{"a", {DType::kFloat32, {kAny}}}, {"b", {DType::kFloat32, {kAny}}}});
  const Tensor y = tensor<float>({1}, {1});
  EXPECT_THAT(refusal([&] {
                tf_regressions(two, std::vector{y, y});
              }),
              HasSubstr("the model has 2 outputs"));
}

TEST(TfAnswers, MetadataIsOfTensorFlowsForm) {
  const auto read = nlohmann::json::parse(tf_metadata(ragged(), 123));
  EXPECT_EQ(read.at("model_spec"),
            nlohmann::json::parse(R"({"name": "m", "signature_name": "", "version": "123"})"));
  EXPECT_EQ(read.at("metadata").at("signature_def").at("signature_def").at("serving_default"),
            nlohmann::json::parse(R"({
    "inputs": {
      "price": {"dtype": "DT_FLOAT", "name": "price:0",
                "tensor_shape": {"dim": [{"size": "-1", "name": ""}], "unknown_rank": false}},
      "tags": {"dtype": "DT_INT64", "name": "tags:0",
               "tensor_shape": {"dim": [{"size": "-1", "name": ""}, {"size": "-1", "name": ""}],
                                "unknown_rank": false}}},
    "outputs": {
      "y": {"dtype": "DT_FLOAT", "name": "y:0",
            "tensor_shape": {"dim": [{"size": "-1", "name": ""}], "unknown_rank": false}}},
    "method_name": "tensorflow/serving/predict"})"));
}

TEST(TfAnswers, StatusIsTheDocumentedOne) {
  const std::vector<TfVersionStatus> versions = {{.version = 123}};
  EXPECT_EQ(nlohmann::json::parse(tf_status(versions)), nlohmann::json::parse(R"({
 "model_version_status": [
  {
   "version": "123",
   "state": "AVAILABLE",
   "status": {
    "error_code": "OK",
    "error_message": ""
   }
  }
 ]
})"));
}

TEST(JsonText, ErrorsAreJsonWhateverTheySay) {
  EXPECT_EQ(error_body("a \"b\"\\\n\x01 \xC3\xA9 \xFF"),
            "{\"error\": \"a \\\"b\\\"\\\\\\n\\u0001 \xC3\xA9 \xEF\xBF\xBD\"}");
}

}  // namespace
}  // namespace cairn::serving
