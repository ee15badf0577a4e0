// The command line of cairn-chaos.
#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "tests/chaos/cluster.h"

namespace cairn::chaos {

struct Options {
  std::string mode = "once";
  ClusterOptions cluster;
  int harm = 20, depth = 1;
  int replicas = 1;     // of each shard's rows, each on another ps
  int megabytes = 100;  // of the model of --mode recovery
  std::uint64_t seed = 1;
  std::string places;
  std::string bound, backups;  // as the exerciser takes them; empty: asynchronous
  bool hybrid = false;
  bool journal = false;
  std::int64_t closures = 10'000;
  int patience_s = 120;
};

void add_flags(CLI::App& app, Options& options);

// Says to the exerciser and the ps what the flags ask for, once they are read.
void settle(Options& options);

std::string checkpoints_of(const Options& options);
std::string finish_of(const Options& options);
std::string expected_of(const Options& options);

}  // namespace cairn::chaos
