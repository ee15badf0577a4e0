// Dataset: how elements are made, as a value. It is a description, not a stream; open()
// (data/dataset/dataset_iterator.h) reads it.
//
//     auto train = Dataset::csv("adult.data.gz", schema).features(columns).shard(context)
//                      .shuffle(10'000, seed).batch(256).repeat();
//
// Immutable; every call returns a longer description. It holds no handle and no code, so it can be
// serialised (data/stage/dataset_wire.h), sent, and opened on any machine that sees the same files.
//   Elements  until batch() an element is one example (columns without a batch dimension); after
//             it, a batch.
//   Errors  InvalidArgument, from the call that was wrong, for columns, types and numbers that do
//           not fit. Files are first touched by open().
//   Thread  any; copies share.
#pragma once
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/graph/function.h"
#include "core/tensor/element.h"
#include "data/dataset/element_generator.h"
#include "data/dataset/example_schema.h"
#include "data/dataset/file_schema.h"
#include "data/dataset/input_context.h"
#include "data/dataset/lines_read.h"
#include "data/dataset/schema.h"
#include "data/dataset/service_source.h"
#include "data/feature/feature_column.h"

namespace cairn {

struct StageSpec;  // data/dataset/stage_spec.h

struct BatchOptions {
  bool drop_remainder = false;  // leave out a last batch that is not full
};

// The order of the elements is that of the input, always.
struct MapOptions {
  // How many calls of the function run at once, at most 256: on the thread that reads, and on other
  // lanes of the opener's Offload (OpenOptions); without one, one after another. kAutotune: as many
  // as the machine that reads has processors, up to 16.
  std::int64_t num_parallel_calls = 1;
};

struct ShuffleOptions {
  bool reshuffle_each_iteration = true;  // another order in each epoch of a repeat() above
  std::int64_t pipeline = 0;             // part of the seed: see Dataset::for_pipeline()
};

struct CacheOptions {
  std::int64_t bytes_max = std::int64_t{1} << 30;  // of the elements kept, in memory or in the file
  // Empty: in memory. Otherwise the beginning of a file's name on the machine that reads; "." and a
  // hash of the description follow.
  std::string file;
};

struct WindowOptions {
  std::int64_t shift = 0;  // 0: as many as the size
  std::int64_t stride = 1;
  bool drop_remainder = false;
};

// How replicas in sync share a dataset of batches; see Dataset::deal().
enum class Deal : std::uint8_t {
  kCut,     // each batch is a global one, and every replica gets a piece of it
  kInTurn,  // each batch was made for one replica, and they take turns
};

class Dataset {
 public:
  Dataset() = default;  // no dataset: only defined() may be asked
  explicit Dataset(std::shared_ptr<const StageSpec> last) : last_(std::move(last)) {}

  // ---- sources ----
  //
  // Lines of text, file after file; files compressed by gzip or zstd are known by their first
  // bytes. Blank lines are skipped; cells may be quoted ("a,""b"""), and may then hold line ends
  // (CsvSchema::cell_lines_max). A byte order mark is skipped.
  static Dataset csv(std::vector<std::string> paths, CsvSchema schema, CsvOptions options = {});
  static Dataset csv(std::string path, CsvSchema schema, CsvOptions options = {});
  static Dataset csv(std::initializer_list<std::string> paths, CsvSchema schema,
                     CsvOptions options = {});
  // Flat binary records, file after file (RecordSchema). Sizes are known without reading, so
  // skipping and counting are free, unless bad records are left out.
  static Dataset records(std::vector<std::string> paths, RecordSchema schema,
                         FileOptions options = {});
  static Dataset records(std::string path, RecordSchema schema, FileOptions options = {});
  static Dataset records(std::initializer_list<std::string> paths, RecordSchema schema,
                         FileOptions options = {});
  // The lines of text files, file after file, without their ends ("\n" or "\r\n"): one string
  // column. Compression and byte order marks as for csv().
  static Dataset text_lines(std::vector<std::string> paths, TextOptions options = {});
  static Dataset text_lines(std::string path, TextOptions options = {});
  static Dataset text_lines(std::initializer_list<std::string> paths, TextOptions options = {});
  // Lines of libsvm's format, file after file (LibsvmSchema): a label, and ragged ids and values.
  // Blank lines and comments are skipped.
  static Dataset libsvm(std::vector<std::string> paths, LibsvmSchema schema = {},
                        FileOptions options = {});
  static Dataset libsvm(std::string path, LibsvmSchema schema = {}, FileOptions options = {});
  static Dataset libsvm(std::initializer_list<std::string> paths, LibsvmSchema schema = {},
                        FileOptions options = {});
  // Records of TFRecord files, file after file, compressed or not: tf.train.Examples by their
  // schema, or as they are. Checksums are verified.
  static Dataset tfrecords(std::vector<std::string> paths, ExampleSchema schema = {},
                           TfRecordOptions options = {});
  static Dataset tfrecords(std::string path, ExampleSchema schema = {},
                           TfRecordOptions options = {});
  static Dataset tfrecords(std::initializer_list<std::string> paths, ExampleSchema schema = {},
                           TfRecordOptions options = {});
  // Files of the IDX format side by side, a column each, compressed or not: of images and
  // labels. Their heads must agree with the columns and with each other; only they are read to
  // count examples.
  static Dataset idx(std::vector<IdxColumn> columns, std::string label = "");
  // 0 .. n - 1: one int64 column "value".
  static Dataset range(std::int64_t n);
  // Slices of the columns along their first dimension, which must agree. They travel inside the
  // description.
  static Dataset from_tensor_slices(std::vector<std::pair<std::string, Tensor>> columns,
                                    std::string label = "");

  // Elements of these columns that a function of the program makes. `begin` is called for each
  // pass, and gives what is then called for one example after another, until it gives none.
  //   Code does not travel: the dataset is read in this process, under the strategies without
  //   parameter servers; sending it to workers is FailedPrecondition. A resumed iterator begins
  //   again and drops what it had, so each pass must give the same.
  //   Errors  when read. InvalidArgument: an example does not fit `element`; and what it throws.
  //   Thread  called on the thread that reads, one call at a time per iterator.
  static Dataset from_generator(std::function<ElementGenerator()> begin, ElementSpec element);
  // Elements that a data service hands out: it reads `dataset`, and every consumer of the job gets
  // some. Programs call service::distribute() (service/consumer/distribute.h), which brings `open`
  // along.
  //   Place   it cannot be resumed: see DatasetIterator. If a reader is lost, so are the elements
  //           that its prefetch(), shuffle() and batch() hold; apply these to `dataset` instead.
  //   Passes  one: a repeat() belongs into `dataset`.
  //   Errors  InvalidArgument: no dispatcher, or elements that come from a service already.
  static Dataset from_service(const Dataset& dataset, ServiceSource source, OpenElements open = {});
  // One element of these columns.
  static Dataset from_tensors(std::vector<std::pair<std::string, Tensor>> columns,
                              std::string label = "");
  // Elements of several datasets side by side: one example, or one batch, of each, with the columns
  // of all; the end is that of the shortest. The label is that of the one that has one.
  //   Errors  InvalidArgument: columns of one name, two labels, examples beside batches.
  static Dataset zip(std::vector<Dataset> datasets);
  // Each element is the next one of a dataset that is drawn for it by `weights`, which need not sum
  // to one; by default all weigh the same. A dataset that has ended is drawn no more, or, with
  // stop_on_empty, the first that is found to have ended is the end of all.
  //   Errors  InvalidArgument: other columns; as many weights as datasets are wanted, from 0 up.
  static Dataset sample_from_datasets(std::vector<Dataset> datasets,
                                      std::vector<double> weights = {}, std::uint64_t seed = 0,
                                      bool stop_on_empty = false);

  // ---- example by example ----
  // Replaces all columns but the label. Before batch() only.
  Dataset features(std::vector<FeatureColumn> columns) const;

  // ---- of any elements ----
  //
  // Blocks of buffer_size consecutive elements, each in an order drawn from (seed, epoch, block).
  // The reference slides a buffer over the data instead. Cut into blocks, a shuffled iterator is
  // resumed exactly by reading one block again, and its state stays a few bytes; how far an element
  // can move is about a buffer in both.
  //   Errors  InvalidArgument: a buffer_size below 1, a pipeline below 0.
  Dataset shuffle(std::int64_t buffer_size, std::uint64_t seed = 0,
                  ShuffleOptions options = {}) const;
  // The same elements in the orders of input pipeline `id`, where several pipelines read the same
  // data: each shuffle() has an order of its own per pipeline, also under one seed. A shuffle()
  // with a shard(), take() or skip() anywhere above it keeps its order, which decides there which
  // elements go on. Pipeline 0 is the dataset itself. ClusterCoordinator::create_per_worker_dataset
  // calls it.
  Dataset for_pipeline(std::int64_t id) const;
  // These elements, then those of `other`, which has the same columns.
  Dataset concatenate(const Dataset& other) const;
  // The elements for which a traced function returns true; and those before the first for which it
  // does not. It takes what that of map() takes and returns one bool.
  template <typename F>
  Dataset filter(F function) const;
  template <typename F>
  Dataset take_while(F function) const;
  // The same for graphs that were traced before.
  Dataset filter_graph(std::vector<std::byte> graph) const;
  Dataset take_while_graph(std::vector<std::byte> graph) const;
  // A traced function of an element, an example or a batch: (Features), (Features, Array label) or
  // (Batch) -> named Outputs, the new columns. The label passes unchanged unless an output has its
  // name. No variables, no state. Of a batch it costs a hundredth of what it costs example by
  // example. With num_parallel_calls above 1 it reads ahead: up to 2 * num_parallel_calls batches;
  // of examples about twice what the stage above asks for at once.
  template <typename F>
  Dataset map(F function, MapOptions options = {}) const;
  // The same for a graph that was traced before: serialize(Graph) of one iterator argument, one
  // element taken.
  Dataset map_graph(std::vector<std::byte> graph, MapOptions options = {}) const;
  // Batches of `size` elements, `stride` apart, each of which begins `shift` elements after the one
  // before; the reference's windows, batched. The last ones are shorter, or left out.
  //   Errors  InvalidArgument: a number below 1, or size * stride above 2^20.
  Dataset window(std::int64_t size, WindowOptions options = {}) const;
  // Passes over the elements below, one after another; -1: without end. A pass without elements is
  // the last one.
  Dataset repeat(std::int64_t count = -1) const;
  // The first `count` elements; and all but the first `count`.
  Dataset take(std::int64_t count) const;
  Dataset skip(std::int64_t count) const;
  // Every num-th element from `index` on. Directly above csv() or json_lines() (or their
  // features()), text_lines(), libsvm() or tfrecords() it deals out lines or records before they
  // are parsed: one that does not fit belongs to one shard, and only that one meets it.
  Dataset shard(std::int64_t num, std::int64_t index) const;
  Dataset shard(const InputContext& context) const {
    return shard(context.num_input_pipelines, context.input_pipeline_id);
  }
  // Where AutoShardPolicy::kHint puts a shard() (data/dataset/auto_shard.h). Until then the dataset
  // cannot be read: FailedPrecondition.
  Dataset shard_hint() const;
  // Reads cycle_length of the source's files at once, and takes a block of block_length elements
  // from each in turn; when a file has ended, the next one takes its place. Each file goes through
  // the stages below on its own: a shuffle() there shuffles within files, and a repeat() repeats a
  // file. At most 256 files at once, through 2048 stages together; one interleave(), over a
  // source of files, and no cache() below it.
  Dataset interleave(std::int64_t cycle_length, std::int64_t block_length = 1) const;
  // Keeps the elements of the first pass, and yields them again in each later pass of a repeat()
  // above, in the same order: put what must differ between passes (shuffle) above it.
  //   In memory: each open iterator has its own. One resumed in another process reads on where it
  //   stood; resumed in a later pass, it first reads up to its place. In a file: complete after one
  //   whole pass, and then used by every iterator over the same description that finds it; it
  //   outlives the process. If the source's files change, remove it.
  //   Errors  when read. ResourceExhausted: the elements go beyond bytes_max, or the disk is full.
  //           DataLoss: the file is damaged.
  Dataset cache(CacheOptions options = {}) const;
  // Reads up to n elements ahead on the opener's Offload; without one, it does nothing. Of several
  // prefetch() calls only the last reads ahead. kAutotune begins with few, and doubles them each
  // time the reader has to wait, up to 64 batches or 16,384 examples.
  Dataset prefetch(std::int64_t n) const;

  // ---- batches ----
  // Columns gain a first dimension: unknown, or n with drop_remainder. Batches may be batched
  // again, if they have no ragged columns.
  //   Errors  when read. InvalidArgument: elements of different shapes; see padded_batch().
  Dataset batch(std::int64_t n, BatchOptions options = {}) const;
  // Batches whose ragged columns, and dimensions that are not the same in all examples, are filled
  // up at their ends to the longest: with zeros, or empty texts. Of examples only.
  Dataset padded_batch(std::int64_t n, BatchOptions options = {}) const;
  // The rows of each batch, one after another.
  //   Errors  InvalidArgument: the elements are examples, or a column has no first dimension; when
  //           read, columns of different lengths.
  Dataset unbatch() const;

  // Elements for `replicas` replicas that run a step together and take them in turn, always all of
  // them. kCut: the pieces of each batch, of ceil(size / replicas) examples; the last ones may have
  // fewer, or none. kInTurn: batches as they are, and at the end as many of no examples as the last
  // step lacks. Strategies call it last, and programs need not. After batch() only.
  Dataset deal(std::int64_t replicas, Deal how) const;

  // The same examples in batches of `sizes`, again and again, whatever batches they came in. A size
  // of 0 is a batch of no examples. The last batch may have fewer, unless drop_remainder leaves it
  // out; nothing follows it. After batch() only.
  //   Errors  InvalidArgument: no sizes, more than 65536, one below 0, or none above.
  Dataset rebatch(std::vector<std::int64_t> sizes, BatchOptions options = {}) const;

  const ElementSpec& element_spec() const;
  bool batched() const;  // an element is a batch
  bool defined() const { return last_ != nullptr; }
  const std::shared_ptr<const StageSpec>& last() const { return last_; }

 private:
  Dataset map_batch(const std::function<Outputs(const Batch&)>& body, MapOptions options) const;
  Dataset filter_batch(const std::function<Array(const Batch&)>& body) const;
  Dataset take_while_batch(const std::function<Array(const Batch&)>& body) const;
  std::shared_ptr<const StageSpec> last_;
};

// The files that a pattern of the shell names ("part-*.csv"), in the order of their names: for
// csv(), tfrecords() and the like, which read them one after another, or several at once with
// interleave(). Looked up now, and on this machine.
//   Errors  NotFound: there are none.
std::vector<std::string> list_files(const std::string& pattern);

inline constexpr std::int64_t kInfiniteCardinality = -1;

// How many elements one iteration yields. Cheap for range, tensors, records (by file size) and IDX
// files. Elements of from_generator() are counted by making them; the lines of text and the records
// of TFRecord files are counted, and parsed only where bad ones are skipped; `lines`, if given,
// receives what was met on the way.
//   Errors  NotFound: a file is missing; and those of reading.
std::int64_t cardinality(const Dataset& dataset, LinesRead* lines = nullptr);

// ---- templates ----
namespace detail {
// Calls `function` with `element`, in the form that the function takes.
template <typename F>
auto of_element(F& function, const Batch& element) {
  constexpr bool kOfBatch = std::is_invocable_v<F&, const Batch&>,
                 kOfFeatures = std::is_invocable_v<F&, const Features&>;
  constexpr bool kOfBoth = std::is_invocable_v<F&, const Features&, const Array&>;
  static_assert(kOfBatch || kOfFeatures || kOfBoth,
                "The function of Dataset::map, filter or take_while takes (Features), (Features, "
                "Array label) or (Batch), by value or by const reference");
  if constexpr (kOfBatch) {
    return function(element);
  } else if constexpr (kOfBoth) {
    return function(element.features, element.label);
  } else if constexpr (kOfFeatures) {
    return function(element.features);
  } else {
    return Array();
  }
}
}  // namespace detail

template <typename F>
Dataset Dataset::map(F function, MapOptions options) const {
  const auto body = [&function](const Batch& element) -> Outputs {
    return detail::to_outputs(detail::of_element(function, element));
  };
  return map_batch(body, options);
}
template <typename F>
Dataset Dataset::filter(F function) const {
  return filter_batch(
      [&function](const Batch& element) -> Array { return detail::of_element(function, element); });
}
template <typename F>
Dataset Dataset::take_while(F function) const {
  return take_while_batch(
      [&function](const Batch& element) -> Array { return detail::of_element(function, element); });
}

}  // namespace cairn
