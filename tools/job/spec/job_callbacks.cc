#include "tools/job/spec/job_callbacks.h"

#include "core/base/error.h"
#include "tools/job/spec/job.h"
#include "tools/job/spec/job_limits.h"
#include "tools/job/spec/job_metrics.h"
#include "tools/job/toml/known_name.h"
#include "tools/job/toml/toml_table.h"

namespace cairn::tools {
namespace {

constexpr int kEvaluationsMax = 1 << 20;

void read_output(TomlTable& table, const std::string& key, JobOutput& output) {
  const toml::node* found = table.node(key);
  if (found == nullptr) return;
  output.path = table.convert<std::string>(*found, key);
  output.place = str(table.place(*found), ": ", table.path(key));
  if (output.path.empty()) table.fail(*found, key, "a name that is not empty");
}

void refuse_schedule(const JobOptimizer& optimizer, const std::string& key, const PlaceOf& place) {
  if (optimizer.rate.schedule() == nullptr) return;
  throw InvalidArgumentError(
      str(place(key),
          ": a schedule decides the learning rate at every step, and "
          "callbacks.reduce_lr_on_plateau lowers it by what evaluations say: remove one of them"));
}

}  // namespace

void read_callbacks(TomlTable table, JobCallbacks& callbacks) {
  read_output(table, "csv_logger", callbacks.csv_logger);
  read_output(table, "tensorboard", callbacks.tensorboard);
  JobPlateau& plateau = callbacks.plateau;
  plateau.given = table.has("reduce_lr_on_plateau");
  TomlTable one = table.table("reduce_lr_on_plateau");
  one.read("monitor", plateau.monitor);
  one.read("factor", plateau.factor);
  one.read("patience", plateau.patience);
  one.read("min_delta", plateau.min_delta);
  one.read("cooldown", plateau.cooldown);
  one.read("min_lr", plateau.min_lr);
  one.refuse_unknown();
  table.refuse_unknown();
}

// It has to be evaluated on the way, on something, and the rate has to be a number.
void verify_callbacks(const Job& job, const PlaceOf& place) {
  const JobPlateau& plateau = job.callbacks.plateau;
  if (!plateau.given) return;
  const std::string key = "callbacks.reduce_lr_on_plateau";
  const auto refuse = [&](const std::string& what, const std::string& why) {
    throw InvalidArgumentError(str(place(key + what), why));
  };
  if (!plateau.monitor.empty())
    verify_known(place(key + ".monitor"), plateau.monitor, eval_metrics(job));
  if ((plateau.monitor.empty() ? eval_metrics(job).front() : plateau.monitor) == "calibration")
    refuse(".monitor",
           " is \"calibration\", which is best near 1 and not the larger or the smaller the "
           "better: name another metric");
  if (!(plateau.factor > 0 && plateau.factor < 1))
    refuse(".factor", str(" is ", plateau.factor, ": a number above 0 and below 1 is wanted"));
  if (plateau.patience < 1 || plateau.patience > kEvaluationsMax)
    refuse(".patience", str(" is ", plateau.patience, ": a whole number from 1 to ",
                            kEvaluationsMax, " is wanted"));
  if (plateau.cooldown > kEvaluationsMax)
    refuse(".cooldown", str(" is ", plateau.cooldown, ": at most ", kEvaluationsMax, " is wanted"));
  if (!(plateau.min_delta >= 0))
    refuse(".min_delta", str(" is ", plateau.min_delta, ": a number from 0 on is wanted"));
  if (!(plateau.min_lr >= 0))
    refuse(".min_lr", str(" is ", plateau.min_lr, ": a number from 0 on is wanted"));
  if (!job.evaluation.every.set())
    refuse("", " goes by evaluations on the way: say with evaluation.every when they are");
  if (!job.validation.given() && job.data.test.empty())
    refuse("", " goes by evaluations: name data for them in [validation]");
  if (job.model.kind != "wide") refuse_schedule(job.optimizer, "optimizer.schedule", place);
  if (job.model.kind.starts_with("wide"))
    refuse_schedule(job.wide_optimizer, "wide_optimizer.schedule", place);
}

}  // namespace cairn::tools
