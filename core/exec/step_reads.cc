#include "core/exec/step_reads.h"

#include <algorithm>
#include <cstring>

#include "core/graph/op_def.h"

namespace cairn {
namespace {

// Copies of known size are moves, not calls; these are the commonest rows.
template <std::size_t kBytes>
void copy_rows_of(const std::int32_t* places, std::int64_t n, const std::byte* from,
                  std::byte* to) {
  for (std::int64_t i = 0; i < n; ++i)
    std::memcpy(to + static_cast<std::size_t>(i) * kBytes,
                from + static_cast<std::size_t>(places[i]) * kBytes, kBytes);
}

void copy_rows(const std::int32_t* places, std::int64_t n, std::size_t bytes, const std::byte* from,
               std::byte* to) {
  switch (bytes) {
    case 4: return copy_rows_of<4>(places, n, from, to);
    case 32: return copy_rows_of<32>(places, n, from, to);
    case 64: return copy_rows_of<64>(places, n, from, to);
    default:
      for (std::int64_t i = 0; i < n; ++i)
        std::memcpy(to + static_cast<std::size_t>(i) * bytes,
                    from + static_cast<std::size_t>(places[i]) * bytes, bytes);
  }
}

}  // namespace

void add_ids(UniqueIds& ids, const TensorType& type, const std::byte* data) {
  std::int64_t n = type.shape.elements();
  if (type.dtype == DType::kInt32)
    ids.add(reinterpret_cast<const std::int32_t*>(data), n);
  else
    ids.add(reinterpret_cast<const std::int64_t*>(data), n);
}

void find_ids(UniqueIds& ids, const RunValues& values, std::span<const std::int32_t> nodes) {
  const GraphVariable& variable = values.variable_of(nodes.front());
  const std::int64_t bound = variable.type.shape[0], outside = ids.first_outside(bound);
  if (outside < 0) return ids.find(bound);
  std::int64_t at = outside;
  for (const std::int32_t node : nodes) {
    const std::int64_t own = values.bound().type(values.input(node, 0)).shape.elements();
    if (at < own)
      values.bound().fail(node, Code::kInvalidArgument,
                          str("variable \"", variable.name, "\": id ", ids.id(outside),
                              " at position ", at, " is outside [0, ", bound, ")"));
    at -= own;
  }
  CAIRN_CHECK(false, "an id of no node of \"", variable.name, "\"");
}

void StepReads::bring_ids(std::size_t wave) {
  for (const ReadGroup& group : values_.plan().waves[wave].reads) {
    const auto variable = static_cast<std::size_t>(group.variable);
    if (group.whole || (lends() && device_->reads.hold(variable) != nullptr)) continue;
    for (std::int32_t i : group.nodes) values_.bring(values_.input(i, 0));
  }
}

std::span<Read> StepReads::ask(std::size_t w) {
  BoundWave& wave = values_.bound().waves[w];
  Workspace::State& space = values_.space();
  space.asked.clear();
  space.asked_by.clear();
  // The previous run may have used a store that lends its variables.
  for (ReadHere& here : wave.here) here.served = false;
  for (std::size_t g = 0; g < wave.reads.size(); ++g) {
    const ReadAt read = values_.read_at(w, g);
    require_ids(read.group);
    if (lends() && device_->reads.serve(read)) continue;
    request(read);
    if (!lends()) continue;
    space.asked.push_back(read.read);
    space.asked_by.push_back(g);
  }
  if (!lends()) return wave.reads;
  device_->reads.enqueue(wave.lookups);
  return space.asked;
}

// Rows must not be asked for by ids that were computed from the value that failed the check.
void StepReads::require_ids(const ReadGroup& group) const {
  if (checks_.failed() &&
      std::ranges::any_of(group.nodes, [this](std::int32_t i) { return checks_.stops_ids_of(i); }))
    checks_.raise();
}

void StepReads::request(const ReadAt& read) {
  read.read.variable = values_.plan().bound[static_cast<std::size_t>(read.group.variable)];
  read.read.value = {};
  if (read.group.whole) return;
  read.ids.clear();
  for (std::int32_t i : read.group.nodes) {
    const std::int32_t ids = values_.input(i, 0);
    add_ids(read.ids, values_.bound().type(ids), values_.host_view(ids));
  }
  find_ids(read.ids, values_, read.group.nodes);
  read.read.ids = read.ids.tensor();
}

void StepReads::take_in(std::size_t w) {
  BoundWave& wave = values_.bound().waves[w];
  Workspace::State& space = values_.space();
  for (std::size_t k = 0; k < space.asked.size(); ++k)
    wave.reads[space.asked_by[k]] = std::move(space.asked[k]);
  for (std::size_t g = 0; g < wave.reads.size(); ++g) {
    const ReadAt read = values_.read_at(w, g);
    if (read.here.served) continue;
    verify(read);
    if (device_ != nullptr && device_->reads.deals(read.group))
      device_->reads.deal_out(read);
    else if (!read.group.whole)
      expand(read);
    else
      for (std::int32_t i : read.group.nodes)
        values_.give(values_.plan().value({i, 0}), read.read.value);
  }
  if (device_ != nullptr) device_->reads.enqueue(wave.dealt, DType::kInt32);
}

void StepReads::verify(const ReadAt& read) const {
  const GraphVariable& variable =
      values_.plan().graph.variables[static_cast<std::size_t>(read.group.variable)];
  const Tensor& value = read.read.value;
  TensorType want = variable.type;
  if (!read.group.whole) want.shape = want.shape.with_dim(0, read.read.ids.shape()[0]);
  CAIRN_CHECK(value.defined() && value.type() == want, "the store gave ",
              value.defined() ? value.type().to_string() : "nothing", " for variable ",
              variable.name, "; ", want.to_string(), " was asked for");
}

// Deals the distinct rows out to all reads that asked for them.
void StepReads::expand(const ReadAt& read) {
  const std::size_t bytes = row_bytes_of(
      values_.plan().graph.variables[static_cast<std::size_t>(read.group.variable)].type);
  const std::int32_t* places = read.ids.inverse().data();
  for (std::int32_t i : read.group.nodes) {
    const std::int64_t n = values_.bound().type(values_.input(i, 0)).shape.elements();
    std::byte* const wanted = values_.writable(values_.plan().value({i, 0}));
    const std::size_t all = static_cast<std::size_t>(n) * bytes;
    std::byte* const to = values_.on_host() ? wanted : values_.staging(all);
    copy_rows(places, n, bytes, read.read.value.raw(), to);
    if (!values_.on_host()) values_.device().copy(Device::Direction::kIn, wanted, to, all);
    places += n;
  }
}

}  // namespace cairn
