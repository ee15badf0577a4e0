#include "coordinator/cluster/cluster_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/cluster/cluster_resolver.h"
#include "coordinator/cluster/task_roles.h"
#include "core/base/error.h"
#include "strategy/in_sync/worker_group.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Cluster, KeepsJobsInTheOrderGivenAndTasksByNumber) {
  ClusterSpec spec{{"worker", {"a:1", "b:1"}}, {"ps", {"c:1"}}};
  spec.set_job("chief", {{2, "d:1"}});
  EXPECT_THAT(spec.jobs(), ElementsAre("worker", "ps", "chief"));
  EXPECT_EQ(spec.task_address("worker", 1), "b:1");
  EXPECT_THAT(spec.job_tasks("chief"), ElementsAre("", "", "d:1"));
  EXPECT_EQ(spec.task_count("evaluator"), 0u);
  EXPECT_THROW(spec.num_tasks("evaluator"), InvalidArgumentError);
}

TEST(TfConfig, NamesJobsAddressesAndTheTask) {
  TFConfigClusterResolver resolver(
      R"({"cluster": {"ps": ["a:1", "b:2"], "worker": ["c:3"]}, "task": {)"
      R"("type": "worker", "index": 0}})");
  EXPECT_THAT(resolver.cluster_spec().job_tasks("ps"), ElementsAre("a:1", "b:2"));
  EXPECT_EQ(resolver.cluster_spec().num_tasks("worker"), 1u);
  EXPECT_EQ(resolver.task_type(), "worker");
  EXPECT_EQ(resolver.task_id(), 0);
}

TEST(TfConfig, ReadsTheEnvironmentAnewAtEveryCall) {
  TFConfigClusterResolver resolver;
  ::unsetenv("TF_CONFIG");
  EXPECT_TRUE(resolver.cluster_spec().empty());
  EXPECT_EQ(resolver.task_type(), std::nullopt);
  ::setenv("TF_CONFIG", R"({"task": {"type": "ps", "index": "1"}})", 1);
  EXPECT_EQ(resolver.task_id(), 1);
  ::unsetenv("TF_CONFIG");
}

TEST(TfConfig, ReadsAnIndexAsPythonDoes) {
  auto index = [](const std::string& text) {
    return TFConfigClusterResolver(R"({"task": {"index": )" + text + "}}").task_id();
  };
  EXPECT_EQ(index("\" 1_0 \""), 10);
  EXPECT_EQ(index("\"+2\""), 2);
  EXPECT_EQ(index("1.9"), 1);
  EXPECT_EQ(index("true"), 1);
  for (const char* bad : {"\"\"", "\"1.0\"", "\"_1\"", "\"1__0\"", "\"-\"", "null", "[]", "1e300",
                          "18446744073709551615"})
    EXPECT_THROW(index(bad), InvalidArgumentError) << bad;
}

TEST(TfConfig, AWrongPartIsAnErrorOfTheCallThatNeedsIt) {
  TFConfigClusterResolver resolver(R"({"cluster": {"ps": [1]}, "task": {"type": "ps"}})");
  EXPECT_EQ(resolver.task_type(), "ps");
  EXPECT_THROW(resolver.cluster_spec(), InvalidArgumentError);
  EXPECT_THROW(TFConfigClusterResolver("{").task_type(), InvalidArgumentError);
}

TEST(TfConfig, ASessionMasterIsTheMaster) {
  EXPECT_EQ(TFConfigClusterResolver(
                R"({"session_master": "grpc://x:1", "cluster": {"ps": ["a:1", "b:1"]}})")
                .master(),
            "grpc://x:1");
}

TEST(SimpleResolver, SaysWhatItWasTold) {
  SimpleClusterResolver resolver(
      ClusterSpec{{"ps", {"a:1"}}},
      {.master = "m:1", .task_type = "ps", .task_id = 0, .rpc_layer = "grpc"});
  EXPECT_EQ(resolver.master(), "grpc://m:1");
  EXPECT_EQ(resolver.master({.task_type = "ps", .task_id = 0, .rpc_layer = "x"}), "x://a:1");
  EXPECT_EQ(resolver.task_type(), "ps");
}

TEST(ParameterServerCluster, NeedsAPsAndAWorkerAndKnownJobs) {
  verify_parameter_server_cluster(ClusterSpec{
      {"ps", {"a:1"}}, {"worker", {"b:1"}}, {"chief", {"c:1"}}, {"evaluator", {"d:1"}}});
  EXPECT_THROW(verify_parameter_server_cluster(ClusterSpec{{"worker", {"b:1"}}}),
               InvalidArgumentError);
  EXPECT_THROW(verify_parameter_server_cluster(ClusterSpec{{"ps", {"a:1"}}}), InvalidArgumentError);
  EXPECT_THROW(verify_parameter_server_cluster(
                   ClusterSpec{{"ps", {"a:1"}}, {"worker", {"b:1"}}, {"chief", {"c:1", "d:1"}}}),
               InvalidArgumentError);
  EXPECT_THROW(verify_parameter_server_cluster(
                   ClusterSpec{{"ps", {"a:1"}}, {"worker", {"b:1"}}, {"gateway", {"c:1"}}}),
               InvalidArgumentError);
}

std::string refusal(const ClusterSpec& spec) {
  try {
    verify_distinct_addresses(spec);
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Cluster, OneAddressForTwoTasksIsRefusedInAnyRole) {
  EXPECT_EQ(refusal({{"ps", {"a:1", "a:2"}}, {"worker", {"b:1"}}}), "accepted");
  EXPECT_THAT(refusal({{"ps", {"a:1", "a:1"}}, {"worker", {"b:1"}}}),
              AllOf(HasSubstr("/job:ps/task:0 at a:1"), HasSubstr("/job:ps/task:1")));
  EXPECT_THAT(refusal({{"chief", {"a:1"}}, {"ps", {"b:1"}}, {"worker", {"c:1", "a:1"}}}),
              AllOf(HasSubstr("/job:chief/task:0"), HasSubstr("/job:worker/task:1")));
  const SimpleClusterResolver group(ClusterSpec{{"worker", {"a:1", "a:1"}}},
                                    {.master = "", .task_type = "worker", .task_id = 0});
  EXPECT_THROW(place_in_group(group), InvalidArgumentError);
}

TEST(ParameterServerCluster, AnEmptyOneSaysHowToMakeOne) {
  try {
    verify_parameter_server_cluster(TFConfigClusterResolver("{}"));
    FAIL();
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("TF_CONFIG"));
  }
}

}  // namespace
}  // namespace cairn
