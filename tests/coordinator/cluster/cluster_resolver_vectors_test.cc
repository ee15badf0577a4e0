// tf_config.json: a TF_CONFIG text, and what a resolver and the rules for roles make of it.
#include <cstdlib>
#include <optional>

#include "coordinator/cluster/cluster_resolver.h"
#include "coordinator/cluster/task_roles.h"
#include "tests/strategy/vector_cases.h"

namespace cairn {
namespace {

template <typename T>
Json json_of(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// As the reference's ClusterSpec.as_dict(): a list, or an object where numbers are missing or there
// is no task.
Json json_of(const ClusterSpec& spec) {
  Json all = Json::object();
  for (const std::string& job : spec.jobs()) {
    const auto indices = spec.task_indices(job);
    const bool gaps =
        indices.empty() || indices.back() + 1 != static_cast<std::int64_t>(indices.size());
    Json tasks = gaps ? Json::object() : Json::array();
    for (std::int64_t index : indices)
      if (gaps)
        tasks[std::to_string(index)] = spec.task_address(job, index);
      else
        tasks.push_back(spec.task_address(job, index));
    all[job] = tasks;
  }
  return all;
}

TaskOverrides overrides_of(const Json& arguments) {
  TaskOverrides made;
  for (const auto& [name, value] : arguments.items())
    if (value.is_null())
      continue;  // the reference's None: as good as not given
    else if (name == "task_type")
      made.task_type = value.get<std::string>();
    else if (name == "task_id")
      made.task_id = value.get<std::int64_t>();
    else if (name == "rpc_layer")
      made.rpc_layer = value.get<std::string>();
    else
      ADD_FAILURE() << "no test knows the argument \"" << name << "\"";
  return made;
}

using Answers = std::map<std::string, std::function<Json()>>;

Answers answers_of(const TFConfigClusterResolver& resolver) {
  auto spec = [&] { return resolver.cluster_spec(); };
  auto with_task = [&](auto rule) {
    return [&resolver, rule] {
      return Json(rule(resolver.cluster_spec(), resolver.task_type(), resolver.task_id()));
    };
  };
  return {
      {"cluster", [=] { return json_of(spec()); }},
      {"jobs", [=] { return Json(spec().jobs()); }},
      {"task_type", [&] { return json_of(resolver.task_type()); }},
      {"task_id", [&] { return json_of(resolver.task_id()); }},
      {"rpc_layer", [&] { return json_of(resolver.rpc_layer()); }},
      {"master", [&] { return Json(resolver.master()); }},
      {"num_ps", [=] { return Json(spec().task_count("ps")); }},
      {"num_workers", [=] { return Json(spec().task_count("worker")); }},
      {"validate",
       [&] {
         validate_cluster_spec(resolver.cluster_spec(), resolver.task_type(), resolver.task_id());
         return Json(nullptr);
       }},
      {"is_chief", with_task(is_chief)},
      {"worker_count",
       [&] { return Json(worker_count(resolver.cluster_spec(), resolver.task_type())); }},
      {"id_in_cluster",
       [&] {
         return json_of(
             id_in_cluster(resolver.cluster_spec(), resolver.task_type(), resolver.task_id()));
       }},
      {"collective_leader", with_task(collective_leader)},
      {"coordination_leader", [=] { return Json(coordination_leader(spec())); }},
      {"parameter_server_strategy_check",
       [&] {
         verify_parameter_server_cluster(resolver);
         return Json(nullptr);
       }},
  };
}

// Whatever class the reference raises, TypeError and KeyError too, a wrong text is an
// InvalidArgument here.
void compare(const Answers& answers, const Json& out) {
  for (const auto& [question, recorded] : out.items()) {
    SCOPED_TRACE(question);
    auto answer = answers.find(question);
    if (answer == answers.end()) {
      ADD_FAILURE() << "no test knows the question";
    } else if (testing::refused(recorded)) {
      EXPECT_THROW(answer->second(), InvalidArgumentError);
    } else {
      const Json& want =
          recorded.is_object() && recorded.contains("ok") ? recorded.at("ok") : recorded;
      EXPECT_EQ(answer->second(), want);
    }
  }
}

// The environment without TF_CONFIG, and as it was afterwards.
class NoTfConfig {
 public:
  NoTfConfig() {
    if (const char* set = std::getenv("TF_CONFIG")) before_ = set;
    ::unsetenv("TF_CONFIG");
  }
  ~NoTfConfig() {
    if (before_) ::setenv("TF_CONFIG", before_->c_str(), 1);
  }
  NoTfConfig(const NoTfConfig&) = delete;
  NoTfConfig& operator=(const NoTfConfig&) = delete;

 private:
  std::optional<std::string> before_;
};

// A text, or null where the environment has none.
void reads_a_text(const Json& test) {
  const Json& in = test.at("in");
  const Json text = in.value("TF_CONFIG", Json());
  const TaskOverrides overrides = overrides_of(in.value("arguments", Json::object()));
  if (text.is_null()) {
    const NoTfConfig unset;
    compare(answers_of(TFConfigClusterResolver(overrides)), test.at("out"));
  } else {
    compare(answers_of(TFConfigClusterResolver(text.get<std::string>(), overrides)),
            test.at("out"));
  }
}

void answers_queries(const Json& test) {
  const std::string text = json_text({{"cluster", test.at("in").at("cluster")}});
  const ClusterSpec spec = TFConfigClusterResolver(text).cluster_spec();
  auto tasks = [&] {
    Json all = Json::array();  // the reference says None where a number is not in use
    for (const auto& address : spec.job_tasks("worker"))
      all.push_back(address.empty() ? Json(nullptr) : Json(address));
    return all;
  };
  Answers answers = {{"num_tasks", [&] { return Json(spec.num_tasks("worker")); }},
                     {"task_indices", [&] { return Json(spec.task_indices("worker")); }},
                     {"job_tasks", tasks},
                     {"absent_job", [&] { return Json(spec.num_tasks("chief")); }}};
  for (std::int64_t index = 0; index < 10; ++index)
    answers["task_address_" + std::to_string(index)] = [&spec, index] {
      return Json(spec.task_address("worker", index));
    };
  compare(answers, test.at("out"));
}

const testing::Kinds kTfConfigKinds = {{"config", reads_a_text},
                                       {"odd_config", reads_a_text},
                                       {"override", reads_a_text},
                                       {"cluster_spec", answers_queries}};

TEST(Vectors, TfConfig) { testing::run_cases("tf_config", kTfConfigKinds); }
TEST(Vectors, TfConfigOfFormsThatWereNotRecorded) {
  testing::run_more_cases("tf_config", kTfConfigKinds);
}

}  // namespace
}  // namespace cairn
