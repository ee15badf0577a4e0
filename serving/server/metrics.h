// Metrics: counts of what a server has answered, as Prometheus reads them.
//   Source  https://prometheus.io/docs/instrumenting/exposition_formats/, text format 0.0.4;
//           https://prometheus.io/docs/practices/naming/.
//   Thread  any.
//   Cost    answered(): a few additions, without a lock.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/clock.h"

namespace cairn::serving {

// How often a value was at most each of some bounds, and their sum.
class Histogram {
 public:
  // Ascending; values beyond the last one count as well.
  explicit Histogram(std::span<const double> bounds);
  void add(double value);
  // Lines of a family, with these labels in each: model="adult".
  void write(std::string& out, std::string_view family, std::string_view labels) const;

 private:
  std::span<const double> bounds_;
  std::vector<std::atomic<std::uint64_t>> counts_;  // of values between two bounds
  std::atomic<double> sum_{0};
};

// A gauge or a counter that is read when metrics are asked for.
struct Measured {
  std::string family;  // "cairn_serve_queue_examples"
  std::string labels;  // model="adult",version="3"; empty: none
  double value = 0;
};

class Metrics {
 public:
  // For the models of these names.
  explicit Metrics(const std::vector<std::string>& models);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // A request to a model was answered with this HTTP status, so long after it had been read.
  // `batch`: the examples that were computed together with its own; 0: it was not computed.
  void answered(const std::string& model, unsigned status, Duration took, std::int64_t examples,
                std::int64_t batch);
  // The whole page; `now` holds the present values of what is not counted here.
  std::string text(const std::vector<Measured>& now) const;

 private:
  struct OfModel;
  std::map<std::string, std::unique_ptr<OfModel>> models_;
};

// Resident memory of this process, in bytes.
double resident_bytes();

// `text` for the value of a label.
std::string label_text(std::string_view text);

}  // namespace cairn::serving
