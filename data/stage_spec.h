// The description behind a Dataset: a chain of stages, each with its own few facts. Immutable once
// a Dataset holds it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/graph/function.h"
#include "core/tensor/element.h"
#include "data/feature_column.h"
#include "data/schema.h"

namespace cairn {

struct CsvSpec {
  std::vector<std::string> paths;
  CsvSchema schema;
  CsvOptions options;
};
struct RecordsSpec {
  std::vector<std::string> paths;
  RecordSchema schema;
};
struct RangeSpec {
  std::int64_t n = 0;
};
struct TensorsSpec {
  std::vector<std::pair<std::string, Tensor>> columns;
  std::string label;
};
struct FeaturesSpec {
  std::vector<FeatureColumn> columns;
};
struct MapSpec {
  std::vector<std::byte> graph;  // serialize(Graph): one iterator argument, one element taken
};
struct ShuffleSpec {
  std::int64_t buffer_size = 1;
  std::uint64_t seed = 0;
  bool reshuffle = true;
  // the input pipeline's number, which tells its order from those of the others
  std::uint64_t pipeline = 0;
};
struct BatchSpec {
  std::int64_t n = 1;
  bool drop_remainder = false;
};
struct RepeatSpec {
  std::int64_t count = -1;
};
struct TakeSpec {
  std::int64_t count = 0;
};
struct SkipSpec {
  std::int64_t count = 0;
};
struct ShardSpec {
  std::int64_t num = 1, index = 0;
};
struct PrefetchSpec {
  std::int64_t n = 1;
};

struct InterleaveSpec {
  std::int64_t cycle_length = 1, block_length = 1;
};
struct CacheSpec {
  std::int64_t bytes_max = 1;
  std::string file;  // empty: in memory
};

using StageKind = std::variant<CsvSpec, RecordsSpec, RangeSpec, TensorsSpec, FeaturesSpec, MapSpec,
                               ShuffleSpec, BatchSpec, RepeatSpec, TakeSpec, SkipSpec, ShardSpec,
                               PrefetchSpec, InterleaveSpec, CacheSpec>;

struct StageSpec {
  StageKind kind;
  std::shared_ptr<const StageSpec> input;  // nullptr: a source
  ElementSpec element;                     // what it yields
  bool batched = false;
  std::size_t depth = 1;  // stages from the source to this one
};

// ---- Sources that read files ----
const std::vector<std::string>& paths_of(const StageSpec& source);
// The same source over one of its files.
std::shared_ptr<StageSpec> source_of_file(const StageSpec& source, std::size_t file);

// ---- The element that a stage yields, and the checks that go with it. InvalidArgument: it does
// not fit. ----
ElementSpec csv_element(const CsvSchema& schema);
ElementSpec records_element(const RecordSchema& schema);
ElementSpec tensors_element(const TensorsSpec& spec);
ElementSpec features_element(const ElementSpec& input, const std::vector<FeatureColumn>& columns);
ElementSpec batch_element(const ElementSpec& input, const BatchSpec& spec);
ElementSpec map_element(const ElementSpec& input, const MapSpec& spec);
void check_feature(const FeatureColumn& feature);
std::int64_t record_bytes(const RecordSchema& schema);
// `body` as MapSpec::graph; the label of `input` is passed on unless an output has its name.
std::vector<std::byte> trace_map(const ElementSpec& input,
                                 const std::function<Outputs(const Batch&)>& body);

// what a ragged column's name gains for its second half
inline constexpr const char* kRowSplits = "/row_splits";

}  // namespace cairn
