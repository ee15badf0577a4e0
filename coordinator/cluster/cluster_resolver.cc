#include "coordinator/cluster/cluster_resolver.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "core/base/error.h"
#include "core/base/json.h"

namespace cairn {
namespace {

constexpr std::int64_t kTasksMax = 1 << 20;  // a job as a list has a place for each number

// The value under `key` in `holder`, which is called `place`. A list or a text holds nothing unless
// the key itself is in it: so the reference looks, and some launchers write an empty list for
// nothing.
std::optional<Json> value_of(const Json& holder, const std::string& place, const std::string& key) {
  if (holder.is_object()) {
    auto found = holder.find(key);
    return found == holder.end() ? std::nullopt : std::optional<Json>(*found);
  }
  bool holds_nothing =
      (holder.is_array() && std::find(holder.begin(), holder.end(), Json(key)) == holder.end()) ||
      (holder.is_string() && holder.get<std::string>().find(key) == std::string::npos);
  if (holds_nothing) return std::nullopt;
  throw InvalidArgumentError(
      str(place, " is ", json_text(holder), "; an object with \"", key, "\" is wanted"));
}

std::optional<Json> part(const std::string& text, const std::string& key) {
  return value_of(parse_json(text, "TF_CONFIG"), "TF_CONFIG", key);
}

std::optional<Json> task_part(const std::string& text, const std::string& key) {
  auto task = part(text, "task");
  return task ? value_of(*task, "TF_CONFIG: task", key) : std::nullopt;
}

// Python's str(): what stands there, as text.
std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) return "None";
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  return json_text(value);
}

// Digits with a sign, single underscores between them and blanks around: what Python's int() reads.
// Empty: it is not that.
std::string plain_digits(const std::string& text) {
  constexpr const char* kBlanks = " \t\n\r\v\f";
  auto begin = text.find_first_not_of(kBlanks);
  if (begin == std::string::npos) return {};
  std::string body = text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1), digits;
  bool negative = body[0] == '-';
  if (negative || body[0] == '+') body.erase(0, 1);
  for (std::size_t i = 0; i < body.size(); ++i) {
    bool digit = body[i] >= '0' && body[i] <= '9';
    bool joint = body[i] == '_' && i > 0 && body[i - 1] != '_' && i + 1 < body.size();
    if (!digit && !joint) return {};
    if (digit) digits += body[i];
  }
  if (digits.empty()) return {};
  return (negative ? "-" : "") + digits;
}

// Converts a value as Python's int() does: a truth value is 0 or 1, a fraction is cut off, and a
// text is read as digits. Numbers that do not fit 64 bits are refused rather than wrapped; 18
// digits always fit.
std::int64_t integer_of(const Json& value, const std::string& place) {
  auto refuse = [&]() -> std::int64_t {
    throw InvalidArgumentError(str(place, " is ", json_text(value), ", a number is wanted"));
  };
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX) return refuse();
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number_float()) {
    double number = std::trunc(value.get<double>());
    return std::fabs(number) < 9e18 ? static_cast<std::int64_t>(number) : refuse();
  }
  if (!value.is_string()) return refuse();
  std::string digits = plain_digits(value.get<std::string>());
  return digits.empty() || digits.size() > 18 ? refuse() : std::stoll(digits);
}

// The reference takes both forms of a job. In an object the keys are texts, as JSON has no others.
ClusterSpec::Tasks tasks_of(const Json& tasks, const std::string& place) {
  ClusterSpec::Tasks made;
  auto address = [&](const Json& task) {
    if (!task.is_string())
      throw InvalidArgumentError(
          str(place, " holds ", json_text(task), ", a \"host:port\" is wanted"));
    return task.get<std::string>();
  };
  if (tasks.is_array()) {
    for (const Json& task : tasks)
      made.emplace(static_cast<std::int64_t>(made.size()), address(task));
  } else if (tasks.is_object()) {
    for (const auto& [index, task] : tasks.items()) {
      std::int64_t number = integer_of(Json(index), place + "'s index");
      if (number < 0 || number >= kTasksMax)
        throw InvalidArgumentError(
            str(place, " has a task ", number, "; tasks are numbered from 0 to ", kTasksMax - 1));
      made[number] = address(task);
    }
  } else {
    throw InvalidArgumentError(
        str(place, " is ", json_text(tasks),
            "; a list of \"host:port\" or {\"index\": \"host:port\"} is wanted"));
  }
  return made;
}

std::string with_layer(const std::string& address, const std::optional<std::string>& layer) {
  return layer && !layer->empty() ? *layer + "://" + address : address;
}

}  // namespace

std::string SimpleClusterResolver::master(const TaskOverrides& asked) const {
  std::string address = asked.task_type && asked.task_id
                            ? spec_.task_address(*asked.task_type, *asked.task_id)
                            : options_.master;
  return with_layer(
      address, asked.rpc_layer && !asked.rpc_layer->empty() ? asked.rpc_layer : options_.rpc_layer);
}

// The environment is read at every call, as the reference does: a launcher or a test may set the
// variable after the resolver was made.
std::string TFConfigClusterResolver::text() const {
  if (text_) return *text_;
  const char* value = std::getenv("TF_CONFIG");
  return value == nullptr ? "{}" : value;
}

ClusterSpec TFConfigClusterResolver::cluster_spec() const {
  ClusterSpec spec;
  auto cluster = part(text(), "cluster");
  if (!cluster) return spec;
  if (!cluster->is_object())
    throw InvalidArgumentError(str("TF_CONFIG: cluster is ", cluster->dump(),
                                   "; an object of jobs with their addresses is wanted"));
  for (const auto& [job, tasks] : cluster->items())
    spec.set_job(job, tasks_of(tasks, "TF_CONFIG: cluster." + job));
  return spec;
}

std::optional<std::string> TFConfigClusterResolver::task_type() const {
  if (overrides_.task_type) return overrides_.task_type;
  auto type = task_part(text(), "type");
  return type ? std::optional(text_of(*type)) : std::nullopt;
}

std::optional<std::int64_t> TFConfigClusterResolver::task_id() const {
  if (overrides_.task_id) return overrides_.task_id;
  auto index = task_part(text(), "index");
  return index ? std::optional(integer_of(*index, "TF_CONFIG: task.index")) : std::nullopt;
}

std::optional<std::string> TFConfigClusterResolver::rpc_layer() const {
  if (overrides_.rpc_layer) return overrides_.rpc_layer;
  auto layer = part(text(), "rpc_layer");
  return layer && !layer->is_null() ? std::optional(text_of(*layer)) : std::nullopt;
}

std::string TFConfigClusterResolver::master(const TaskOverrides& asked) const {
  // In the order of the reference: a master that is named goes before all. A cluster of one task
  // has no other task to talk to, and the empty address means this process.
  if (auto session = part(text(), "session_master"); session && !session->is_null())
    return text_of(*session);
  const ClusterSpec spec = cluster_spec();
  const auto jobs = spec.jobs();
  if (jobs.empty() || (jobs.size() == 1 && spec.job_tasks(jobs[0]).size() == 1)) return "";
  auto type = asked.task_type ? asked.task_type : task_type();
  auto id = asked.task_id ? asked.task_id : task_id();
  auto layer = asked.rpc_layer ? asked.rpc_layer : rpc_layer();
  if (!type)
    throw InvalidArgumentError("master: TF_CONFIG names no task.type, and none was asked for");
  if (!id)
    throw InvalidArgumentError(
        str("master: TF_CONFIG names no task.index of \"", *type, "\", and none was asked for"));
  return with_layer(spec.task_address(*type, *id), layer);
}

}  // namespace cairn
