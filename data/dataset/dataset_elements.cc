// The calls of Dataset that look at elements, cut them apart and put them together.
#include "core/graph/graph.h"
#include "core/graph/ops.h"
#include "data/dataset/dataset_calls.h"
#include "data/dataset/map_origins.h"

namespace cairn {
namespace {

constexpr std::int64_t kWindowSpanMax = 1 << 20;

bool is_splits(const ElementSpec& spec, const ColumnSpec& column) {
  if (!column.name.ends_with(kRowSplits)) return false;
  const std::string values =
      column.name.substr(0, column.name.size() - std::string_view(kRowSplits).size());
  for (const ColumnSpec& each : spec.columns)
    if (each.name == values) return true;
  return false;
}
bool is_ragged(const ElementSpec& spec, const ColumnSpec& column) {
  for (const ColumnSpec& each : spec.columns)
    if (each.name == column.name + kRowSplits) return true;
  return false;
}

}  // namespace

std::vector<std::byte> trace_predicate(const ElementSpec& input,
                                       const std::function<Array(const Batch&)>& body) {
  Function::Body traced = [&](const std::vector<TraceArgument>& arguments) -> Outputs {
    const Batch element = std::get<Iterator>(arguments[0]).get_next();
    return {{"", body(element)}};
  };
  return serialize_with_origins(trace(traced, {input}).graph);
}

Dataset Dataset::filter_batch(const std::function<Array(const Batch&)>& body) const {
  return filter_graph(trace_predicate(input_of(*this, "filter").element, body));
}
Dataset Dataset::take_while_batch(const std::function<Array(const Batch&)>& body) const {
  return take_while_graph(trace_predicate(input_of(*this, "take_while").element, body));
}
Dataset Dataset::filter_graph(std::vector<std::byte> graph) const {
  check_predicate(input_of(*this, "filter").element, graph, "filter");
  return same_elements(*this, "filter", FilterSpec{std::move(graph)});
}
Dataset Dataset::take_while_graph(std::vector<std::byte> graph) const {
  check_predicate(input_of(*this, "take_while").element, graph, "take_while");
  return same_elements(*this, "take_while", TakeWhileSpec{std::move(graph)});
}

// A row of a ragged column is its values, and splits of its own.
ElementSpec unbatch_element(const ElementSpec& input) {
  ElementSpec element = input;
  for (ColumnSpec& column : element.columns) {
    if (is_ragged(input, column)) continue;
    if (is_splits(input, column)) {
      column.type.shape = {2};
      continue;
    }
    if (column.type.shape.rank() == 0)
      throw InvalidArgumentError(
          str("unbatch: column \"", column.name, "\" is one value per batch, and has no rows"));
    column.type.shape = column.type.shape.without_front();
  }
  return element;
}

Dataset Dataset::unbatch() const {
  const StageSpec& below = input_of(*this, "unbatch");
  if (!below.batched())
    throw InvalidArgumentError("unbatch(): the elements are single examples already");
  return over(*this, UnbatchSpec{}, unbatch_element(below.element), below.batches - 1);
}

ElementSpec padded_batch_element(const ElementSpec& input, const PaddedBatchSpec& spec) {
  ElementSpec element;
  element.label = input.label;
  const std::int64_t rows = spec.drop_remainder ? spec.n : Shape::kUnknown;
  for (ColumnSpec column : input.columns) {
    if (is_splits(input, column)) continue;
    column.type.shape = column.type.shape.with_front(rows);
    element.columns.push_back(std::move(column));
  }
  return element;
}

Dataset Dataset::padded_batch(std::int64_t n, BatchOptions options) const {
  check_at_least("padded_batch: n", n, 1);
  check_batch_size("padded_batch", n);
  const StageSpec& below = input_of(*this, "padded_batch");
  if (below.batched())
    throw InvalidArgumentError("padded_batch(): the elements are batches already");
  const PaddedBatchSpec spec{n, options.drop_remainder};
  return over(*this, spec, padded_batch_element(below.element, spec), 1);
}

Dataset Dataset::window(std::int64_t size, WindowOptions options) const {
  check_at_least("window: size", size, 1);
  check_at_least("window: shift (0: as the size)", options.shift, 0);
  check_at_least("window: stride", options.stride, 1);
  if (size > kWindowSpanMax || options.stride > kWindowSpanMax / size)
    throw InvalidArgumentError(str("window: size * stride is ", size, " * ", options.stride,
                                   ", at most ", kWindowSpanMax, " is possible"));
  const StageSpec& below = input_of(*this, "window");
  check_batchable(below, "window");
  const WindowSpec spec{size, options.shift == 0 ? size : options.shift, options.stride,
                        options.drop_remainder};
  return over(*this, spec, batch_element(below.element, {size, options.drop_remainder}),
              below.batches + 1);
}

}  // namespace cairn
