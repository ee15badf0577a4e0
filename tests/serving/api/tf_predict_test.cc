#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "serving/api/tf_json.h"
#include "tests/serving/api/signatures.h"

namespace cairn::serving {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string refused(const Signature& signature, const std::string& body,
                    const DecodeLimits& limits = {}) {
  TfDecoder decoder(signature);
  return refusal([&] { decoder.predict(body, limits); });
}

Signature one(DType dtype, Shape shape = {kAny}) {
  return signature_of({{"x", {dtype, std::move(shape)}}});
}

// ---- the examples of https://www.tensorflow.org/tfx/serving/api_rest, word for word ----

TEST(TfPredict, ReadsTheDocumentedListOfThreeScalars) {
  TfDecoder decoder(one(DType::kString));
  const TfPredict read = decoder.predict(R"({
  "instances": [ "foo", "bar", "baz" ]
})");
  EXPECT_EQ(read.examples.examples, 3);
  EXPECT_EQ(read.form, TfForm::kRows);
  EXPECT_THAT(read.examples.columns[0].string_values(), ElementsAre("foo", "bar", "baz"));
}

TEST(TfPredict, ReadsTheDocumentedListOfTwoMatrices) {
  TfDecoder decoder(one(DType::kFloat32, {kAny, 1, 2}));
  const TfPredict read = decoder.predict(R"({
  "instances": [ [[1, 2]], [[3, 4]] ]
})");
  EXPECT_THAT(texts(read.examples.columns), ElementsAre("float32[2, 1, 2]{1, 2, 3, 4}"));
}

constexpr const char* kRowForm = R"({
 "instances": [
   {
     "tag": "foo",
     "signal": [1, 2, 3, 4, 5],
     "sensor": [[1, 2], [3, 4]]
   },
   {
     "tag": "bar",
     "signal": [3, 4, 1, 2, 5],
     "sensor": [[4, 5], [6, 8]]
   }
 ]
})";
constexpr const char* kColumnForm = R"({
 "inputs": {
   "tag": ["foo", "bar"],
   "signal": [[1, 2, 3, 4, 5], [3, 4, 1, 2, 5]],
   "sensor": [[[1, 2], [3, 4]], [[4, 5], [6, 8]]]
 }
})";

TEST(TfPredict, ReadsTheDocumentedRowsAndColumnsAsTheSameTensors) {
  TfDecoder decoder(documented());
  for (const auto& [body, form] :
       {std::pair(kRowForm, TfForm::kRows), std::pair(kColumnForm, TfForm::kColumns)}) {
    const TfPredict read = decoder.predict(body);
    EXPECT_EQ(read.form, form);
    EXPECT_EQ(read.examples.examples, 2);
    EXPECT_THAT(read.examples.columns[0].string_values(), ElementsAre("foo", "bar"));
    EXPECT_EQ(read.examples.columns[1].to_string(99),
              "float32[2, 5]{1, 2, 3, 4, 5, 3, 4, 1, 2, 5}");
    EXPECT_EQ(read.examples.columns[2].to_string(99), "int64[2, 2, 2]{1, 2, 3, 4, 4, 5, 6, 8}");
  }
}

// The page has one "]" too many in its row form.
TEST(TfPredict, RefusesTheDocumentsOwnSlipWithItsPlace) {
  std::string body = kRowForm;
  body.replace(body.find("[3, 4, 1, 2, 5]"), 15, "[3, 4, 1, 2, 5]]");
  EXPECT_THAT(refused(documented(), body),
              AllOf(HasSubstr("not one JSON object"), HasSubstr("(line 10, column 31)")));
}

TEST(TfPredict, ReadsTheDocumentedCallOfHalfPlusThree) {
  TfDecoder decoder(one(DType::kFloat32));
  EXPECT_THAT(texts(decoder.predict(R"({"instances": [1.0,2.0,5.0]})").examples.columns),
              ElementsAre("float32[3]{1, 2, 5}"));
}

// ---- forms ----

TEST(TfPredict, TakesKeysInAnyOrderAndPassesOverThoseThatAreNotItsOwn) {
  TfDecoder decoder(one(DType::kInt64));
  for (const char* body :
       {R"({"instances": [7], "signature_name": "serving_default"})",
        R"({"signature_name": "serving_default", "instances": [{"x": 7}]})",
        R"({"more": {"instances": [[1, {"a": null}], true, 1e999, "\u00e9"]}, "instances": [7]})"})
    EXPECT_THAT(texts(decoder.predict(body).examples.columns), ElementsAre("int64[1]{7}")) << body;
}

TEST(TfPredict, TakesTheKeysOfEachInstanceInAnyOrder) {
  TfDecoder decoder(signature_of({{"a", {DType::kInt32, {kAny}}},
                                  {"b", {DType::kBool, {kAny}}},
                                  {"c", {DType::kUint8, {kAny}}}}));
  const Element read =
      decoder
          .predict(
              R"({"instances": [{"a": 1, "b": true, "c": 2}, {"c": 255, "a": -3, "b": false}]})")
          .examples.columns;
  EXPECT_THAT(texts(read), ElementsAre("int32[2]{1, -3}", "bool[2]{1, 0}", "uint8[2]{2, 255}"));
}

TEST(TfPredict, TakesRaggedColumnsAsListsOfAnyLength) {
  TfDecoder decoder(ragged());
  const auto is_read =
      ElementsAre("float32[3]{1, 2, 3}", "int64[3]{5, 6, 7}", "int64[4]{0, 2, 2, 3}");
  EXPECT_THAT(texts(decoder
                        .predict(R"({"instances": [{"price": 1, "tags": [5, 6]},
                                {"tags": [], "price": 2}, {"price": 3, "tags": [7]}]})")
                        .examples.columns),
              is_read);
  EXPECT_THAT(
      texts(decoder.predict(R"({"inputs": {"tags": [[5, 6], [], [7]], "price": [1, 2, 3]}})")
                .examples.columns),
      is_read);
}

TEST(TfPredict, TakesTextsAsBase64WithAndWithoutTheInputsName) {
  TfDecoder decoder(one(DType::kString));
  for (const char* body : {R"({"instances": [{"b64": "aW1hZ2UgYnl0ZXM="}]})",
                           R"({"instances": [{"x": {"b64": "aW1hZ2UgYnl0ZXM="}}]})",
                           R"({"inputs": [{"b64": "aW1hZ2UgYnl0ZXM"}]})",
                           R"({"inputs": {"x": ["image \u0062ytes"]}})"})
    EXPECT_THAT(decoder.predict(body).examples.columns[0].string_values(),
                ElementsAre("image bytes"))
        << body;
}

TEST(TfPredict, LearnsADimensionThatTheModelLeavesOpenFromTheFirstInstance) {
  const Signature open = one(DType::kFloat32, {kAny, kAny});
  TfDecoder decoder(open);
  EXPECT_THAT(texts(decoder.predict(R"({"instances": [[1, 2], [3, 4]]})").examples.columns),
              ElementsAre("float32[2, 2]{1, 2, 3, 4}"));
  EXPECT_THAT(refused(open, R"({"instances": [[1, 2], [3]]})"),
              HasSubstr("a list of 1 is there, and one of 2 is wanted"));
  EXPECT_THAT(texts(decoder.predict(R"({"instances": [[1, 2, 3]]})").examples.columns),
              ElementsAre("float32[1, 3]{1, 2, 3}"));
}

TEST(TfPredict, ADecoderThatHasRefusedABodyReadsTheNext) {
  TfDecoder decoder(documented());
  EXPECT_NE(refusal([&] { decoder.predict(R"({"instances": [{"tag": "x", "signal": [1, )"); }), "");
  EXPECT_NE(refusal([&] { decoder.predict(R"({"instances": [{"tag": {"b64": "!"}}]})"); }), "");
  EXPECT_EQ(decoder.predict(kRowForm).examples.examples, 2);
}

// ---- numbers ----

TEST(TfPredict, ReadsFloatsToTheirNearestValue) {
  TfDecoder decoder(one(DType::kFloat32));
  const Tensor read =
      decoder
          .predict(R"({"instances": [0.1, -0, -0.0, 16777217, 1e-60, 1E+3, 3.4028235e38, 9e-46]})")
          .examples.columns[0];
  const auto values = read.values<float>();
  EXPECT_EQ(values[0], 0.1f);
  EXPECT_TRUE(std::signbit(values[1]));
  EXPECT_TRUE(std::signbit(values[2]));
  EXPECT_EQ(values[3], 16777216.0f);
  EXPECT_EQ(values[4], 0.0f);
  EXPECT_EQ(values[5], 1000.0f);
  EXPECT_EQ(values[6], 3.4028235e38f);
  EXPECT_EQ(values[7], 1.4e-45f);
}

TEST(TfPredict, ReadsTheWholeRangeOfInt64AndNothingBeyond) {
  TfDecoder decoder(one(DType::kInt64));
  EXPECT_THAT(texts(decoder.predict(R"({"instances": [9223372036854775807, -9223372036854775808]})")
                        .examples.columns),
              ElementsAre("int64[2]{9223372036854775807, -9223372036854775808}"));
  for (const char* number : {"9223372036854775808", "-9223372036854775809", "18446744073709551616"})
    EXPECT_THAT(refused(one(DType::kInt64), str("{\"instances\": [", number, "]}")),
                HasSubstr("is beyond the range of int64"));
}

TEST(TfPredict, RefusesNumbersThatAreNotTheColumns) {
  const auto with = [](DType dtype, const std::string& value) {
    return refused(one(dtype), "{\"instances\": [" + value + "]}");
  };
  EXPECT_THAT(with(DType::kInt64, "1.5"), HasSubstr("1.5 is written with a point"));
  EXPECT_THAT(with(DType::kInt64, "1e3"), HasSubstr("int64 takes whole numbers"));
  EXPECT_THAT(with(DType::kInt32, "2147483648"), HasSubstr("beyond the range of int32"));
  EXPECT_THAT(with(DType::kUint8, "-1"), HasSubstr("beyond the range of uint8"));
  EXPECT_THAT(with(DType::kUint8, "256"), HasSubstr("beyond the range of uint8"));
  EXPECT_THAT(with(DType::kFloat32, "1e400"), HasSubstr("1e400 is beyond the range of float32"));
  EXPECT_THAT(with(DType::kFloat32, "1e39"), HasSubstr("beyond the range of float32"));
  EXPECT_THAT(with(DType::kFloat64, "1e309"), HasSubstr("beyond the range of float64"));
  EXPECT_THAT(with(DType::kFloat16, "65520"), HasSubstr("beyond the range of float16"));
  EXPECT_THAT(with(DType::kBfloat16, "3.4e38"), HasSubstr("beyond the range of bfloat16"));
  EXPECT_THAT(with(DType::kBool, "1"), HasSubstr("true or false is wanted"));
  EXPECT_THAT(with(DType::kString, "1"), HasSubstr("the number 1 is there, and a text is wanted"));
  EXPECT_THAT(with(DType::kFloat32, "\"1\""), HasSubstr("the text \"1\" is there"));
  EXPECT_THAT(with(DType::kFloat32, "true"), HasSubstr("true is there, and a number is wanted"));
  EXPECT_THAT(with(DType::kFloat32, "null"), HasSubstr("null is there"));
}

TEST(TfPredict, TakesNumbersThatAreNotFiniteOnlyWhereThatIsAllowed) {
  const Signature floats = one(DType::kFloat32);
  EXPECT_THAT(refused(floats, R"({"instances": [NaN]})"), HasSubstr("--allow-nan"));
  EXPECT_THAT(refused(floats, R"({"instances": [-Infinity]})"),
              AllOf(HasSubstr("--allow-nan"), HasSubstr("byte 15 ")));
  EXPECT_THAT(refused(floats, R"({"instances": ["NaN"]})"), HasSubstr("the text \"NaN\""));
  TfDecoder decoder(floats);
  const Tensor read =
      decoder
          .predict(
              R"({"instances": [NaN,Infinity, -Infinity , 0.5, "NaN", "-Infinity", -0.500000]})",
              {.allow_nan = true})
          .examples.columns[0];
  EXPECT_EQ(read.to_string(), "float32[7]{nan, inf, -inf, 0.5, nan, -inf, -0.5}");
  EXPECT_THAT(refused(floats, R"({"instances": [1e400]})", {.allow_nan = true}),
              HasSubstr("beyond the range"));
  for (const char* none :
       {"-NaN", "1NaN", "NaN5", "5Infinity", "Infinity.5", "--Infinity", "NaNNaN"})
    EXPECT_THAT(refused(floats, str("{\"instances\": [", none, "]}"), {.allow_nan = true}),
                HasSubstr("not"))
        << none;
  EXPECT_THAT(refused(one(DType::kInt64), R"({"instances": [NaN]})", {.allow_nan = true}),
              HasSubstr("NaN is there, and a whole number is wanted"));
  EXPECT_THAT(refused(one(DType::kString), R"({"instances": ["NaN", Nan]})", {.allow_nan = true}),
              HasSubstr("not one JSON object"));
}

TEST(TfPredict, RoundsToTheSixteenBitFloats) {
  TfDecoder bfloat(one(DType::kBfloat16)), half(one(DType::kFloat16));
  const std::string body = R"({"instances": [1, 0.1, -2.5]})";
  const Tensor b16 = bfloat.predict(body).examples.columns[0];
  const Tensor f16 = half.predict(body).examples.columns[0];
  for (int i = 0; i < 3; ++i) {
    const float value = std::array{1.0f, 0.1f, -2.5f}[static_cast<std::size_t>(i)];
    EXPECT_EQ(reinterpret_cast<const std::uint16_t*>(b16.raw())[i], to_bfloat16(value));
    EXPECT_EQ(reinterpret_cast<const std::uint16_t*>(f16.raw())[i], to_float16(value));
  }
}

// ---- refusals ----

TEST(TfPredict, RefusalsNameThePlaceTheInstanceAndTheInput) {
  EXPECT_EQ(
      refused(documented(), "{\"instances\": [\n {\"tag\": \"a\", \"signal\": [1, 2, \"3\"]}]}"),
      "instance 0, input \"signal\": the text \"3\" is there, and a number is wanted: the "
      "column is float32[?, 5]; at byte 48 (line 2, column 33)");
}

TEST(TfPredict, RefusesNamesThatAreNoInputAndAdvisesTheNearest) {
  EXPECT_THAT(refused(documented(), R"({"instances": [{"signals": [1]}]})"),
              AllOf(HasSubstr("no input \"signals\""), HasSubstr("did you mean \"signal\"?")));
  EXPECT_THAT(refused(documented(), R"({"inputs": {"Tag": ["a"]}})"),
              HasSubstr("did you mean \"tag\"?"));
  EXPECT_THAT(refused(ragged(), R"({"instances": [{"tags/row_splits": [0, 1]}]})"),
              AllOf(HasSubstr("no input \"tags/row_splits\""), HasSubstr("\"price\", \"tags\"")));
}

// A name takes no longer to refuse than to read: the nearest of a name of 4 MB is not looked for.
TEST(TfPredict, CutsNamesThatAreNoInput) {
  const std::string name(std::size_t{4} << 20, 'x');
  const std::string message = refused(documented(), "{\"instances\": [{\"" + name + "\": 1}]}");
  EXPECT_THAT(message, HasSubstr("no input \"xxxx"));
  EXPECT_LT(message.size(), 300U);
}

TEST(TfPredict, NamesEachMissingInput) {
  EXPECT_THAT(refused(documented(), R"({"instances": [{"signal": [1, 2, 3, 4, 5]}]})"),
              HasSubstr("instance 0: the inputs \"tag\", \"sensor\" are missing"));
  EXPECT_THAT(refused(documented(), R"({"inputs": {"tag": ["a"], "sensor": [[[1, 2], [3, 4]]]}})"),
              HasSubstr("the input \"signal\" is missing"));
  EXPECT_THAT(refused(ragged(), R"({"instances": [{"price": 1, "tags": []}, {"price": 1}]})"),
              HasSubstr("instance 1: the input \"tags\" is missing"));
}

TEST(TfPredict, RefusesKeysThatAreThereTwice) {
  EXPECT_THAT(refused(ragged(), R"({"instances": [{"price": 1, "tags": [1], "price": 1}]})"),
              HasSubstr("instance 0, input \"price\": the key is there twice"));
  EXPECT_THAT(refused(ragged(), R"({"inputs": {"price": [1], "tags": [[1]], "price": [1]}})"),
              HasSubstr("input \"price\": the key is there twice"));
  EXPECT_THAT(refused(one(DType::kInt64), R"({"instances": [1], "instances": [2]})"),
              HasSubstr("the key \"instances\" is there twice"));
  EXPECT_THAT(refused(one(DType::kInt64), R"({"instances": [1], "inputs": [2]})"),
              HasSubstr("both there"));
  EXPECT_THAT(
      refused(one(DType::kInt64), R"({"signature_name": "", "signature_name": "", "inputs": [2]})"),
      HasSubstr("the key \"signature_name\" is there twice"));
}

TEST(TfPredict, RefusesOtherShapes) {
  const Signature pairs = one(DType::kFloat32, {kAny, 2});
  EXPECT_THAT(refused(pairs, R"({"instances": [[1, 2], [1, 2, 3]]})"),
              AllOf(HasSubstr("instance 1, input \"x\""),
                    HasSubstr("a list of 3 is there, and one of 2 is wanted")));
  EXPECT_THAT(refused(pairs, R"({"instances": [1]})"),
              HasSubstr("a single value is there, and a list is wanted"));
  EXPECT_THAT(refused(pairs, R"({"instances": [[[1], 2]]})"),
              HasSubstr("a list is there, and a number is wanted"));
  EXPECT_THAT(refused(pairs, R"({"inputs": 1})"), HasSubstr("a list is wanted"));
  EXPECT_THAT(refused(pairs, R"({"instances": [{"x": {"a": 1}}]})"),
              HasSubstr("an object is there"));
  EXPECT_THAT(refused(ragged(), R"({"instances": [{"price": 1, "tags": 7}]})"),
              HasSubstr("a list is wanted: the column is int64[?], ragged"));
  EXPECT_THAT(refused(ragged(), R"({"inputs": {"price": [1, 2], "tags": [[1]]}})"),
              HasSubstr("\"tags\" has 1 examples, and \"price\" has 2"));
}

TEST(TfPredict, RefusesBodiesOfAnotherForm) {
  const Signature ints = one(DType::kInt64);
  EXPECT_THAT(refused(ints, ""), HasSubstr("the body is empty"));
  EXPECT_THAT(refused(ints, "[1]"), HasSubstr("the body is a list, and an object is wanted"));
  EXPECT_THAT(refused(ints, "7"), HasSubstr("the body is a number"));
  EXPECT_THAT(refused(ints, "{}"), HasSubstr("no key \"instances\" or \"inputs\""));
  EXPECT_THAT(refused(ints, R"({"instance": [1]})"),
              HasSubstr("did you mean \"instances\" by \"instance\"?"));
  EXPECT_THAT(refused(ints, R"({"instances": {"x": 1}})"),
              HasSubstr("\"instances\" is an object, and a list is wanted"));
  EXPECT_THAT(refused(ints, R"({"instances": []})"), HasSubstr("there are no examples"));
  EXPECT_THAT(refused(ints, R"({"inputs": []})"), HasSubstr("there are no examples"));
  EXPECT_THAT(refused(ints, R"({"instances": [1]} {})"), HasSubstr("text follows it at byte 19"));
  EXPECT_THAT(refused(ragged(), R"({"instances": [1, 2]})"),
              HasSubstr("name them, as {\"price\": ..., \"tags\": ...}"));
  EXPECT_THAT(refused(ints, R"({"signature_name": 7, "instances": [1]})"),
              HasSubstr("\"signature_name\" is a number, and a text is wanted"));
  EXPECT_THAT(refused(ints, R"({"signature_name": "serving_defaults", "instances": [1]})"),
              AllOf(HasSubstr("no signature \"serving_defaults\""),
                    HasSubstr("did you mean \"serving_default\"?")));
}

TEST(TfPredict, RefusesBase64ThatIsNone) {
  const auto with = [](const std::string& value) {
    return refused(one(DType::kString), "{\"instances\": [" + value + "]}");
  };
  EXPECT_THAT(with(R"({"b64": "a"})"), HasSubstr("\"a\" is not base64"));
  EXPECT_THAT(with(R"({"b64": "a*bc"})"), HasSubstr("is not base64"));
  EXPECT_THAT(with(R"({"b64": "YQ=x"})"), HasSubstr("is not base64"));
  EXPECT_THAT(with(R"({"b64": "YR=="})"), HasSubstr("is not base64"));
  EXPECT_THAT(with(R"({"b64": 1})"), HasSubstr("\"b64\" is a number, and a text is wanted"));
  EXPECT_THAT(with(R"({"b64": "YQ==", "b64": ""})"), HasSubstr("more than the key \"b64\""));
  EXPECT_THAT(with(R"({"x": {"b65": ""}})"), HasSubstr("the key \"b65\""));
  EXPECT_THAT(with(R"({"x": {}})"), HasSubstr("without the key \"b64\""));
}

TEST(TfPredict, RefusesTextThatIsNotUtf8) {
  for (const char* bytes : {"\xFF", "\xC0\x80", "\xED\xA0\x80", "\xF5\x80\x80\x80", "\xE2\x82"})
    EXPECT_THAT(refused(one(DType::kString), str("{\"instances\": [\"", bytes, "\"]}")),
                HasSubstr("not one JSON object"));
  EXPECT_NE(refused(one(DType::kString), R"({"instances": ["\ud800"]})"), "");
}

TEST(TfPredict, RefusesNestingBeyondItsBound) {
  for (const int levels : {33, 40, 1'000'000}) {
    const std::string deep = std::string(static_cast<std::size_t>(levels), '[');
    EXPECT_THAT(refused(one(DType::kInt64), "{\"skipped\": " + deep),
                HasSubstr("deeper than 32 levels"));
    EXPECT_NE(refused(one(DType::kInt64), "{\"instances\": " + deep), "");
  }
}

TEST(TfPredict, RefusesMoreThanItsLimits) {
  const Signature ints = one(DType::kInt64);
  EXPECT_THAT(refused(ints, R"({"instances": [1, 2, 3]})", {.examples_max = 2}),
              HasSubstr("more than 2 examples"));
  EXPECT_THAT(refused(ints, R"({"inputs": [1, 2, 3]})", {.examples_max = 2}),
              HasSubstr("more than 2 examples"));
  EXPECT_EQ(refused(ints, R"({"inputs": [1, 2]})", {.examples_max = 2, .elements_max = 2}), "");
  EXPECT_THAT(
      refused(one(DType::kInt64, {kAny, 3}), R"({"instances": [[1, 2, 3]]})", {.elements_max = 2}),
      HasSubstr("more than 2 values"));
  EXPECT_THAT(refused(ints, R"({"instances": [1, 2, 3]})", {.bytes_max = 16}),
              HasSubstr("more than 16 bytes"));
  EXPECT_THAT(refused(one(DType::kString), R"({"instances": ["0123456789"]})", {.bytes_max = 40}),
              HasSubstr("more than 40 bytes"));
  // Before the list that never ends has taken more.
  std::string endless = "{\"instances\": [[";
  for (int i = 0; i < 10'000; ++i) endless += "1,";
  EXPECT_THAT(refused(one(DType::kInt64, {kAny, kAny}), endless, {.elements_max = 1000}),
              HasSubstr("more than 1000 values"));
}

TEST(TfPredict, RefusesASignatureWithoutInputsOrALeadingDimension) {
  EXPECT_THAT(refusal([] { TfDecoder decoder(signature_of({})); }), HasSubstr("has no inputs"));
  EXPECT_THAT(refusal([] { TfDecoder decoder(one(DType::kFloat32, {})); }),
              HasSubstr("has a leading dimension"));
}

}  // namespace
}  // namespace cairn::serving
