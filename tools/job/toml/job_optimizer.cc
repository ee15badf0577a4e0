// Optimizers by the table of nn/optimizers/optimizer_names.h: reading, refusing and making need no
// code per kind.
#include "tools/job/toml/job_optimizer.h"

#include <cmath>
#include <optional>
#include <utility>

#include "nn/optimizers/optimizer_names.h"
#include "tools/job/toml/job_schedule.h"
#include "tools/job/toml/toml_table.h"

namespace cairn::tools {
namespace {

using nn::OptimizerKind;

const OptimizerKind& find_kind(const std::string& name) {
  for (const OptimizerKind& kind : nn::optimizer_kinds())
    if (kind.name == name) return kind;
  throw InvalidArgumentError(str("there is no optimizer \"", name, "\""));
}

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const OptimizerKind& kind : nn::optimizer_kinds()) names.push_back(kind.name);
  return names;
}

std::string list_of(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

// An argument of another kind is not merely unknown: the message names the arguments that this kind
// does take.
void refuse_arguments_of_others(TomlTable& table, const OptimizerKind& kind) {
  for (const OptimizerKind& other : nn::optimizer_kinds())
    for (const auto* names : {&other.numbers, &other.flags})
      for (const std::string& name : *names) {
        if (kind.takes(name) || !table.has(name)) continue;
        std::vector<std::string> takes = kind.numbers;
        takes.insert(takes.end(), kind.flags.begin(), kind.flags.end());
        throw InvalidArgumentError(str(table.place(*table.node(name)), ": ", table.path(name), ": ",
                                       kind.name, " takes none; beside its learning rate it takes ",
                                       takes.empty() ? "nothing" : list_of(takes)));
      }
}

// Numbers and flags are one map, in which a flag is 0 or 1, so that inheriting and comparing need
// no second one.
void read_arguments(TomlTable& table, const OptimizerKind& kind,
                    std::map<std::string, double>& arguments) {
  for (const std::string& name : kind.numbers)
    if (const toml::node* found = table.node(name))
      arguments[name] = table.convert<double>(*found, name);
  for (const std::string& name : kind.flags)
    if (const toml::node* found = table.node(name))
      arguments[name] = table.convert<bool>(*found, name) ? 1 : 0;
}

// 0 switches an inherited bound off.
void read_clip(TomlTable& table, const char* name, std::optional<float>& bound) {
  const toml::node* found = table.node(name);
  if (found == nullptr) return;
  const auto value = table.convert<float>(*found, name);
  if (!(value >= 0)) table.fail(*found, name, "at least 0");
  bound = value > 0 ? std::optional(value) : std::nullopt;
}

// rowwise_adagrad exists in none of the reference's APIs.
void read_api(TomlTable& table, const OptimizerKind& kind, nn::Api& api) {
  const toml::node* found = table.node("api");
  if (found == nullptr) return;
  if (kind.name == "rowwise_adagrad")
    table.fail(*found, "api", "absent: there is one rowwise_adagrad only");
  const auto text = table.convert<std::string>(*found, "api");
  if (text != "legacy" && text != "keras2")
    table.fail(*found, "api", str("\"legacy\" or \"keras2\", not \"", text, "\""));
  api = text == "legacy" ? nn::Api::kLegacy : nn::Api::kKeras2;
}

// The default of a learning rate. bench/defaults measured adagrad's. The others are those of their
// papers, and ten times as much for a wide part, whose gradients are those of one row.
float default_rate(const std::string& kind, ModelPart part) {
  const bool wide = part == ModelPart::kWide;
  if (kind.ends_with("adagrad") || kind == "ftrl") return wide ? 0.5f : 0.1f;
  if (kind == "adadelta") return 1.0f;
  if (kind == "sgd") return wide ? 0.1f : 0.01f;
  return wide ? 0.01f : 0.001f;
}

// A schedule needs an initial rate, so the number is read first. A rate that is given without a
// schedule replaces an inherited schedule too.
void read_rate(TomlTable& table, ModelPart part, JobOptimizer& made) {
  const toml::node* number = table.node("learning_rate");
  if (made.rate_is_default) made.rate = made.learning_rate = default_rate(made.kind, part);
  if (number != nullptr) {
    made.rate_is_default = false;
    made.learning_rate = table.convert<float>(*number, "learning_rate");
    if (!(made.learning_rate > 0 && std::isfinite(made.learning_rate)))
      table.fail(*number, "learning_rate", "above 0 and finite");
    made.rate = made.learning_rate;  // a schedule that was inherited begins with another
  }
  if (table.node("schedule") == nullptr) return;
  made.rate_is_default = false;
  made.rate = read_schedule(table, table.table("schedule"), made.learning_rate);
}

}  // namespace

JobOptimizer read_optimizer(TomlTable table, const JobOptimizer& inherited, ModelPart part) {
  JobOptimizer made = inherited;
  table.read("kind", made.kind);
  table.one_of("kind", made.kind, kind_names());
  if (made.kind != inherited.kind) made.arguments.clear();
  const OptimizerKind& kind = find_kind(made.kind);
  read_rate(table, part, made);
  refuse_arguments_of_others(table, kind);
  read_arguments(table, kind, made.arguments);
  read_api(table, kind, made.api);
  read_clip(table, "clipnorm", made.clipping.clipnorm);
  read_clip(table, "clipvalue", made.clipping.clipvalue);
  read_clip(table, "global_clipnorm", made.clipping.global_clipnorm);
  table.refuse_unknown();
  // Made once for its checks: its constructor knows what its numbers may be.
  table.locating([&] { return make_optimizer(made, made.kind); });
  return made;
}

std::shared_ptr<nn::Optimizer> make_optimizer(const JobOptimizer& wanted, const std::string& name) {
  return find_kind(wanted.kind)
      .make({.learning_rate = wanted.rate,
             .clipping = wanted.clipping,
             .api = wanted.api,
             .name = name,
             .arguments = wanted.arguments});
}

}  // namespace cairn::tools
