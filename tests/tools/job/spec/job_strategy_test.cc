// The values of [strategy], alone and beside [cluster], in a file and by flags.
#include "tools/job/spec/job_strategy.h"

#include <gmock/gmock.h>

#include "tools/job/spec/job.h"
#include "tools/job/train/train_request.h"

namespace cairn::tools {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kData = "[data]\ntrain = 'a'\n";  // two lines

std::string answer_to(const std::string& job) {
  try {
    parse_job(kData + job, "some.toml");
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  return "it was taken";
}

// The error of flags over a job that says `file`.
std::string answer_to_flags(const JobOverrides& flags, const std::string& file = "") {
  Job job = parse_job(kData + file, "some.toml");
  try {
    apply({.job_file = "some.toml", .overrides = flags}, job);
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  return "it was taken";
}

TEST(JobStrategy, WithoutTheSectionItIsAsynchronousParameterServers) {
  const Job job = parse_job(kData, "some.toml");
  EXPECT_EQ(job.strategy.kind, "parameter_server");
  EXPECT_EQ(job.strategy.consistency, "asynchronous");
}

TEST(JobStrategy, EveryKindIsTakenWithTheKeysThatItReads) {
  for (const char* strategy :
       {"kind = 'one_device'", "kind = 'mirrored'\nreplicas = 4",
        "kind = 'central_storage'\nreplicas = 1",
        "kind = 'multi_worker_mirrored'\n[cluster]\nworkers = 3\ntransport = 'tcp'",
        "kind = 'multi_worker_mirrored'\nreplicas = 2\n[cluster]\nworkers = 3",
        "kind = 'hybrid'\n[cluster]\nps = 1\nworkers = 3\npipeline_depth = 1",
        "consistency = 'bounded'\nmax_staleness = 4\n[cluster]\nps = 3",
        "kind = 'hybrid'\n[cluster]\nreplicas = 2",
        "consistency = 'synchronous'\n[cluster]\nps = 3\nreplicas = 3"})
    EXPECT_EQ(answer_to(std::string("[strategy]\n") + strategy), "it was taken") << strategy;
}

TEST(JobStrategy, AProcessHasTheReplicasOfItsKindWhereNothingIsSaid) {
  const auto replicas = [](const std::string& strategy) {
    return parse_job(kData + "[strategy]\n" + strategy, "some.toml").strategy.replicas_of_process();
  };
  EXPECT_EQ(replicas("kind = 'mirrored'"), 2);
  EXPECT_EQ(replicas("kind = 'central_storage'"), 2);
  EXPECT_EQ(replicas("kind = 'multi_worker_mirrored'"), 1);
  EXPECT_EQ(replicas("kind = 'multi_worker_mirrored'\nreplicas = 3"), 3);
}

TEST(JobStrategy, WhatDoesNotFitIsNamedWithItsLineTheThingAndTheCure) {
  const std::pair<const char*, std::vector<const char*>> cases[] = {
      {"replicas = 2",
       {"some.toml:4: strategy.replicas", "\"parameter_server\"", "cluster.workers and",
        "cluster.replicas", "mirrored, multi_worker_mirrored or central_storage"}},
      {"kind = 'mirrored'\n[cluster]\nreplicas = 2",
       {"some.toml:6: cluster.replicas", "\"mirrored\"", "no servers",
        "parameter_server or hybrid"}},
      {"kind = 'hybrid'\n[cluster]\nreplicas = 0",
       {"some.toml:6: cluster.replicas is 0", "from 1 to 8"}},
      {"[cluster]\nps = 9\nreplicas = 9", {"some.toml:6: cluster.replicas is 9", "from 1 to 8"}},
      {"kind = 'multi_worker_mirrored'\nreplicas = 0",
       {"some.toml:5: strategy.replicas is 0", "from 1 to"}},
      {"kind = 'hybrid'\nreplicas = 2",
       {"some.toml:5: strategy.replicas", "each worker is one replica", "cluster.workers"}},
      {"kind = 'hybrid'\n[cluster]\nlanes = 2",
       {"some.toml:6: cluster.lanes", "every step together", "parameter_server"}},
      {"kind = 'hybrid'\n[cluster]\nsteps_per_closure = 2",
       {"some.toml:6: cluster.steps_per_closure", "one share of each step"}},
      {"kind = 'hybrid'\nconsistency = 'synchronous'",
       {"some.toml:5: strategy.consistency", "in step", "parameter_server"}},
      {"kind = 'one_device'\nreplicas = 2", {"some.toml:5: strategy.replicas", "one replica"}},
      {"kind = 'mirrored'\n[cluster]\nps = 2",
       {"some.toml:6: cluster.ps", "\"mirrored\"", "no servers", "remove it", "parameter_server"}},
      {"kind = 'mirrored'\n[cluster]\nworkers = 2",
       {"some.toml:6: cluster.workers", "parameter_server, hybrid or multi_worker_mirrored"}},
      {"kind = 'multi_worker_mirrored'\n[cluster]\nps_wait_seconds = 2",
       {"some.toml:6: cluster.ps_wait_seconds"}},
      {"kind = 'mirrored'\nconsistency = 'bounded'",
       {"some.toml:5: strategy.consistency", "in step"}},
      {"max_staleness = 4",
       {"some.toml:4: strategy.max_staleness", "\"asynchronous\"", "\"bounded\""}},
      {"consistency = 'bounded'",
       {"some.toml:4: strategy.consistency", "add strategy.max_staleness"}},
      {"consistency = 'bounded'\nmax_staleness = 0",
       {"some.toml:5: strategy.max_staleness is 0", "from 1 to"}},
      {"consistency = 'synchronous'\n[cluster]\nsteps_per_closure = 2",
       {"some.toml:6: cluster.steps_per_closure is 2", "one share of each step", "remove it"}},
      {"consistency = 'synchronous'\nmax_staleness = 2",
       {"some.toml:5: strategy.max_staleness", "bounds nothing"}},
      {"kind = 'one_device'\n[checkpoint]\nfull_every = 4",
       {"some.toml:6: checkpoint.full_every is 4", "\"one_device\"", "all rows", "remove it"}},
      {"[checkpoint]\nfull_every = 4\nconsolidate_after = 4",
       {"some.toml:6: checkpoint.consolidate_after is 4", "raise full_every"}},
      {"[checkpoint]\nfull_every = 9\nconsolidate_after = 4\nrows = 'int8'",
       {"some.toml:6: checkpoint.consolidate_after is 4", "int8"}},
      {"kind = 'one_device'\n[checkpoint]\nlocal_folder = '/data'",
       {"some.toml:6: checkpoint.local_folder is \"/data\"", "\"one_device\"", "remove it"}},
      {"[checkpoint]\nlocal_folder = 'data'", {"some.toml:5: checkpoint.local_folder", "absolute"}},
      {"[checkpoint]\nlocal_folder = '/d'\nfull_every = 9\nconsolidate_after = 4",
       {"some.toml:5: checkpoint.local_folder", "consolidate_after 4", "remove one"}},
      {"kind = 'mirrored'\nreplicas = 0", {"some.toml:5: strategy.replicas is 0", "from 1 to"}},
      {"kind = 'mirrored'\nreplicas = 100000", {"some.toml:5: strategy.replicas is 100000"}},
  };
  for (const auto& [job, said] : cases) {
    const std::string answer = answer_to(std::string("[strategy]\n") + job);
    for (const char* part : said) EXPECT_THAT(answer, HasSubstr(part)) << job;
  }
}

TEST(JobStrategy, NamesThatThereAreNotAreToldTheNearestOrWhatThereIs) {
  EXPECT_THAT(answer_to("[strategy]\nkind = 'mirored'"),
              AllOf(HasSubstr("some.toml:4: strategy.kind is \"mirored\""),
                    HasSubstr("did you mean \"mirrored\"?")));
  EXPECT_THAT(answer_to("[strategy]\nkind = 'tpu'"),
              AllOf(HasSubstr("parameter_server, hybrid"), HasSubstr("one_device is wanted")));
  EXPECT_THAT(answer_to("[strategy]\nconsistency = 'synchronos'"),
              AllOf(HasSubstr("asynchronous, bounded, synchronous"),
                    HasSubstr("did you mean \"synchronous\"?")));
  EXPECT_THAT(answer_to("[strategy]\nreplica = 2"),
              AllOf(HasSubstr("unknown key \"strategy.replica\""), HasSubstr("\"replicas\"?")));
}

TEST(JobStrategy, AFlagThatChoosesTheStrategyLeavesTheFilesKeysOfItsOwnOneAside) {
  Job job = parse_job(
      kData + "[strategy]\nconsistency = 'bounded'\nmax_staleness = 2\n" + "[cluster]\nps = 3",
      "some.toml");
  apply({.job_file = "some.toml", .overrides = {.strategy = {.kind = "mirrored", .replicas = 3}}},
        job);
  EXPECT_EQ(job.strategy.kind, "mirrored");
  EXPECT_EQ(job.strategy.replicas, 3);
}

TEST(JobStrategy, TheFlagForReplicasIsOfRowsWhereThereArePsAndElseOfWhatComputes) {
  const auto applied = [](const std::string& kind) {
    Job job = parse_job(kData + "[strategy]\nkind = '" + kind + "'", "some.toml");
    apply({.job_file = "some.toml", .overrides = {.strategy = {.replicas = 2}}}, job);
    return std::pair(job.cluster.ps_loss.replicas, job.strategy.replicas);
  };
  EXPECT_EQ(applied("parameter_server"), std::pair(2, 0));
  EXPECT_EQ(applied("hybrid"), std::pair(2, 0));
  EXPECT_EQ(applied("mirrored"), std::pair(1, 2));
  EXPECT_EQ(applied("multi_worker_mirrored"), std::pair(1, 2));
  EXPECT_THAT(answer_to_flags({.strategy = {.replicas = 9}}),
              HasSubstr("--replicas is 9: a whole number from 1 to 8"));
  EXPECT_THAT(answer_to_flags({.strategy = {.replicas = 2}}, "[strategy]\nkind = 'one_device'"),
              HasSubstr("--replicas is not read"));
}

// The ps of a cluster that is there already are not those of the job.
TEST(JobStrategy, MoreReplicasThanTheJobHasPsAreTakenUntilTheClusterIsKnown) {
  EXPECT_EQ(answer_to("[cluster]\nps = 2\nreplicas = 3"), "it was taken");
  EXPECT_EQ(answer_to_flags({.strategy = {.replicas = 3}, .ps = 3}), "it was taken");
}

TEST(JobStrategy, EveryKindMultipliesInWhatTheJobSays) {
  for (const std::string& kind : strategy_kinds()) {
    const std::string text = kData + "[strategy]\nkind = '" + kind + "'\n[cluster]\n";
    for (const char* name : {"float32", "tf32", "bfloat16", "mixed_bfloat16"})
      EXPECT_EQ(parse_job(text + "arithmetic = '" + name + "'", "some.toml").cluster.arithmetic,
                name);
  }
  EXPECT_THAT(answer_to("[cluster]\narithmetic = 'mixed_bfloat'"),
              HasSubstr("did you mean \"mixed_bfloat16\"?"));
}

TEST(JobStrategy, EveryKindCanBeAskedToRepeatBitForBit) {
  for (const std::string& kind : strategy_kinds()) {
    const std::string strategy = "[strategy]\nkind = '" + kind + "'\n";
    EXPECT_FALSE(parse_job(kData + strategy, "some.toml").cluster.deterministic);
    EXPECT_TRUE(parse_job(kData + strategy + "[cluster]\ndeterministic = true", "some.toml")
                    .cluster.deterministic);
    Job job = parse_job(kData + strategy, "some.toml");
    apply({.job_file = "some.toml", .overrides = {.computing = {.deterministic = true}}}, job);
    EXPECT_TRUE(job.cluster.deterministic) << kind;
  }
}

TEST(JobStrategy, TheDevicesCacheIsOfOneDevice) {
  const std::string one = kData + "[strategy]\nkind = 'one_device'\n";
  EXPECT_EQ(parse_job(one, "some.toml").cluster.device_cache, "auto");
  EXPECT_EQ(parse_job(one + "[cluster]\ndevice_cache = '8 GB'", "some.toml").cluster.device_cache,
            "8 GB");
  EXPECT_EQ(parse_job(one + "[cluster]\ndevice_cache = 0.25", "some.toml").cluster.device_cache,
            "0.25");
  Job job = parse_job(one, "some.toml");
  apply({.job_file = "some.toml", .overrides = {.computing = {.device_cache = "10%"}}}, job);
  EXPECT_EQ(job.cluster.device_cache, "10%");
  EXPECT_THAT(answer_to("[strategy]\nkind = 'one_device'\n[cluster]\ndevice_cache = '8 cats'"),
              AllOf(HasSubstr("cluster.device_cache"), HasSubstr("\"8 cats\" is no size")));
  EXPECT_THAT(answer_to("[strategy]\nkind = 'mirrored'\n[cluster]\ndevice_cache = '8 GB'"),
              AllOf(HasSubstr("cluster.device_cache is not read"), HasSubstr("one_device")));
}

TEST(JobStrategy, FlagsAreNamedAsTheFlagsThatTheyWere) {
  EXPECT_THAT(answer_to_flags({.strategy = {.kind = "mirrored"}, .ps = 3}),
              AllOf(HasSubstr("--ps is not read"), HasSubstr("\"mirrored\"")));
  EXPECT_THAT(answer_to_flags({.ps = 3}, "[strategy]\nkind = 'mirrored'"),
              HasSubstr("--ps is not read"));
  EXPECT_THAT(answer_to_flags({.recovery = {.off = true}}, "[strategy]\nkind = 'mirrored'"),
              HasSubstr("--no-recovery is not read"));
  EXPECT_THAT(answer_to_flags({.recovery = {.on_demand = true}}, "[strategy]\nkind = 'mirrored'"),
              HasSubstr("--restore-on-demand is not read"));
  EXPECT_THAT(answer_to_flags({.strategy = {.max_staleness = 3}}),
              HasSubstr("--max-staleness bounds nothing"));
  EXPECT_EQ(answer_to_flags({.strategy = {.consistency = "bounded", .max_staleness = 3}}),
            "it was taken");
  EXPECT_EQ(answer_to_flags({.strategy = {.consistency = "synchronous"}}), "it was taken");
  EXPECT_EQ(answer_to_flags({.strategy = {.consistency = "asynchronous"}},
                            "[strategy]\nconsistency = 'bounded'\nmax_staleness = 2"),
            "it was taken");
}

}  // namespace
}  // namespace cairn::tools
