#include "tools/job_optimizer.h"

#include <algorithm>
#include <optional>

#include "tools/job_schedule.h"
#include "tools/toml_table.h"

namespace cairn::tools {
namespace {

using Made = std::shared_ptr<nn::Optimizer>;

// Takes an argument if the file has it, else leaves the option's default.
template <typename T>
void take(const JobOptimizer& from, const char* argument, T& option) {
  if (const auto found = from.arguments.find(argument); found != from.arguments.end()) option = static_cast<T>(found->second);
}

template <typename Options>
Options common(const JobOptimizer& from, const std::string& name) {
  Options options;
  options.learning_rate = from.rate;
  options.clipping = from.clipping;
  options.name = name;
  if constexpr (requires { options.api; }) options.api = from.api;
  return options;
}

template <typename Options>
Options with_betas(const JobOptimizer& from, const std::string& name) {
  auto options = common<Options>(from, name);
  take(from, "beta_1", options.beta_1);
  take(from, "beta_2", options.beta_2);
  take(from, "epsilon", options.epsilon);
  return options;
}

template <typename Options>
Options with_accumulator(const JobOptimizer& from, const std::string& name) {
  auto options = common<Options>(from, name);
  take(from, "initial_accumulator_value", options.initial_accumulator_value);
  take(from, "epsilon", options.epsilon);
  return options;
}

Made make_sgd(const JobOptimizer& from, const std::string& name) {
  auto options = common<nn::SgdOptions>(from, name);
  take(from, "momentum", options.momentum);
  take(from, "nesterov", options.nesterov);
  return std::make_shared<nn::Sgd>(options);
}

Made make_adagrad(const JobOptimizer& from, const std::string& name) {
  return std::make_shared<nn::Adagrad>(with_accumulator<nn::AdagradOptions>(from, name));
}

Made make_rowwise_adagrad(const JobOptimizer& from, const std::string& name) {
  return std::make_shared<nn::RowwiseAdagrad>(with_accumulator<nn::RowwiseAdagradOptions>(from, name));
}

Made make_rmsprop(const JobOptimizer& from, const std::string& name) {
  auto options = common<nn::RmsPropOptions>(from, name);
  take(from, "rho", options.rho);
  take(from, "momentum", options.momentum);
  take(from, "epsilon", options.epsilon);
  take(from, "centered", options.centered);
  return std::make_shared<nn::RmsProp>(options);
}

Made make_adam(const JobOptimizer& from, const std::string& name) {
  auto options = with_betas<nn::AdamOptions>(from, name);
  take(from, "amsgrad", options.amsgrad);
  return std::make_shared<nn::Adam>(options);
}

Made make_lazy_adam(const JobOptimizer& from, const std::string& name) {
  return std::make_shared<nn::LazyAdam>(with_betas<nn::AdamOptions>(from, name));
}

Made make_adamax(const JobOptimizer& from, const std::string& name) {
  return std::make_shared<nn::Adamax>(with_betas<nn::AdamaxOptions>(from, name));
}

Made make_nadam(const JobOptimizer& from, const std::string& name) {
  auto options = with_betas<nn::NadamOptions>(from, name);
  take(from, "schedule_decay", options.schedule_decay);
  return std::make_shared<nn::Nadam>(options);
}

Made make_adadelta(const JobOptimizer& from, const std::string& name) {
  auto options = common<nn::AdadeltaOptions>(from, name);
  take(from, "rho", options.rho);
  take(from, "epsilon", options.epsilon);
  return std::make_shared<nn::Adadelta>(options);
}

Made make_ftrl(const JobOptimizer& from, const std::string& name) {
  auto options = common<nn::FtrlOptions>(from, name);
  take(from, "learning_rate_power", options.learning_rate_power);
  take(from, "initial_accumulator_value", options.initial_accumulator_value);
  take(from, "l1", options.l1_regularization_strength);
  take(from, "l2", options.l2_regularization_strength);
  take(from, "beta", options.beta);
  take(from, "l2_shrinkage", options.l2_shrinkage_regularization_strength);
  return std::make_shared<nn::Ftrl>(options);
}

struct Kind {
  std::string name;
  std::vector<std::string> numbers, flags;
  Made (*make)(const JobOptimizer& from, const std::string& name);

  bool takes(const std::string& argument) const {
    return std::find(numbers.begin(), numbers.end(), argument) != numbers.end() || std::find(flags.begin(), flags.end(), argument) != flags.end();
  }
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {"sgd", {"momentum"}, {"nesterov"}, make_sgd},
      {"adagrad", {"initial_accumulator_value", "epsilon"}, {}, make_adagrad},
      {"rowwise_adagrad", {"initial_accumulator_value", "epsilon"}, {}, make_rowwise_adagrad},
      {"rmsprop", {"rho", "momentum", "epsilon"}, {"centered"}, make_rmsprop},
      {"adam", {"beta_1", "beta_2", "epsilon"}, {"amsgrad"}, make_adam},
      {"lazy_adam", {"beta_1", "beta_2", "epsilon"}, {}, make_lazy_adam},
      {"adamax", {"beta_1", "beta_2", "epsilon"}, {}, make_adamax},
      {"nadam", {"beta_1", "beta_2", "epsilon", "schedule_decay"}, {}, make_nadam},
      {"adadelta", {"rho", "epsilon"}, {}, make_adadelta},
      {"ftrl", {"learning_rate_power", "initial_accumulator_value", "l1", "l2", "beta", "l2_shrinkage"}, {}, make_ftrl}};
  return all;
}

const Kind& find_kind(const std::string& name) {
  for (const Kind& kind : kinds())
    if (kind.name == name) return kind;
  throw InvalidArgumentError(str("there is no optimizer \"", name, "\""));
}

std::string list_of(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

// An argument of another kind is not merely unknown.
void refuse_arguments_of_others(TomlTable& table, const Kind& kind) {
  for (const Kind& other : kinds())
    for (const auto* names : {&other.numbers, &other.flags})
      for (const std::string& name : *names) {
        if (kind.takes(name) || !table.has(name)) continue;
        std::vector<std::string> takes = kind.numbers;
        takes.insert(takes.end(), kind.flags.begin(), kind.flags.end());
        throw InvalidArgumentError(str(table.place(*table.node(name)), ": ", table.path(name), ": ", kind.name, " takes none; beside its learning rate it takes ",
                                       takes.empty() ? "nothing" : list_of(takes)));
      }
}

void read_arguments(TomlTable& table, const Kind& kind, std::map<std::string, double>& arguments) {
  for (const std::string& name : kind.numbers)
    if (const toml::node* found = table.node(name)) arguments[name] = table.convert<double>(*found, name);
  for (const std::string& name : kind.flags)
    if (const toml::node* found = table.node(name)) arguments[name] = table.convert<bool>(*found, name) ? 1 : 0;
}

// 0 switches an inherited bound off.
void read_clip(TomlTable& table, const char* name, std::optional<float>& bound) {
  const toml::node* found = table.node(name);
  if (found == nullptr) return;
  const auto value = table.convert<float>(*found, name);
  if (!(value >= 0)) table.fail(*found, name, "at least 0");
  bound = value > 0 ? std::optional(value) : std::nullopt;
}

void read_api(TomlTable& table, const Kind& kind, nn::Api& api) {
  const toml::node* found = table.node("api");
  if (found == nullptr) return;
  if (kind.name == "rowwise_adagrad") table.fail(*found, "api", "absent: there is one rowwise_adagrad only");
  const auto text = table.convert<std::string>(*found, "api");
  if (text != "legacy" && text != "keras2") table.fail(*found, "api", str("\"legacy\" or \"keras2\", not \"", text, "\""));
  api = text == "legacy" ? nn::Api::kLegacy : nn::Api::kKeras2;
}

void read_rate(TomlTable& table, JobOptimizer& made) {
  const toml::node* number = table.node("learning_rate");
  if (number != nullptr) {
    made.learning_rate = table.convert<float>(*number, "learning_rate");
    if (!(made.learning_rate > 0)) table.fail(*number, "learning_rate", "above 0");
    made.rate = made.learning_rate;  // a schedule that was inherited begins with another
  }
  if (table.node("schedule") != nullptr) made.rate = read_schedule(table.table("schedule"), made.learning_rate);
}

}  // namespace

std::vector<std::string> optimizer_kinds() {
  std::vector<std::string> names;
  for (const Kind& kind : kinds()) names.push_back(kind.name);
  return names;
}

JobOptimizer read_optimizer(TomlTable table, const JobOptimizer& inherited) {
  JobOptimizer made = inherited;
  table.read("kind", made.kind);
  table.one_of("kind", made.kind, optimizer_kinds());
  if (made.kind != inherited.kind) made.arguments.clear();
  const Kind& kind = find_kind(made.kind);
  try {
    read_rate(table, made);
    refuse_arguments_of_others(table, kind);
    read_arguments(table, kind, made.arguments);
    read_api(table, kind, made.api);
    read_clip(table, "clipnorm", made.clipping.clipnorm);
    read_clip(table, "clipvalue", made.clipping.clipvalue);
    read_clip(table, "global_clipnorm", made.clipping.global_clipnorm);
    table.refuse_unknown();
    make_optimizer(made, made.kind);  // says now what is wrong with its numbers
  } catch (const InvalidArgumentError& e) {
    throw InvalidArgumentError(table.located(e.what()));
  }
  return made;
}

std::shared_ptr<nn::Optimizer> make_optimizer(const JobOptimizer& wanted, const std::string& name) { return find_kind(wanted.kind).make(wanted, name); }

}  // namespace cairn::tools
