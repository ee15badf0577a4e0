#include "serving/server/metrics.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <utility>

#include "core/base/error.h"

namespace cairn::serving {
namespace {

constexpr double kSeconds[] = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                               0.05,   0.1,     0.25,   0.5,   1,      2.5,   5,    10};
constexpr double kExamples[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096, 16384};

// Every status that answers may have, so that a request adds to a cell and looks nothing up.
constexpr unsigned kStatuses[] = {200, 400, 401, 403, 404, 409, 412, 429, 500, 501, 503, 504};

struct Family {
  std::string_view name, type, help;
};
constexpr Family kFamilies[] = {
    {"cairn_serve_queue_examples", "gauge", "Examples that wait to be computed."},
    {"cairn_serve_ready", "gauge", "1 while every model has a version that serves."},
    {"cairn_serve_connections", "gauge", "Open connections."},
    {"cairn_serve_connections_accepted_total", "counter", "Connections that were accepted."},
    {"cairn_serve_connections_cut_off_total", "counter",
     "Connections that were closed because no byte came or went for too long."},
    {"cairn_serve_unread_requests_total", "counter",
     "Requests that were refused before they reached a model: too large, without a length, no "
     "HTTP."},
    {"cairn_serve_model_version", "gauge", "The version that answers requests which name none."},
    {"cairn_serve_model_step", "gauge", "The newest training step that its weights may contain."},
    {"cairn_serve_model_bytes", "gauge", "Bytes of a version's weights."},
    {"cairn_serve_model_shared_bytes", "gauge",
     "Bytes of these that the version has in common with the one before."},
    {"cairn_serve_refused_versions", "gauge", "Versions that were found and cannot be served."},
    {"cairn_serve_followed_rows_total", "counter",
     "Rows that the run which a model follows has changed, as they came."},
    {"cairn_serve_row_age_seconds", "gauge",
     "Every change of the followed run that is older is in the rows; absent before all have come."},
    {"cairn_serve_ps_away", "gauge", "Parameter servers of the followed run that do not answer."},
    {"cairn_serve_unknown_ids_total", "counter",
     "Ids that a hashed table had no row for, and that read as initial values."},
    {"cairn_serve_memory_limit_bytes", "gauge", "The limit of --memory-limit; 0: there is none."},
    {"cairn_serve_cache_bytes", "gauge", "Memory of the caches for rows that are read from disk."},
    {"cairn_serve_cache_hits_total", "counter", "Rows of such tables that a cache had."},
    {"cairn_serve_cache_misses_total", "counter", "Rows of such tables that were read from disk."},
    {"cairn_serve_stale_rows_total", "counter",
     "Rows that did not come from the ps in time, and counted as what they were."},
    {"cairn_serve_damaged_blocks_total", "counter",
     "Blocks of such tables that were found damaged, or could not be read."},
    {"process_resident_memory_bytes", "gauge", "Resident memory size in bytes."},
};

std::string number(double value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof(text), value);
  return {text, end};
}

void head(std::string& out, std::string_view name, std::string_view type, std::string_view help) {
  out += str("# HELP ", name, ' ', help, "\n# TYPE ", name, ' ', type, '\n');
}

void line(std::string& out, std::string_view name, std::string_view labels, double value) {
  out += name;
  if (!labels.empty()) out += str('{', labels, '}');
  out += ' ';
  out += number(value);
  out += '\n';
}

}  // namespace

Histogram::Histogram(std::span<const double> bounds)
    : bounds_(bounds), counts_(bounds.size() + 1) {}

void Histogram::add(double value) {
  const auto at = std::ranges::lower_bound(bounds_, value) - bounds_.begin();
  counts_[static_cast<std::size_t>(at)].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

void Histogram::write(std::string& out, std::string_view family, std::string_view labels) const {
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    below += counts_[i].load(std::memory_order_relaxed);
    line(out, str(family, "_bucket"),
         str(labels, ",le=\"", i < bounds_.size() ? number(bounds_[i]) : "+Inf", '"'),
         static_cast<double>(below));
  }
  line(out, str(family, "_sum"), labels, sum_.load(std::memory_order_relaxed));
  line(out, str(family, "_count"), labels, static_cast<double>(below));
}

struct Metrics::OfModel {
  std::array<std::atomic<std::uint64_t>, std::size(kStatuses)> answers{};
  std::atomic<std::uint64_t> examples{0};
  Histogram seconds{kSeconds}, batch{kExamples};
};

Metrics::Metrics(const std::vector<std::string>& models) {
  for (const std::string& name : models) models_[name] = std::make_unique<OfModel>();
}
Metrics::~Metrics() = default;

void Metrics::answered(const std::string& model, unsigned status, Duration took,
                       std::int64_t examples, std::int64_t batch) {
  const auto found = models_.find(model);
  if (found == models_.end()) return;  // a request for a model that there is not
  OfModel& of = *found->second;
  const auto at = std::ranges::find(kStatuses, status);
  const std::size_t cell =
      at == std::end(kStatuses)
          ? static_cast<std::size_t>(std::ranges::find(kStatuses, 500u) - std::begin(kStatuses))
          : static_cast<std::size_t>(at - std::begin(kStatuses));
  of.answers[cell].fetch_add(1, std::memory_order_relaxed);
  of.seconds.add(std::chrono::duration<double>(took).count());
  if (batch == 0) return;
  of.examples.fetch_add(static_cast<std::uint64_t>(examples), std::memory_order_relaxed);
  of.batch.add(static_cast<double>(batch));
}

std::string Metrics::text(const std::vector<Measured>& now) const {
  std::string out;
  head(out, "cairn_serve_requests_total", "counter",
       "Requests that were answered, by HTTP status.");
  for (const auto& [name, of] : models_)
    for (std::size_t i = 0; i < std::size(kStatuses); ++i)
      if (const std::uint64_t count = of->answers[i].load(std::memory_order_relaxed);
          count > 0 || kStatuses[i] == 200)
        line(out, "cairn_serve_requests_total",
             str("model=\"", label_text(name), "\",code=\"", kStatuses[i], '"'),
             static_cast<double>(count));
  head(out, "cairn_serve_examples_total", "counter", "Examples that were computed.");
  for (const auto& [name, of] : models_)
    line(out, "cairn_serve_examples_total", str("model=\"", label_text(name), '"'),
         static_cast<double>(of->examples.load(std::memory_order_relaxed)));
  head(out, "cairn_serve_request_duration_seconds", "histogram",
       "From a request that was read to its answer.");
  for (const auto& [name, of] : models_)
    of->seconds.write(out, "cairn_serve_request_duration_seconds",
                      str("model=\"", label_text(name), '"'));
  head(out, "cairn_serve_batch_examples", "histogram",
       "Examples that a request was computed together with, its own among them.");
  for (const auto& [name, of] : models_)
    of->batch.write(out, "cairn_serve_batch_examples", str("model=\"", label_text(name), '"'));
  for (const Family& family : kFamilies) {
    head(out, family.name, family.type, family.help);
    for (const Measured& each : now)
      if (each.family == family.name) line(out, each.family, each.labels, each.value);
  }
  return out;
}

double resident_bytes() {
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  unsigned long size = 0, resident = 0;
  const int read = std::fscanf(file, "%lu %lu", &size, &resident);
  std::fclose(file);
  return read == 2 ? static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE))
                   : 0;
}

std::string label_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n')
      out += "\\n";
    else if (c == '"' || c == '\\')
      out += {'\\', c};
    else
      out += c;
  }
  return out;
}

}  // namespace cairn::serving
