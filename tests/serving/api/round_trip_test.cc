// Random tensors through every form of a request, and requests that were cut or changed on the way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <random>

#include "serving/api/infer.h"
#include "serving/api/json_text.h"
#include "serving/api/tf_json.h"
#include "tests/serving/api/signatures.h"

namespace cairn::serving {
namespace {

using Random = std::mt19937_64;

std::int64_t below(Random& random, std::int64_t bound) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(bound));
}

std::string random_text(Random& random) {
  static const std::vector<std::string> kParts = {
      "a", "\"", "\\", "\n", "\x01", "\xC3\xA9", "\xF0\x9F\x98\x80", " ", "/", "\x7F"};
  std::string made;
  for (std::int64_t n = below(random, 6); n > 0; --n) made += kParts[random() % kParts.size()];
  if (below(random, 50) == 0) made.append(3000, 'x');  // longer than a parser's buffer
  return made;
}

// Any bits but those of NaN, whose payload JSON does not have.
template <typename Real>
Real random_real(Random& random) {
  using Bits = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;
  switch (below(random, 4)) {
    case 0: return static_cast<Real>(below(random, 2001) - 1000);
    case 1: return static_cast<Real>(below(random, 1 << 20)) / Real{1000};
    default: break;
  }
  const Real made = std::bit_cast<Real>(static_cast<Bits>(random()));
  return std::isnan(made) ? Real{-0.0} : made;
}

std::uint16_t random_half(Random& random, DType dtype) {
  const auto bits = static_cast<std::uint16_t>(random());
  const float value = dtype == DType::kFloat16 ? from_float16(bits) : from_bfloat16(bits);
  return std::isnan(value) ? std::uint16_t{0x8000} : bits;
}

Tensor random_tensor(Random& random, DType dtype, const Shape& shape) {
  const std::int64_t n = shape.elements();
  if (dtype == DType::kString) {
    std::vector<std::string> texts;
    for (std::int64_t i = 0; i < n; ++i) texts.push_back(random_text(random));
    return Tensor::strings(shape, std::move(texts));
  }
  Tensor made(dtype, shape);
  std::byte* const out = made.mutable_raw();
  for (std::int64_t i = 0; i < n; ++i) {
    const auto put = [&](auto value) {
      std::memcpy(out + static_cast<std::size_t>(i) * sizeof(value), &value, sizeof(value));
    };
    switch (dtype) {
      case DType::kFloat32: put(random_real<float>(random)); break;
      case DType::kFloat64: put(random_real<double>(random)); break;
      case DType::kInt32: put(static_cast<std::int32_t>(random())); break;
      case DType::kInt64: put(static_cast<std::int64_t>(random() >> below(random, 63))); break;
      case DType::kBool: put(below(random, 2) == 1); break;
      case DType::kUint8: put(static_cast<std::uint8_t>(random())); break;
      default: put(random_half(random, dtype));
    }
  }
  return made;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.type() != b.type()) return false;
  if (a.dtype() == DType::kString) return std::ranges::equal(a.string_values(), b.string_values());
  return a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

// Columns of all dtypes and several ranks, of which one is ragged.
struct Drawn {
  Signature signature;
  Element columns;
  std::int64_t examples = 0;
};

Drawn draw(std::uint64_t seed) {
  Random random(seed);
  Drawn made;
  made.signature.model = "m";
  made.examples = 1 + below(random, 9);
  for (int dtype = 0; dtype < kDTypeCount; ++dtype) {
    std::vector<std::int64_t> dims = {kAny};
    for (std::int64_t rank = below(random, 3); rank > 0; --rank)
      dims.push_back(1 + below(random, 4));
    const Shape shape(std::move(dims));
    made.signature.input.columns.push_back({str("c", dtype), {static_cast<DType>(dtype), shape}});
    made.columns.push_back(
        random_tensor(random, static_cast<DType>(dtype), shape.with_dim(0, made.examples)));
  }
  std::vector<std::int64_t> splits = {0};
  for (std::int64_t i = 0; i < made.examples; ++i)
    splits.push_back(splits.back() + below(random, 4));
  const auto dtype = static_cast<DType>(below(random, kDTypeCount));
  made.signature.input.columns.push_back({"r", {dtype, {kAny}}});
  made.columns.push_back(random_tensor(random, dtype, {splits.back()}));
  made.signature.input.columns.push_back({"r/row_splits", {DType::kInt64, {kAny}}});
  made.columns.push_back(
      Tensor::of<std::int64_t>({static_cast<std::int64_t>(splits.size())}, splits));
  made.signature.outputs = made.signature.input.columns;
  return made;
}

constexpr std::size_t kRagged = kDTypeCount, kSplitsAt = kDTypeCount + 1;

void append_row(std::string& out, const Drawn& drawn, std::size_t column, std::int64_t row,
                bool flat) {
  const Tensor& tensor = drawn.columns[column];
  const ElementWriter writer(tensor);
  if (column == kRagged) {
    const auto splits = drawn.columns[kSplitsAt].values<std::int64_t>();
    out += "[";
    writer.append(out, splits[static_cast<std::size_t>(row)],
                  splits[static_cast<std::size_t>(row) + 1]);
    out += "]";
  } else if (flat) {
    const std::int64_t n = tensor.shape().row_elements();
    out += "[";
    writer.append(out, row * n, (row + 1) * n);
    out += "]";
  } else {
    writer.append_nested(out, row * tensor.shape().row_elements(), 1);
  }
}

std::string rows_body(const Drawn& drawn, const char* key, bool flat) {
  std::string out = str("{\"", key, "\": [");
  for (std::int64_t row = 0; row < drawn.examples; ++row) {
    out += row == 0 ? "{" : ", {";
    for (std::size_t i = 0; i < kSplitsAt; ++i) {
      out += str(i == 0 ? "" : ", ", "\"", drawn.signature.input.columns[i].name, "\": ");
      append_row(out, drawn, i, row, flat);
    }
    out += "}";
  }
  return out += "]}";
}

std::string columns_body(const Drawn& drawn) {
  std::string out = "{\"inputs\": {";
  for (std::size_t i = 0; i < kSplitsAt; ++i) {
    out += str(i == 0 ? "" : ", ", "\"", drawn.signature.input.columns[i].name, "\": [");
    for (std::int64_t row = 0; row < drawn.examples; ++row) {
      if (row > 0) out += ", ";
      append_row(out, drawn, i, row, false);
    }
    out += "]";
  }
  return out += "}}";
}

// An answer of all columns as outputs, as the request that it is but for the key.
struct Infer {
  std::string body;
  std::optional<std::size_t> header_length;
};
Infer infer_body(const Drawn& drawn, Random& random, bool may_be_binary) {
  InferRequest request;
  for (std::size_t i = 0; i < drawn.columns.size(); ++i)
    request.outputs.push_back({i, may_be_binary && below(random, 2) == 0});
  std::shuffle(request.outputs.begin(), request.outputs.end(), random);
  InferAnswer answer = infer_answer(drawn.signature, 1, request, drawn.columns);
  const std::size_t at = answer.body.find("\"outputs\"");
  answer.body.replace(at, 9, "\"inputs\"");
  if (answer.header_length) --*answer.header_length;
  return {answer.body, answer.header_length};
}

void expect_same(const Drawn& drawn, const Element& read) {
  ASSERT_EQ(read.size(), drawn.columns.size());
  for (std::size_t i = 0; i < read.size(); ++i)
    EXPECT_TRUE(same_bits(read[i], drawn.columns[i]))
        << drawn.signature.input.columns[i].name << ": " << read[i].to_string(50) << " and "
        << drawn.columns[i].to_string(50);
}

constexpr DecodeLimits kAll{.allow_nan = true};

TEST(RoundTrip, RandomTensorsComeThroughEveryFormBitForBit) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    const Drawn drawn = draw(seed);
    Random random(seed);
    TfDecoder tf(drawn.signature);
    InferDecoder infer(drawn.signature);
    expect_same(drawn, tf.predict(rows_body(drawn, "instances", false), kAll).examples.columns);
    expect_same(drawn, tf.predict(columns_body(drawn), kAll).examples.columns);
    expect_same(drawn, tf.regress(rows_body(drawn, "examples", true), kAll).columns);
    for (const bool binary : {false, true}) {
      const Infer body = infer_body(drawn, random, binary);
      const InferRequest read =
          infer.decode(std::make_shared<const std::string>(body.body), body.header_length, kAll);
      EXPECT_EQ(read.examples.examples, drawn.examples);
      expect_same(drawn, read.examples.columns);
    }
  }
}

TEST(RoundTrip, EveryFloatReadsBackAsTheSame) {
  constexpr std::uint64_t kSeed = 5;
  SCOPED_TRACE(str("seed ", kSeed));
  Random random(kSeed);
  const Signature floats = signature_of({{"x", {DType::kFloat32, {kAny}}}});
  TfDecoder decoder(floats);
  for (int round = 0; round < 20; ++round) {
    const Tensor drawn = random_tensor(random, DType::kFloat32, {1000});
    std::string body = "{\"instances\": [";
    ElementWriter(drawn).append(body, 0, 1000);
    EXPECT_TRUE(same_bits(decoder.predict(body + "]}", kAll).examples.columns[0], drawn));
  }
}

// Texts of few digits, with and without exponents, and texts at and beside the middle between two
// floats, where a reader that goes by way of a double errs.
TEST(RoundTrip, TextsAreReadAsTheNearestFloat) {
  constexpr std::uint64_t kSeed = 11;
  SCOPED_TRACE(str("seed ", kSeed));
  Random random(kSeed);
  std::vector<std::string> all;
  for (int i = 0; i < 200'000; ++i) {
    std::string digits = std::to_string(random() >> below(random, 63));
    digits.insert(
        static_cast<std::size_t>(1 + below(random, static_cast<std::int64_t>(digits.size()))), ".");
    digits += static_cast<char>('0' + below(random, 10));
    if (below(random, 3) == 0) digits += str("e", below(random, 40) - 25);
    all.push_back((below(random, 2) == 0 ? "-" : "") + digits);
  }
  for (int i = 0; i < 50'000; ++i) {
    const float low = static_cast<float>(1 + below(random, 1 << 24));
    const double middle = (static_cast<double>(low) + std::nextafter(low, INFINITY)) / 2;
    std::array<char, 64> text;
    const double scale = std::ldexp(1.0, -static_cast<int>(below(random, 20)));
    for (const int precision : {14, 15, 17})
      all.emplace_back(text.data(),
                       std::to_chars(text.data(), text.data() + text.size(), middle * scale,
                                     std::chars_format::scientific, precision)
                           .ptr);
  }
  TfDecoder decoder(signature_of({{"x", {DType::kFloat32, {kAny, kAny}}}}));
  std::string body = "{\"instances\": [[";
  for (const std::string& text : all) body += (&text == all.data() ? "" : ",") + text;
  const Tensor read = decoder.predict(body + "]]}", {.elements_max = 1 << 20}).examples.columns[0];
  const auto values = read.values<float>();
  ASSERT_EQ(values.size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    float nearest = 0;
    std::from_chars(all[i].data(), all[i].data() + all[i].size(), nearest);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(values[i]), std::bit_cast<std::uint32_t>(nearest))
        << all[i];
  }
}

// ---- damage ----

// Reads it, or refuses it with an error of the caller's: nothing else may happen.
template <typename Read>
bool is_read(Read read) {
  try {
    read();
    return true;
  } catch (const InvalidArgumentError&) {
  } catch (const UnimplementedError&) {
  }
  return false;
}

TEST(Damage, ABodyThatIsCutAnywhereIsRefused) {
  std::uint64_t seed = 1;
  while (rows_body(draw(seed), "instances", false).size() > 2000)
    ++seed;  // each byte costs a parse
  SCOPED_TRACE(str("seed ", seed));
  const Drawn drawn = draw(seed);
  Random random(seed);
  TfDecoder tf(drawn.signature);
  InferDecoder infer(drawn.signature);
  const std::string rows = rows_body(drawn, "instances", false), columns = columns_body(drawn),
                    examples = rows_body(drawn, "examples", true);
  for (std::size_t n = 0; n < rows.size(); ++n)
    EXPECT_FALSE(is_read([&] { tf.predict(std::string(rows, 0, n), kAll); })) << n;
  for (std::size_t n = 0; n < columns.size(); ++n)
    EXPECT_FALSE(is_read([&] { tf.predict(std::string(columns, 0, n), kAll); })) << n;
  for (std::size_t n = 0; n < examples.size(); ++n)
    EXPECT_FALSE(is_read([&] { tf.classify(std::string(examples, 0, n), kAll); })) << n;
  const Infer body = infer_body(drawn, random, true);
  ASSERT_TRUE(body.header_length);
  for (std::size_t n = 0; n < body.body.size(); ++n) {
    const auto cut = std::make_shared<const std::string>(body.body, 0, n);
    EXPECT_FALSE(is_read([&] { infer.decode(cut, body.header_length, kAll); })) << n;
    EXPECT_FALSE(is_read([&] { infer.decode(cut, std::nullopt, kAll); })) << n;
    if (n != *body.header_length) {
      const auto whole = std::make_shared<const std::string>(body.body);
      EXPECT_FALSE(is_read([&] { infer.decode(whole, n, kAll); })) << n;
    }
  }
}

TEST(Damage, ABodyWithChangedBytesIsReadOrRefused) {
  int refused = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(str("seed ", seed));
    const Drawn drawn = draw(seed);
    Random random(seed);
    TfDecoder tf(drawn.signature);
    InferDecoder infer(drawn.signature);
    const std::string rows = rows_body(drawn, "instances", false), columns = columns_body(drawn);
    const Infer inferred = infer_body(drawn, random, true);
    for (int round = 0; round < 100; ++round) {
      const auto changed = [&](std::string body) {
        static constexpr char kLikely[] = "{}[],:\"0-.eE\\ntfNIu";
        for (std::int64_t n = 1 + below(random, 3); n > 0; --n)
          body[random() % body.size()] = below(random, 2) == 0
                                             ? kLikely[random() % (sizeof kLikely - 1)]
                                             : static_cast<char>(random());
        return body;
      };
      refused += !is_read([&] { tf.predict(changed(rows), kAll); });
      refused += !is_read([&] { tf.predict(changed(columns)); });
      refused += !is_read([&] {
        infer.decode(std::make_shared<const std::string>(changed(inferred.body)),
                     inferred.header_length, kAll);
      });
    }
  }
  EXPECT_GT(refused, 1000);  // most changes are within JSON
}

}  // namespace
}  // namespace cairn::serving
