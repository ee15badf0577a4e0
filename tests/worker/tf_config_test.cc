#include <gmock/gmock.h>

#include "core/base/error.h"
#include "rpc/net/hello.h"
#include "rpc/server/server_main.h"

namespace cairn::rpc {
namespace {

using testing::HasSubstr;

constexpr const char* kConfig =
    R"({"cluster": {"chief": ["h:1"], "ps": ["h:2"], "worker": ["h:3", "h:4"]}, "task": {)"
    R"("type": "worker", "index": 1}})";

std::string refusal(const std::string& text, Role role = Role::kWorker, ServerFlags flags = {},
                    GivenFlags given = {}) {
  try {
    apply_tf_config(text, role, given, flags);
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(TfConfig, NamesIndexAndAddress) {
  ServerFlags flags;
  apply_tf_config(kConfig, Role::kWorker, {}, flags);
  EXPECT_EQ(flags.index, 1u);
  EXPECT_EQ(flags.listen, "h:4");
}

TEST(TfConfig, FlagsWinOverIt) {
  ServerFlags flags;
  flags.index = 0;
  apply_tf_config(kConfig, Role::kWorker, {.index = true}, flags);
  EXPECT_EQ(flags.listen, "h:3");
  flags.listen = "127.0.0.1:0";
  apply_tf_config(kConfig, Role::kWorker, {.index = true, .listen = true}, flags);
  EXPECT_EQ(flags.listen, "127.0.0.1:0");
}

TEST(TfConfig, AnIndexWrittenAsTextIsReadAsANumber) {
  ServerFlags flags;
  apply_tf_config(R"({"cluster": {"ps": ["h:2"]}, "task": {"type": "ps", "index": "0"}})",
                  Role::kPs, {}, flags);
  EXPECT_EQ(flags.listen, "h:2");
}

TEST(TfConfig, WhatIsWrongIsNamed) {
  EXPECT_THAT(refusal("{"), HasSubstr("is not JSON"));
  EXPECT_THAT(refusal(kConfig, Role::kPs),
              HasSubstr("task.type is \"worker\", this program is a \"ps\""));
  EXPECT_THAT(refusal(R"({"task": {"index": -1}})"), HasSubstr("task.index is -1"));
  EXPECT_THAT(refusal(R"({"cluster": {"worker": ["h:3"]}, "task": {"index": 1}})"),
              HasSubstr("cluster.worker names no address for task 1"));
  EXPECT_THAT(refusal(R"({"cluster": 7, "task": 7})"), HasSubstr("task must be an object"));
  EXPECT_THAT(refusal(R"({"cluster": 7})"), HasSubstr("TF_CONFIG"));
}

TEST(TfConfig, OneAddressForTwoTasksIsRefusedWhateverTheFlagsSay) {
  const std::string text =
      R"({"cluster": {"ps": ["h:2", "tcp://h:2"], "worker": ["h:3"]}, "task": {"index": 0}})";
  EXPECT_THAT(refusal(text), HasSubstr("/job:ps/task:1"));
  EXPECT_THAT(refusal(text, Role::kWorker, {}, {.listen = true}), HasSubstr("/job:ps/task:0"));
}

TEST(TfConfig, TellsWhoElseIsInTheCluster) {
  ServerFlags flags;
  apply_tf_config(kConfig, Role::kWorker, {}, flags);
  ASSERT_EQ(flags.cluster.size(), 4u);
  EXPECT_EQ(flags.cluster.back().task, "/job:worker/task:1");
  EXPECT_EQ(flags.cluster.back().address, "h:4");
}

}  // namespace
}  // namespace cairn::rpc
