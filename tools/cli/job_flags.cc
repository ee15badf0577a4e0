#include "tools/cli/job_flags.h"

#include <CLI/CLI.hpp>

#include "tools/job/spec/job_threads.h"
#include "tools/job/train/train_flags.h"

namespace cairn::tools {
namespace {

// Adds flags to a command line.
struct AddTo {
  CLI::App& app;
  void operator()(const char* name, bool& field, const char* help) const {
    app.add_flag(name, field, help);
  }
  void operator()(const char* name, std::vector<std::string>& field, const char* help) const {
    app.add_option(name, field, help)->allow_extra_args(false);
  }
  template <typename Field>
  void operator()(const char* name, Field& field, const char* help) const {
    app.add_option(name, field, help);
  }
};

}  // namespace

void add_job_flags(CLI::App& app, TrainRequest& request) {
  app.add_option("job", request.job_file, "The job, a TOML file (docs/job-file.md)")->required();
  for_each_job_flag(request, AddTo{app});
  CLI::Option* resume = app.get_option("--resume");
  app.get_option("--partial")->needs(resume);
  app.get_option("--new-data")->needs(resume);
  app.get_option("--warm-start")->excludes(resume);
  app.get_option("--stuck-after")->check(CLI::PositiveNumber);
}

void add_cluster_flags(CLI::App& app, TrainRequest& request) {
  for_each_cluster_flag(request, AddTo{app});
  app.get_option("--shards")->transform(auto_as_number);
  app.get_option("--lanes")->transform(auto_as_number);
  app.get_option("--data-workers")->check(CLI::Range(0, 512));
}

}  // namespace cairn::tools
