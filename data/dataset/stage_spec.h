// The description behind a Dataset: a chain of stages, each with its own few facts. Immutable once
// a Dataset holds it, so chains share their beginnings.
//
// A kind of stage has five places: its struct here, its call in data/dataset/dataset.cc, its
// element in data/dataset/element_specs.cc, its form in data/stage/pipeline_wire.cc, and the stage
// itself, which data/stage/open.cc opens. Facts mean what the call of Dataset says. A format of
// files is no kind of stage: all of it is in data/format/.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/graph/function.h"
#include "core/tensor/element.h"
#include "data/dataset/element_generator.h"
#include "data/dataset/schema.h"
#include "data/dataset/service_source.h"
#include "data/feature/feature_column.h"

namespace cairn {

// Sources.
//
// Files of a format, which knows what becomes of them (data/dataset/file_source.h).
class FileSource;
using FileSourcePtr = std::shared_ptr<const FileSource>;
struct FilesSpec {
  FileSourcePtr source;
};
// 0 .. n - 1.
struct RangeSpec {
  std::int64_t n = 0;
};
// The tensors travel within the description. `digests`: an int64 tensor for each column, which
// stands for its values in fingerprints. They are made when the first is asked for, and shared by
// copies, so that large data is hashed once and not whenever the dataset is opened.
struct TensorsSpec {
  std::vector<std::pair<std::string, Tensor>> columns;
  std::string label;
  struct Digests {
    std::once_flag made;
    std::vector<Tensor> values;
  };
  std::shared_ptr<Digests> digests = std::make_shared<Digests>();
};
// The digests of its columns: type, shape, and a checksum of the elements.
//   Thread  any.
const std::vector<Tensor>& digests_of(const TensorsSpec& spec);
// Code of this program. `columns` is the element as text, by which fingerprints tell two apart.
struct GeneratorSpec {
  std::string columns;
  std::shared_ptr<const std::function<ElementGenerator()>> begin;
};
struct StageSpec;
// A dataset that a data service reads, and hands out element by element.
struct ServiceSpec {
  std::shared_ptr<const StageSpec> dataset;
  ServiceSource source;
  OpenElements open;  // of the program that made the description; it does not travel with it
};
// Stages over examples.
struct FeaturesSpec {
  std::vector<FeatureColumn> columns;
};
// A function of an element.
struct MapSpec {
  std::vector<std::byte> graph;  // serialize(Graph): one iterator argument, one element taken
  std::int64_t calls = 1;        // that run at once; kAutotune: as many as there are processors
};
// Stages over any elements; their fields are the arguments of the calls of Dataset.
struct ShuffleSpec {
  std::int64_t buffer_size = 1;
  std::uint64_t seed = 0;
  bool reshuffle = true;
  // The input pipeline's number, which gives it an order of its own; 0 changes nothing.
  std::uint64_t pipeline = 0;
};
// n examples per batch; the last one may have fewer, unless it is dropped.
struct BatchSpec {
  std::int64_t n = 1;
  bool drop_remainder = false;
};
// -1: without end.
struct RepeatSpec {
  std::int64_t count = -1;
};
// The first elements, or all but the first.
struct TakeSpec {
  std::int64_t count = 0;
};
struct SkipSpec {
  std::int64_t count = 0;
};
// Every num-th element: index, index + num, index + 2 num, and so on. num 0: a hint, which is to be
// replaced before the dataset is read.
struct ShardSpec {
  std::int64_t num = 1, index = 0;
  bool is_hint() const { return num == 0; }
};
// n: elements read ahead at most; kAutotune: as many as prove to be wanted.
struct PrefetchSpec {
  std::int64_t n = 1;
};

// How many files are read at once, and how many elements are taken from each in turn.
struct InterleaveSpec {
  std::int64_t cycle_length = 1, block_length = 1;
};
// The elements of `others` after those of the input.
struct ConcatenateSpec {};
// Elements with the columns of the input's and of all others'.
struct ZipSpec {};
// Each element from the input or one of the others, drawn by weight.
struct SampleSpec {
  std::vector<double> weights;
  std::uint64_t seed = 0;
  bool stop_on_empty = false;
};
// Traced functions of an element that return whether it goes on, or whether it is not yet the end.
struct FilterSpec {
  std::vector<std::byte> graph;
};
struct TakeWhileSpec {
  std::vector<std::byte> graph;
};
// The examples whose value of a column has its place in [begin, end).
struct HashSplitSpec {
  std::string column;
  double begin = 0, end = 1;
};
// The rows of batches, one after another.
struct UnbatchSpec {};
// Batches of examples of different lengths, filled up with zeros or empty texts.
struct PaddedBatchSpec {
  std::int64_t n = 1;
  bool drop_remainder = false;
};
// Batches of `size` elements, `stride` apart, each beginning `shift` elements after the one before.
struct WindowSpec {
  std::int64_t size = 1, shift = 1, stride = 1;
  bool drop_remainder = false;
};

// Deals elements to so many replicas in turn: pieces of each batch, or whole batches.
struct DealSpec {
  std::int64_t replicas = 1;
  bool cut = true;
};
// The same examples in batches of these sizes, again and again.
struct RebatchSpec {
  std::vector<std::int64_t> sizes;
  bool drop_remainder = false;
};
// Keeps the elements of a pass, up to so many bytes.
struct CacheSpec {
  std::int64_t bytes_max = 1;
  std::string file;  // empty: in memory
};

// A variant and not a class hierarchy: the description is data, and what is done with it (opening,
// counting, writing) lives in the files that do it.
using StageKind =
    std::variant<FilesSpec, RangeSpec, TensorsSpec, FeaturesSpec, MapSpec, ShuffleSpec, BatchSpec,
                 RepeatSpec, TakeSpec, SkipSpec, ShardSpec, PrefetchSpec, InterleaveSpec, CacheSpec,
                 DealSpec, RebatchSpec, ConcatenateSpec, ZipSpec, SampleSpec, FilterSpec,
                 TakeWhileSpec, UnbatchSpec, PaddedBatchSpec, WindowSpec, GeneratorSpec,
                 HashSplitSpec, ServiceSpec>;

// A stage: its facts, the stages below, and the facts derived from all, kept so that they are
// computed once. `depth` also gives each shuffle of a chain a key of its own.
struct StageSpec {
  StageKind kind;
  std::shared_ptr<const StageSpec> input;  // nullptr: a source
  // For concatenate(), zip() and sample_from_datasets(): the datasets beside the input.
  std::vector<std::shared_ptr<const StageSpec>> others;
  ElementSpec element;  // the spec of its elements
  int batches = 0;      // 0: examples, 1: batches of them, 2: batches of such batches
  bool batched() const { return batches > 0; }
  std::size_t depth = 1;    // stages down to the sources, all together
  std::size_t nesting = 0;  // of datasets within datasets
};

// Elements of the dataset, or some of them, come from a data service: each once, so that there is
// no place in it to go back to, or to go on from.
bool reads_once(const StageSpec& last);

// ---- Sources that read files ----
bool reads_files(const StageSpec& source);
// How many files a source reads one after another; of several columns those of one. 0: none.
std::size_t file_count(const StageSpec& source);
// The paths of all of them.
std::vector<std::string> paths_of(const StageSpec& source);
// The same source over these of its files.
std::shared_ptr<StageSpec> source_of_files(const StageSpec& source,
                                           const std::vector<std::size_t>& files);
// The same source over one of its files, for the stages below interleave(), which run for each file
// on its own.
std::shared_ptr<StageSpec> source_of_file(const StageSpec& source, std::size_t file);

// ---- The element that a stage yields, and the checks that go with it ----
//   Errors  InvalidArgument: it does not fit; names the column and the cure.
ElementSpec tensors_element(const TensorsSpec& spec);
// Stages that change the columns yield what these functions make of `input`.
ElementSpec features_element(const ElementSpec& input, const std::vector<FeatureColumn>& columns);
ElementSpec batch_element(const ElementSpec& input, const BatchSpec& spec);
ElementSpec map_element(const ElementSpec& input, const MapSpec& spec);
ElementSpec unbatch_element(const ElementSpec& input);
ElementSpec padded_batch_element(const ElementSpec& input, const PaddedBatchSpec& spec);
// The element of a concatenation of both: a dimension in which they differ is unknown. Errors
// name `call`.
ElementSpec common_element(const ElementSpec& one, const ElementSpec& other, const char* call);
ElementSpec zip_element(const std::vector<const ElementSpec*>& inputs);
// For filter() and take_while(): checks that the graph gives one bool.
void check_predicate(const ElementSpec& input, const std::vector<std::byte>& graph,
                     const char* call);
// Checks for every source of columns and of files: the number of columns and their names; the
// paths. `what` names the source.
void check_columns(const std::vector<ColumnSpec>& columns, const char* what);
void check_paths(const std::vector<std::string>& paths);
// The element of these columns, checked, with a label among them or none.
ElementSpec checked_element(std::vector<ColumnSpec> columns, std::string label, const char* what);
// The bound on values keeps sizes far from overflow wherever they are multiplied.
void check_value_shape(const std::string& name, const Shape& shape);
// A text on both lists of a label, or negative ones alone, would be read without a word.
void check_label_texts(const CsvLabel& label);
// Adds the two columns of a ragged one: all values, and where each example begins. Of a single
// example the splits are [0, n].
void add_ragged(ElementSpec& element, const std::string& name, DType dtype);
// Whether it has whole numbers, which may be ids.
bool is_whole(DType dtype);
// Traces `body` and gives it as MapSpec::graph; the label of `input` is passed on unless an output
// has its name.
std::vector<std::byte> trace_map(const ElementSpec& input,
                                 const std::function<Outputs(const Batch&)>& body);
// The same of what filter() and take_while() take.
std::vector<std::byte> trace_predicate(const ElementSpec& input,
                                       const std::function<Array(const Batch&)>& body);

// The suffix of a ragged column's name that names the column of its row splits.
inline constexpr const char* kRowSplits = "/row_splits";
// The same for the column that says where a CSV column's cells have no value.
inline constexpr const char* kMissing = "/missing";

}  // namespace cairn
