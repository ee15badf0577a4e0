#include "worker/rows/routing.h"

#include <algorithm>

namespace cairn::worker {
namespace {

// Gathers the segments of a wave by shard, starting another request where the present one is full.
class Cutter {
 public:
  explicit Cutter(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  // Rows join the shard's latest request while there is room, so that a wave of many tables is one
  // message per shard; what is larger than a request goes on in the next ones.
  void add(ShardId shard, Segment segment) {
    const std::size_t row_bytes = segment.wire_row_bytes;
    do {
      ShardRequest& request =
          open_request(shard, segment.wire_bytes(), segment.rows > 0 ? row_bytes : 0);
      Segment head = segment;
      const auto room =
          static_cast<std::int64_t>((bytes_max_ - std::min(bytes_max_, request.value_bytes)) /
                                    std::max<std::size_t>(row_bytes, 1));
      head.rows = std::min(segment.rows, std::max<std::int64_t>(room, 1));
      if (head.rows < segment.rows) head.whole = segment.whole = false;
      request.value_bytes += head.wire_bytes();
      request.ids += head.listed();
      request.segments.push_back(head);
      segment.first += head.rows;
      segment.rows -= head.rows;
      if (segment.ids != nullptr) segment.ids += head.rows;
    } while (segment.rows > 0);
  }

  // Each slice is a request of its own, and its number depends on nothing but the part's rows: a
  // closure that runs again numbers alike, which is how the shard knows what it has applied.
  void add_in_slices(ShardId shard, Segment segment, std::int64_t rows_per_slice) {
    if (shard >= slices_.size()) slices_.resize(shard + 1);
    segment.whole = false;
    for (std::int64_t rest = segment.rows; rest > 0; rest -= segment.rows) {
      segment.rows = std::min(rest, rows_per_slice);
      requests_.push_back(
          {shard, {segment}, segment.wire_bytes(), segment.listed(), ++slices_[shard]});
      segment.first += segment.rows;
    }
  }

  std::vector<ShardRequest> take() {
    // Stable, because a shard applies updates of one variable in the order of the wave.
    std::stable_sort(requests_.begin(), requests_.end(),
                     [](const auto& a, const auto& b) { return a.shard < b.shard; });
    return std::move(requests_);
  }

 private:
  // A segment is cut only if it is too large for a request of its own: a part cut no longer travels
  // whole, but with ids.
  ShardRequest& open_request(ShardId shard, std::size_t segment_bytes, std::size_t row_bytes) {
    if (shard >= latest_.size()) latest_.resize(shard + 1, kNone);
    std::size_t& latest = latest_[shard];
    const std::size_t wanted = segment_bytes <= bytes_max_ ? segment_bytes : row_bytes;
    if (latest == kNone || (requests_[latest].value_bytes > 0 &&
                            requests_[latest].value_bytes + wanted > bytes_max_)) {
      latest = requests_.size();
      requests_.push_back({shard, {}, 0, 0});
    }
    return requests_[latest];
  }

  static constexpr std::size_t kNone = ~std::size_t{0};
  std::size_t bytes_max_;
  std::vector<ShardRequest> requests_;
  std::vector<std::size_t> latest_;    // by shard: the request that may still grow
  std::vector<std::uint32_t> slices_;  // by shard: so far
};

// The ids as a range, checked. Ascending order is the caller's promise, so that the ends tell.
std::span<const std::int64_t> checked_ids(const VariableSpec& spec, const Tensor& ids) {
  if (ids.dtype() != DType::kInt64 || ids.shape().rank() != 1)
    throw InvalidArgumentError(str("row ids of variable \"", spec.name,
                                   "\" must be int64 of rank 1, got ", ids.type().to_string()));
  const auto values = ids.values<std::int64_t>();
  if (values.empty()) return values;
  for (std::int64_t id : {values.front(), values.back()})
    if (id < 0 || id >= spec.rows())
      throw InvalidArgumentError(str("row id ", id, " is outside variable \"", spec.name,
                                     "\", which has rows 0 to ", spec.rows() - 1));
  return values;
}

// Whether `value` is of these rows; made to be asked for every table of every step, so it builds no
// shape.
bool fits(const VariableSpec& spec, const Tensor& ids, const Tensor& value) {
  const Shape &wanted = spec.shape, &shape = value.shape();
  const int rank = ids.defined() ? std::max(wanted.rank(), 1) : wanted.rank();
  if (value.dtype() != spec.dtype || shape.rank() != rank) return false;
  for (int axis = 0; axis < rank; ++axis)
    if (shape[axis] != (axis == 0 && ids.defined() ? ids.shape().elements() : wanted[axis]))
      return false;
  return true;
}

enum class EmptyParts : std::uint8_t { kLeaveOut, kInclude };

// `all` is the segment of all rows. A part of more than `rows_per_slice` rows is cut in slices; 0:
// none is.
void cut(Cutter& out, const VariableLayout& variable, const Segment& all, const Tensor& ids,
         EmptyParts empty, std::int64_t rows_per_slice) {
  std::span<const std::int64_t> rest;
  if (ids.defined()) rest = checked_ids(*variable.spec, ids);
  std::int64_t done = 0;
  for (std::uint32_t index = 0; index < variable.parts.size(); ++index) {
    const RowRange rows = variable.parts[index].rows;
    Segment segment = all;
    segment.part = index;
    segment.whole = !ids.defined();
    segment.first = done;
    segment.rows = rows.size();
    segment.begin = rows.begin;
    if (ids.defined()) {
      // Ids ascend, so those of a part stand together, and one search per part finds them.
      const auto end = std::lower_bound(rest.begin(), rest.end(), rows.end);
      segment.rows = end - rest.begin();
      segment.ids = rest.data();
      rest = rest.subspan(static_cast<std::size_t>(segment.rows));
    }
    if (rows_per_slice > 0 && segment.rows > rows_per_slice)
      out.add_in_slices(variable.parts[index].shard, segment, rows_per_slice);
    else if (segment.rows > 0 || empty == EmptyParts::kInclude)
      out.add(variable.parts[index].shard, segment);
    done += segment.rows;
  }
}

}  // namespace

Routing::Routing(std::shared_ptr<const Layout> layout, RowEncoding encoding,
                 std::size_t piece_bytes_max)
    : layout_(std::move(layout)), encoding_(encoding), piece_bytes_max_(piece_bytes_max) {}

const VariableLayout& Routing::variable(VariableId id) const {
  if (id >= layout_->variables.size())
    throw NotFoundError(str("no variable ", id, " in layout version ", layout_->version,
                            ", which has ", layout_->variables.size()));
  return layout_->variables[id];
}

const ShardLayout& Routing::shard(ShardId shard) const {
  if (shard < layout_->shards.size()) return layout_->shards[shard];
  throw NotFoundError(str("no ps serves shard ", shard, " in layout version ", layout_->version));
}

Segment Routing::rows_of(std::uint32_t item, VariableId id) const {
  Segment all;
  all.item = item;
  all.variable = id;
  all.spec = variable(id).spec.get();
  all.encoded = encoded(all.spec->dtype);
  const auto dim = static_cast<std::size_t>(all.spec->dim());
  all.row_bytes = dim * dtype_bytes(all.spec->dtype);
  all.wire_row_bytes = all.encoded ? dim * sizeof(std::uint16_t) : all.row_bytes;
  return all;
}

std::vector<ShardRequest> Routing::reads(std::span<const Read> wave) const {
  Cutter cutter(piece_bytes_max_);
  for (std::uint32_t item = 0; item < wave.size(); ++item) {
    const VariableLayout& read = variable(wave[item].variable);
    if (!wave[item].ids.defined()) verify_whole_read(*read.spec);
    cut(cutter, read, rows_of(item, wave[item].variable), wave[item].ids, EmptyParts::kLeaveOut, 0);
  }
  return cutter.take();
}

std::vector<ShardRequest> Routing::updates(std::span<const Update> wave) const {
  Cutter cutter(piece_bytes_max_);
  for (std::uint32_t item = 0; item < wave.size(); ++item) {
    const Update& update = wave[item];
    const VariableLayout& updated = variable(update.variable);
    if (!fits(*updated.spec, update.ids, update.value)) {
      const TensorType wanted{updated.spec->dtype, value_shape(*updated.spec, update.ids)};
      throw InvalidArgumentError(str("an update of variable \"", updated.spec->name, "\" wants ",
                                     wanted.to_string(), ", got ",
                                     update.value.type().to_string()));
    }
    const auto empty =
        reaches_every_part(update.rule.kind) ? EmptyParts::kInclude : EmptyParts::kLeaveOut;
    cut(cutter, updated, rows_of(item, update.variable), update.ids, empty,
        rows_per_slice(wave, update));
  }
  return cutter.take();
}

// Updates of one variable are applied in their order, which slices do not keep with what else there
// is.
std::int64_t Routing::rows_per_slice(std::span<const Update> wave, const Update& update) const {
  const VariableSpec& spec = *variable(update.variable).spec;
  const std::size_t row = static_cast<std::size_t>(spec.dim()) * dtype_bytes(spec.dtype);
  if (update.ids.defined() || update.value.bytes() <= piece_bytes_max_ ||
      reaches_every_part(update.rule.kind))
    return 0;
  const auto same = [&](const Update& other) { return other.variable == update.variable; };
  if (std::count_if(wave.begin(), wave.end(), same) > 1) return 0;
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(piece_bytes_max_ / row));
}

}  // namespace cairn::worker
