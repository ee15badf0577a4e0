// Numbers in text: each cell is the number that a correct conversion gives, or a named error.
#include <gmock/gmock.h>
#include <rapidcheck.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>

#include "data/dataset/stage.h"
#include "data/file/tfrecord_writer.h"
#include "data/stage/dataset_wire.h"
#include "data/stage/fit.h"
#include "tests/data/testing.h"

namespace cairn::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kLeast = std::numeric_limits<float>::denorm_min();

CsvSchema one_column(DType dtype) { return {.columns = {{"age", dtype}}}; }

std::vector<float> floats_in(const std::string& text) {
  const TempFolder folder;
  const Dataset data = Dataset::csv(folder.write("a.csv", text), one_column(DType::kFloat32));
  const Element all = *open(data.batch(1000))->next();
  return {all[0].values<float>().begin(), all[0].values<float>().end()};
}
std::string number_refusal(const std::string& cell, DType dtype = DType::kFloat32) {
  const TempFolder folder;
  const std::string path = folder.write("a.csv", "1\n" + cell + "\n");
  return error_of([&] { read_all(Dataset::csv(path, one_column(dtype))); });
}

TEST(CsvNumbers, ATinyNumberRoundsToZero) {
  const std::string zeros(390, '0');
  EXPECT_THAT(floats_in("1e-46\n7e-46\n8e-46\n0." + zeros + "1\n+1e-999\n"),
              ElementsAre(0, 0, kLeast, 0, 0));
  EXPECT_TRUE(std::signbit(floats_in("-1e-99999999999999999999\n")[0]));
  EXPECT_THAT(floats_in(zeros + "7\n" + zeros + "." + zeros + "\n"), ElementsAre(7, 0));
}

TEST(CsvNumbers, TwoSignsAreNoNumber) {
  for (const char* cell : {"+-5", "-+5", "++5", "--5", "+-5.5e1"})
    for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64})
      EXPECT_THAT(number_refusal(cell, dtype),
                  AllOf(HasSubstr("a.csv:2:1"), HasSubstr("is not of")));
}

TEST(CsvNumbers, NumbersThatAreNotFiniteAreBadCells) {
  for (const char* cell : {"nan", "-nan", "inf", "+inf", "-Infinity", "NAN"})
    for (const DType dtype : {DType::kFloat32, DType::kFloat64})
      EXPECT_THAT(number_refusal(cell, dtype),
                  AllOf(HasSubstr("a.csv:2:1: column \"age\""),
                        HasSubstr(std::string(cell) + "\" is not a finite number"),
                        HasSubstr("CsvColumn::unknown")));
  EXPECT_THAT(number_refusal("1e39"),
              HasSubstr("is not of type float32, whose range ends before it"));
  EXPECT_THAT(number_refusal("1e309", DType::kFloat64), HasSubstr("whose range ends before it"));
  EXPECT_THAT(number_refusal("256", DType::kUint8), HasSubstr("whose range ends before it"));
}

TEST(CsvNumbers, AWholeNumberWithAPointIsToldWhichDtypeReadsIt) {
  EXPECT_THAT(number_refusal("0.0", DType::kInt32), HasSubstr("give the column dtype float32"));
  EXPECT_THAT(number_refusal("123456789.0", DType::kInt64),
              HasSubstr("give the column dtype float64"));
}

TEST(CsvNumbers, OfFeaturesLieInTheRangeInWhichTheyAreComputed) {
  const TempFolder folder;
  const std::string path = folder.write("a.csv", "1\n1e39\n");
  const Dataset data = Dataset::csv(path, one_column(DType::kFloat64));
  EXPECT_EQ(read_all(data).size(), 2u);
  EXPECT_THAT(error_of([&] { read_all(data.features({FeatureColumn::numeric({{"age"}})})); }),
              HasSubstr("a.csv:2:1: column \"age\": \"1e39\" is not of type float32"));
  EXPECT_THAT(error_of([&] { fit_numeric(data, {{"age"}}); }),
              HasSubstr("give the column dtype float32"));
}

TEST(CsvNumbers, AHeaderThatNamesAListedColumnTwiceIsRefused) {
  const TempFolder folder;
  CsvSchema schema = one_column(DType::kInt32);
  schema.header = true;
  const std::string path = folder.write("a.csv", "age,other,age\n1,2,3\n");
  EXPECT_THAT(error_of([&] { read_all(Dataset::csv(path, schema)); }),
              HasSubstr("a.csv:1: the header has the column \"age\" twice, in cells 1 and 3"));
  schema.columns[0].name = "other";
  EXPECT_EQ(read_all(Dataset::csv(path, schema)).size(), 1u);
}

TEST(LibsvmNumbers, ThatAreNotFiniteMakeBadLines) {
  const TempFolder folder;
  const auto refusal = [&](const std::string& line) {
    return error_of([&] { read_all(Dataset::libsvm(folder.write("a.svm", line))); });
  };
  EXPECT_THAT(refusal("nan 1:1"), HasSubstr("a.svm:1:1: the label \"nan\" is not a finite number"));
  EXPECT_THAT(refusal("1 1:inf"), HasSubstr("a.svm:1:3: the value \"inf\" is not a finite number"));
  EXPECT_THAT(refusal("1 1:+-5"), HasSubstr("is not index:value"));
}

// Records {x, y, n}, of which the second and the fourth hold what is no number.
std::string bad_records_in(const TempFolder& folder) {
  struct Record {
    float x;
    double y;
    std::int32_t n;
  } __attribute__((packed));
  const Record records[] = {
      {1, 1, 1}, {2, NAN, 2}, {3, 3, 3}, {-INFINITY, 4, 4}, {3e38f, 1e300, 5}};
  return folder.write("r.bin", {reinterpret_cast<const char*>(records), sizeof records});
}
RecordSchema three_numbers() {
  return {{{"x", DType::kFloat32}, {"y", DType::kFloat64}, {"n", DType::kInt32}}};
}

TEST(RecordNumbers, ThatAreNotFiniteMakeBadRecords) {
  const TempFolder folder;
  const std::string path = bad_records_in(folder);
  EXPECT_THAT(error_of([&] { open(Dataset::records(path, three_numbers()).batch(5))->next(); }),
              AllOf(HasSubstr("r.bin: record 1 (from 0), field \"y\": nan is not a finite number"),
                    HasSubstr("OnError::kSkipAndCount")));
  RecordSchema any = three_numbers();
  any.finite = false;
  EXPECT_EQ(read_all(parse_dataset(serialize(Dataset::records(path, any)))).size(), 5u);
}

TEST(RecordNumbers, BadRecordsMayBeLeftOut) {
  const TempFolder folder;
  const std::string path = bad_records_in(folder);
  const Dataset data = Dataset::records({path, path}, three_numbers(), {OnError::kSkipAndCount});
  LinesRead lines;
  EXPECT_EQ(cardinality(data.shard(2, 1), &lines), 3);
  EXPECT_EQ(lines.skipped, 4);
  EXPECT_THAT(lines.first_skipped[1], HasSubstr("r.bin: record 3 (from 0), field \"x\": -inf"));
  const auto iterator = open(data.skip(1).batch(8));
  EXPECT_THAT((*iterator->next())[2].values<std::int32_t>(), ElementsAre(3, 5, 1, 3, 5));
  EXPECT_EQ(iterator->skipped(), 4);
}

TEST(ExampleNumbers, ThatAreNotFiniteMakeBadRecords) {
  const TempFolder folder;
  const std::string path = folder.path("e.tfrecord");
  TfRecordWriter writer(path);
  for (const float x : {1.0f, NAN, 3.0f})
    writer.write(ExampleMessage().floats("x", {x}).integers("n", {7}).bytes());
  writer.finish();
  for (const bool ragged : {false, true}) {
    ExampleSchema schema{.features = {{.name = "n", .dtype = DType::kInt64, .ragged = ragged},
                                      {.name = "x", .ragged = ragged}}};
    EXPECT_THAT(error_of([&] { read_all(Dataset::tfrecords(path, schema)); }),
                HasSubstr("record 1 (from 0)"));
    EXPECT_EQ(read_all(Dataset::tfrecords(path, schema, {OnError::kSkipAndCount})).size(), 2u);
    schema.finite = false;
    EXPECT_EQ(read_all(parse_dataset(serialize(Dataset::tfrecords(path, schema)))).size(), 3u);
  }
}

// ---- property ----

std::string any_digits(std::size_t most) {
  const auto size = *rc::gen::inRange<std::size_t>(0, most);
  const char lowest = *rc::gen::element('0', '0', '0', '9');
  std::string digits;
  for (std::size_t i = 0; i < size; ++i)
    digits += lowest == '9' ? '9' : *rc::gen::elementOf(std::string("0000000123456789"));
  return digits;
}

// Mostly a decimal number, of up to 400 characters; at times something like one.
std::string any_number() {
  const std::size_t most = *rc::gen::element<std::size_t>(4, 12, 20, 190);
  std::string text = *rc::gen::element("", "", "-", "+", "+-");
  text += any_digits(most);
  if (*rc::gen::inRange(0, 2) == 0) text += "." + any_digits(most);
  if (*rc::gen::inRange(0, 3) == 0)
    text += *rc::gen::element("e", "E", "e+", "e-", "E-") +
            std::to_string(*rc::gen::element(0, 3, 20, 44, 46, 300, 330, 99999));
  if (*rc::gen::inRange(0, 20) == 0) text += *rc::gen::element("x", "e", "nan", "inf", "0x1");
  return text.empty() ? "0" : text;
}

// Whether `text` is [sign] digits [. digits] [e [sign] digits], of which `whole` has digits alone.
bool is_decimal(std::string_view text, bool whole) {
  const auto take_digits = [&text] {
    const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
    text.remove_prefix(end);
    return end;
  };
  const auto take = [&text](const char* any) {
    const bool there = !text.empty() && std::strchr(any, text[0]) != nullptr;
    if (there) text.remove_prefix(1);
    return there;
  };
  take("+-");
  std::size_t digits = take_digits();
  if (whole) return digits > 0 && text.empty();
  if (take(".")) digits += take_digits();
  if (digits == 0) return false;
  if (take("eE")) {
    take("+-");
    if (take_digits() == 0) return false;
  }
  return text.empty();
}

// The number that `text` stands for; empty: it is none, or T cannot hold it.
template <typename T>
std::optional<T> converted(const std::string& text) {
  if (!is_decimal(text, std::is_integral_v<T>)) return std::nullopt;
  if constexpr (std::is_same_v<T, float>) {
    const float value = std::strtof(text.c_str(), nullptr);
    return std::isfinite(value) ? std::optional(value) : std::nullopt;
  } else if constexpr (std::is_same_v<T, double>) {
    const double value = std::strtod(text.c_str(), nullptr);
    return std::isfinite(value) ? std::optional(value) : std::nullopt;
  } else {
    errno = 0;
    const long long value = std::strtoll(text.c_str(), nullptr, 10);
    const bool fits = errno == 0 && std::numeric_limits<T>::min() <= value &&
                      value <= std::numeric_limits<T>::max();
    return fits ? std::optional(static_cast<T>(value)) : std::nullopt;
  }
}

// The values of all lines that were not left out, and the reports of those that were.
struct NumbersRead {
  Tensor values;
  LinesRead lines;
};
NumbersRead numbers_read(const Dataset& data, const std::string& column) {
  NumbersRead read;
  const auto iterator = open(data.batch(1000), {}, {.line_events = keep_in(read.lines)});
  const ElementSpec spec = iterator->element_spec();
  if (const auto batch = iterator->next()) read.values = (*batch)[spec.find(column)];
  return read;
}

template <typename T>
void verify_numbers(const std::vector<std::string>& texts, const NumbersRead& read,
                    const std::string& path) {
  std::vector<T> expected;
  std::size_t bad = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::optional<T> value = converted<T>(texts[i]);
    if (value) {
      expected.push_back(*value);
      continue;
    }
    RC_ASSERT(bad < read.lines.first_skipped.size());
    RC_ASSERT(
        read.lines.first_skipped[bad++].starts_with(path + ":" + std::to_string(i + 1) + ":"));
  }
  RC_ASSERT(read.lines.first_skipped.size() == bad);
  const std::vector<T> values =
      read.values.defined()
          ? std::vector<T>(read.values.values<T>().begin(), read.values.values<T>().end())
          : std::vector<T>();
  RC_ASSERT(values.size() == expected.size());
  // Bit by bit, since 0 and -0 are equal.
  RC_ASSERT(std::memcmp(values.data(), expected.data(), sizeof(T) * values.size()) == 0);
}

template <typename T>
void verify_csv(const std::vector<std::string>& texts) {
  const TempFolder folder;
  std::string lines;
  for (const std::string& text : texts) lines += text + "\n";
  const std::string path = folder.write("a.csv", lines);
  verify_numbers<T>(
      texts,
      numbers_read(Dataset::csv(path, one_column(DTypeOf<T>::value), {OnError::kSkipAndCount}),
                   "age"),
      path);
}

void verify_libsvm(const std::vector<std::string>& texts) {
  const TempFolder folder;
  std::string labels, values;
  for (const std::string& text : texts) {
    labels += text + " 1:1\n";
    values += "1 1:" + text + "\n";
  }
  const FileOptions lenient{OnError::kSkipAndCount};
  for (const auto& [lines, column] : {std::pair(labels, "label"), std::pair(values, "values")}) {
    const std::string path = folder.write(column, lines);
    verify_numbers<float>(texts, numbers_read(Dataset::libsvm(path, {}, lenient), column), path);
  }
}

TEST(CsvNumbers, AreThoseOfACorrectConversionOrNamedErrors) {
  ASSERT_TRUE(rc::check("each text becomes its number in every type, or is told", [] {
    std::vector<std::string> texts;
    for (int i = 0; i < 16; ++i) texts.push_back(any_number());
    verify_csv<float>(texts);
    verify_csv<double>(texts);
    verify_csv<std::int32_t>(texts);
    verify_csv<std::int64_t>(texts);
    verify_csv<std::uint8_t>(texts);
    verify_libsvm(texts);
  }));
}

}  // namespace
}  // namespace cairn::testing
