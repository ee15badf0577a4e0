// [data.service]: its values, its errors, and a run's use of it.
#include "tools/job/spec/job_service.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "data/stage/dataset_wire.h"
#include "tools/job/spec/job.h"
#include "tools/job/train/train_request.h"

namespace cairn::tools {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

// Its keys are in line 4 and below.
Job served(const std::string& service, const std::string& data = "train = 'a'") {
  return parse_job("[data]\n" + data + "\n[data.service]\n" + service, "some.toml");
}

std::string refusal(const std::string& service, const std::string& data = "train = 'a'") {
  try {
    served(service, data);
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  return "it was taken";
}

std::string refusal_of_flags(const JobOverrides& flags, const std::string& service) {
  Job job = served(service);
  try {
    apply({.job_file = "some.toml", .overrides = flags}, job);
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  return "it was taken";
}

TEST(JobService, ATableOfNothingIsAServiceThatTheRunFinds) {
  const Job job = served("");
  EXPECT_TRUE(job.data.service.given);
  EXPECT_EQ(job.data.service.mode, "dynamic");
  EXPECT_FALSE(parse_job("[data]\ntrain = 'a'", "some.toml").data.service.given);
}

TEST(JobService, WhatDoesNotFitIsNamedWithItsLineTheThingAndTheCure) {
  EXPECT_THAT(refusal("mod = 'off'"),
              HasSubstr("some.toml:4: unknown key \"data.service.mod\"; did you mean \"mode\"?"));
  EXPECT_THAT(refusal("mode = 'dynamc'"),
              AllOf(HasSubstr("some.toml:4: data.service.mode is \"dynamc\""),
                    HasSubstr("did you mean \"dynamic\"?")));
  EXPECT_THAT(refusal("compression = 'gzip'"),
              AllOf(HasSubstr("some.toml:4: data.service.compression is \"gzip\""),
                    HasSubstr("auto, off, zlib")));
  EXPECT_THAT(refusal("address = 'here'"), HasSubstr("some.toml:4: data.service.address: "));
  EXPECT_THAT(refusal("job = '#1'"), HasSubstr("some.toml:4: data.service.job is \"#1\""));
  EXPECT_THAT(refusal("", "train = 'a'\nvisitation = 'exactly_once'"),
              AllOf(HasSubstr("some.toml:3: data.visitation is \"exactly_once\""),
                    HasSubstr("[data.service]")));
  EXPECT_THAT(refusal("[strategy]\nkind = 'multi_worker_mirrored'"),
              AllOf(HasSubstr("some.toml:3: data.service is not read"),
                    HasSubstr("parameter_server or hybrid")));
  EXPECT_THAT(refusal("", "train = 'a'\nservise = 'a:1'"),
              HasSubstr("unknown key \"data.servise\"; did you mean \"service\"?"));
}

TEST(JobService, TheRunsOwnServiceAndAnotherOneExcludeEachOther) {
  EXPECT_EQ(refusal_of_flags({.data_workers = 2}, ""), "it was taken");
  EXPECT_THAT(
      refusal_of_flags({.data_workers = 2}, "address = 'host:1'"),
      AllOf(HasSubstr("--data-workers"), HasSubstr("data.service.address"), HasSubstr("host:1")));
}

TEST(JobService, WithoutTheTableTheFlagMakesOne) {
  Job job = parse_job("[data]\ntrain = 'a'", "some.toml");
  apply({.job_file = "some.toml", .overrides = {.data_workers = 2}}, job);
  EXPECT_TRUE(job.data.service.given);
  find_service(job, 2);
  EXPECT_EQ(job.data.service.address, "") << "it is not there yet";
}

TEST(JobService, ARunFindsTheServiceAndHasAJobOfItsOwn) {
  ::unsetenv("CAIRN_DATA_SERVICE");
  Job nowhere = served("");
  try {
    find_service(nowhere, 0);
    ADD_FAILURE() << "it was found";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("data.service.address"), HasSubstr("--data-workers")));
  }
  ::setenv("CAIRN_DATA_SERVICE", "host:1", 1);
  Job one = served(""), other = served("");
  find_service(one, 0);
  find_service(other, 0);
  EXPECT_EQ(one.data.service.address, "host:1");
  EXPECT_THAT(one.data.service.job, StartsWith("some-"));
  EXPECT_NE(one.data.service.job, other.data.service.job);
  ::unsetenv("CAIRN_DATA_SERVICE");
  Job named = served("address = 'host:2'\njob = 'mine'");
  find_service(named, 0);
  EXPECT_EQ(named.data.service.job, "mine");
  EXPECT_EQ(fingerprint(through_service(named, Dataset::range(4).batch(2))),
            fingerprint(through_service(named, Dataset::range(4).batch(2))))
      << "all workers read one job";
}

TEST(JobService, FewerFilesThanDataWorkersAreTold) {
  const auto warned = [](const std::string& data, int workers) {
    return service_warnings(served("", data), workers);
  };
  EXPECT_THAT(warned("train = 'a'", 2), ElementsAre(HasSubstr("data.train is 1 file, ")));
  EXPECT_THAT(warned("train = ['a', 'b']", 3), ElementsAre(HasSubstr("the 3 data workers read")));
  EXPECT_THAT(warned("train = ['a', 'b']", 2), IsEmpty());
  EXPECT_THAT(warned("train = 'a'", 1), IsEmpty());
  EXPECT_THAT(warned("train = 'a'\nformat = 'records'", 4), IsEmpty());
  EXPECT_THAT(service_warnings(parse_job("[data]\ntrain = 'a'", "some.toml"), 4), IsEmpty());
}

}  // namespace
}  // namespace cairn::tools
