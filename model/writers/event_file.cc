// Every value carries its metadata, plugin and data class, though the first of a tag would do: so
// do TensorFlow's own writers, and a reader that begins late understands it all the same. With the
// data class given, TensorBoard takes values as they are (its data_compat and dataclass_compat
// rewrite only those of older formats).
#include "model/writers/event_file.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/disk/disk.h"
#include "data/file/proto_message.h"
#include "data/file/tfrecord_writer.h"
#include "model/writers/graph_def.h"

namespace cairn {
namespace {

constexpr std::size_t kPendingBytes = std::size_t{1} << 20;
// Event's fields, SessionLog's status, SummaryMetadata's data classes, TensorProto's types
constexpr int kEventFileVersion = 3, kEventGraph = 4, kEventSummary = 5, kEventSessionLog = 7;
constexpr int kSessionStart = 1;
constexpr int kClassScalar = 1, kClassTensor = 2;
constexpr int kTypeFloat = 1, kTypeDouble = 2, kTypeString = 7;

std::string host_name() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0 || host[0] == 0) return "localhost";
  return host.data();
}

// The name begins with ten digits of the time, by which TensorBoard orders the files. Two files of
// one process and second differ in the last number.
std::unique_ptr<AppendedFile> new_file(const std::string& folder, std::int64_t seconds) {
  system_disk().make_folder(folder);
  for (int n = 0;; ++n) {
    std::string digits = std::to_string(seconds);
    digits.insert(0, 10 - std::min<std::size_t>(10, digits.size()), '0');
    const std::string path =
        str(folder, "/events.out.tfevents.", digits, ".", host_name(), ".", ::getpid(), ".", n);
    try {
      return system_disk().append(path, AppendedFile::Existing::kRefuse);
    } catch (const AlreadyExistsError&) {
    }
  }
}

struct Extent {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  bool empty() const { return low > high; }
};

Extent extent_of(std::span<const float> values) {
  Extent extent;
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    extent.low = std::min<double>(extent.low, value);
    extent.high = std::max<double>(extent.high, value);
  }
  return extent;
}

std::vector<double> counts_of(std::span<const float> values, const Extent& extent, int buckets) {
  std::vector<double> counts(static_cast<std::size_t>(buckets));
  const double per_value = buckets / (extent.high - extent.low);
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    const auto at = static_cast<std::size_t>((value - extent.low) * per_value);
    counts[std::min(at, counts.size() - 1)] += 1;  // the greatest belongs to the last
  }
  return counts;
}

// A tensor of float64 [buckets, 3]: left end, right end, count.
std::string histogram_tensor(const std::vector<double>& counts, const Extent& extent) {
  ProtoMessage content, shape;
  const double width = (extent.high - extent.low) / static_cast<double>(counts.size());
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const bool last = i + 1 == counts.size();
    content.fixed(extent.low + width * static_cast<double>(i))
        .fixed(last ? extent.high : extent.low + width * static_cast<double>(i + 1))
        .fixed(counts[i]);
  }
  shape.message(2, ProtoMessage().number(1, static_cast<std::int64_t>(counts.size())))
      .message(2, ProtoMessage().number(1, 3));
  return ProtoMessage().number(1, kTypeDouble).message(2, shape).bytes(4, content.view()).take();
}

}  // namespace

// A session's START, in TensorBoard's eyes: at the second one of a folder it drops the
// earlier events of that step and later ones. So the first file has one as well.
EventFile::EventFile(const std::string& folder, std::int64_t first_step, const Clock& clock)
    : clock_(clock), file_(new_file(folder, clock.wall_microseconds() / 1'000'000)) {
  add(0, kEventFileVersion, "brain.Event:2");
  add(first_step, kEventSessionLog, ProtoMessage().number(1, kSessionStart).view());
  flush();
}

EventFile::~EventFile() {
  try {
    flush();
  } catch (const Error&) {
  }
}

const std::string& EventFile::path() const { return file_->path(); }

void EventFile::add(std::int64_t step, int field, std::string_view what) {
  ProtoMessage event;
  event.float64(1, static_cast<double>(clock_.wall_microseconds()) * 1e-6);
  if (step != 0) event.number(2, step);
  pending_ += framed(event.bytes(field, what).view());
  if (pending_.size() > kPendingBytes) flush();
}

void EventFile::summary(std::string_view tag, std::string_view plugin, int data_class,
                        std::string_view tensor, std::int64_t step) {
  ProtoMessage metadata, value;
  metadata.message(1, ProtoMessage().bytes(1, plugin)).number(4, data_class);
  value.bytes(1, tag).bytes(8, tensor).message(9, metadata);
  add(step, kEventSummary, ProtoMessage().message(1, value).view());
}

void EventFile::scalar(std::string_view tag, double value, std::int64_t step) {
  ProtoMessage tensor, values;
  values.fixed(static_cast<float>(value));
  tensor.number(1, kTypeFloat).bytes(2, "").message(5, values);
  summary(tag, "scalars", kClassScalar, tensor.view(), step);
}

// Where all values are equal, the one interval is as wide as TensorBoard makes it, which draws
// nothing of width 0.
void EventFile::histogram(std::string_view tag, std::span<const float> values, std::int64_t step,
                          int buckets) {
  if (buckets < 1)
    throw InvalidArgumentError(
        str("the histogram ", tag, " is to have ", buckets, " buckets: ask for at least one"));
  Extent extent = extent_of(values);
  std::vector<double> counts;
  if (extent.empty()) {
    extent = {0, 0};
  } else if (extent.low == extent.high) {
    counts = {static_cast<double>(
        std::ranges::count_if(values, [](float value) { return std::isfinite(value); }))};
    extent = {extent.low - 0.5, extent.high + 0.5};
  } else {
    counts = counts_of(values, extent, buckets);
  }
  summary(tag, "histograms", kClassTensor, histogram_tensor(counts, extent), step);
}

void EventFile::text(std::string_view tag, std::string_view text, std::int64_t step) {
  ProtoMessage tensor;
  tensor.number(1, kTypeString).bytes(2, "").bytes(8, text);
  summary(tag, "text", kClassTensor, tensor.view(), step);
}

void EventFile::graph(const Graph& graph) { add(0, kEventGraph, graph_def(graph)); }

void EventFile::flush() {
  const std::string events = std::exchange(pending_, {});
  if (!events.empty()) file_->write(events);
}

EventFile& EventFiles::file(const std::string& name, std::int64_t first_step) {
  return files_.try_emplace(name, folder_ + "/" + name, first_step).first->second;
}

void EventFiles::flush() {
  for (auto& [name, file] : files_) file.flush();
}

}  // namespace cairn
