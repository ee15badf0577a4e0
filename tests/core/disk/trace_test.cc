// Traces: in processes of their own, since a trace is of a whole process.
#include "core/disk/trace.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "core/base/json.h"
#include "core/disk/disk.h"

namespace cairn {
namespace {

using std::chrono::milliseconds;
using ::testing::ExitedWithCode;

class TraceDeathTest : public ::testing::Test {
 protected:
  TraceDeathTest() {
    char made[] = "/tmp/cairn-trace-XXXXXX";
    folder = ::mkdtemp(made);
  }
  ~TraceDeathTest() override { std::filesystem::remove_all(folder); }
  // The events of the only process that has written to the folder.
  Json events() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      return parse_json(system_disk().read(entry.path().string()), entry.path().string());
    return Json::array();
  }
  std::string folder;
};

TEST_F(TraceDeathTest, WhatADeviceDidHasATrackOfItsOwn) {
  const TimePoint begin{milliseconds(5)};
  EXPECT_EXIT(
      {
        start_trace(folder);
        record_span("on a thread", begin, begin + milliseconds(9), 3);
        const std::string made_up = std::string("matmul ") + "[2, 3]";
        trace_sink().add("gpu:0", made_up, begin + milliseconds(1), begin + milliseconds(3));
        trace_sink().add("gpu:1", "add", begin, begin + milliseconds(1));
        write_trace();
        ::_exit(trace_sink().wanted() ? 0 : 1);
      },
      ExitedWithCode(0), "");
  std::map<std::string, int> rows;
  std::map<std::string, Json> spans;
  for (const Json& event : events()) {
    if (event["ph"] == "M" && event["name"] == "thread_name")
      rows[event["args"]["name"]] = event["tid"];
    else if (event["ph"] == "X")
      spans[event["name"]] = event;
  }
  ASSERT_TRUE(rows.contains("gpu:0") && rows.contains("gpu:1"));
  const Json& product = spans["matmul [2, 3]"];
  EXPECT_EQ(product["tid"], rows["gpu:0"]);
  EXPECT_EQ(product["ts"], 6000.0);
  EXPECT_EQ(product["dur"], 2000.0);
  EXPECT_EQ(spans["add"]["tid"], rows["gpu:1"]);
  EXPECT_NE(spans["on a thread"]["tid"], rows["gpu:0"]);
  EXPECT_NE(rows["gpu:0"], rows["gpu:1"]);
}

// CAIRN_TRACE may name one that is not there yet.
TEST_F(TraceDeathTest, MakesItsFolder) {
  std::filesystem::remove_all(folder);
  EXPECT_EXIT(
      {
        start_trace(folder);
        record_span("alone", TimePoint{}, TimePoint{milliseconds(1)}, 3);
        write_trace();
        ::_exit(0);
      },
      ExitedWithCode(0), "");
  EXPECT_FALSE(events().empty());
}

}  // namespace
}  // namespace cairn
