#include "serving/api/infer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include "tests/serving/api/signatures.h"

namespace cairn::serving {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

InferRequest decoded(const Signature& signature, const std::string& json,
                     const std::string& bytes = "", const DecodeLimits& limits = {}) {
  InferDecoder decoder(signature);
  const auto body = std::make_shared<const std::string>(json + bytes);
  if (bytes.empty()) return decoder.decode(body, std::nullopt, limits);
  return decoder.decode(body, json.size(), limits);
}

std::string not_inferred(const Signature& signature, const std::string& json,
                         const std::string& bytes = "", const DecodeLimits& limits = {}) {
  return refusal([&] { decoded(signature, json, bytes, limits); });
}

constexpr const char* kInput0 =
    R"({"name": "input0", "shape": [2, 2], "datatype": "INT64", "data": [1, 2, 3, 4]})";
constexpr const char* kInput1 =
    R"({"name": "input1", "shape": [2], "datatype": "BOOL", "data": [true, false]})";

std::string request(const std::string& inputs, const std::string& more = "") {
  return "{\"inputs\": [" + inputs + "]" + more + "}";
}
std::string good() { return request(str(kInput0, ", ", kInput1)); }

// The example of the specification, with types that the model has and as many elements as its
// shapes say.
TEST(Infer, ReadsTheDocumentedRequest) {
  const InferRequest read = decoded(two_inputs(), R"({
      "id" : "42",
      "inputs" : [
        {
          "name" : "input0",
          "shape" : [ 2, 2 ],
          "datatype" : "INT64",
          "data" : [ 1, 2, 3, 4 ]
        },
        {
          "name" : "input1",
          "shape" : [ 2 ],
          "datatype" : "BOOL",
          "data" : [ true, false ]
        }
      ],
      "outputs" : [
        {
          "name" : "output0"
        }
      ]
    })");
  EXPECT_EQ(read.id, "42");
  EXPECT_EQ(read.examples.examples, 2);
  EXPECT_THAT(texts(read.examples.columns),
              ElementsAre("int64[2, 2]{1, 2, 3, 4}", "bool[2]{1, 0}"));
  ASSERT_EQ(read.outputs.size(), 1U);
  EXPECT_EQ(read.outputs[0].index, 0U);
  EXPECT_FALSE(read.outputs[0].binary);
}

TEST(Infer, DataMayBeNestedAndItsInputsInAnyOrderOfNamesAndKeys) {
  const auto is_read = ElementsAre("int64[2, 2]{1, 2, 3, 4}", "bool[2]{1, 0}");
  for (
      const std::string& inputs :
      {str(kInput1, ",", kInput0),
       str(R"({"datatype": "INT64", "data" : [[1, 2], [3, 4]], "name": "input0", "shape": [2, 2]})",
           ",", kInput1),
       str(R"({"data":[1,2,3,4],"name":"input0","more":{"data":[[1]]},"datatype":"INT64",)",
           R"("parameters":{"x":[{"y":null}]},"shape":[2,2]})", ",", kInput1)})
    EXPECT_THAT(texts(decoded(two_inputs(), request(inputs)).examples.columns), is_read) << inputs;
}

TEST(Infer, ReadsTensorsBehindTheJson) {
  const std::string inputs =
      R"({"name": "input0", "shape": [1, 2], "datatype": "INT64",
          "parameters": {"binary_data_size": 16}},
         {"name": "input1", "shape": [1], "datatype": "BOOL",
          "parameters": {"binary_data_size": 1}})";
  const std::string bytes = bytes_of<std::int64_t>({-5, 1LL << 60}) + "\1";
  EXPECT_THAT(texts(decoded(two_inputs(), request(inputs), bytes).examples.columns),
              ElementsAre("int64[1, 2]{-5, 1152921504606846976}", "bool[1]{1}"));
}

TEST(Infer, AlignedBinaryTensorsLieInTheBodyAndKeepIt) {
  const Signature ints = signature_of({{"x", {DType::kInt64, {kAny}}}});
  std::string json =
      R"({"inputs": [{"name": "x", "shape": [2], "datatype": "INT64",
                      "parameters": {"binary_data_size": 16}}]})";
  InferDecoder decoder(ints);
  int borrowed = 0;
  for (int spaces = 0; spaces < 8; ++spaces, json += ' ') {
    auto body = std::make_shared<const std::string>(json + bytes_of<std::int64_t>({7, 8}));
    const char* const begin = body->data();
    const char* const end = begin + body->size();
    const std::weak_ptr<const std::string> watched = body;
    Tensor read = decoder.decode(body, json.size()).examples.columns[0];
    body.reset();
    EXPECT_EQ(read.to_string(), "int64[2]{7, 8}");
    const auto* const at = reinterpret_cast<const char*>(read.raw());
    const bool lies_in_body = at >= begin && at < end;
    EXPECT_EQ(lies_in_body, !watched.expired());
    if (lies_in_body) ++borrowed;
    read = Tensor();
    EXPECT_TRUE(watched.expired());
  }
  EXPECT_EQ(borrowed, 1);
}

TEST(Infer, ReadsStringsInJsonAndAsBytesWithTheirLengths) {
  const Signature strings = signature_of({{"s", {DType::kString, {kAny}}}});
  EXPECT_THAT(decoded(strings, R"({"inputs": [{"name": "s", "shape": [2], "datatype": "BYTES",
                                   "data": ["a\u00e9", ""]}]})")
                  .examples.columns[0]
                  .string_values(),
              ElementsAre("a\xC3\xA9", ""));
  const std::string json =
      R"({"inputs": [{"name": "s", "shape": [2], "datatype": "BYTES",
                      "parameters": {"binary_data_size": 11}}]})";
  const std::string bytes("\3\0\0\0\xFF\0x\0\0\0\0", 11);
  EXPECT_THAT(decoded(strings, json, bytes).examples.columns[0].string_values(),
              ElementsAre(std::string("\xFF\0x", 3), ""));
}

TEST(Infer, RaggedColumnsAreTwoInputsWhoseSplitsAreVerified) {
  const auto with = [](const std::string& splits, int n) {
    return request(str(R"({"name": "price", "shape": [2], "datatype": "FP32", "data": [1, 2]},
      {"name": "tags", "shape": [3], "datatype": "INT64", "data": [5, 6, 7]},
      {"name": "tags/row_splits", "shape": [)",
                       n, R"(], "datatype": "INT64", "data": )", splits, "}"));
  };
  EXPECT_THAT(texts(decoded(ragged(), with("[0, 1, 3]", 3)).examples.columns),
              ElementsAre("float32[2]{1, 2}", "int64[3]{5, 6, 7}", "int64[3]{0, 1, 3}"));
  EXPECT_THAT(not_inferred(ragged(), with("[1, 1, 3]", 3)), HasSubstr("begins with 1"));
  EXPECT_THAT(not_inferred(ragged(), with("[]", 0)), HasSubstr("begins with nothing"));
  EXPECT_THAT(not_inferred(ragged(), with("[0, 4, 3]", 3)),
              HasSubstr("element 2 is 3 and less than the one before, 4"));
  EXPECT_THAT(not_inferred(ragged(), with("[0, 1, 2]", 3)),
              HasSubstr("ends with 2, and \"tags\" has 3 values"));
  EXPECT_THAT(not_inferred(ragged(), with("[0, 1, 2, 3]", 4)),
              HasSubstr("\"tags\" has 3 examples, and \"price\" has 2"));
}

TEST(Infer, OutputsAreThoseAskedForEachInItsForm) {
  const auto of = [](const std::string& more) {
    std::vector<std::pair<std::size_t, bool>> all;
    for (const InferOutput& output :
         decoded(two_inputs(), request(str(kInput0, ",", kInput1), more)).outputs)
      all.emplace_back(output.index, output.binary);
    return all;
  };
  using Pair = std::pair<std::size_t, bool>;
  EXPECT_THAT(of(""), ElementsAre(Pair(0, false), Pair(1, false)));
  EXPECT_THAT(of(R"(, "parameters": {"binary_data_output": true})"),
              ElementsAre(Pair(0, true), Pair(1, true)));
  EXPECT_THAT(of(R"(, "outputs": [{"name": "label"}, {"name": "output0", "parameters":
                   {"binary_data": false}}], "parameters": {"binary_data_output": true})"),
              ElementsAre(Pair(1, true), Pair(0, false)));
  EXPECT_THAT(of(R"(, "outputs": [{"name": "output0", "parameters": {"binary_data": true}}])"),
              ElementsAre(Pair(0, true)));
}

// ---- refusals ----

TEST(Infer, RefusesInputsThatAreNotTheModels) {
  const auto with = [](const std::string& input) {
    return not_inferred(two_inputs(), request(str(input, ",", kInput1)));
  };
  EXPECT_THAT(with(R"({"name": "input", "shape": [2, 2], "datatype": "INT64", "data": []})"),
              AllOf(HasSubstr("input \"input\": the model has no such input"),
                    HasSubstr("did you mean \"input0\"?")));
  EXPECT_THAT(with(R"({"name": "input0", "shape": [2, 2], "datatype": "FP32", "data": []})"),
              HasSubstr("the datatype \"FP32\" is given, and INT64 is wanted"));
  EXPECT_THAT(with(R"({"name": "input0", "shape": [2, 2], "datatype": "UINT32", "data": []})"),
              HasSubstr("the datatype \"UINT32\""));
  EXPECT_THAT(with(R"({"name": "input0", "shape": [4], "datatype": "INT64", "data": []})"),
              HasSubstr("the shape [4] is given, and [?, 2] is wanted"));
  EXPECT_THAT(with(R"({"name": "input0", "shape": [2, 3], "datatype": "INT64", "data": []})"),
              HasSubstr("the shape [2, 3] is given"));
  EXPECT_THAT(with(R"({"name": "input0", "shape": [-2, 2], "datatype": "INT64", "data": []})"),
              HasSubstr("-2 is no dimension"));
  EXPECT_THAT(with(R"({"name": "input0", "shape": [2.0, 2], "datatype": "INT64", "data": []})"),
              HasSubstr("2.0 is no dimension"));
  EXPECT_THAT(with(R"({"name": "input0", "shape": [9223372036854775808, 2], "datatype": "INT64"})"),
              HasSubstr("is no dimension"));
  EXPECT_THAT(with(R"({"name": "input0", "shape": [4611686018427387904, 2], "datatype": "INT64",
                      "data": []})"),
              HasSubstr("has more than 67108864 elements"));
  EXPECT_THAT(with(R"({"shape": [2, 2], "datatype": "INT64", "data": []})"),
              HasSubstr("an input has no \"name\""));
  EXPECT_THAT(with(R"({"name": "input0", "datatype": "INT64", "data": []})"),
              HasSubstr("the input has no \"shape\""));
  EXPECT_THAT(with(R"({"name": "input0", "shape": [2, 2], "data": []})"),
              HasSubstr("the input has no \"datatype\""));
  EXPECT_THAT(with(R"({"name": "input0", "shape": [2, 2], "datatype": "INT64"})"),
              HasSubstr("neither \"data\" nor the parameter \"binary_data_size\""));
  EXPECT_THAT(with(str(kInput0, ",", kInput1, ",{}")), HasSubstr("more inputs than the model's 2"));
  EXPECT_THAT(not_inferred(two_inputs(), request(str(kInput0, ",", kInput0))),
              HasSubstr("input \"input0\": the input is there twice"));
  EXPECT_THAT(not_inferred(two_inputs(), request(kInput0)),
              HasSubstr("inputs are missing: \"input1\""));
  EXPECT_THAT(with(R"({"name": "input0", "name": "input0"})"),
              HasSubstr("the key \"name\" is there twice"));
}

TEST(Infer, RefusesDataThatDoesNotFitItsShape) {
  const auto with = [](const std::string& data) {
    const std::string first = not_inferred(
        two_inputs(),
        request(str(R"({"name": "input0", "shape": [2, 2], "datatype": "INT64", "data": )", data,
                    "},", kInput1)));
    const std::string last = not_inferred(
        two_inputs(),
        request(str(R"({"data": )", data,
                    R"(, "name": "input0", "shape": [2, 2], "datatype": "INT64"},)", kInput1)));
    // The message is the same, but for its place.
    EXPECT_EQ(first.substr(0, first.find("; at")), last.substr(0, last.find("; at")));
    return first;
  };
  EXPECT_THAT(with("[1, 2, 3]"), HasSubstr("a list of 3 is there, and one of 4 is wanted"));
  EXPECT_THAT(with("[1, 2, 3, 4, 5]"), HasSubstr("a list of 5 is there, and one of 4 is wanted"));
  EXPECT_THAT(with("[[1, 2], [3]]"), HasSubstr("a list of 1 is there, and one of 2 is wanted"));
  EXPECT_THAT(with("[[1, 2], 3, 4]"), HasSubstr("a single value is there"));
  EXPECT_THAT(with("[1, [2, 3, 4]]"), HasSubstr("a list is there"));
  EXPECT_THAT(with("[]"), HasSubstr("a list of 0 is there"));
  EXPECT_THAT(with("7"), HasSubstr("a single value is there, and a list is wanted"));
  EXPECT_THAT(with("{}"), HasSubstr("an object is there"));
  EXPECT_THAT(with("[1, 2, 3, 4.5]"), HasSubstr("4.5 is written with a point"));
  EXPECT_THAT(with("[1, 2, 3, \"4\"]"), HasSubstr("the text \"4\" is there"));
  EXPECT_THAT(with("[1, 2, 3, null]"), HasSubstr("null is there"));
}

TEST(Infer, RefusesSizesThatDoNotAddUp) {
  const auto with = [](const std::string& size, std::size_t bytes) {
    return not_inferred(
        two_inputs(),
        request(str(R"({"name": "input0", "shape": [2, 2], "datatype": "INT64", "parameters":
                     {"binary_data_size": )",
                    size, "}},", kInput1)),
        std::string(bytes, '\0'));
  };
  EXPECT_EQ(with("32", 32), "");
  EXPECT_THAT(with("31", 31),
              AllOf(HasSubstr("input \"input0\": 4 elements of 8 bytes each are 32"),
                    HasSubstr("\"binary_data_size\" is 31")));
  EXPECT_THAT(with("32", 31), HasSubstr("\"binary_data_size\" is 32, and 31 bytes"));
  EXPECT_THAT(with("32", 33), HasSubstr("the body has 33 bytes"));
  EXPECT_THAT(with("32", 0), HasSubstr("0 bytes of the body are left for it"));
  EXPECT_THAT(with("-1", 32), HasSubstr("-1 is no number of bytes"));
  EXPECT_THAT(with("9223372036854775807", 32), HasSubstr("is 9223372036854775807, and 32 bytes"));
  EXPECT_THAT(with("\"32\"", 32), HasSubstr("a text is there, and a number of bytes is wanted"));
  EXPECT_THAT(with("32, \"binary_data_size\": 32", 32), HasSubstr("twice"));
  EXPECT_THAT(not_inferred(two_inputs(), good(), "x"), HasSubstr("the body has 1 bytes"));
  EXPECT_THAT(
      not_inferred(
          two_inputs(),
          request(R"({"name": "input0", "shape": [1, 2], "datatype": "INT64", "data": [1, 2],
                             "parameters": {"binary_data_size": 16}})"),
          std::string(16, '\0')),
      HasSubstr("\"data\" and \"binary_data_size\""));
}

TEST(Infer, RefusesStringsWhoseLengthsDoNotAddUp) {
  const Signature strings = signature_of({{"s", {DType::kString, {kAny}}}});
  const auto with = [&](const std::string& bytes) {
    return not_inferred(
        strings,
        request(str(R"({"name": "s", "shape": [2], "datatype": "BYTES", "parameters":
                                      {"binary_data_size": )",
                    bytes.size(), "}}")),
        bytes);
  };
  EXPECT_EQ(with(std::string("\1\0\0\0a\0\0\0\0", 9)), "");
  EXPECT_THAT(with(std::string("\1\0\0\0a\0\0\0", 8)), HasSubstr("hold 1 whole ones"));
  EXPECT_THAT(with(std::string("\1\0\0\0a\1\0\0\0", 9)),
              HasSubstr("string 1 begins at byte 5 of the tensor"));
  EXPECT_THAT(with(std::string("\xFF\xFF\xFF\xFF"
                               "a\0\0\0\0",
                               9)),
              HasSubstr("hold 0 whole ones"));
  EXPECT_THAT(with(std::string("\1\0\0\0a\0\0\0\0x", 10)), HasSubstr("1 of 10 bytes are left"));
}

TEST(Infer, RefusesBytesThatAreNoValues) {
  const auto with = [](DType dtype, const std::string& bytes, bool allow_nan = false) {
    const Signature one = signature_of({{"x", {dtype, {kAny}}}});
    return not_inferred(
        one,
        request(str(R"({"name": "x", "shape": [)", bytes.size() / dtype_bytes(dtype),
                    R"(], "datatype": ")", infer_datatype(dtype),
                    R"(", "parameters": {"binary_data_size": )", bytes.size(), "}}")),
        bytes, {.allow_nan = allow_nan});
  };
  EXPECT_THAT(with(DType::kBool, std::string("\0\2", 2)),
              HasSubstr("element 1 is a byte other than 0 and 1"));
  EXPECT_THAT(with(DType::kFloat32, bytes_of<float>({1, INFINITY})),
              AllOf(HasSubstr("element 1"), HasSubstr("--allow-nan")));
  EXPECT_THAT(with(DType::kFloat64, bytes_of<double>({-NAN})), HasSubstr("element 0"));
  EXPECT_THAT(with(DType::kFloat16, bytes_of<std::uint16_t>({0x7BFF, 0xFC00})),
              HasSubstr("element 1"));
  EXPECT_THAT(with(DType::kBfloat16, bytes_of<std::uint16_t>({0x7F7F, 0x7FC0})),
              HasSubstr("element 1"));
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBfloat16})
    EXPECT_EQ(with(dtype, std::string(16, '\xFF'), true), "");
}

TEST(Infer, RefusesRequestsOfAnotherForm) {
  const Signature two = two_inputs();
  EXPECT_THAT(not_inferred(two, ""), HasSubstr("the body is empty"));
  EXPECT_THAT(not_inferred(two, "{}"), HasSubstr("no key \"inputs\""));
  EXPECT_THAT(not_inferred(two, "[]"), HasSubstr("a list is there, and an object of \"inputs\""));
  EXPECT_THAT(not_inferred(two, R"({"inputs": {}})"),
              HasSubstr("an object is there, and a list of objects is wanted"));
  EXPECT_THAT(not_inferred(two, R"({"inputs": [7]})"), HasSubstr("an object with a \"name\""));
  EXPECT_THAT(not_inferred(two, R"({"inputs": []})"),
              HasSubstr("inputs are missing: \"input0\", \"input1\""));
  EXPECT_THAT(not_inferred(two, R"({"id": 7})"), HasSubstr("a number is there, and a text"));
  EXPECT_THAT(not_inferred(two, good() + "]"), HasSubstr("not one JSON object"));
  EXPECT_THAT(not_inferred(two, R"({"x": )" + std::string(1000, '[')), HasSubstr("deeper than 32"));
  EXPECT_THAT(not_inferred(
                  two, request(str(kInput0, ",", kInput1), R"(, "outputs": [{"name": "output"}])")),
              AllOf(HasSubstr("no output \"output\""), HasSubstr("\"output0\"")));
  EXPECT_THAT(not_inferred(two, request(str(kInput0, ",", kInput1),
                                        R"(, "outputs": [{"name": "label"}, {"name": "label"}])")),
              HasSubstr("asked for twice"));
  EXPECT_THAT(not_inferred(two, request(str(kInput0, ",", kInput1), R"(, "outputs": [{}])")),
              HasSubstr("an output has no \"name\""));
  EXPECT_THAT(not_inferred(two,
                           R"({"inputs": [{"name": "input0", "shape": [1, 2], "datatype": "INT64",
                                       "d\u0061ta": [1, 2]}]})"),
              HasSubstr("written with escapes"));
}

TEST(Infer, RefusesTritonsFurtherExtensionsAsNotServed) {
  EXPECT_THROW(
      decoded(two_inputs(), request(R"({"name": "input0", "shape": [1, 2], "datatype": "INT64",
                                   "parameters": {"shared_memory_region": "r"}})")),
      UnimplementedError);
  EXPECT_THROW(
      decoded(two_inputs(),
              request(str(kInput0, ",", kInput1),
                      R"(, "outputs": [{"name": "label", "parameters": {"classification": 2}}])")),
      UnimplementedError);
}

TEST(Infer, RefusesMoreThanItsLimits) {
  EXPECT_THAT(not_inferred(two_inputs(), good(), "", {.examples_max = 1}),
              HasSubstr("2 examples, more than 1"));
  EXPECT_THAT(not_inferred(two_inputs(), good(), "", {.elements_max = 3}),
              HasSubstr("more than 3 elements"));
  EXPECT_THAT(not_inferred(two_inputs(), good(), "", {.elements_max = 5}),
              HasSubstr("more than 5 values"));
  EXPECT_EQ(not_inferred(two_inputs(), good(), "", {.elements_max = 6}), "");
  EXPECT_THAT(not_inferred(two_inputs(), request(R"({"name": "input0", "shape": [0, 2], "datatype":
      "INT64", "data": []}, {"name": "input1", "shape": [0], "datatype": "BOOL", "data": []})")),
              HasSubstr("there are no examples"));
}

TEST(Infer, TheHeadersLengthIsANumberWithinTheBody) {
  EXPECT_EQ(infer_header_length(""), std::nullopt);
  EXPECT_EQ(infer_header_length("17"), std::optional<std::size_t>(17));
  for (const char* bad : {"x", "-1", "1 ", "99999999999999999999", "0x10"})
    EXPECT_THAT(refusal([&] { infer_header_length(bad); }),
                HasSubstr("a number of bytes is wanted"));
  InferDecoder decoder(two_inputs());
  EXPECT_THAT(refusal([&] { decoder.decode(std::make_shared<const std::string>("{}"), 3); }),
              HasSubstr("is 3, and the body has 2 bytes"));
}

}  // namespace
}  // namespace cairn::serving
