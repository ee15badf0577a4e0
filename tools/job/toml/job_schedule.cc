// Schedules of nn/optimizers/schedule.h by the names and arguments of the job file. Ranges are
// checked by the schedules' own constructors; TomlTable::locating() adds the line.
#include "tools/job/toml/job_schedule.h"

#include <string>
#include <vector>

#include "core/base/error.h"
#include "tools/job/toml/toml_table.h"

namespace cairn::tools {
namespace {

const std::vector<std::string>& schedule_kinds() {
  static const std::vector<std::string> all = {"exponential",  "piecewise", "polynomial",
                                               "inverse_time", "cosine",    "cosine_restarts"};
  return all;
}

// Exponential and inverse-time decay take the same arguments.
template <typename Options>
Options read_decay(TomlTable& table, float initial) {
  Options options{.initial_learning_rate = initial};
  table.read("decay_steps", options.decay_steps);
  table.read("decay_rate", options.decay_rate);
  table.read("staircase", options.staircase);
  return options;
}

// The only schedule that has no use for the initial rate: its values are rates.
nn::PiecewiseConstantDecayOptions read_piecewise(TomlTable& table) {
  nn::PiecewiseConstantDecayOptions options;
  table.read("boundaries", options.boundaries);
  table.read("values", options.values);
  return options;
}

nn::PolynomialDecayOptions read_polynomial(TomlTable& table, float initial) {
  nn::PolynomialDecayOptions options{.initial_learning_rate = initial};
  table.read("decay_steps", options.decay_steps);
  table.read("end_learning_rate", options.end_learning_rate);
  table.read("power", options.power);
  table.read("cycle", options.cycle);
  return options;
}

nn::CosineDecayOptions read_cosine(TomlTable& table, float initial) {
  nn::CosineDecayOptions options{.initial_learning_rate = initial};
  table.read("decay_steps", options.decay_steps);
  table.read("alpha", options.alpha);
  table.read("warmup_steps", options.warmup_steps);
  if (const toml::node* found = table.node("warmup_target"))
    options.warmup_target = table.convert<float>(*found, "warmup_target");
  return options;
}

nn::CosineDecayRestartsOptions read_cosine_restarts(TomlTable& table, float initial) {
  nn::CosineDecayRestartsOptions options{.initial_learning_rate = initial};
  table.read("first_decay_steps", options.first_decay_steps);
  table.read("t_mul", options.t_mul);
  table.read("m_mul", options.m_mul);
  table.read("alpha", options.alpha);
  return options;
}

template <typename Schedule, typename Options>
nn::LearningRate made_of(const TomlTable& optimizer, const Options& options) {
  return optimizer.locating([&]() -> nn::LearningRate { return Schedule(options); });
}

}  // namespace

// The choice is made before unknown keys are refused: each kind knows its own keys only.
nn::LearningRate read_schedule(const TomlTable& optimizer, TomlTable table, float initial) {
  std::string kind;
  table.read("kind", kind);
  const auto made = [&]() -> nn::LearningRate {
    if (kind == "exponential")
      return made_of<nn::ExponentialDecay>(optimizer,
                                           read_decay<nn::ExponentialDecayOptions>(table, initial));
    if (kind == "piecewise")
      return made_of<nn::PiecewiseConstantDecay>(optimizer, read_piecewise(table));
    if (kind == "polynomial")
      return made_of<nn::PolynomialDecay>(optimizer, read_polynomial(table, initial));
    if (kind == "inverse_time")
      return made_of<nn::InverseTimeDecay>(optimizer,
                                           read_decay<nn::InverseTimeDecayOptions>(table, initial));
    if (kind == "cosine") return made_of<nn::CosineDecay>(optimizer, read_cosine(table, initial));
    if (kind == "cosine_restarts")
      return made_of<nn::CosineDecayRestarts>(optimizer, read_cosine_restarts(table, initial));
    table.one_of("kind", kind, schedule_kinds());
    CAIRN_CHECK(false, "a schedule that nobody reads");
  }();
  table.refuse_unknown();
  return made;
}

}  // namespace cairn::tools
