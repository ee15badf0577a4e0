// The journal's form of a JobBook.
#include "core/base/error.h"
#include "service/dispatcher/job_book.h"

namespace cairn::service {
namespace {

constexpr int kJournalFormat = 1;

Json json_of(const DataJob& job) {
  Json dealt = Json::array(), consumers = Json::array();
  for (const auto& [number, worker] : job.dealt)
    dealt.push_back({number, worker.address, worker.incarnation.number});
  for (const auto& [id, consumer] : job.consumers)
    consumers.push_back({id, consumer.handed, consumer.left});
  return {{"id", job.id},
          {"key", job.key},
          {"mode", name_of(job.mode)},
          {"dataset", job.dataset},
          {"plan", {static_cast<int>(job.plan.of), job.plan.size, job.plan.each, job.plan.passes}},
          {"group", job.group},
          {"next", job.next},
          {"done", job.done},
          {"elements", job.elements},
          {"dealt", dealt},
          {"again", job.again},
          {"consumers", consumers}};
}

SplitPlan plan_of(const Json& in) {
  SplitPlan plan;
  const int of = in.at(0).get<int>();
  plan.of = static_cast<Piece::Of>(of);
  plan.size = in.at(1).get<std::int64_t>();
  plan.each = in.at(2).get<std::int64_t>();
  plan.passes = in.at(3).get<std::int64_t>();
  if (of < 0 || of > static_cast<int>(Piece::Of::kShard) || plan.size < 0 || plan.each < 1)
    throw InvalidArgumentError("its \"plan\" is none");
  return plan;
}

DataJob job_of(const Json& in) {
  DataJob job;
  job.id = in.at("id").get<std::uint64_t>();
  job.key = in.at("key").get<std::string>();
  job.mode = parse_processing_mode(in.at("mode").get<std::string>());
  job.dataset = in.at("dataset").get<std::uint64_t>();
  job.plan = plan_of(in.at("plan"));
  job.group = in.value("group", std::uint32_t{0});
  job.next = in.at("next").get<std::uint64_t>();
  job.done = in.at("done").get<std::uint64_t>();
  job.elements = in.at("elements").get<std::uint64_t>();
  for (const Json& entry : in.at("dealt"))
    job.dealt[entry.at(0).get<std::uint64_t>()] = {entry.at(1).get<std::string>(),
                                                   entry.at(2).get<std::uint64_t>()};
  job.again = in.at("again").get<std::set<std::uint64_t>>();
  for (const Json& entry : in.at("consumers"))
    job.consumers[entry.at(0).get<std::uint64_t>()] = {entry.at(1).get<std::uint64_t>(),
                                                       entry.at(2).get<bool>()};
  return job;
}

}  // namespace

Json JobBook::json() const {
  Json jobs = Json::array();
  for (const auto& [id, job] : jobs_) jobs.push_back(json_of(job));
  return {
      {"format", kJournalFormat}, {"next_job", next_job_}, {"workers", listed_}, {"jobs", jobs}};
}

void JobBook::load(const Json& journal, TimePoint now) {
  try {
    if (journal.at("format").get<int>() != kJournalFormat)
      throw InvalidArgumentError("it has another format");
    next_job_ = journal.at("next_job").get<std::uint64_t>();
    for (const Json& in : journal.at("jobs")) {
      DataJob job = job_of(in);
      if (deals_by_list(job.mode) && journal.at("workers") != Json(listed_))
        throw FailedPreconditionError(
            str(job.name(),
                " was dealt out by another list of data workers: start the dispatcher "
                "with --workers as before, or remove the journal's folder"));
      job.seen = now;
      for (const auto& [number, worker] : job.dealt)
        seats_[worker.address] = {worker.incarnation, now};
      keys_[job.key] = job.id;
      jobs_[job.id] = std::move(job);
    }
  } catch (const Json::exception& error) {
    throw DataLossError(str("the dispatcher's journal is damaged: ", error.what(),
                            "; remove its folder, and begin the jobs anew"));
  } catch (const InvalidArgumentError& error) {
    throw DataLossError(str("the dispatcher's journal is damaged: ", error.what(),
                            "; remove its folder, and begin the jobs anew"));
  }
}

}  // namespace cairn::service
