#include "tools/job/spec/job_service.h"

#include <algorithm>
#include <cstdlib>

#include "core/base/error.h"
#include "rpc/net/network.h"
#include "service/consumer/distribute.h"
#include "tools/job/spec/job_format.h"
#include "tools/job/toml/known_name.h"
#include "tools/job/toml/toml_table.h"
#include "tools/launch/run_place.h"

namespace cairn::tools {
namespace {

using service::Compression;
using service::ProcessingMode;

constexpr std::size_t kNameBytesMax = 1024;  // as the dispatcher has it

template <typename Value>
using Names = std::vector<std::pair<std::string, Value>>;

// kHint is not among them: no key of a job puts a shard_hint() anywhere.
const Names<ProcessingMode>& modes() {
  static const Names<ProcessingMode> all = {{"dynamic", ProcessingMode::kDynamic},
                                            {"off", ProcessingMode::kOff},
                                            {"file", ProcessingMode::kFile},
                                            {"data", ProcessingMode::kData},
                                            {"file_or_data", ProcessingMode::kFileOrData}};
  return all;
}

const Names<Compression>& compressions() {
  static const Names<Compression> all = {
      {"auto", Compression::kAuto}, {"off", Compression::kOff}, {"zlib", Compression::kZlib}};
  return all;
}

template <typename Value>
Value value_of(const Names<Value>& names, const std::string& name) {
  return std::ranges::find(names, name, &std::pair<std::string, Value>::first)->second;
}

template <typename Value>
std::vector<std::string> keys_of(const Names<Value>& names) {
  std::vector<std::string> keys;
  for (const auto& [name, value] : names) keys.push_back(name);
  return keys;
}

void verify_address(const JobService& service, const PlaceOf& place) {
  if (service.address.empty()) return;
  try {
    rpc::Address::parse(service.address);
  } catch (const InvalidArgumentError& error) {
    throw InvalidArgumentError(str(place("data.service.address"), ": ", error.what()));
  }
}

}  // namespace

JobService read_service(TomlTable table) {
  JobService service{.given = true};
  table.read("address", service.address);
  table.read("mode", service.mode);
  table.read("job", service.job);
  table.read("compression", service.compression);
  table.read("cluster", service.cluster);
  table.refuse_unknown();
  return service;
}

void verify_service(const Job& job, const PlaceOf& place) {
  const JobService& service = job.data.service;
  if (!service.given) return;
  verify_known(place("data.service.mode"), service.mode, keys_of(modes()));
  verify_known(place("data.service.compression"), service.compression, keys_of(compressions()));
  verify_address(service, place);
  if (service.job.starts_with('#') || service.job.size() > kNameBytesMax)
    throw InvalidArgumentError(str(place("data.service.job"), " is \"", service.job,
                                   "\": a name of at most ", kNameBytesMax,
                                   " bytes that does not begin with \"#\" is wanted"));
  if (job.data.visitation == "exactly_once")
    throw InvalidArgumentError(
        str(place("data.visitation"),
            " is \"exactly_once\", which goes by positions in the data, and a data service keeps "
            "none: remove it, or [data.service]; data.service.mode = \"dynamic\" deals each "
            "example out once a pass, as long as nobody is lost"));
  if (job.strategy.kind == "multi_worker_mirrored")
    throw InvalidArgumentError(
        str(place("data.service"),
            " is not read under strategy.kind = \"multi_worker_mirrored\": its workers share each "
            "batch, and a data service gives each of them batches of its own; remove it, or train "
            "under parameter_server or hybrid"));
}

void find_service(Job& job, int data_workers) {
  JobService& service = job.data.service;
  if (!service.given) return;
  if (service.address.empty() && data_workers == 0) {
    const char* there = std::getenv("CAIRN_DATA_SERVICE");
    service.address = there == nullptr ? "" : there;
    if (service.address.empty())
      throw InvalidArgumentError(
          "data.service.address is not given: name the dispatcher, let `cairn train "
          "--data-workers N` start a service for the run, or run the job below `cairn up "
          "--data-workers N`, which sets CAIRN_DATA_SERVICE");
  }
  if (service.job.empty()) service.job = str(job.name, "-", random_hex(6));
}

Dataset through_service(const Job& job, const Dataset& batches) {
  const JobService& service = job.data.service;
  return service::distribute(batches, {.dispatcher = service.address,
                                       .job_name = service.job,
                                       .mode = value_of(modes(), service.mode),
                                       .compression = value_of(compressions(), service.compression),
                                       .cluster = service.cluster});
}

// Records of one file are dealt out in ranges.
std::vector<std::string> service_warnings(const Job& job, int data_workers) {
  const JobService& service = job.data.service;
  const std::size_t files = job.data.train.size();
  const auto wanted = static_cast<std::size_t>(std::max(2, data_workers));
  if (!service.given || data_workers == 1 || service.mode != "dynamic" || files >= wanted ||
      (job.data.form().form() == FeatureForm::kNumbers && files == 1))
    return {};
  return {str("warning: data.train is ", files, files == 1 ? " file" : " files",
              ", and data.service.mode = \"dynamic\" deals out whole files: ",
              data_workers > 1 ? str("the ", data_workers, " data workers read")
                               : std::string("several data workers read"),
              " several passes at once, and an epoch comes to some examples twice and to others "
              "not at all; cut the data into as many files as there are data workers, or more")};
}

}  // namespace cairn::tools
