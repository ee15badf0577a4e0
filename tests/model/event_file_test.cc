// EventFile's bytes, taken apart again by our own readers; tests/model/read_events.py has the
// real TensorBoard read them.
#include "model/writers/event_file.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>

#include "core/base/error.h"
#include "core/graph/ops.h"
#include "data/file/tfrecord_reader.h"
#include "data/format/proto_fields.h"
#include "tests/core/graph_testing.h"
#include "tests/tools/temp_folder.h"

namespace cairn {
namespace {

using Wire = ProtoFields::Wire;
using ::testing::ElementsAre;

// The fields of a message by number, of those that repeat the last one.
struct Fields {
  explicit Fields(std::string_view message) {
    ProtoFields fields(message);
    while (fields.next()) {
      if (fields.wire() == Wire::kVarint)
        numbers[fields.field()] = static_cast<std::int64_t>(fields.number());
      else
        bytes[fields.field()] = std::string(fields.bytes());
    }
    EXPECT_FALSE(fields.broken());
  }
  Fields in(std::uint64_t field) const { return Fields(text(field)); }
  std::string text(std::uint64_t field) const {
    const auto at = bytes.find(field);
    if (at != bytes.end()) return at->second;
    ADD_FAILURE() << "there is no field " << field;
    return "";
  }
  std::int64_t number(std::uint64_t field) const {
    const auto at = numbers.find(field);
    return at == numbers.end() ? 0 : at->second;  // as the format has it
  }
  std::map<std::uint64_t, std::string> bytes;
  std::map<std::uint64_t, std::int64_t> numbers;
};

template <typename Number>
std::vector<Number> numbers_in(const std::string& bytes) {
  std::vector<Number> numbers(bytes.size() / sizeof(Number));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(Number));
  return numbers;
}

class EventFileTest : public ::testing::Test {
 protected:
  static std::vector<Fields> events_in(const std::string& path) {
    TfRecordReader records(path, open_bytes(path), 1 << 20);
    std::vector<Fields> events;
    RawRecord record;
    while (records.next(record, true)) {
      EXPECT_EQ(record.fault.why, "");
      events.emplace_back(record.bytes);
    }
    return events;
  }
  // The one behind the file's version and beginning.
  static Fields event_in(const std::string& path) {
    const std::vector<Fields> events = events_in(path);
    EXPECT_EQ(events.size(), 3u);
    return events.at(2);
  }
  static Fields value_of(const Fields& event) { return event.in(5).in(1); }
  std::string folder() const { return temp_.path() + "/logs/train"; }

  tools::TempFolder temp_;
  ManualClock clock_;
};

TEST_F(EventFileTest, AFileBeginsWithItsVersionAndIsNamedByTheTime) {
  const EventFile file(folder(), 0, clock_);
  EXPECT_THAT(file.path(), ::testing::StartsWith(folder() + "/events.out.tfevents.1700000000."));
  const std::vector<Fields> events = events_in(file.path());
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].text(3), "brain.Event:2");
  EXPECT_THAT(numbers_in<double>(events[0].text(1)), ElementsAre(1'700'000'000.0));
}

TEST_F(EventFileTest, AScalarIsATensorOfOneFloatWithTheTimeAndStepOfItsCall) {
  EventFile file(folder(), 0, clock_);
  clock_.advance(std::chrono::milliseconds(2500));
  file.scalar("train/loss", 0.1, 7);
  file.flush();

  const Fields event = event_in(file.path());
  EXPECT_THAT(numbers_in<double>(event.text(1)), ElementsAre(::testing::DoubleEq(1'700'000'002.5)));
  EXPECT_EQ(event.number(2), 7);
  const Fields value = value_of(event);
  EXPECT_EQ(value.text(1), "train/loss");
  EXPECT_EQ(value.in(8).number(1), 1);  // DT_FLOAT
  EXPECT_EQ(value.in(8).text(2), "");   // a scalar's shape
  EXPECT_THAT(numbers_in<float>(value.in(8).text(5)), ElementsAre(0.1f));
  EXPECT_EQ(value.in(9).in(1).text(1), "scalars");
  EXPECT_EQ(value.in(9).number(4), 1);  // DATA_CLASS_SCALAR
}

TEST_F(EventFileTest, AHistogramCountsFiniteValuesInIntervalsOfEqualWidth) {
  EventFile file(folder(), 0, clock_);
  const float nan = std::numeric_limits<float>::quiet_NaN(), far = INFINITY;
  file.histogram("w", std::vector<float>{0, 1, nan, 1.5f, 4, far, 2, -far}, 3, 2);
  file.flush();

  const Fields value = value_of(event_in(file.path()));
  EXPECT_EQ(value.in(9).in(1).text(1), "histograms");
  EXPECT_EQ(value.in(8).number(1), 2);  // DT_DOUBLE
  EXPECT_THAT(numbers_in<double>(value.in(8).text(4)), ElementsAre(0, 2, 3, 2, 4, 2));
}

TEST_F(EventFileTest, AHistogramOfEqualOrNoValuesHasOneIntervalOrNone) {
  EventFile same(folder(), 0, clock_), none(folder(), 0, clock_);
  same.histogram("w", std::vector<float>{2, 2, 2}, 1);
  same.flush();
  none.histogram("w", {}, 1);
  none.flush();

  EXPECT_THAT(numbers_in<double>(value_of(event_in(same.path())).in(8).text(4)),
              ElementsAre(1.5, 2.5, 3));
  const Fields tensor = value_of(event_in(none.path())).in(8);
  EXPECT_EQ(tensor.in(2).in(2).number(1), 3);  // [0, 3]: the last dimension
  EXPECT_EQ(tensor.text(4), "");
  EXPECT_THROW(none.histogram("w", {}, 1, 0), InvalidArgumentError);
}

TEST_F(EventFileTest, ATextIsATensorOfOneString) {
  EventFile file(folder(), 0, clock_);
  file.text("notes", "**fast**", 0);
  file.flush();
  const Fields value = value_of(event_in(file.path()));
  EXPECT_EQ(value.in(8).number(1), 7);  // DT_STRING
  EXPECT_EQ(value.in(8).text(8), "**fast**");
  EXPECT_EQ(value.in(9).in(1).text(1), "text");
}

// The name, operation and inputs of each node.
std::vector<std::string> node_texts(const std::string& graph) {
  std::vector<std::string> nodes;
  for (ProtoFields all(graph); all.next();) {
    if (!all.is(1, Wire::kBytes)) continue;
    std::string text, inputs;
    for (ProtoFields node(all.bytes()); node.next();) {
      if (node.field() <= 2) text += std::string(node.bytes()) + " ";
      if (node.field() == 3) inputs += std::string(node.bytes()) + " ";
    }
    nodes.push_back(text + "( " + inputs + ")");
  }
  return nodes;
}

TEST_F(EventFileTest, AGraphHasItsNodesBelowTheNamesOfTheirVariables) {
  const Variable w = testing::make_variable("dense/w 1", {3});
  const ConcreteFunction function =
      testing::trace_function({testing::floats({3})}, [&](const auto& arguments) {
        return Outputs{{"sum", testing::arg(arguments, 0) + w.read()}};
      });
  EventFile file(folder(), 0, clock_);
  file.graph(function.graph);
  file.flush();

  EXPECT_THAT(node_texts(event_in(file.path()).text(4)),
              ElementsAre("argument_0 argument ( )", "dense/w_1/read_variable_1 read_variable ( )",
                          "add_2 add ( argument_0 dense/w_1/read_variable_1 )",
                          "outputs/sum output ( add_2 )"));
}

TEST_F(EventFileTest, ARestartGoesOnInAnotherFileOfTheFolder) {
  const EventFile before(folder(), 0, clock_), after(folder(), 4, clock_);
  EXPECT_LT(before.path(), after.path());
  for (const auto& [path, step] : {std::pair(before.path(), 0), std::pair(after.path(), 4)}) {
    const Fields event = events_in(path).at(1);
    EXPECT_EQ(event.number(2), step);     // TensorBoard drops earlier events of it and later steps
    EXPECT_EQ(event.in(7).number(1), 1);  // SessionLog.START
  }
}

TEST_F(EventFileTest, WhatWasNotFlushedIsWrittenWhenTheFileIsClosed) {
  std::string path;
  {
    EventFile file(folder(), 0, clock_);
    path = file.path();
    file.scalar("loss", 1, 1);
    EXPECT_EQ(events_in(path).size(), 2u);
  }
  EXPECT_EQ(events_in(path).size(), 3u);
}

TEST_F(EventFileTest, AFolderThatCannotBeMadeIsTold) {
  temp_.write("file", "");
  EXPECT_THROW(EventFile(temp_.path() + "/file/logs", 0, clock_), Error);
}

}  // namespace
}  // namespace cairn
