// tfrecords(): framing, tf.train.Example, and what is said about damage.
#include <gmock/gmock.h>

#include <cstring>

#include "core/base/checksum.h"
#include "data/file/tfrecord_reader.h"
#include "data/file/tfrecord_writer.h"
#include "tests/data/damage.h"

namespace cairn::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

std::string file_of(const std::vector<std::string>& records) {
  std::string bytes;
  for (const std::string& record : records) bytes += framed(record);
  return bytes;
}

ExampleSchema scalar_schema() { return {{{"x", DType::kInt64}}}; }

std::string scalar(std::int64_t x) { return ExampleMessage().integers("x", {x}).bytes(); }

std::string error_of_example(const std::string& example, const ExampleSchema& schema) {
  const TempFolder folder;
  const std::string path = folder.write("r", framed(example));
  return error_of([&] { read_all(Dataset::tfrecords(path, schema)); });
}

TEST(TfRecords, AreTheBytesThatTheReferenceWrites) {
  // Each of TensorFlow's event files begins with a record of 24 bytes, and so with these.
  EXPECT_EQ(framed(std::string(24, 'x')).substr(0, 12), from_hex("1800000000000000a37f4b22"));
  const std::string record = framed("123456789");  // of which the checksum is CRC-32C's check value
  std::uint32_t tail;
  std::memcpy(&tail, record.data() + record.size() - 4, 4);
  EXPECT_EQ(tail, masked_checksum(0xe3069283u));
}

TEST(TfRecords, WithoutASchemaAreStrings) {
  const TempFolder folder;
  const Dataset data = Dataset::tfrecords(folder.write("r", file_of({"one", "", "three"})));
  EXPECT_EQ(data.element_spec(), (ElementSpec{{{"record", {DType::kString, {}}}}, ""}));
  EXPECT_THAT(read_all(data),
              ElementsAre("string[]{\"one\"} ", "string[]{\"\"} ", "string[]{\"three\"} "));
}

TEST(TfRecords, ExamplesBecomeColumnsByDtypeAndShape) {
  const TempFolder folder;
  ExampleMessage first, second;
  first.texts("image", {std::string("\0\xFF\x02\x03\x04\x05", 6)})
      .floats("dense", {0.5f, -1})
      .integers("ids", {7, -8, std::int64_t{1} << 40})
      .texts("words", {"a", "", "b c"})
      .integers("unread", {1, 2, 3})
      .floats("label", {1});
  second.floats("label", {0})
      .integers("ids", {})
      .texts("image", {"abcdef"})
      .floats("dense", {3, 4})
      .texts("words", {})
      .texts("name", {"n"});
  const ExampleSchema schema{{{"image", DType::kUint8, {2, 3}},
                              {"dense", DType::kFloat32, {2}},
                              {"ids", DType::kInt64, {}, true},
                              {"words", DType::kString, {}, true},
                              {"name", DType::kString, {}, false, "nobody"},
                              {"age", DType::kInt64, {2}, false, "-1"},
                              {"label"}},
                             "label"};
  const std::string path = folder.path("r");
  TfRecordWriter file(path);
  file.write(first.bytes());
  file.write(second.bytes());
  file.finish();
  const Dataset data = Dataset::tfrecords(path, schema);
  EXPECT_EQ(data.element_spec().label, "label");
  EXPECT_EQ(to_text(open(data.batch(2))->next().value()),
            "uint8[2, 2, 3]{0, 255, 2, 3, 4, 5, 97, 98, 99, 100, 101, 102} "
            "float32[2, 2]{0.5, -1, 3, 4} int64[3]{7, -8, 1099511627776} int64[3]{0, 3, 3} "
            "string[3]{\"a\"\"\"\"b c\"} int64[3]{0, 3, 3} string[2]{\"nobody\"\"n\"} "
            "int64[2, 2]{-1, -1, -1, -1} float32[2]{1, 0} ");
}

// Other writers of the format write numbers that are not packed, fields in another order, a
// name twice, or unknown fields.
TEST(TfRecords, ExamplesMayBeEncodedInAnyWayThatTheEncodingAllows) {
  const std::string unpacked_integers = from_hex("0a0d0a0b0a017812061a040801080a");
  const std::string value_before_name = from_hex("0a0d0a0b12061a040801080a0a0178");
  const std::string packed_and_not = from_hex(
      "0a0e0a0c0a017812071a050801"
      "0a010a");
  const std::string twice = from_hex("0a160a090a017812041a0208090a090a017812041a020801") +
                            from_hex("0a0b0a090a017812041a020801");
  const std::string unknown_fields = from_hex(
      "1001"
      "19aaaaaaaaaaaaaaaa"
      "25aaaaaaaa"
      "2a0161"
      "0a0d0a0b0a017812061a040801080a");
  const TempFolder folder;
  const ExampleSchema two{{{"x", DType::kInt64, {2}}}};
  for (const auto& example : {unpacked_integers, value_before_name, packed_and_not, unknown_fields})
    EXPECT_THAT(read_all(Dataset::tfrecords(folder.write("r", framed(example)), two)),
                ElementsAre("int64[2]{1, 10} "));
  EXPECT_THAT(read_all(Dataset::tfrecords(folder.write("r", framed(twice)), scalar_schema())),
              ElementsAre("int64[]{1} "));
  const std::string unpacked_floats = from_hex(
      "0a130a110a0178120c120a"
      "0d0000803f"
      "0d00000040");
  EXPECT_THAT(read_all(Dataset::tfrecords(folder.write("r", framed(unpacked_floats)),
                                          {{{"x", DType::kFloat32, {2}}}})),
              ElementsAre("float32[2]{1, 2} "));
}

TEST(TfRecords, WhatDoesNotFitIsToldByRecordPlaceAndFeature) {
  const TempFolder folder;
  const std::string path = folder.write("r", file_of({scalar(1), scalar(2), "\x0a\xFFz"}));
  EXPECT_THAT(error_of([&] { read_all(Dataset::tfrecords(path, scalar_schema())); }),
              AllOf(HasSubstr("InvalidArgument: " + path +
                              ": record 2 (from 0) at byte 60: its "
                              "bytes are not a tf.train.Example"),
                    HasSubstr("mend the record, or leave such records out with OnError::kSkip")));
  EXPECT_THAT(error_of_example(scalar(1), {{{"y"}}}),
              HasSubstr("feature \"y\": it has no values, and no ExampleFeature::default_value"));
  EXPECT_THAT(error_of_example(scalar(1), {{{"x"}}}),
              HasSubstr("feature \"x\": it holds an int64_list, and dtype float32 is read from a "
                        "float_list"));
  EXPECT_THAT(error_of_example(scalar(1), {{{"x", DType::kInt64, {3}}}}),
              HasSubstr("feature \"x\": it has 1 values where 3 are expected"));
  EXPECT_THAT(error_of_example(ExampleMessage().texts("x", {"abc"}).bytes(),
                               {{{"x", DType::kUint8, {2, 2}}}}),
              HasSubstr("feature \"x\": it has 3 bytes where 4 are expected"));
}

TEST(TfRecords, DamageIsToldByPlaceAndMayBeLeftOut) {
  const TempFolder folder;
  const std::string one = framed(scalar(1));
  const auto error = [&](const std::string& bytes) {
    const std::string path = folder.write("r", bytes);
    const std::string text = error_of([&] { read_all(Dataset::tfrecords(path, scalar_schema())); });
    EXPECT_THAT(text, HasSubstr("DataLoss: " + path + ": record 1 (from 0) at byte " +
                                std::to_string(one.size())));
    return text;
  };
  const auto flip = [&](std::size_t at) {
    std::string bytes = one + one + one;
    bytes[one.size() + at] = static_cast<char>(bytes[one.size() + at] ^ 4);
    return bytes;
  };
  EXPECT_THAT(error(flip(14)), HasSubstr("the checksum of the record's 14 bytes does not match"));
  EXPECT_THAT(error(flip(7)), HasSubstr("the checksum of the record's length does not match"));
  EXPECT_THAT(error(one + one.substr(0, 5)), HasSubstr("ends 5 bytes into the record's head"));
  EXPECT_THAT(error(one + one.substr(0, 20)),
              HasSubstr("takes 30 bytes, and the file ends after 20; mend the file, or leave such "
                        "rests of files out with OnError::kSkipAndCount"));

  const std::string other = folder.write("s", file_of({scalar(5)}));
  for (const auto& [at, rows] : {std::pair<std::size_t, int>{14, 3}, {7, 2}}) {
    const Dataset some = Dataset::tfrecords({folder.write("r", flip(at)), other}, scalar_schema(),
                                            {.on_error = OnError::kSkipAndCount});
    LinesRead lines;
    EXPECT_EQ(cardinality(some, &lines), rows) << "after damage at byte " << at;
    EXPECT_EQ(lines.skipped, 1);
    expect_resumes_everywhere(some);
    expect_resumes_everywhere(some.shard(2, 1));
    EXPECT_EQ(cardinality(some.shard(2, 0)) + cardinality(some.shard(2, 1)), rows);
  }
}

// Right checksums make no size true.
TEST(TfRecords, ALengthIsNotBelievedForItsChecksum) {
  const TempFolder folder;
  for (const std::uint64_t size : {~std::uint64_t{0}, std::uint64_t{1} << 62,
                                   std::uint64_t{1} << 27, std::uint64_t{60'000'000}}) {
    std::string head(reinterpret_cast<const char*>(&size), 8);
    const std::uint32_t crc = masked_checksum(crc32c(head));
    head.append(reinterpret_cast<const char*>(&crc), 4);
    const std::string path = folder.write("r", head + "abc");
    EXPECT_THAT(error_of([&] { read_all(Dataset::tfrecords(path)); }),
                HasSubstr("DataLoss: " + path + ": record 0 (from 0) at byte 0: "));
  }
  EXPECT_THAT(error_of([&] {
                read_all(Dataset::tfrecords(folder.write("r", framed("abcdef")), {},
                                            {.record_bytes_max = 5}));
              }),
              HasSubstr("a record of 6 bytes, more than TfRecordOptions::record_bytes_max = 5"));
}

TEST(TfRecords, RefusesASchemaThatMakesNoSense) {
  const auto refusal = [](const ExampleFeature& feature, const std::string& label = "") {
    return error_of([&] { Dataset::tfrecords("r", {{feature}, label}); });
  };
  EXPECT_THAT(refusal({""}), HasSubstr("no name"));
  EXPECT_THAT(refusal({"x", DType::kInt32}), HasSubstr("int32"));
  EXPECT_THAT(refusal({"x", DType::kFloat32, {0}}), HasSubstr("shape"));
  EXPECT_THAT(refusal({"x", DType::kFloat32, {1 << 20, 1 << 20}}), HasSubstr("shape"));
  EXPECT_THAT(refusal({"x", DType::kFloat32, {Shape::kUnknown}}), HasSubstr("shape"));
  EXPECT_THAT(refusal({"x", DType::kFloat32, {2}, true}), HasSubstr("ragged"));
  EXPECT_THAT(refusal({"x", DType::kUint8, {}, true}), HasSubstr("ragged"));
  EXPECT_THAT(refusal({"x", DType::kFloat32, {}, true, "1"}), HasSubstr("default_value"));
  EXPECT_THAT(refusal({"x", DType::kInt64, {}, false, "1.5"}), HasSubstr("default_value"));
  EXPECT_THAT(refusal({"x"}, "y"), HasSubstr("\"y\""));
  EXPECT_THAT(refusal({"x/row_splits"}), HasSubstr("row_splits"));
  EXPECT_THAT(error_of([] { Dataset::tfrecords("r", {}, {.record_bytes_max = 0}); }),
              HasSubstr("record_bytes_max"));
}

TEST(TfRecords, ReadAsASourceDoes) {
  const TempFolder folder;
  const ExampleSchema schema{{{"x", DType::kInt64}, {"w", DType::kString, {}, true}}};
  const auto example = [](std::int64_t x) {
    std::vector<std::string> words(static_cast<std::size_t>(x % 3), "w" + std::to_string(x));
    return ExampleMessage().integers("x", {x}).texts("w", words).bytes();
  };
  expect_reads_as_a_source(Dataset::tfrecords(
      {folder.write("a", file_of({example(1), example(2), example(3)})), folder.write("b", ""),
       folder.write("c", as_gzip(file_of({example(4), example(5)}))),
       folder.write("d", file_of({example(6), example(7), example(8), example(9)}))},
      schema, {.empty_files = EmptyFiles::kSkip}));
}

TEST(TfRecords, LargerThanAnyBufferAreWhole) {
  const TempFolder folder;
  std::vector<float> values(300'000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const std::string example = ExampleMessage().floats("x", values).bytes();
  const Dataset data = Dataset::tfrecords(folder.write("r", file_of({example, example, example})),
                                          {{{"x", DType::kFloat32, {300'000}}}});
  const Element all = open(data.batch(3))->next().value();
  for (std::size_t row = 0; row < 3; ++row)
    EXPECT_EQ(std::memcmp(all[0].raw() + row * 1'200'000, values.data(), 1'200'000), 0);
}

// Damage to the files, and damage within records under right checksums.
TEST(TfRecords, OfDamagedFilesAreReadOrRefused) {
  const ExampleSchema schema{{{"x", DType::kInt64, {2}},
                              {"f", DType::kFloat32, {}, true},
                              {"t", DType::kString, {}, false, "-"},
                              {"b", DType::kUint8, {4}}}};
  std::vector<std::string> examples;
  for (std::int64_t i = 0; i < 20; ++i)
    examples.push_back(ExampleMessage()
                           .integers("x", {i, i * i})
                           .floats("f", std::vector<float>(static_cast<std::size_t>(i % 4), 0.5f))
                           .texts("t", {"text"})
                           .texts("b", {"byte"})
                           .bytes());
  const auto dataset = [&](const std::string& path, OnError policy) {
    return Dataset::tfrecords(path, schema, {.on_error = policy});
  };
  const Damages files = read_damaged(file_of(examples), 200, dataset);
  EXPECT_GT(files.told, 150);
  EXPECT_GT(files.left_out, 150);

  const TempFolder folder;
  int bad = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const std::string path = folder.write("r", framed(damaged(examples[seed % 20], seed)));
    const auto iterator = open(dataset(path, OnError::kSkipAndCount));
    while (iterator->next()) continue;
    bad += static_cast<int>(iterator->skipped());
  }
  EXPECT_GT(bad, 1000);
}

}  // namespace
}  // namespace cairn::testing
