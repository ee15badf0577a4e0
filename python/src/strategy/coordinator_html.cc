#include "coordinator_html.h"

#include <utility>

#include "core/base/json.h"
#include "html.h"

namespace cairn::python {
namespace {

// "2 shards", "4 lanes"; empty if the task has not yet said so.
std::string threads_text(const Json& task) {
  const Json details = task.value("details", Json::object());
  for (const auto& [list, one] : {std::pair{"shards", "shard"}, std::pair{"lanes", "lane"}})
    if (details.is_object() && details.contains(list))
      return str(details[list].size(), " ", details[list].size() == 1 ? one : list);
  return "";
}

}  // namespace

std::string coordinator_html(const ClusterCoordinator& coordinator) {
  const Json status = parse_json(coordinator.status_json(), "the status");
  HtmlRows rows;
  for (const char* kind : {"ps", "workers"})
    for (const Json& task : status.value(kind, Json::array()))
      rows.push_back({task.value("task", ""), task.value("address", ""),
                      task.value("ready", false) ? "up" : task.value("trouble", "away"),
                      threads_text(task)});
  // The status is up to 0.2 s old; these are of now.
  const auto stats = coordinator.stats();
  const auto counts = coordinator.counts();
  std::string text = html_table({"task", "address", "state", "threads"}, rows,
                                str("cairn.ClusterCoordinator, step ", stats.global_step));
  text += str("<p>Closures: ", counts.queued, " queued, ", counts.inflight, " running, ",
              counts.finished, " finished, ", counts.retried,
              " run again. Updates lost: ", stats.lost_updates, ".</p>");
  if (!stats.last_checkpoint.empty())
    text += str("<p>Newest checkpoint: ", html_text(stats.last_checkpoint), "</p>");
  return text;
}

}  // namespace cairn::python
