// Optimizers as data: one table says which arguments each kind has and which option each sets, so
// that reading, refusing and making need no code per kind. A new optimizer of nn/ is one more entry
// in kinds().
#include "tools/job/toml/job_optimizer.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "tools/job/toml/job_schedule.h"
#include "tools/job/toml/toml_table.h"

namespace cairn::tools {
namespace {

using Made = std::shared_ptr<nn::Optimizer>;

// The options that all optimizers have; RowwiseAdagrad lacks `api`.
template <typename Options>
Options common(const JobOptimizer& from, const std::string& name) {
  Options options;
  options.learning_rate = from.rate;
  options.clipping = from.clipping;
  options.name = name;
  if constexpr (requires { options.api; }) options.api = from.api;
  return options;
}

// An argument of a job file, and the option that it sets.
template <typename Options>
struct Argument {
  std::string name;
  std::variant<float Options::*, double Options::*, bool Options::*> option;
};

struct Kind {
  std::string name;
  std::vector<std::string> numbers, flags;  // the arguments that it takes
  std::function<Made(const JobOptimizer& from, const std::string& name)> make;

  bool takes(const std::string& argument) const {
    return std::find(numbers.begin(), numbers.end(), argument) != numbers.end() ||
           std::find(flags.begin(), flags.end(), argument) != flags.end();
  }
};

// An entry of the table. The type of the option decides between a number and a flag.
template <typename Optimizer, typename Options>
Kind kind(const char* name, std::vector<Argument<Options>> arguments) {
  Kind made{.name = name};
  for (const auto& [argument, option] : arguments)
    (std::holds_alternative<bool Options::*>(option) ? made.flags : made.numbers)
        .push_back(argument);
  made.make = [arguments = std::move(arguments)](const JobOptimizer& from,
                                                 const std::string& as) -> Made {
    auto options = common<Options>(from, as);
    for (const auto& [argument, option] : arguments)
      if (const auto given = from.arguments.find(argument); given != from.arguments.end())
        std::visit(
            [&](auto member) {
              options.*member = static_cast<std::decay_t<decltype(options.*member)>>(given->second);
            },
            option);
    return std::make_shared<Optimizer>(options);
  };
  return made;
}

// In the order of the documentation. Names are tf.keras's, except l1, l2 and l2_shrinkage, which
// are long there.
const std::vector<Kind>& kinds() {
  using namespace nn;
  using AdamArguments = std::vector<Argument<AdamOptions>>;
  static const AdamArguments adam = {{"beta_1", &AdamOptions::beta_1},
                                     {"beta_2", &AdamOptions::beta_2},
                                     {"epsilon", &AdamOptions::epsilon},
                                     {"amsgrad", &AdamOptions::amsgrad}};
  static const std::vector<Kind> all = {
      kind<Sgd, SgdOptions>(
          "sgd", {{"momentum", &SgdOptions::momentum}, {"nesterov", &SgdOptions::nesterov}}),
      kind<Adagrad, AdagradOptions>(
          "adagrad", {{"initial_accumulator_value", &AdagradOptions::initial_accumulator_value},
                      {"epsilon", &AdagradOptions::epsilon}}),
      kind<RowwiseAdagrad, RowwiseAdagradOptions>(
          "rowwise_adagrad",
          {{"initial_accumulator_value", &RowwiseAdagradOptions::initial_accumulator_value},
           {"epsilon", &RowwiseAdagradOptions::epsilon}}),
      kind<RmsProp, RmsPropOptions>("rmsprop", {{"rho", &RmsPropOptions::rho},
                                                {"momentum", &RmsPropOptions::momentum},
                                                {"epsilon", &RmsPropOptions::epsilon},
                                                {"centered", &RmsPropOptions::centered}}),
      kind<Adam>("adam", adam),
      // there is no lazy AMSGrad
      kind<LazyAdam>("lazy_adam", AdamArguments(adam.begin(), adam.end() - 1)),
      kind<Adamax, AdamaxOptions>("adamax", {{"beta_1", &AdamaxOptions::beta_1},
                                             {"beta_2", &AdamaxOptions::beta_2},
                                             {"epsilon", &AdamaxOptions::epsilon}}),
      kind<Nadam, NadamOptions>("nadam", {{"beta_1", &NadamOptions::beta_1},
                                          {"beta_2", &NadamOptions::beta_2},
                                          {"epsilon", &NadamOptions::epsilon},
                                          {"schedule_decay", &NadamOptions::schedule_decay}}),
      kind<Adadelta, AdadeltaOptions>(
          "adadelta", {{"rho", &AdadeltaOptions::rho}, {"epsilon", &AdadeltaOptions::epsilon}}),
      kind<Ftrl, FtrlOptions>(
          "ftrl", {{"learning_rate_power", &FtrlOptions::learning_rate_power},
                   {"initial_accumulator_value", &FtrlOptions::initial_accumulator_value},
                   {"l1", &FtrlOptions::l1_regularization_strength},
                   {"l2", &FtrlOptions::l2_regularization_strength},
                   {"beta", &FtrlOptions::beta},
                   {"l2_shrinkage", &FtrlOptions::l2_shrinkage_regularization_strength}})};
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

// An argument of another kind is not merely unknown: the message names the arguments that this kind
// does take.
void refuse_arguments_of_others(TomlTable& table, const Kind& kind) {
  for (const Kind& other : kinds())
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
void read_arguments(TomlTable& table, const Kind& kind, std::map<std::string, double>& arguments) {
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
void read_api(TomlTable& table, const Kind& kind, nn::Api& api) {
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

std::vector<std::string> optimizer_kinds() {
  std::vector<std::string> names;
  for (const Kind& kind : kinds()) names.push_back(kind.name);
  return names;
}

JobOptimizer read_optimizer(TomlTable table, const JobOptimizer& inherited, ModelPart part) {
  JobOptimizer made = inherited;
  table.read("kind", made.kind);
  table.one_of("kind", made.kind, optimizer_kinds());
  if (made.kind != inherited.kind) made.arguments.clear();
  const Kind& kind = find_kind(made.kind);
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
  return find_kind(wanted.kind).make(wanted, name);
}

}  // namespace cairn::tools
