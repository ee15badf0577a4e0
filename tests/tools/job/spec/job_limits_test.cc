// The limits of job files and flags, and the errors outside of them.
#include "tools/job/spec/job_limits.h"

#include <gmock/gmock.h>

#include "tools/job/spec/job.h"

namespace cairn::tools {
namespace {
using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kCsv =
    "[data]\ntrain = 'a.csv'\n[data.csv]\ncolumns = ['x:float32', 'y:float32']\nlabel = {column = "
    "'y'}\n";

std::string what_is_said_to(const std::string& job) {
  try {
    parse_job(job, "some.toml");
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  return "it was taken";
}

TEST(JobLimits, NumbersOutOfRangeAreNamedWithLineKeyAndValue) {
  const std::pair<const char*, const char*> cases[] = {
      {"[data]\ntrain = 'a'\nepochs = inf", "some.toml:3: data.epochs is inf"},
      {"[data]\ntrain = 'a'\nepochs = nan", "some.toml:3: data.epochs is nan"},
      {"[data]\ntrain = 'a'\nepochs = -1.0", "some.toml:3: data.epochs is -1"},
      {"[data]\ntrain = 'a'\nepochs = 0", "some.toml:3: data.epochs is 0"},
      {"[data]\ntrain = 'a'\nbatch = 0", "some.toml:3: data.batch is 0"},
      {"[data]\ntrain = 'a'\n[cluster]\nps = 0", "some.toml:4: cluster.ps is 0"},
      {"[data]\ntrain = 'a'\n[cluster]\nlanes = 0", "some.toml:4: cluster.lanes is 0"},
      {"[data]\ntrain = 'a'\n[cluster]\ndevice = 'tpu'",
       "some.toml:4: cluster.device: there is no device \"tpu\" to choose: auto, cpu"},
      {"[data]\ntrain = 'a'\n[cluster]\nps_wait_seconds = inf",
       "some.toml:4: cluster.ps_wait_seconds is inf"},
      {"[data]\ntrain = 'a'\n[model]\nembedding_dim = 0", "some.toml:4: model.embedding_dim is 0"},
      {"[data]\ntrain = 'a'\n[model]\nhidden = [8, 0]", "some.toml:4: model.hidden is 0"},
      {"[data]\ntrain = 'a'\n[checkpoint]\nkeep_last = 0",
       "some.toml:4: checkpoint.keep_last is 0"},
      {"[data]\ntrain = 'a'\n[checkpoint]\nfull_every = 0",
       "some.toml:4: checkpoint.full_every is 0"},
      {"[data]\ntrain = 'a'\n[checkpoint]\nkeep_every = -1", "some.toml:4: checkpoint.keep_every"},
      {"[data]\ntrain = 'a'\n[checkpoint]\nrows = 'fp8'", "some.toml:4: checkpoint.rows"},
      {"[data]\ntrain = 'a'\n[checkpoint]\nslots = 'int8'", "some.toml:4: checkpoint.slots"},
      {"[data]\ntrain = 'a'\n[checkpoint]\ncompression = 'gzip'",
       "some.toml:4: checkpoint.compression"},
      {"[data]\ntrain = 'a'\n[checkpoint]\nevery = 'infs'",
       "some.toml:4: checkpoint.every is \"infs\""},
      {"[data]\ntrain = 'a'\n[evaluation]\nbatch = 0", "some.toml:4: evaluation.batch is 0"},
      {"[data]\ntrain = 'a'\n[optimizer]\nlearning_rate = inf",
       "some.toml:4: optimizer.learning_rate"},
      {"[data]\ntrain = 'a'\n[features.hashed]\nx = 0", "some.toml:4: features.hashed.x is 0"},
      {"[data]\ntrain = 'a'\n[features.bucketised]\nx = [2, 1]",
       "some.toml:4: features.bucketised.x"},
  };
  for (const auto& [job, said] : cases) EXPECT_THAT(what_is_said_to(job), HasSubstr(said)) << job;
}

TEST(JobLimits, AModelThatIsNotThereIsToldTheNearest) {
  EXPECT_THAT(what_is_said_to("[data]\ntrain = 'a'\n[model]\nkind = 'dlmr'"),
              AllOf(HasSubstr("\"dlmr\""), HasSubstr("\"dlrm\"?")));
}

TEST(JobLimits, ALabelThatIsAFeatureIsRefused) {
  for (const char* features :
       {"numeric = ['x', 'y']", "log1p = 'y'", "vocabulary = ['y']", "hashed = {y = 10}",
        "bucketised = {y = [1, 2]}", "crosses = [{columns = ['x', 'y']}]"})
    EXPECT_THAT(
        what_is_said_to(std::string(kCsv) + "[features]\n" + features),
        AllOf(HasSubstr("some.toml:7: features."), HasSubstr("\"y\""), HasSubstr("as the label")))
        << features;
}

TEST(JobLimits, WhatTheDataFormatDoesNotReadIsRefused) {
  EXPECT_THAT(what_is_said_to("[data]\ntrain = 'a.svm'\n[data.libsvm]\ndimension = 9\n"
                              "[features.ids]\nx = 10"),
              HasSubstr("features.ids is not read"));
  EXPECT_THAT(what_is_said_to("[data]\ntrain = 'a'\nformat = 'records'\n[data.records]\nfields = "
                              "['y:float32']\n[features]\nnumeric = 'y'"),
              HasSubstr("features.numeric is not read"));
}

TEST(JobLimits, AFlagIsNamedAsTheFlagThatItWas) {
  Job job = parse_job(std::string(kCsv) + "[features]\nnumeric = 'x'", "some.toml");
  job.data.steps = -5;
  try {
    verify_job(job, [](const std::string& key) {
      return key == "data.steps" ? "--steps" : "some.toml: " + key;
    });
    FAIL() << "it was taken";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--steps is -5"));
  }
}

TEST(JobLimits, AnIndicatorOfTheLabelIsRefused) {
  EXPECT_THAT(
      what_is_said_to("[data]\ntrain = 'a.csv'\n[data.csv]\ncolumns = ['x:float32', {name = 'y', "
                      "dtype = 'float32', indicator = true}]\nlabel = {column = 'y'}\n"),
      AllOf(HasSubstr("some.toml:4: data.csv.columns: \"y\" is the label"),
            HasSubstr("remove \"indicator\"")));
}

}  // namespace
}  // namespace cairn::tools
