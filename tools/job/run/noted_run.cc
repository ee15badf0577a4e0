#include "tools/job/run/noted_run.h"

#include "core/base/error.h"

namespace cairn::tools {
namespace {

Json note_of(const ResumedRun& run, const char* name, const std::string& where) {
  const auto found = run.notes.find(name);
  return found == run.notes.end() ? Json() : parse_json(found->second, where);
}

}  // namespace

std::string NotedRun::job_text() const {
  return json_text({{"metadata", metadata},
                    {"began", began},
                    {"pipelines", pipelines},
                    {"checkpoints", checkpoints}});
}

// Where no job has noted itself, none has trained anything. If it was another program that did, its
// variables will differ from the job's.
NotedRun NotedRun::read(const ResumedRun& run, const std::string& folder) {
  NotedRun noted;
  noted.where = "the journal in " + folder;
  const Json job = note_of(run, kJob, noted.where);
  if (job.is_null()) return noted;
  noted.begun = true;
  try {
    noted.metadata = job.at("metadata");
    noted.began = job.at("began").get<std::int64_t>();
    noted.pipelines = job.at("pipelines").get<std::int64_t>();
    noted.checkpoints = job.at("checkpoints").get<std::string>();
  } catch (const Json::exception&) {
    throw FailedPreconditionError(
        str(noted.where, " is of another program than a job: give this one another folder"));
  }
  noted.watched = note_of(run, kWatched, noted.where);
  const Json end = note_of(run, kEnd, noted.where);
  if (end.is_string()) noted.end_checkpoint = end.get<std::string>();
  return noted;
}

}  // namespace cairn::tools
