#include "rpc/server/task_addresses.h"

#include <gmock/gmock.h>

#include "core/base/error.h"

namespace cairn::rpc {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string refusal(const std::string& one, const std::string& other) {
  try {
    verify_distinct(
        {{"/job:chief/task:0", "c:1"}, {"/job:ps/task:0", one}, {"/job:ps/task:1", other}});
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(TaskAddresses, OneAddressForTwoTasksIsRefusedWithBothNames) {
  EXPECT_THAT(refusal("a:4321", "a:4321"),
              AllOf(HasSubstr("/job:ps/task:0 at a:4321"), HasSubstr("/job:ps/task:1")));
  EXPECT_THAT(refusal("127.0.0.1:4321", "localhost:4321"),
              AllOf(HasSubstr("at 127.0.0.1:4321"), HasSubstr("at localhost:4321")));
  EXPECT_THAT(refusal("a:1", "c:1"), HasSubstr("/job:chief/task:0"));
}

TEST(TaskAddresses, FormsOfOneAddressAreTheSame) {
  EXPECT_NE(refusal("a:1", "tcp://a:1"), "accepted");
  EXPECT_NE(refusal("Ada.example:1", "ada.example:1"), "accepted");
  EXPECT_NE(refusal("[::1]:80", "[0:0:0:0:0:0:0:1]:80"), "accepted");
  EXPECT_NE(refusal("unix:/a", "unix:///a"), "accepted");
  EXPECT_NE(refusal("no address", "no address"), "accepted");
}

TEST(TaskAddresses, WhatMayBeTwoProcessesIsAccepted) {
  EXPECT_EQ(refusal("a:1", "a:2"), "accepted");
  EXPECT_EQ(refusal("a:1", "b:1"), "accepted");
  EXPECT_EQ(refusal("127.0.0.1:1", "127.0.0.2:1"), "accepted");
  EXPECT_EQ(refusal("127.0.0.1:1", "[::1]:1"), "accepted");
  EXPECT_EQ(refusal("127.0.0.1:0", "127.0.0.1:0"), "accepted");  // any port, and another each time
  EXPECT_EQ(refusal("unix:/a", "unix:/A"), "accepted");
}

TEST(TaskAddresses, TasksOfAHostAreCountedByItsName) {
  const std::vector<TaskAddress> tasks{{"a", "ada:1"},       {"b", "Ada:2"},   {"c", "127.0.0.1:3"},
                                       {"d", "localhost:4"}, {"e", "unix:/e"}, {"f", "grace:1"}};
  EXPECT_EQ(tasks_on_host_of("tcp://ada:7", tasks), 2u);
  EXPECT_EQ(tasks_on_host_of("127.0.0.1:0", tasks), 3u);
  EXPECT_EQ(tasks_on_host_of("nobody:1", tasks), 0u);
}

}  // namespace
}  // namespace cairn::rpc
